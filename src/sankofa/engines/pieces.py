"""Pieces of rows from all over an edition, fifty of them for a screen: those read lately are kept.

A piece is a row, the block that it is cut from has some fifty, and who leads a metric hardly changes from day
to day: the pieces of thousands of screens take a few megabytes where their blocks would take a hundred.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sankofa.engines.block_file import BlockFileReader
from sankofa.engines.datastore import ByteRange
from sankofa.engines.parts_by_kind import PartsByKind

_ROOM: Final = 16 << 20
"""Bytes of pieces of a kind that were read lately; as many that were read before are kept besides."""
_ENTRY_BYTES: Final = 256
"""Memory that an entry takes besides its bytes."""
_LARGEST: Final = 16 << 10


class PieceReader:
    """Reads pieces of rows of one edition. Raises Damaged."""

    def __init__(self, parts: PartsByKind[BlockFileReader]) -> None:
        self._parts = parts
        self._kept: dict[str, _KeptPieces] = {}

    def read(self, kind: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        if (kept := self._kept.get(kind)) is None:
            kept = self._kept[kind] = _KeptPieces()
        try:
            return [*map(kept.lately.__getitem__, ranges)]
        except KeyError:
            return [*self._read(kind, kept, ranges)]

    def clear(self) -> None:
        self._kept.clear()

    def _read(self, kind: str, kept: "_KeptPieces", ranges: Sequence[ByteRange]) -> Iterator[bytes]:
        for byte_range in ranges:
            piece = kept.lately.get(byte_range)
            if piece is None:
                piece = kept.before.get(byte_range)
                if piece is None:
                    block, start, end = byte_range
                    part, number = self._parts.of_block(kind, block)
                    piece = part.piece(number, start, end)
                kept.put(byte_range, piece)
            yield piece


class _KeptPieces:
    """In two generations: where the younger has no more room, the older is dropped."""

    __slots__ = ("_bytes", "before", "lately")

    def __init__(self) -> None:
        self.lately: dict[ByteRange, bytes] = {}
        self.before: dict[ByteRange, bytes] = {}
        self._bytes = 0

    def put(self, byte_range: ByteRange, piece: bytes) -> None:
        if len(piece) > _LARGEST:
            return
        self._bytes += len(piece) + _ENTRY_BYTES
        if self._bytes > _ROOM:
            self.before, self.lately = self.lately, {}
            self._bytes = len(piece) + _ENTRY_BYTES
        self.lately[byte_range] = piece
