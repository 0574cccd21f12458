"""The figures of an issuer in the order a reader of statements expects: the core line items first.

Core are the documented line items (docs/reference/line-items.md). They come newest period first and, within a
period, in their documented order; after them all other rows, in the order of `/v1/fundamentals`.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final

from sankofa.edition.format.row_blocks import RowColumns, Run, row_columns
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.engines.datastore import Block
from sankofa.model.line_items import LINE_ITEMS

RowTest = Callable[[bytes], bool]

_KIND: Final = "fundamentals"
_BLOCKS_A_TURN: Final = 4
_BLOCKS_A_READ: Final = 8
_ROWS_READ: Final = 32
_RANK: Final = {name.encode(): rank for rank, name in enumerate(LINE_ITEMS)}
_LINE_ITEM: Final = b'"line_item":"'
_PERIOD_END: Final = b'"period_end":"'
_DAY: Final = len("2026-01-31")
_CORE, _REST = 0, 1


def line_item_of(row: bytes) -> bytes:
    """The line item of a row of fundamentals on the wire."""
    start = row.find(_LINE_ITEM) + len(_LINE_ITEM)
    return row[start : row.find(b'"', start)]


_Period = tuple[bytes, int]
"""Its end and its type, which is the tag of a row."""
_Core = tuple[int, int, int, int, int, int, int, int, _Period]
"""A row of a core line item: its number in its block and where it begins and ends there; the days, modes and
tag it is seen by; its rank in a statement, and its period."""


class _CoreRows:
    """The core rows of a block. A page ends somewhere in a block, so they are read a few at a time."""

    __slots__ = ("_columns", "_read")

    def __init__(self, columns: RowColumns) -> None:
        self._columns = columns
        self._read: dict[int, list[_Core]] = {}

    def after(self, text: Run, begun: int) -> Iterator[_Core]:
        """From a row on, or from one a little before it."""
        for first in range(begun - begun % _ROWS_READ, len(self._columns.ends), _ROWS_READ):
            rows = self._read.get(first)
            if rows is None:
                rows = self._read[first] = self._core_rows(text, first)
            yield from rows

    def _core_rows(self, text: Run, number: int) -> list[_Core]:
        firsts, untils, all_ends, modes, tags = self._columns
        ends = all_ends[number : number + _ROWS_READ]
        start = all_ends[number - 1] + 1 if number else 0
        # Rows are cut at the name of a member that each has once: inside a string its quotes are escaped.
        _, *behind = bytes(text[start : ends[-1]]).split(_LINE_ITEM)
        rows: list[_Core] = []
        for n, (rest, end) in enumerate(zip(behind, ends, strict=True), number):
            rank = _RANK.get(rest[: rest.find(b'"')])
            if rank is not None:
                at = rest.find(_PERIOD_END) + len(_PERIOD_END)
                period = rest[at : at + _DAY], tags[n]
                rows.append((n, start, end, firsts[n], untils[n], modes[n], tags[n], rank, period))
            start = end + 1
        return rows


class _Page:
    """Core rows on their way into a page, one period at a time."""

    def __init__(self, limit: int, passed: int) -> None:
        self.rows: list[Run] = []
        self.period: _Period | None = None
        """Of the pending rows."""
        self.pending: list[tuple[int, Run]] = []
        """Rows with their rank in a statement."""
        self._limit = limit
        self._passed = passed
        self._begins = (0, 0)

    def begin(self, period: _Period, place: tuple[int, int]) -> None:
        self.period, self._begins = period, place

    def flush(self) -> tuple[int, int, int] | None:
        """Takes the rows of the period; where not all fit, its place and how many of it are served."""
        self.pending.sort(key=_rank)
        end = self._passed + self._limit - len(self.rows)
        self.rows += [row for _, row in self.pending[self._passed : end]]
        following = (*self._begins, end) if len(self.pending) > end else None
        self.pending, self._passed = [], 0
        return following


_rank: Final = itemgetter(0)


async def core_first(
    edition: Edition,
    key: str,
    *,
    day: int,
    modes: int,
    tag: int,
    limit: int,
    where: RowTest | None = None,
    start: tuple[int | str, ...] = (),
) -> Selection | None:
    """The next rows in statement order; None where there is no such key.

    `start` is `following` of the rows before: which part, the block and row of a period, rows served of it;
    of the second part the block and the rows served of it.
    """
    part, *place = (int(number) for number in start or (_CORE, 0, 0, 0))
    rows: list[Run] = []
    if part == _CORE:
        if not await edition.holds(_KIND, key):
            return None
        page = _Page(limit, place[2])
        following = await _core(edition, key, (day, modes, tag), where, page, (place[0], place[1]))
        rows, place = page.rows, [0, 0]
        if following is not None:
            return Selection(rows, len(rows), truncated=True, following=(_CORE, *following))

    def others(row: bytes) -> bool:
        return line_item_of(row) not in _RANK and (where is None or where(row))

    rest = await edition.select(
        _KIND,
        key,
        day=day,
        modes=modes,
        tag=tag,
        limit=limit - len(rows),
        where=others,
        skip=place[0],
        passed=place[1],
    )
    if rest is None:
        return None
    following_rest = None if rest.following is None else (_REST, *rest.following)
    return Selection([*rows, *rest.runs], len(rows) + rest.count, rest.truncated, following=following_rest)


async def _core(
    edition: Edition,
    key: str,
    seen: tuple[int, int, int],
    where: RowTest | None,
    page: _Page,
    begin: tuple[int, int],
) -> tuple[int, int, int] | None:
    """Fills the page with core rows; where they go on, if they do not all fit."""
    day, modes, tag = seen
    skip, begun = begin
    turns = Turns(_BLOCKS_A_TURN)
    while blocks := await edition.blocks(_KIND, key, skip, _BLOCKS_A_READ):
        for block_number, block in enumerate(blocks, skip):
            await turns.step()
            text = block[1]
            cores = _core_rows(edition, key, block_number, block).after(text, begun)
            for number, start, end, first, until, row_modes, row_tag, rank, period in cores:
                if not (first <= day < until and row_modes & modes and number >= begun):
                    continue
                if tag not in (ANY_TAG, row_tag):
                    continue
                row = text[start:end]
                if where is not None and not where(bytes(row)):
                    continue
                if period != page.period:
                    if page.pending and (following := page.flush()) is not None:
                        return following
                    page.begin(period, (block_number, number))
                page.pending.append((rank, row))
            begun = 0
        if len(blocks) < _BLOCKS_A_READ:
            break
        skip += _BLOCKS_A_READ
    return page.flush()


def _core_rows(edition: Edition, key: str, number: int, block: Block) -> _CoreRows:
    name = (_KIND, key, number)
    kept: _CoreRows | None = edition.kept_parts.get(name)
    if kept is None:
        kept = _CoreRows(row_columns(block))
        edition.keep_part(name, kept)
    return kept
