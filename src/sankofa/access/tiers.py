"""Tiers: a key's rights (contract: PAR-4, KEY-8, KEY-14), its quotas, and its last use.

Requests without a key are counted by address: wrong keys, and the pages of visitors without a key.

An IPv6 address counts with its /64, which belongs to one subscriber. The counters are a fixed number of
buckets. A secret assigns each address its bucket, so a client cannot choose one.

See contract: KEY-12, WEB-14.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import msgspec

from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import Problem, RateLimited, StoreUnavailable, Unauthorized, UpgradeRequired
from sankofa.model.limits import limit
from sankofa.settings import Settings

TIERS: Final = ("sample", "starter", "professional")


class Lock(msgspec.Struct, frozen=True):
    """The last day that a key may see: fixed, or moving forward with the clock (contract: LOCK-1)."""

    day: date
    last: date | None = None
    """The day at which a moving lock stops; None for today."""
    since: float = 0.0
    """The instant, in seconds since 1970, at which a moving lock was at `day`."""
    step_days: int = 0
    """Days that a moving lock advances at a time; 0 for a fixed one."""
    every_seconds: float = 1.0

    def on(self, now: datetime) -> date:
        """The day at an instant; never later than that instant's."""
        end = min(now.date(), self.last or now.date())
        if not self.step_days:
            return min(self.day, end)
        steps = max(0, int((now.timestamp() - self.since) / self.every_seconds))
        days_left = max(0, (end - self.day).days)
        return min(end, date.fromordinal(self.day.toordinal() + min(steps * self.step_days, days_left)))


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of an authenticated caller: the tier of its key, with its caps."""

    key_id: str
    tier: str
    row_cap: int
    default_rows: int
    per_minute: int | None
    per_month: int | None
    """None for the owner of the installation, as `per_minute`: no quota."""
    upgrade_url: str
    expires_at: str | None = None
    counted_as: str = ""
    """The key that it replaced and is counted with, if any."""
    lock: Lock | None = None
    """The last day that it can see; None for today."""
    link: str = ""
    """The id of the link presented instead of a key."""
    owner: bool = False
    presented: str = ""
    """The hash of the key or link that was presented."""
    sample: bool = field(init=False)
    counter: str = field(init=False)
    """The name that its requests are counted under."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample", self.tier == "sample")
        object.__setattr__(self, "counter", f"use:{self.counted_as or self.key_id}")

    def rows(self, limit: int | None) -> int:
        """The most rows to serve for a `limit`. Raises UpgradeRequired."""
        if limit is None:
            return self.default_rows
        if limit <= self.row_cap:
            return limit
        if self.sample:
            raise UpgradeRequired(
                f"limit: the sample tier serves at most {self.row_cap} rows; omit limit for the free preview "
                "or upgrade for more.",
                self.upgrade_url,
            )
        return self.row_cap

    def rows_or_all(self, limit: int | None) -> int | None:
        """Like `rows`, for endpoints where no `limit` means everything: a paid key gets None (unlimited)."""
        if limit is None:
            return self.default_rows if self.sample else None
        return self.rows(limit)

    def requires_paid(self, what: str) -> None:
        """Raises UpgradeRequired on the sample tier."""
        if self.sample:
            raise UpgradeRequired(f"{what} needs the starter tier or above.", self.upgrade_url)


def grant(
    settings: Settings,
    key_id: str,
    tier: str,
    per_minute: int | None = None,
    per_month: int | None = None,
    *,
    owner: bool = False,
    **others: Any,
) -> Grant:
    """The grant of a key: its own caps, or its tier's. `others` are further fields of the grant."""
    rows = settings.rows_sample if tier == "sample" else settings.rows_paid
    return Grant(
        key_id=key_id,
        tier=tier,
        row_cap=rows,
        default_rows=rows if tier == "sample" else min(settings.rows_default, rows),
        per_minute=None if owner else per_minute or getattr(settings, f"per_minute_{tier}"),
        per_month=None if owner else per_month or getattr(settings, f"per_month_{tier}"),
        upgrade_url=settings.upgrade_url,
        owner=owner,
        **others,
    )


_NAMES: Final = "used:"
_MOST: Final = 65_536
_SECONDS_A_DAY: Final = 86_400


class LastUsed:
    """The day on which each key was last used. A process writes a record at most once a day."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store
        self.noted: dict[str, int] = {}
        """The last recorded day of each key, as days since 1970."""

    async def note(self, key_id: str, day: int) -> None:
        """Record the use of a key on a day (days since 1970). Requests go on if the store does not answer."""
        if len(self.noted) >= _MOST:
            self.noted.clear()
        self.noted[key_id] = day
        text = datetime.fromtimestamp(day * _SECONDS_A_DAY, UTC).date().isoformat().encode()
        with suppress(StoreUnavailable):
            if await self._store.get(_NAMES + key_id) != text:
                await self._store.put(_NAMES + key_id, text)

    async def day_of(self, key_id: str) -> date | None:
        """The day on which a key was last used; None if it never was. Raises StoreUnavailable."""
        stored = await self._store.get(_NAMES + key_id)
        try:
            return None if stored is None else date.fromisoformat(stored.decode())
        except ValueError:  # damaged
            return None


_MONTH_KEPT = 40 * _SECONDS_A_DAY


class RateState(msgspec.Struct, frozen=True):
    """The quota left after a request was counted."""

    policy: str
    """Empty without a quota."""
    headers: Sequence[tuple[bytes, bytes]]
    """The RateLimit header fields of the IETF draft. Empty without a quota."""


class Usage(RateState, frozen=True, gc=False):
    grant: Grant
    in_minute: int = 0
    in_month: int = 0
    minute_ends: int = 0
    """A Unix second, as `month_ends`."""
    month_ends: int = 0


class Quotas:
    """Counts requests per fixed UTC minute and per UTC calendar month."""

    def __init__(self, store: KeyValue, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._used = LastUsed(store)

    async def count(self, grant: Grant) -> tuple[Usage, RateLimited | None]:
        """Count one request. The second part is the refusal if the quota is exceeded."""
        now = int(self._clock().timestamp())
        windows, month_began, month_ends = _windows(now // 60)
        in_minute, in_month = await self._store.count(grant.counter, windows)
        used = grant.link or grant.key_id
        if self._used.noted.get(used) != now // 86400:
            await self._used.note(used, now // 86400)
        seconds = 60 - now % 60
        ends = now + seconds, month_ends
        if grant.per_minute is None or grant.per_month is None:
            return Usage("", (), grant, in_minute, in_month, *ends), None
        minute_left, month_left = grant.per_minute - in_minute, grant.per_month - in_month
        policy, policy_field = _policy(grant.per_minute, grant.per_month, "month", month_ends - month_began)
        remaining = (
            f'"minute";r={minute_left if minute_left > 0 else 0};t={seconds}, '
            f'"month";r={month_left if month_left > 0 else 0};t={month_ends - now}'
        )
        headers = policy_field, (b"ratelimit", remaining.encode())
        usage = Usage(policy, headers, grant, in_minute, in_month, *ends)
        if month_left < 0:
            return usage, RateLimited(
                f"The monthly cap of {grant.per_month} requests is reached.", month_ends - now
            )
        if minute_left < 0:
            return usage, RateLimited(
                f"The limit of {grant.per_minute} requests per minute is reached.", seconds
            )
        return usage, None

    async def read(self, grant: Grant) -> tuple[int, int]:
        """Requests counted in this minute and this month, without counting one."""
        windows, _, _ = _windows(int(self._clock().timestamp()) // 60)
        in_minute, in_month = await self._store.counts(grant.counter, windows)
        return in_minute, in_month


@lru_cache(maxsize=8)
def _windows(minute: int) -> tuple[tuple[Window, Window], int, int]:
    """The windows of a minute (the minute and its UTC month), and when the month began and ends."""
    now = datetime.fromtimestamp(minute * 60, UTC)
    first = now.replace(day=1, hour=0, minute=0)
    following = (first + timedelta(days=32)).replace(day=1)
    windows = Window(f"m{minute}", 120), Window(f"M{now:%Y%m}", _MONTH_KEPT)
    return windows, int(first.timestamp()), int(following.timestamp())


@lru_cache(maxsize=1024)
def _policy(per_minute: int, per_period: int, period: str, seconds: int) -> tuple[str, tuple[bytes, bytes]]:
    policy = f'"minute";q={per_minute};w=60, "{period}";q={per_period};w={seconds}'
    return policy, (b"ratelimit-policy", policy.encode())


WRONG_KEYS_PER_MINUTE: Final = limit("wrong keys of an address", 200, "requests a minute", "429")
BUCKETS: Final = 65_536


class Addresses:
    """Limits requests without a valid key, by address: wrong keys, and the pages of visitors.

    The counters are in the usage store, for all processes together.
    """

    def __init__(
        self, store: KeyValue, clock: Callable[[], datetime], secret: bytes, per_minute: int, per_day: int
    ) -> None:
        """`per_minute` and `per_day` are the pages that a visitor gets."""
        self._store = store
        self._clock = clock
        self._secret = hashlib.blake2b(secret, digest_size=32).digest()
        self._caps = per_minute, per_day

    async def refusal(self, address: str, problem: Unauthorized) -> Problem:
        """The 401 for a wrong key, or a 429 once an address sent too many in a minute.

        Only what would be a 401 is counted and refused: wrong keys from an address never lock out a good one.
        If the store does not answer, it stays a 401.
        """
        now = int(self._clock().timestamp())
        try:
            (count,) = await self._count("wrong", address, _minute(now))
        except StoreUnavailable:
            return problem
        if count <= WRONG_KEYS_PER_MINUTE:
            return problem
        return RateLimited(
            f"More than {WRONG_KEYS_PER_MINUTE} requests with an unknown API key in a minute.", 60 - now % 60
        )

    async def visit(self, address: str) -> tuple[RateState, RateLimited | None]:
        """Count a page for a visitor. The second part is the refusal if the quota of a minute or a UTC day is
        exceeded. Raises StoreUnavailable.
        """
        now = int(self._clock().timestamp())
        day = Window(f"d{now // _SECONDS_A_DAY}", 2 * _SECONDS_A_DAY)
        in_minute, in_day = await self._count("visitor", address, _minute(now), day)
        per_minute, per_day = self._caps
        minute_ends, day_ends = 60 - now % 60, _SECONDS_A_DAY - now % _SECONDS_A_DAY
        policy, policy_field = _policy(per_minute, per_day, "day", _SECONDS_A_DAY)
        remaining = (
            f'"minute";r={max(per_minute - in_minute, 0)};t={minute_ends}, '
            f'"day";r={max(per_day - in_day, 0)};t={day_ends}'
        )
        state = RateState(policy, (policy_field, (b"ratelimit", remaining.encode())))
        if in_day > per_day:
            return state, _too_many(per_day, "day", day_ends)
        if in_minute > per_minute:
            return state, _too_many(per_minute, "minute", minute_ends)
        return state, None

    async def _count(self, what: str, address: str, *windows: Window) -> tuple[int, ...]:
        digest = hashlib.blake2b(_network(address).encode(), digest_size=8, key=self._secret).digest()
        return await self._store.count(f"{what}:{int.from_bytes(digest, 'little') % BUCKETS}", windows)


def _too_many(limit: int, period: str, seconds: int) -> RateLimited:
    return RateLimited(
        f"Visitors without a key get {limit} new pages a {period} for each address, and this address has "
        "used them up. Pages that are cached are still served.",
        seconds,
    )


def _minute(now: int) -> Window:
    return Window(f"m{now // 60}", 120)


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return str(int(parsed) >> 64) if isinstance(parsed, IPv6Address) else str(parsed)
