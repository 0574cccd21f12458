"""Pieces of rows from all over an edition, fifty of them for a screen: one look into a table for each.

The table leads from the number of a block to its rows, of those that are in the cache of blocks: rows that
leave the cache leave the table.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sankofa.engines.block_file import BlockFileReader
from sankofa.engines.datastore import ByteRange
from sankofa.engines.parts_by_kind import PartsByKind

_READS_UNTOLD: Final = 64
"""One in so many reads goes through the cache, which so learns which rows are read."""


class PieceReader:
    """Reads pieces of rows of one edition. Raises Damaged."""

    def __init__(self, parts: PartsByKind[BlockFileReader]) -> None:
        self._parts = parts
        self._rows: dict[str, dict[int, memoryview]] = {}
        self._reads = 0

    def read(self, kind: str, ranges: Sequence[ByteRange]) -> list[bytes | memoryview]:
        self._reads += 1
        if self._reads % _READS_UNTOLD:
            try:
                rows = self._rows[kind]
                return [rows[block][start:end] for block, start, end in ranges]
            except KeyError:
                pass
        return [*self._read(kind, ranges)]

    def clear(self) -> None:
        for rows in self._rows.values():
            rows.clear()
        self._rows.clear()

    def _read(self, kind: str, ranges: Sequence[ByteRange]) -> Iterator[bytes | memoryview]:
        """From the file or the cache; those in the cache are in the table from now on."""
        table = self._rows.setdefault(kind, {})
        for block, start, end in ranges:
            part, number = self._parts.of_block(kind, block)
            rows = part.listed_rows(number, table, block)
            yield part.piece(number, start, end) if rows is None else rows[start:end]
