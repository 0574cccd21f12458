"""Reads panels: one row for each issuer and day, with every column as known that day.

A cell changes on few days, so a row is put together once for each stretch of days on which no cell changes;
from day to day only the date and the ages differ.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

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
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.macro import read_one_series
from sankofa.model.days import iso_day, ordinal
from sankofa.model.provenance import strictest

_NOT_KNOWN: CellStep = (0, 0, 0, "")
_SERIES_KEPT = 65_536
_SERIES_PER_READ = 1


class SeriesCell(NamedTuple):
    """The latest observation of a series known on a day; no date where none was."""

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
    """The rows of an issuer, and the day of each."""

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
    """The rows of an issuer, from the day on which it was known."""
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
    """The first day, and those up to the last on which the cell of a column changes."""
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
        if len(set(ends)) == 1:  # as with metrics alone: all are of one year
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
