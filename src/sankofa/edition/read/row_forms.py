"""Rows in forms other than the stored one. A block is rewritten once and cached, so that the next request
reads it like a stored block.

`FormReader` reads any form, such as figures as facts, or lines of CSV. Locked views read rows through
`BareReader`, without the time of capture and the file digest (contract: LOCK-3). It also remembers the
sources of the rows.
"""

import re
from collections.abc import Callable, Coroutine, Hashable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, cast

from sankofa.edition.format import macro
from sankofa.edition.format.keys import FULL_YEARS, MACRO_SERIES, STATEMENTS
from sankofa.edition.format.row_blocks import Rewrite, RowSlice, row_count, with_rewritten_rows
from sankofa.engines.block_file import Block, BoundedCache, ByteCache, ByteRange, LazyBlocks, NeedsRows
from sankofa.engines.edition_reader import EditionReader

Sources = frozenset[bytes]
_OBSERVED: Final = b'"observed_at":"'
_HIDDEN_INSTANT: Final = b'"observed_at":null'
_MARK: Final = re.compile(rb'"source_ref":"[^"@]*(@[0-9a-f]{8}#)')
_OWN_ID: Final = b'"service_id":"'
_REF: Final = b'"source_ref":"'
_KEYS_KEPT: Final = 16_384
_ROWS_KEPT: Final = 8_192
METRICS: Final = "metrics"
_REWRITTEN: Final[dict[str, Callable[[Block, Rewrite], Block]]] = {
    "fundamentals": with_rewritten_rows,
    STATEMENTS: with_rewritten_rows,
    FULL_YEARS: with_rewritten_rows,
    METRICS: with_rewritten_rows,
    MACRO_SERIES: macro.with_rewritten_rows,
}
"""The function that rewrites blocks of each kind; the index has the ends of rows."""


def without_capture(rows: bytes, most: int) -> bytes:
    """Rows without `most` instants of capture at most, and without the digests of their files.

    Many rows share few of each, so all rows are rewritten at once.
    """
    while most > 0 and (at := rows.find(_OBSERVED)) >= 0:
        end = rows.index(b'"', at + len(_OBSERVED)) + 1
        before = len(rows)
        rows = rows.replace(rows[at:end], _HIDDEN_INSTANT)
        most -= (before - len(rows)) // (end - at - len(_HIDDEN_INSTANT))
    while b"@" in rows and (mark := _MARK.search(rows)) is not None:
        rows = rows.replace(mark[1], b"#")
    return rows


def sources_in(rows: bytes, references: int) -> Sources:
    """The sources of rows with this number of references."""
    sources: set[bytes] = set()
    at = 0
    while references > 0:
        at = rows.index(_REF, at) + len(_REF)
        source = rows[at : rows.index(b":", at)]
        if source not in sources:
            sources.add(source)
            references -= rows.count(b"%b%b:" % (_REF, source))
    return frozenset(sources)


def shorter(rows: bytes, ends: Sequence[int]) -> tuple[bytes, Sequence[int]]:
    """Rows without their capture, and the new end of each.

    All rows begin with the same member, which never occurs inside a row.
    """
    bare = without_capture(rows, len(ends))
    between = b"," + rows[: rows.index(b":") + 1]
    each = (len(rows) - len(bare)) // len(ends)  # most often every row lost the same
    moved = [end - number * each for number, end in enumerate(ends, 1)]
    if moved[-1] == len(bare) and all(bare.startswith(between, end) for end in moved[:-1]):
        return bare, moved
    sizes = accumulate(map(len, bare.split(between)))
    moved = [end + number * len(between) for number, end in enumerate(sizes)]
    if len(moved) != len(ends):
        raise ValueError("rows of a block do not begin with the same member")
    return bare, moved


class _Rows(bytes):
    """The rows of a block in another form, with its index."""

    block_index: bytes | memoryview
    sources: Sources = frozenset()
    """Their sources, if they are without their capture."""
    alone: bool = False
    """Whether the key is known to have only this block."""


class RowForm(NamedTuple):
    name: Hashable
    """Differs wherever the same rows become others."""
    rewrite: Rewrite


class FormReader:
    def __init__(self, reader: "EditionReader | FormReader", form: RowForm) -> None:
        self._reader = reader
        self._form = form
        self.cache: ByteCache[Hashable] = reader.cache
        self.scope: Hashable = (reader.scope, form.name)

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        """Like `EditionReader.blocks`. A key's only stored block is not read again."""
        first: Any = self.cache.get((self.scope, kind, key, 0))
        if first is not None and first.alone:
            return ((first.block_index, first),) if not skip and most else ()
        blocks = await self._reader.blocks(kind, key, skip, most, needs_rows)
        if not blocks:
            return blocks
        if len(blocks) == 1:
            block = self._in_form(kind, key, skip, blocks[0])
            if not skip and most > 1 and isinstance(block[1], _Rows):
                block[1].alone = True
            return (block,)
        return LazyBlocks(lambda n: self._in_form(kind, key, skip + n, blocks[n]), range(len(blocks)))

    def _in_form(self, kind: str, key: str, number: int, block: Block) -> Block:
        name = self.scope, kind, key, number
        if (cached := self.cache.get(name)) is not None:
            return cast("_Rows", cached).block_index, cached
        if not block[1]:  # left out by `needs_rows`
            return block
        index, stored = _REWRITTEN.get(kind, with_rewritten_rows)(block, self._form.rewrite)
        rows = _Rows(stored)
        rows.block_index = index
        self.cache.put(name, rows)
        return index, rows


class BareReader(FormReader):
    """Reads the rows of an edition without their capture; kinds that are not in `_REWRITTEN` unchanged."""

    def __init__(self, reader: EditionReader) -> None:
        super().__init__(reader, RowForm("bare", shorter))
        self._stored = reader
        self._rows = BoundedCache[ByteRange, _SingleRow](_ROWS_KEPT)
        self._sources: dict[tuple[str, str], Sources] = {}

    def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Coroutine[Any, Any, Sequence[Block] | None]:
        blocks = super().blocks if kind in _REWRITTEN else self._reader.blocks
        return blocks(kind, key, skip, most, needs_rows)

    def _in_form(self, kind: str, key: str, number: int, block: Block) -> Block:
        index, rows = super()._in_form(kind, key, number, block)
        if isinstance(rows, _Rows):
            if not rows.sources:
                one_each = _REWRITTEN[kind] is with_rewritten_rows and kind != METRICS
                references = row_count((index, rows)) if one_each else rows.count(_REF)
                rows.sources = sources_in(rows, references)
            known = self._sources.get((kind, key))
            if known != rows.sources:
                if len(self._sources) >= _KEYS_KEPT:
                    self._sources.clear()
                self._sources[kind, key] = rows.sources | (known or rows.sources)
        return index, rows

    def source(self, kind: str, key: str) -> Sources | None:
        """The only source of the rows read under a key; None if there are several, or if none is known."""
        sources = self._sources.get((kind, key))
        if sources is None:
            rows: Any = self.cache.get((self.scope, kind, key, 0))
            if rows is not None and rows.alone:
                sources = self._sources[kind, key] = rows.sources
        return sources if sources is not None and len(sources) == 1 else None

    async def byte_ranges(self, kind: str, ranges: Sequence[ByteRange]) -> Sequence[RowSlice]:
        if kind != METRICS or not ranges:
            return await self._stored.byte_ranges(kind, ranges)
        known = list(map(self._rows.get, ranges))
        if not all(known):
            missing = [number for number, row in enumerate(known) if row is None]
            stored = await self._stored.byte_ranges(kind, [ranges[number] for number in missing])
            for number, row in zip(missing, stored, strict=True):
                known[number] = single = _single_row(bytes(row))
                self._rows.put(ranges[number], single)
        return SingleRows(cast("list[_SingleRow]", known))


class _SingleRow(NamedTuple):
    row: bytes
    sources: Sources
    organisation: bytes


def _single_row(text: bytes) -> _SingleRow:
    row = without_capture(text, len(text))
    at = row.index(_OWN_ID) + len(_OWN_ID)
    own = row[at : row.index(b'"', at)]
    return _SingleRow(row, sources_in(row, row.count(_REF)), own)


class SingleRows(list[RowSlice]):
    """Rows without their capture."""

    def __init__(self, rows: Sequence[_SingleRow]) -> None:
        each, sources, self.organisations = zip(*rows, strict=True)
        super().__init__(each)
        first, *others = set(sources)
        self.sources = first.union(*others) if others else first
