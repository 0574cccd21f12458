"""A dictionary of bounded size: what was put in first goes first."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most so many entries."""

    __slots__ = ("_entries", "_most", "get")

    def __init__(self, most: int) -> None:
        self._entries: dict[K, V] = {}
        self._most = most
        self.get = self._entries.get  # no call of ours in between: some ask for every row of an answer

    def put(self, key: K, value: V) -> None:
        entries = self._entries
        if len(entries) >= self._most and key not in entries:
            del entries[next(iter(entries))]
        entries[key] = value

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
