"""A dictionary of bounded size: what was put in first goes first."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most so many entries."""

    __slots__ = ("_entries", "_most", "get")

    def __init__(self, most: int) -> None:
        # Not a plain dict, in which the way to the oldest leads past the places of all that went before it.
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self.get = self._entries.get  # no call of ours in between: some ask for every row of an answer

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
