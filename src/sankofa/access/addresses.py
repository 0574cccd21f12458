"""Counts by address: wrong keys, and the pages of visitors without a key.

An IPv6 address counts with its /64, which is one subscriber's. The counters are numbered buckets, so there is
a bound on how many strangers can make. A secret decides which address has which, so nobody can choose one.

See contract: KEY-12, WEB-14.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from ipaddress import IPv6Address, ip_address
from typing import Final

from sankofa.access.tiers import RateState
from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import Problem, RateLimited, StoreUnavailable, Unauthorized
from sankofa.model.limits import limit

WRONG_KEYS_PER_MINUTE: Final = limit("wrong keys of an address", 200, "requests a minute", "429")
BUCKETS: Final = 65_536
_DAY: Final = 86_400


class AddressCounters:
    """Counters in the usage store, for all processes together."""

    def __init__(self, store: KeyValue, clock: Callable[[], datetime], secret: bytes) -> None:
        self._store = store
        self._clock = clock
        self._secret = hashlib.blake2b(secret, digest_size=32).digest()

    def now(self) -> int:
        return int(self._clock().timestamp())

    async def count(self, what: str, address: str, *windows: Window) -> tuple[int, ...]:
        """Add one to the counters of an address. Raises StoreUnavailable."""
        digest = hashlib.blake2b(_network(address).encode(), digest_size=8, key=self._secret).digest()
        return await self._store.count(f"{what}:{int.from_bytes(digest, 'little') % BUCKETS}", windows)


class WrongKeys:
    """Guessing keys: an address gets so many 401s in a minute, then 429 until the minute is over.

    Only what would be a 401 is counted and refused: others behind an address never lock out a good key.
    """

    def __init__(self, counters: AddressCounters) -> None:
        self._counters = counters

    async def answer(self, address: str, problem: Unauthorized) -> Problem:
        """The 401, or the 429 instead of it. A store that does not answer leaves it at the 401."""
        now = self._counters.now()
        try:
            (count,) = await self._counters.count("wrong", address, _minute(now))
        except StoreUnavailable:
            return problem
        if count <= WRONG_KEYS_PER_MINUTE:
            return problem
        return RateLimited(
            f"More than {WRONG_KEYS_PER_MINUTE} requests with an unknown API key in a minute.", 60 - now % 60
        )


class Visitors:
    """Pages written for visitors without a key: so many a minute and a UTC day for each address."""

    def __init__(self, counters: AddressCounters, per_minute: int, per_day: int) -> None:
        self._counters = counters
        self._per_minute = per_minute
        self._per_day = per_day

    async def count(self, address: str) -> tuple[RateState, RateLimited | None]:
        """Count one page; the second part is the refusal when it was one too many."""
        now = self._counters.now()
        day = Window(f"d{now // _DAY}", 2 * _DAY)
        in_minute, in_day = await self._counters.count("visitor", address, _minute(now), day)
        minute_ends, day_ends = 60 - now % 60, _DAY - now % _DAY
        policy = f'"minute";q={self._per_minute};w=60, "day";q={self._per_day};w={_DAY}'
        left = (
            f'"minute";r={max(self._per_minute - in_minute, 0)};t={minute_ends}, '
            f'"day";r={max(self._per_day - in_day, 0)};t={day_ends}'
        )
        fields = [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())]
        state = RateState(policy, left, fields)
        if in_day > self._per_day:
            return state, _too_many(self._per_day, "day", day_ends)
        if in_minute > self._per_minute:
            return state, _too_many(self._per_minute, "minute", minute_ends)
        return state, None


def _too_many(limit: int, period: str, seconds: int) -> RateLimited:
    return RateLimited(
        f"Visitors without a key get {limit} new pages a {period} for each address, and this address has had "
        "them. Pages that were asked for before are still served.",
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
