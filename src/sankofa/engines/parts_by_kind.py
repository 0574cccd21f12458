"""Which part of an edition has a key: each holds the keys from its first one up to the first of the next."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from sankofa.engines.datastore import BLOCK_BITS, Manifest

_BLOCK_MASK: Final = (1 << BLOCK_BITS) - 1
Part = TypeVar("Part")


class KeySpan(NamedTuple, Generic[Part]):
    """A part, and the keys that it holds: from `first` on, those before `end`."""

    part: Part
    first: str
    end: str | None

    def has(self, key: str) -> bool:
        """A key that leads to another is in the part of that one, out of order."""
        return self.end is None or key < self.end


class PartsByKind(Generic[Part]):
    """The parts that have keys of each kind, in the order of their keys."""

    __slots__ = ("_firsts", "_parts")

    def __init__(self, manifest: Manifest, parts: Sequence[Part]) -> None:
        """`parts` are those that the manifest lists, in its order; others may follow."""
        self._firsts: dict[str, list[str]] = {}
        self._parts: dict[str, list[Part]] = {}
        for entry, part in zip(manifest["parts"], parts, strict=False):
            for kind in entry["kinds"]:
                self._firsts.setdefault(kind, []).append(entry["first"])
                self._parts.setdefault(kind, []).append(part)

    def of_key(self, kind: str, key: str) -> Part | None:
        """The part that has the key, if any has."""
        if (parts := self._parts.get(kind)) is None:
            return None
        if len(parts) == 1:
            return parts[0]
        return parts[max(bisect_right(self._firsts[kind], key) - 1, 0)]

    def of_kind(self, kind: str) -> Sequence[Part]:
        return self._parts[kind]

    def of_block(self, kind: str, block: int) -> tuple[Part, int]:
        """The part of a block, and its number there."""
        return self._parts[kind][block >> BLOCK_BITS], block & _BLOCK_MASK

    def spans(self, kind: str, after: str) -> Iterator[KeySpan[Part]]:
        """The parts with keys behind one, in their order."""
        firsts, parts = self._firsts.get(kind, []), self._parts.get(kind, [])
        for number in range(max(bisect_right(firsts, after) - 1, 0), len(firsts)):
            following = firsts[number + 1] if number + 1 < len(firsts) else None
            yield KeySpan(parts[number], firsts[number], following)

    def clear(self) -> None:
        self._firsts.clear()
        self._parts.clear()
