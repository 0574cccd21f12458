"""The figures of an issuer in orders other than the stored one: panels and statements.

A panel has one row for each issuer and day, with every column as known that day. Cells change on few days, so
a row is assembled once for each stretch without changes; from day to day only the date and the ages differ.

In statement order core line items come first. Core are the documented line items
(docs/reference/line-items.md), newest period first and, within a period, in their documented order; after
them all other rows, in the order of `/v1/fundamentals`. The positions of an issuer's core rows are computed
once and cached.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache, lru_cache, partial
from itertools import pairwise, repeat
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.columns import Repeated, TableColumn
from sankofa.edition.format.issuer_pages import (
    HISTORIES,
    MISSING,
    CellOrigin,
    CellSteps,
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
from sankofa.edition.read.seek import find, first_past
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import IssuerDayRow
from sankofa.model.days import iso_day, ordinal
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import strictest

_NEVER_KNOWN: CellSteps = [0], [0], [0], [""]
_SERIES_KEPT = 65_536
_SERIES_PER_READ = 1


class SeriesCell(NamedTuple):
    """The latest observation of a series known on a day; without a date if there was none."""

    date: int = 0
    value: str = ""
    origin: CellOrigin = ("", "", "", "")


class PanelColumns(NamedTuple):
    """The columns of a panel, and its days in order."""

    names: tuple[str, ...]
    """Metrics and line items."""
    days: Sequence[int]
    series: tuple[str, ...] = ()
    cells: Sequence[Sequence[SeriesCell]] = ()
    """For each day, the cell of each series."""


class SteadyDays(NamedTuple):
    """Days of an issuer on which none of its cells changes: its rows differ in the day and in the ages."""

    days: Sequence[int]
    source_ref: str
    license_class: str
    observed_at: str
    ages: Sequence[str]
    """For each day, the ages of the columns: a JSON object, as are the units and the reasons."""
    units: str
    missing: str
    values: Sequence[str]
    """The value of each column as JSON; empty for none."""


class PanelRows(list[bytes]):
    def __init__(self, columns: PanelColumns) -> None:
        self._names = [f",{_quoted(name)}:" for name in (*columns.names, *columns.series)]

    def add(self, history: IssuerHistory, written: Iterable[SteadyDays]) -> None:
        names = history.names.decode()
        for days, ref, license_class, observed_at, own_ages, units, missing, values in written:
            head = (
                f'{{"source_ref":{_quoted(ref)},"license_class":"{license_class}",'
                f'"observed_at":"{observed_at}",{names},"as_of":"'
            )
            cells = "".join(
                [name + (value or "null") for name, value in zip(self._names, values, strict=True)]
            )
            tail = f',"units":{units},"missing":{missing}{cells}}}'
            self += [
                f'{head}{iso_day(day)}","age_days":{ages}{tail}'.encode()
                for day, ages in zip(days, own_ages, strict=True)
            ]


class PanelTable:
    """The columns of a panel, with the values that `read_columns` gives for its rows."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._same: list[tuple[str | None, ...]] = []
        self._days: list[date] = []
        self._ages: list[str] = []

    def add(self, history: IssuerHistory, written: Iterable[SteadyDays]) -> None:
        own = _read_names(b"{%b}" % history.names)
        names = own.service_id, own.legal_name, own.country
        for days, ref, license_class, observed_at, ages, units, missing, values in written:
            self._counts.append(len(days))
            cells = [value or None for value in values]
            self._same.append((ref, license_class, observed_at, *names, units, missing, *cells))
            self._days += map(_date, days)
            self._ages += ages

    def columns(self) -> list[TableColumn] | None:
        """None without rows."""
        if not self._same:
            return None
        same = [Repeated(self._counts, values) for values in zip(*self._same, strict=True)]
        at = IssuerDayRow.__struct_fields__.index("as_of")
        return [*same[:at], self._days, self._ages, *same[at:]]


_date = lru_cache(maxsize=4096)(date.fromordinal)


class _Names(msgspec.Struct):
    service_id: str
    legal_name: str | None
    country: str | None


_read_names = msgspec.json.Decoder(_Names).decode


class _Observed(msgspec.Struct):
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


class PanelCells:
    """Finds the days on which no cell of an issuer changes, and remembers what many issuers share."""

    def __init__(self, columns: PanelColumns) -> None:
        self.columns = columns
        self._names = [_quoted(name) for name in (*columns.names, *columns.series)]
        self._position = cache(partial(bisect_left, columns.days))
        """The number of the first day that is not before a day."""
        self._age_texts = cache(_age_text)

    def steady_days(self, history: IssuerHistory, first: int, end: int) -> Iterator[SteadyDays]:
        """The cells of an issuer on the days with the numbers [first, end), from its first known day on."""
        names, days, _, series_cells = self.columns
        columns = [_steps(history, name) for name in names]
        starts = [[*map(self._position, steps[0])] for steps in columns]
        changes = range(first, end) if series_cells else {first}.union(*starts)
        begins = sorted(at for at in changes if first <= at < end)
        steps_on = [[bisect_right(own, at) - 1 for at in begins] for own in starts]
        cells = [
            [[own[number] for number in numbers] for own in steps[1:]]
            for steps, numbers in zip(columns, steps_on, strict=True)
        ]
        on_days = zip(*[zip(*own, strict=True) for own in cells], strict=True) if cells else repeat(())
        for (begin, until), own in zip(pairwise([*begins, end]), on_days, strict=False):
            observed = series_cells[begin] if series_cells else ()
            yield self._cells_on(history, days[begin:until], own, observed)

    def _cells_on(
        self,
        history: IssuerHistory,
        days: Sequence[int],
        cells: Sequence[tuple[int, int, str]],
        observed: Sequence[SeriesCell],
    ) -> SteadyDays:
        refs, kinds, origin_kinds = history.source_refs, history.kinds, history.origin_kinds
        ends = [end for end, _, _ in cells] + [cell.date for cell in observed]
        known, missing, names = ends, "{}", self._names
        if 0 in ends:
            reasons = [0 if end else number for end, number, _ in cells] + [0] * len(observed)
            named = list(zip(names, ends, reasons, strict=True))
            texts = [f'{name}:"{MISSING[reason]}"' for name, end, reason in named if not end]
            missing = "{" + ",".join(texts) + "}"
            names, known = [name for name, end, _ in named if end], [*filter(None, ends)]
        of_cells = [number for end, number, _ in cells if end]
        origins = [origin_kinds[kinds[number]] for number in of_cells]
        origins += [cell.origin[1:] for cell in observed if cell.date]
        first_ref = next((cell.origin[0] for cell in observed if cell.date), refs[0])
        every = {*origins} or {origin_kinds[kinds[0]]}
        classes, captures, all_units = zip(*every, strict=True)
        units = "{}"
        if any(all_units):
            united = zip(names, origins, strict=True)
            units = "{" + ",".join([f"{name}:{_quoted(unit)}" for name, (*_, unit) in united if unit]) + "}"
        return SteadyDays(
            days,
            refs[of_cells[0]] if of_cells else first_ref,
            strictest({*classes}),
            max(captures),
            self._ages_on(days, tuple(names), known),
            units,
            missing,
            [value for _, _, value in cells] + [cell.value for cell in observed],
        )

    def _ages_on(self, days: Sequence[int], names: tuple[str, ...], ends: Sequence[int]) -> Sequence[str]:
        """For each day, the ages of these columns as a JSON object."""
        if len(set(ends)) == 1:  # as with metrics alone: all from one year
            text_of = self._age_texts(names)
            return [text_of(day - ends[0]) for day in days]
        template = "{" + ",".join([name + ":%d" for name in names]) + "}"
        return [template % tuple([day - end for end in ends]) for day in days]


def _age_text(names: tuple[str, ...]) -> Callable[[int], str]:
    """For an age, the JSON object with this age of some columns."""
    first, *others = names
    parts = f"{{{first}:", *[f",{name}:" for name in others], "}"
    return cache(lambda age: str(age).join(parts))


def change_days(history: IssuerHistory, names: Sequence[str], first: int, last: int) -> list[int]:
    """The first day, and the days up to the last on which the cell of a column changes."""
    first = max(first, history.known_from)
    if first > last:
        return []
    days = {day for name in names for day in _steps(history, name)[0]}
    return sorted({first, *(day for day in days if first < day <= last)})


def _steps(history: IssuerHistory, name: str) -> CellSteps:
    stored = history.columns.get(name)
    return _NEVER_KNOWN if stored is None else read_steps(stored)


@lru_cache(maxsize=16_384)
def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class StatementRows(NamedTuple):
    key: str
    day: int
    modes: int
    tag: int
    line_items: frozenset[bytes] | None = None


_KIND: Final = "fundamentals"
_BLOCKS_PER_YIELD: Final = 4
_BLOCKS_A_READ: Final = 8
_ISSUERS_KEPT: Final = 64
_RANK: Final = {name: rank for rank, name in enumerate(LINE_ITEMS)}
_CORE_ITEMS: Final = frozenset(name.encode() for name in LINE_ITEMS)
_LINE_ITEM: Final = b'"line_item":"'
_CORE, _REST = 0, 1


def line_item_of(row: bytes) -> bytes:
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
        end, of_type = core_rows[number].period
        if (end, PERIOD_TYPES[of_type]) != (period_end, period_type):
            return end < period_end or (end == period_end and PERIOD_TYPES[of_type] > period_type)
        if core_rows[number].rank != _RANK[line_item]:
            return core_rows[number].rank > _RANK[line_item]
        return is_behind((await _texts(edition, key, core_rows[number : number + 1]))[0])

    return _CORE, await first_past(len(core_rows), is_past)


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
