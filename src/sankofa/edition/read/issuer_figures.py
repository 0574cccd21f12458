"""The figures of an issuer in orders other than the stored one: panels and statements.

A panel has one row for each issuer and day, with every column as known that day. Cells change on few days, so
a row is assembled once for each stretch without changes; from day to day only the date and the ages differ.

In statement order core line items come first. Core are the documented line items
(docs/reference/line-items.md), newest period first and, within a period, in their documented order; after
them all other rows, in the order of `/v1/fundamentals`. The positions of an issuer's core rows are computed
once and cached.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.issuer_pages import (
    HISTORIES,
    MISSING,
    CellOrigin,
    CellStep,
    IssuerHistory,
    read_history,
    read_steps,
)
from sankofa.edition.format.keys import MACRO_SERIES, key_list
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import FUNDAMENTALS_ORDER, RowSlice, SortKey, row_columns
from sankofa.edition.format.visibility import admitted, visible
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.macro import read_one_series
from sankofa.edition.read.seek import find, last_before
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.days import iso_day, ordinal
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import strictest

_NOT_KNOWN: CellStep = (0, 0, 0, "")
_SERIES_KEPT = 65_536
_SERIES_PER_READ = 1


class SeriesCell(NamedTuple):
    """The latest observation of a series known on a day; without a date if there was none."""

    date: int = 0
    value: str = ""
    origin: CellOrigin | None = None


class PanelColumns(NamedTuple):
    """The columns of a panel, and its days in order."""

    names: tuple[str, ...]
    """Metrics and line items."""
    days: Sequence[int]
    series: tuple[str, ...] = ()
    cells: Sequence[Sequence[SeriesCell]] = ()
    """For each day, the cell of each series."""


class IssuerRows(NamedTuple):
    rows: list[bytes]
    days: Sequence[int]


class _Observed(msgspec.Struct):
    """The members of an observation that a cell has."""

    source_ref: str
    license_class: str
    observed_at: str | None
    date: str
    value: msgspec.Raw
    unit: str | None


_read_observed = msgspec.json.Decoder(_Observed).decode


async def history_of(edition: Edition, service_id: str) -> IssuerHistory | None:
    """The history of an issuer; None if it has no figures."""
    stored = await edition.raw(HISTORIES, service_id)
    return None if stored is None else read_history(stored)


async def series_on(edition: Edition, series: str, day: int) -> SeriesCell:
    """The latest observation of a series known on a day."""
    cells = edition.cache("panel series", _SERIES_KEPT)
    if (cell := cells.get((series, day))) is None:
        span = DayRange(day, until=day)
        rows = await read_one_series(edition, MACRO_SERIES, key_list(series), span, _SERIES_PER_READ)
        cell = SeriesCell()
        if rows is not None and rows.count:
            own = _read_observed(rows.rows)
            origin = (own.source_ref, own.license_class, own.observed_at or "", own.unit or "")
            if bytes(own.value) != b"null":
                cell = SeriesCell(ordinal(own.date), bytes(own.value).decode(), origin)
        cells.put((series, day), cell)
    return cell


def rows_on_days(history: IssuerHistory, columns: PanelColumns) -> IssuerRows:
    """The rows of an issuer, from its first known day on."""
    days = columns.days
    steps = [_steps(history, name) for name in columns.names]
    start = bisect_left(days, history.known_from)
    starts = [[bisect_left(days, step[0]) for step in own] for own in steps]
    changes = {start, *(at for own in starts for at in own if start < at < len(days))}
    if columns.series:
        changes.update(range(start, len(days)))
    rows: list[bytes] = []
    write = _Writer(history, columns)
    for begin, end in pairwise([*sorted(changes), len(days)]):
        if begin < end:
            known = [
                own[bisect_right(at, begin) - 1] if at[0] <= begin else _NOT_KNOWN
                for own, at in zip(steps, starts, strict=True)
            ]
            rows += write.stretch(known, begin, end)
    return IssuerRows(rows, days[start:])


def change_days(history: IssuerHistory, names: Sequence[str], first: int, last: int) -> list[int]:
    """The first day, and the days up to the last on which the cell of a column changes."""
    first = max(first, history.known_from)
    if first > last:
        return []
    days = {step[0] for name in names for step in _steps(history, name)}
    return sorted({first, *(day for day in days if first < day <= last)})


def _steps(history: IssuerHistory, name: str) -> list[CellStep]:
    stored = history.columns.get(name)
    return [_NOT_KNOWN] if stored is None else read_steps(stored)


class _Writer:
    """Writes the rows of an issuer as JSON."""

    def __init__(self, history: IssuerHistory, columns: PanelColumns) -> None:
        self._history = history
        self._columns = columns
        self._names = [_quoted(name) for name in columns.names]
        self._series = [_quoted(name) for name in columns.series]

    def stretch(self, known: Sequence[CellStep], begin: int, end: int) -> list[bytes]:
        """The rows of the days [begin, end), on which no cell changes."""
        origins: list[CellOrigin] = []
        ages, ends = list[str](), list[int]()
        units, missing, values = list[str](), list[str](), list[str]()
        for name, (_, year, number, value) in zip(self._names, known, strict=True):
            if not year:
                missing.append(f'{name}:"{MISSING[number]}"')
                values.append(f"{name}:null")
                continue
            origin = self._history.origins[number]
            origins.append(origin)
            ages.append(name)
            ends.append(year)
            values.append(f"{name}:{value}")
            if origin[3]:
                units.append(f"{name}:{_quoted(origin[3])}")
        for name, cell in zip(self._series, self._columns.cells[begin] if self._series else (), strict=True):
            if cell.origin is None:
                missing.append(f'{name}:"{MISSING[0]}"')
                values.append(f"{name}:null")
                continue
            origins.append(cell.origin)
            ages.append(name)
            ends.append(cell.date)
            values.append(f"{name}:{cell.value}")
            if cell.origin[3]:
                units.append(f"{name}:{_quoted(cell.origin[3])}")
        head = _provenance(origins or self._history.origins[:1]) + self._history.names + b',"as_of":"'
        parts = (",".join(units), ",".join(missing), ",".join(values))
        tail = '}},"units":{{{}}},"missing":{{{}}},{}}}'.format(*parts).encode()
        days = self._columns.days[begin:end]
        texts = [iso_day(day).encode() for day in days]
        begins = [b'","age_days":{', *[f"{name}:".encode() for name in ages]]
        if len(set(ends)) == 1:  # as with metrics alone: all from one year
            names = (b"".join(begins[:2]), *[b"," + name for name in begins[2:]], b"")
            written = [(b"%d" % (day - ends[0])).join(names) for day in days]
        else:
            template = begins[0] + b",".join([name + b"%d" for name in begins[1:]])
            written = [template % tuple([day - year for year in ends]) for day in days]
        return [b"".join((head, text, age, tail)) for text, age in zip(texts, written, strict=True)]


def _provenance(origins: Sequence[CellOrigin]) -> bytes:
    """The first source, the strictest licence class, the latest capture."""
    licence = strictest({origin[1] for origin in origins})
    observed = max(origin[2] for origin in origins)
    return (
        f'{{"source_ref":{_quoted(origins[0][0])},"license_class":"{licence}","observed_at":"{observed}",'
    ).encode()


@lru_cache(maxsize=16_384)
def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class StatementRows(NamedTuple):
    key: str
    day: int
    modes: int
    tag: int
    line_items: frozenset[bytes] | None = None
    """The requested line items; None for all."""


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
    """Position of a core row; the first three members are its sort key in statement order."""

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
    edition: Edition, question: StatementRows, limit: int, start: tuple[int | str, ...] = ()
) -> Selection | None:
    """The next rows in statement order; None if there is no such key.

    `start` is `following` of the previous page: the part; then for core rows the number of rows served, for
    other rows the block and the rows served of it.
    """
    key, day, modes, tag, line_items = question
    part, *position = (int(number) for number in start or (_CORE, 0))
    rows: list[RowSlice] = []
    if part == _CORE:
        if not await edition.holds(_KIND, key):
            return None
        core_rows, end = await _core_rows_on(edition, question), position[0] + limit
        rows, position = await _texts(edition, key, core_rows[position[0] : end]), [0, 0]
        if end < len(core_rows):
            return Selection(rows, len(rows), truncated=True, following=(_CORE, end))
    rest = await edition.select(
        _KIND,
        key,
        day=day,
        modes=modes,
        tag=tag,
        limit=limit - len(rows),
        where=_others(line_items),
        skip=position[0],
        passed=position[1],
    )
    if rest is None:
        return None
    following_rest = None if rest.following is None else (_REST, *rest.following)
    return Selection([*rows, *rest.slices], len(rows) + rest.count, rest.truncated, following=following_rest)


def _others(line_items: frozenset[bytes] | None) -> Callable[[bytes], bool]:
    """A test for rows that are not core."""
    if line_items is None:
        return lambda row: line_item_of(row) not in _CORE_ITEMS
    others = line_items - _CORE_ITEMS
    return lambda row: line_item_of(row) in others


async def find_core_first(edition: Edition, question: StatementRows, behind: SortKey) -> tuple[int, ...]:
    """The `start` with which `core_first` continues after a sort key of fundamentals."""
    period_end, period_type, line_item, *_ = map(str, behind)
    is_behind = FUNDAMENTALS_ORDER.behind(behind)
    key, day, modes, tag, line_items = question
    if line_item not in _RANK:
        where = _others(line_items)
        return (
            _REST,
            *await find(edition, _KIND, key, is_behind, day=day, modes=modes, tag=tag, where=where),
        )
    core_rows = await _core_rows_on(edition, question)

    async def is_past(number: int) -> bool:
        if number >= len(core_rows):
            return True
        end, of_type = core_rows[number].period
        if (end, PERIOD_TYPES[of_type]) != (period_end, period_type):
            return end < period_end or (end == period_end and PERIOD_TYPES[of_type] > period_type)
        if core_rows[number].rank != _RANK[line_item]:
            return core_rows[number].rank > _RANK[line_item]
        return is_behind((await _texts(edition, key, core_rows[number : number + 1]))[0])

    return _CORE, 0 if await is_past(0) else 1 + await last_before(is_past)


async def _core_rows_on(edition: Edition, question: StatementRows) -> list[_CoreRow]:
    """The core rows that a question admits, in statement order."""
    key, day, modes, tag, line_items = question
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
    blocks: dict[int, RowSlice] = {}
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    for number in {row.block for row in rows}:
        await yield_points.step()
        blocks[number] = (await edition.blocks(_KIND, key, number, 1))[0][1]
    return [blocks[row.block][row.start : row.end] for row in rows]
