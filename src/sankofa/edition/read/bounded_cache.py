"""A cache that holds a number of entries."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A dictionary of bounded size: the oldest entry is dropped first."""

    __slots__ = ("_entries", "_most", "get")

    def __init__(self, most: int) -> None:
        # A plain dict looks past the slots of all dropped entries to find the oldest.
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self.get = self._entries.get  # bound once: some callers ask for every row of an answer

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
