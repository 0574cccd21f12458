"""The day on which each key was last used: a small record in the usage store, written at most once a day."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from sankofa.access.tiers import Grant
from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import RateLimited, StoreUnavailable

_NAMES: Final = "used:"
_MOST: Final = 65_536
_SECONDS_A_DAY: Final = 86_400


class LastUsed:
    """Notes and tells the days. A process looks at a record once a day, and writes it if nobody has yet."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store
        self.noted: dict[str, int] = {}
        """The day that was last noted of each key, as days since 1970."""

    async def note(self, key_id: str, day: int) -> None:
        """A key was used on a day (days since 1970). A store that does not answer stops no request."""
        if len(self.noted) >= _MOST:
            self.noted.clear()
        self.noted[key_id] = day
        text = datetime.fromtimestamp(day * _SECONDS_A_DAY, UTC).date().isoformat().encode()
        with suppress(StoreUnavailable):
            if await self._store.get(_NAMES + key_id) != text:
                await self._store.put(_NAMES + key_id, text)

    async def day_of(self, key_id: str) -> date | None:
        """The day on which a key was last used; None where it never was. Raises StoreUnavailable."""
        stored = await self._store.get(_NAMES + key_id)
        try:
            return None if stored is None else date.fromisoformat(stored.decode())
        except ValueError:  # damaged: nobody knows
            return None


_MONTH_KEPT = 40 * 86400


class RateState(msgspec.Struct, frozen=True):
    """The quota left after a request was counted: the RateLimit header fields of the IETF draft."""

    policy: str
    state: str
    headers: list[tuple[bytes, bytes]]


class Usage(RateState, frozen=True):
    """Where a key stands after a request was counted."""

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
        """Count one request; the second part is the refusal when it was one too many."""
        now = int(self._clock().timestamp())
        windows, month_began, month_ends = _windows(now // 60)
        in_minute, in_month = await self._store.count(grant.counter, windows)
        if self._used.noted.get(grant.link or grant.key_id) != now // 86400:
            await self._used.note(grant.link or grant.key_id, now // 86400)
        minute_ends = now - now % 60 + 60
        if grant.per_minute is None or grant.per_month is None:
            return Usage("", "", [], grant, in_minute, in_month, minute_ends, month_ends), None
        minute_left, month_left = grant.per_minute - in_minute, grant.per_month - in_month
        policy = _policy(grant.per_minute, grant.per_month, month_ends - month_began)
        left = (
            f'"minute";r={max(minute_left, 0)};t={60 - now % 60}, '
            f'"month";r={max(month_left, 0)};t={month_ends - now}'
        )
        usage = Usage(
            policy,
            left,
            [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())],
            grant,
            in_minute,
            in_month,
            minute_ends,
            month_ends,
        )
        if month_left < 0:
            return usage, RateLimited(
                f"The monthly cap of {grant.per_month} requests is reached.", month_ends - now
            )
        if minute_left < 0:
            return usage, RateLimited(
                f"The limit of {grant.per_minute} requests per minute is reached.", 60 - now % 60
            )
        return usage, None

    async def read(self, grant: Grant) -> tuple[int, int]:
        """How many requests were counted in this minute and in this month, without counting one."""
        windows, _, _ = _windows(int(self._clock().timestamp()) // 60)
        in_minute, in_month = await self._store.counts(grant.counter, windows)
        return in_minute, in_month


@lru_cache(maxsize=8)
def _windows(minute: int) -> tuple[tuple[Window, Window], int, int]:
    """The windows of a minute: itself and its UTC month; when the month began and ends."""
    now = datetime.fromtimestamp(minute * 60, UTC)
    first = now.replace(day=1, hour=0, minute=0)
    following = (first + timedelta(days=32)).replace(day=1)
    windows = Window(f"m{minute}", 120), Window(f"M{now:%Y%m}", _MONTH_KEPT)
    return windows, int(first.timestamp()), int(following.timestamp())


@lru_cache(maxsize=1024)
def _policy(per_minute: int, per_month: int, month_seconds: int) -> str:
    return f'"minute";q={per_minute};w=60, "month";q={per_month};w={month_seconds}'
