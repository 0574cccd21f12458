"""The names and values in Redis, the same for one server, Sentinel and a cluster."""

import hashlib
from collections.abc import Sequence
from typing import Final

from sankofa.engines.keyvalue import Window

VALUES: Final = "sankofa:values"
"""The hash that holds every value of a single server, and of one that sentinels watch."""
COUNT_SCRIPT: Final = """
local counts = {}
for i, key in ipairs(KEYS) do
  counts[i] = redis.call('INCR', key)
  if counts[i] == 1 then redis.call('EXPIRE', key, ARGV[i]) end
end
return counts
"""
REPLACE_SCRIPT: Final = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
"""Arguments: a hash, a field, the expected value and the new value."""
COUNT_SHA: Final = hashlib.sha1(COUNT_SCRIPT.encode(), usedforsecurity=False).hexdigest()


def counter_names(name: str, windows: Sequence[Window]) -> list[str]:
    """The keys of the counters: the braces keep those of one name on one node, as a script demands."""
    return [f"sankofa:count:{{{name}}}:{window.name}" for window in windows]


def counter_words(name: str, windows: Sequence[Window]) -> list[str]:
    """The keys of the counters, then their seconds: what COUNT_SCRIPT takes after the number of keys."""
    return [*counter_names(name, windows), *(str(window.seconds) for window in windows)]


def counts_in(reply: object, windows: int, least: int) -> tuple[int, ...] | None:
    """The counters of an answer, each of at least so many; None where anybody altered them."""
    if not isinstance(reply, list) or len(reply) != windows:
        return None
    try:
        counts = tuple(int(count or 0) for count in reply)
    except (ValueError, TypeError):
        return None
    return counts if min(counts, default=least) >= least else None
