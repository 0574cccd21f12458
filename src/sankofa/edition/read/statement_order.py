"""The figures of an issuer in statement order: core line items first.

Core are the documented line items (docs/reference/line-items.md). They come newest period first and, within a
period, in their documented order; after them all other rows, in the order of `/v1/fundamentals`.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.row_blocks import (
    FUNDAMENTALS_ORDER,
    RowColumns,
    RowOrder,
    RowSlice,
    SortKey,
    row_columns,
)
from sankofa.edition.format.visibility import ANY_TAG, visible
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import find
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.datastore import Block
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES

RowTest = Callable[[bytes], bool]


class StatementRows(NamedTuple):
    """A question about the rows of an issuer."""

    key: str
    day: int
    modes: int
    tag: int
    where: RowTest | None = None


_KIND: Final = "fundamentals"
_BLOCKS_PER_YIELD: Final = 4
_BLOCKS_A_READ: Final = 8
_ROWS_READ: Final = 32
_RANK: Final = {name: rank for rank, name in enumerate(LINE_ITEMS)}
_CORE_ITEMS: Final = frozenset(name.encode() for name in LINE_ITEMS)
_LINE_ITEM: Final = b'"line_item":"'
_CORE, _REST = 0, 1


def line_item_of(row: bytes) -> bytes:
    """The line item of an encoded row of fundamentals."""
    start = row.find(_LINE_ITEM) + len(_LINE_ITEM)
    return row[start : row.find(b'"', start)]


_Period = tuple[str, int]
"""The end of a period, and its type, which is the tag of a row."""
_Core = tuple[int, int, int, int, int, int, int, int, _Period]
"""A core row: its number, start and end in its block; its days, modes and tag; its rank, and its period."""


class _Item(msgspec.Struct, gc=False):
    """The fields that decide the position of a row in a statement."""

    line_item: str
    period_end: str


_read_items: Final = msgspec.json.Decoder(list[_Item]).decode


class _CoreRows:
    """The core rows of a block, read a few at a time because a page ends inside a block."""

    __slots__ = ("_columns", "_read")

    def __init__(self, columns: RowColumns) -> None:
        self._columns = columns
        self._read: dict[int, list[_Core]] = {}

    def after(self, text: RowSlice, begun: int) -> Iterator[list[_Core]]:
        """Batches of core rows, from a row or a little before it."""
        for first in range(begun - begun % _ROWS_READ, len(self._columns.ends), _ROWS_READ):
            rows = self._read.get(first)
            if rows is None:
                rows = self._read[first] = self._core_rows(text, first)
            yield rows

    def _core_rows(self, text: RowSlice, number: int) -> list[_Core]:
        ends = self._columns.ends[number : number + _ROWS_READ]
        starts = [self._columns.ends[number - 1] + 1 if number else 0, *(end + 1 for end in ends[:-1])]
        some = (column[number : number + _ROWS_READ] for column in self._columns)
        items = _read_items(b"".join((b"[", text[starts[0] : ends[-1]], b"]")))
        return [
            (n, start, end, first, until, modes, tag, rank, (item.period_end, tag))
            for n, (item, start, first, until, end, modes, tag) in enumerate(
                zip(items, starts, *some, strict=True), number
            )
            if (rank := _RANK.get(item.line_item)) is not None
        ]


class _Page:
    """Collects the core rows of a page, one period at a time."""

    def __init__(self, limit: int, passed: int) -> None:
        self.rows: list[RowSlice] = []
        self.period: _Period | None = None
        """The period of the pending rows."""
        self.pending: list[tuple[int, RowSlice]] = []
        """Rows with their rank in a statement."""
        self._limit = limit
        self._passed = passed
        self._begins = (0, 0)

    def begin(self, period: _Period, place: tuple[int, int]) -> None:
        self.period, self._begins = period, place

    def flush(self) -> tuple[int, int, int] | None:
        """Add the rows of the period; if not all fit, its position and the number of rows served."""
        self.pending.sort(key=_rank)
        end = self._passed + self._limit - len(self.rows)
        self.rows += [row for _, row in self.pending[self._passed : end]]
        following = (*self._begins, end) if len(self.pending) > end else None
        self.pending, self._passed = [], 0
        return following


_rank: Final = itemgetter(0)
_period: Final = itemgetter(8)


async def core_first(
    edition: Edition, asked: StatementRows, limit: int, start: tuple[int | str, ...] = ()
) -> Selection | None:
    """The next rows in statement order; None if there is no such key.

    `start` is `following` of the previous page: the part; then for core rows the block and row of a period
    and the rows served of it, for other rows the block and the rows served of it.
    """
    key, day, modes, tag, _ = asked
    part, *place = (int(number) for number in start or (_CORE, 0, 0, 0))
    rows: list[RowSlice] = []
    if part == _CORE:
        if not await edition.holds(_KIND, key):
            return None
        page = _Page(limit, place[2])
        following = await _core(edition, asked, page, (place[0], place[1]))
        rows, place = page.rows, [0, 0]
        if following is not None:
            return Selection(rows, len(rows), truncated=True, following=(_CORE, *following))
    rest = await edition.select(
        _KIND,
        key,
        day=day,
        modes=modes,
        tag=tag,
        limit=limit - len(rows),
        where=_others(asked.where),
        skip=place[0],
        passed=place[1],
    )
    if rest is None:
        return None
    following_rest = None if rest.following is None else (_REST, *rest.following)
    return Selection([*rows, *rest.slices], len(rows) + rest.count, rest.truncated, following=following_rest)


def _others(where: RowTest | None) -> RowTest:
    """A test for rows that are not core."""
    return lambda row: line_item_of(row) not in _CORE_ITEMS and (where is None or where(row))


async def find_core_first(edition: Edition, asked: StatementRows, behind: SortKey) -> tuple[int, ...]:
    """The `start` with which `core_first` continues after a sort key of fundamentals."""
    period_end, period_type, line_item, *_ = behind
    is_behind = FUNDAMENTALS_ORDER.behind(behind)
    key, day, modes, tag, where = asked
    if line_item not in _RANK:
        seen = await find(edition, _KIND, key, is_behind, day=day, modes=modes, tag=tag, where=_others(where))
        return (_REST, *seen)
    in_period = _PERIOD_ORDER.behind((period_end, period_type, ""))
    block, _ = await find(edition, _KIND, key, in_period, day=day, modes=modes)
    counted = _ServedOfPeriod((str(period_end), PERIOD_TYPES.index(str(period_type))))
    counted.is_served = lambda rank, row: (rank, is_behind(row)) <= (_RANK[str(line_item)], False)
    return (_CORE, *(await _core(edition, asked, counted, (block, 0)) or (block, 0, 0)))


class _ServedOfPeriod(_Page):
    """Counts the served core rows of a period. Earlier periods are skipped."""

    is_served: Callable[[int, RowSlice], bool]

    def __init__(self, period: _Period) -> None:
        super().__init__(0, 0)
        self._served_period = period

    def flush(self) -> tuple[int, int, int] | None:
        """Where the period begins and how many of its rows were served; None for an earlier period."""
        pending, self.pending = self.pending, []
        if self.period is None or _is_newer(self.period, self._served_period):
            return None
        served = [one for one in pending if self.period == self._served_period and self.is_served(*one)]
        return (*self._begins, len(served))


def _is_newer(period: _Period, other: _Period) -> bool:
    """Whether a period comes before another in the order of fundamentals."""
    return period[0] > other[0] or (
        period[0] == other[0] and PERIOD_TYPES[period[1]] < PERIOD_TYPES[other[1]]
    )


_PERIOD_ORDER: Final = RowOrder("-period_end", "period_type", "line_item")


async def _core(
    edition: Edition, asked: StatementRows, page: _Page, begin: tuple[int, int]
) -> tuple[int, int, int] | None:
    """Fill the page with core rows; returns where they continue if not all fit."""
    key, day, modes, tag, where = asked
    skip, begun = begin
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    while blocks := await edition.blocks(_KIND, key, skip, _BLOCKS_A_READ):
        for block_number, block in enumerate(blocks, skip):
            await yield_points.step()
            text = block[1]
            for some in _core_rows(edition, key, block_number, block).after(text, begun):
                shown = [one for one in some if visible(one[3], one[4], day) and one[5] & modes]
                if begun or tag != ANY_TAG or where is not None:
                    shown = [
                        one
                        for one in shown
                        if one[0] >= begun
                        and tag in (ANY_TAG, one[6])
                        and (where is None or where(bytes(text[one[1] : one[2]])))
                    ]
                for period, rows in groupby(shown, key=_period):
                    own = list(rows)
                    if period != page.period:
                        if page.pending and (following := page.flush()) is not None:
                            return following
                        page.begin(period, (block_number, own[0][0]))
                    page.pending += [(one[7], text[one[1] : one[2]]) for one in own]
            begun = 0
        if len(blocks) < _BLOCKS_A_READ:
            break
        skip += _BLOCKS_A_READ
    return page.flush()


def _core_rows(edition: Edition, key: str, number: int, block: Block) -> _CoreRows:
    name = (_KIND, key, number)
    cached: _CoreRows | None = edition.cached_parts.get(name)
    if cached is None:
        cached = _CoreRows(row_columns(block))
        edition.cache_part(name, cached)
    return cached
