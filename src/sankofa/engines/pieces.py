"""Pieces of rows from all over an edition, fifty of them for a screen: one look into a table for each.

The table leads from the number of a block to its rows, of those that are in the cache of blocks. It is
emptied as soon as any rows leave the cache, so it never keeps them from being freed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sankofa.engines.block_cache import BlockCache
from sankofa.engines.block_file import BlockFileReader
from sankofa.engines.datastore import ByteRange
from sankofa.engines.parts_by_kind import PartsByKind

_MOST_LISTED: Final = 1 << 16


class PieceReader:
    """Reads pieces of rows of one edition. Raises Damaged."""

    def __init__(self, parts: PartsByKind[BlockFileReader], cache: BlockCache) -> None:
        self._parts = parts
        self._cache = cache
        self._rows: dict[str, dict[int, bytes]] = {}
        self._dropped = 0

    def read(self, kind: str, ranges: Sequence[ByteRange]) -> list[bytes | memoryview]:
        if self._dropped != self._cache.dropped:
            self._rows.clear()
            self._dropped = self._cache.dropped
        try:
            rows = self._rows[kind]
            return [rows[block][start:end] for block, start, end in ranges]
        except KeyError:
            return [*self._read(kind, ranges)]

    def clear(self) -> None:
        self._rows.clear()

    def _read(self, kind: str, ranges: Sequence[ByteRange]) -> Iterable[bytes | memoryview]:
        """Those not in the table from the file, or from the cache; they are in the table from now on."""
        if len(listed := self._rows.setdefault(kind, {})) > _MOST_LISTED:
            listed.clear()
        for block, start, end in ranges:
            rows = listed.get(block)
            if rows is None:
                part, number = self._parts.of_block(kind, block)
                rows = part.cached_rows(number)
                if rows is None:
                    yield part.piece(number, start, end)
                    continue
                listed[block] = rows
            yield rows[start:end]
        if self._dropped != self._cache.dropped:  # some of these may be gone already
            listed.clear()
