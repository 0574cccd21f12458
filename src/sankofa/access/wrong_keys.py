"""Guessing keys: an address gets so many 401s in a minute, then 429 until the minute is over.

Only what would be a 401 is counted and refused: a good key is never locked out by others behind its address.

See contract: KEY-12.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from ipaddress import IPv6Address, ip_address
from typing import Final

from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import Problem, RateLimited, StoreUnavailable, Unauthorized

WRONG_KEYS_PER_MINUTE: Final = 200
_BUCKETS: Final = 65_536
"""A bound on the counters that strangers can make, whatever number of addresses they have."""


class WrongKeys:
    """Counts in the usage store, for all processes together."""

    def __init__(self, store: KeyValue, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._minute = 0
        self._refused: set[int] = set()

    async def answer(self, address: str, problem: Unauthorized) -> Problem:
        """The 401, or the 429 in its place. A store that does not answer leaves it at the 401."""
        now = int(self._clock().timestamp())
        minute, bucket = now // 60, _bucket(address)
        if minute != self._minute:
            self._minute = minute
            self._refused.clear()
        if bucket not in self._refused:
            try:
                (count,) = await self._store.count(f"wrong:{bucket}", (Window(f"m{minute}", 120),))
            except StoreUnavailable:
                return problem
            if count <= WRONG_KEYS_PER_MINUTE:
                return problem
            self._refused.add(bucket)
        return RateLimited(
            f"More than {WRONG_KEYS_PER_MINUTE} requests with an unknown API key in a minute.", 60 - now % 60
        )


def _bucket(address: str) -> int:
    """IPv6 by its /64, which is one subscriber's."""
    try:
        parsed = ip_address(address)
    except ValueError:
        network = address
    else:
        if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        network = str(int(parsed) >> 64) if isinstance(parsed, IPv6Address) else str(parsed)
    digest = hashlib.blake2b(network.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % _BUCKETS
