"""The figures of an issuer in statement order: core line items first.

Core are the documented line items (docs/reference/line-items.md). They come newest period first and, within a
period, in their documented order; after them all other rows, in the order of `/v1/fundamentals`. Where the
core rows of an issuer are is computed once and cached.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.row_blocks import FUNDAMENTALS_ORDER, RowSlice, SortKey, row_columns
from sankofa.edition.format.visibility import admitted, visible
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import find, last_before
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES


class StatementRows(NamedTuple):
    """A question about the rows of an issuer."""

    key: str
    day: int
    modes: int
    tag: int
    line_items: frozenset[bytes] | None = None
    """The only line items asked for; None for all."""


_KIND: Final = "fundamentals"
_BLOCKS_PER_YIELD: Final = 4
_BLOCKS_A_READ: Final = 8
_ISSUERS_KEPT: Final = 64
_RANK: Final = {name: rank for rank, name in enumerate(LINE_ITEMS)}
_CORE_ITEMS: Final = frozenset(name.encode() for name in LINE_ITEMS)
_LINE_ITEM: Final = b'"line_item":"'
_CORE, _REST = 0, 1


def line_item_of(row: bytes) -> bytes:
    """The line item of an encoded row of fundamentals."""
    start = row.find(_LINE_ITEM) + len(_LINE_ITEM)
    return row[start : row.find(b'"', start)]


class _Item(msgspec.Struct, gc=False):
    """The fields that decide the position of a row in a statement."""

    line_item: str
    period_end: str


_read_items: Final = msgspec.json.Decoder(list[_Item]).decode


class _CoreRow(NamedTuple):
    """Where a core row is; the first three members are its place in statement order."""

    period_number: int
    rank: int
    number: int
    """Its number among all rows of the issuer."""
    period: tuple[str, int]
    """The end of its period, and its type, which is the tag of the row."""
    block: int
    start: int
    end: int
    first: int
    until: int
    modes: int


async def core_first(
    edition: Edition, asked: StatementRows, limit: int, start: tuple[int | str, ...] = ()
) -> Selection | None:
    """The next rows in statement order; None if there is no such key.

    `start` is `following` of the previous page: the part; then for core rows the number of rows served, for
    other rows the block and the rows served of it.
    """
    key, day, modes, tag, line_items = asked
    part, *place = (int(number) for number in start or (_CORE, 0))
    rows: list[RowSlice] = []
    if part == _CORE:
        if not await edition.holds(_KIND, key):
            return None
        shown, end = await _shown(edition, asked), place[0] + limit
        rows, place = await _texts(edition, key, shown[place[0] : end]), [0, 0]
        if end < len(shown):
            return Selection(rows, len(rows), truncated=True, following=(_CORE, end))
    rest = await edition.select(
        _KIND,
        key,
        day=day,
        modes=modes,
        tag=tag,
        limit=limit - len(rows),
        where=_others(line_items),
        skip=place[0],
        passed=place[1],
    )
    if rest is None:
        return None
    following_rest = None if rest.following is None else (_REST, *rest.following)
    return Selection([*rows, *rest.slices], len(rows) + rest.count, rest.truncated, following=following_rest)


def _others(line_items: frozenset[bytes] | None) -> Callable[[bytes], bool]:
    """A test for rows that are not core."""
    if line_items is None:
        return lambda row: line_item_of(row) not in _CORE_ITEMS
    wanted = line_items - _CORE_ITEMS
    return lambda row: line_item_of(row) in wanted


async def find_core_first(edition: Edition, asked: StatementRows, behind: SortKey) -> tuple[int, ...]:
    """The `start` with which `core_first` continues after a sort key of fundamentals."""
    period_end, period_type, line_item, *_ = map(str, behind)
    is_behind = FUNDAMENTALS_ORDER.behind(behind)
    key, day, modes, tag, line_items = asked
    if line_item not in _RANK:
        where = _others(line_items)
        return (
            _REST,
            *await find(edition, _KIND, key, is_behind, day=day, modes=modes, tag=tag, where=where),
        )
    shown = await _shown(edition, asked)

    async def is_past(number: int) -> bool:
        if number >= len(shown):
            return True
        end, of_type = shown[number].period
        if (end, PERIOD_TYPES[of_type]) != (period_end, period_type):
            return end < period_end or (end == period_end and PERIOD_TYPES[of_type] > period_type)
        if shown[number].rank != _RANK[line_item]:
            return shown[number].rank > _RANK[line_item]
        return is_behind((await _texts(edition, key, shown[number : number + 1]))[0])

    return _CORE, 0 if await is_past(0) else 1 + await last_before(is_past)


async def _shown(edition: Edition, asked: StatementRows) -> list[_CoreRow]:
    """The core rows that a question admits, in statement order."""
    key, day, modes, tag, line_items = asked
    return [
        row
        for row in await _core_rows(edition, key)
        if visible(row.first, row.until, day)
        and admitted(row.modes, row.period[1], modes, tag)
        and (line_items is None or LINE_ITEMS[row.rank].encode() in line_items)
    ]


async def _core_rows(edition: Edition, key: str) -> list[_CoreRow]:
    """Every core row of an issuer in statement order, cached."""
    cache = edition.cache("core rows", _ISSUERS_KEPT)
    rows: list[_CoreRow] | None = cache.get(key)
    if rows is not None:
        return rows
    rows = []
    period, period_number, number, skip = ("", -1), 0, 0, 0
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    while blocks := await edition.blocks(_KIND, key, skip, _BLOCKS_A_READ):
        for block_number, block in enumerate(blocks, skip):
            await yield_points.step()
            items = _read_items(b"".join((b"[", block[1], b"]")))
            start = 0
            for item, first, until, end, modes, tag in zip(items, *row_columns(block), strict=True):
                if (item.period_end, tag) != period:
                    period, period_number = (item.period_end, tag), period_number + 1
                if (rank := _RANK.get(item.line_item)) is not None:
                    at = (period, block_number, start, end, first, until, modes)
                    rows.append(_CoreRow(period_number, rank, number, *at))
                number, start = number + 1, end + 1
        skip += len(blocks)
    rows.sort()
    cache.put(key, rows)
    return rows


async def _texts(edition: Edition, key: str, rows: Sequence[_CoreRow]) -> list[RowSlice]:
    """The encoded rows."""
    blocks: dict[int, RowSlice] = {}
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    for number in {row.block for row in rows}:
        await yield_points.step()
        blocks[number] = (await edition.blocks(_KIND, key, number, 1))[0][1]
    return [blocks[row.block][row.start : row.end] for row in rows]
