"""Series of central banks.

ALFRED, the archive of FRED: observations of one series, each with the days between which it was current. Euro
reference rates of the European Central Bank: the history file, one column per currency.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

import msgspec

from sankofa.model.countries import currency
from sankofa.model.days import parse_day
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact
from sankofa.model.observations import ReportedValue, SeriesColumn, SeriesInfo, series_key
from sankofa.model.records import Record, Rejected
from sankofa.model.text import name
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.tables import read_table

_EXPECTED: Final = "expected observations of FRED or ALFRED (JSON) in a file named after the series"
_FOREVER: Final = "9999-12-31"
_LONGEST_NAME: Final = 500
_LONGEST_UNIT: Final = 100
_FAMILIES: Final = (
    ("cpi", r"CPI|CUUR|CUSR|PCEPI|.*CPI(?:ALL|A)"),
    ("ppi", r"PPI|WPU"),
    ("fx", r"DEX|EXCH?[A-Z]{2}|CCUS"),
    ("gdp", r"GDP|GNP|.*(?:GDP|NGDP)"),
    ("unemployment", r"UNRATE|LR[HU]"),
    ("rate", r"FEDFUNDS|DFF|DGS|GS\d|INTDS|IR[SL]T"),
)
# The days between two neighbouring observations, at least.
_PACES: Final = ((360, "annual"), (85, "quarterly"), (25, "monthly"), (6, "weekly"), (1, "daily"))


class _Observation(msgspec.Struct):
    realtime_start: str
    realtime_end: str
    date: str
    value: str


class _Document(msgspec.Struct):
    realtime_end: str
    units: str
    observations: list[_Observation]
    output_type: int = 1


class _Described(msgspec.Struct):
    """A series in FRED's own words."""

    id: str
    title: str
    units: str


class _Descriptions(msgspec.Struct):
    """Metadata of series (`fred/series`)."""

    seriess: list[_Described]


_decode = msgspec.json.Decoder(_Document).decode
_descriptions = msgspec.json.Decoder(_Descriptions).decode


@adapter("alfred")
def observations(file: InputFile) -> Iterator[Record]:
    """Observations of FRED and ALFRED (JSON) with their real-time periods; a file is named after its series.

    A value is public from realtime_start. If no other value follows on the day after realtime_end, it was
    withdrawn. Metadata of series (`fred/series`) have their names and units.
    """
    readable = 0
    for path, stream in file.documents(".json"):
        try:
            data = stream.read()
            yield from _metadata(data) or _series(PurePosixPath(path).name, data)
            readable += 1
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as failure:
            reason = str(failure) if type(failure) is ValueError else "not such a document"
            if not file.is_zip:
                raise FormatError(f"{file.name}: {_EXPECTED}; {reason}") from None
            yield Rejected(path, reason)
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED}; the archive holds none")


def _metadata(data: bytes) -> list[Record]:
    """FRED's metadata of each series; nothing for other documents.

    Raises ValueError for an id that cannot be a series key.
    """
    try:
        described = _descriptions(data).seriess
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return [
        SeriesInfo(series_key(one.id), _text(one.title, _LONGEST_NAME), _text(one.units, _LONGEST_UNIT))
        for one in described
    ]


def _text(text: str, longest: int) -> str:
    """On one line; empty if the line is too long."""
    line = name(text) or ""
    return line if len(line) <= longest else ""


def _series(document: str, data: bytes) -> Iterator[Record]:
    """One document. Raises ValueError, before the first record, for anything else."""
    key = series_key(document.removesuffix(".json"))
    document_read = _decode(data)
    if document_read.units != "lin":
        raise ValueError(
            f"units is {document_read.units[:20]!r}: expected values as published, not transformed (lin)"
        )
    if document_read.output_type not in (1, 4):
        raise ValueError("output_type: expected observations by real-time period (1) or first releases (4)")
    values: list[ReportedValue] = []
    ends: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    rejects: list[Rejected] = []
    for number, row in enumerate(document_read.observations):
        try:
            day, start, end = (
                parse_day(text).isoformat() for text in (row.date, row.realtime_start, row.realtime_end)
            )
            if start > end:
                raise ValueError("realtime_start is after realtime_end")
            value = "" if row.value == "." else exact(row.value)
        except ValueError as failure:
            rejects.append(Rejected(f"{document} observations/{number}", str(failure)))
            continue
        values.append(ReportedValue(day, start, value, "", f"observations/{number}"))
        ends[day].append((start, end))
    frequency = _frequency(ends)
    if document_read.output_type == 1:
        values += _withdrawals(ends, min(document_read.realtime_end, _FOREVER))
    yield from rejects
    yield SeriesColumn(key, _family(key), frequency, "", document, values)


def _withdrawals(ends: dict[str, list[tuple[str, str]]], until: str) -> Iterator[ReportedValue]:
    """The ends of values within the requested days that no other value follows."""
    for day, spans in ends.items():
        starts = {start for start, _ in spans}
        for _, end in spans:
            if end < until:
                following = (date.fromisoformat(end) + timedelta(days=1)).isoformat()
                if following not in starts:
                    yield ReportedValue(day, following, "", "", "")


def _frequency(days: dict[str, list[tuple[str, str]]]) -> str:
    """The frequency, inferred from the dates. Raises ValueError if they do not show it."""
    ordinals = sorted(date.fromisoformat(day).toordinal() for day in days)
    gaps = sorted(after - before for before, after in pairwise(ordinals))
    if not gaps:
        raise ValueError("fewer than two dates: its frequency is unknown")
    # Daily and weekly series have longer gaps too; the shortest usual gap is the frequency.
    usual = gaps[len(gaps) // 4]
    return next(frequency for least, frequency in _PACES if usual >= least)


def _family(key: str) -> str:
    return next((family for family, pattern in _FAMILIES if re.match(pattern, key)), "other")


_EXPECTED_RATES = "expected the ECB history of reference rates: a column Date, then one per currency"
_NOT_QUOTED = ("", "N/A")


@adapter("ecb-fx")
def reference_rates(file: InputFile) -> Iterator[Record]:
    """Euro reference rates of the European Central Bank, the history file: units of a currency for one euro.

    A rate is public on its day. A rate changed later is known from the day the change was found.
    """
    readable = False
    for path, stream in file.documents(".csv"):
        document = PurePosixPath(path).name
        table = read_table(file.name, stream, (("date",),))
        if table is None or not any(map(currency, table.header[1:])) or table.header[0].lower() != "date":
            continue
        readable = True
        columns: dict[int, list[ReportedValue]] = {}
        for column, code in enumerate(table.header):
            if column and code and currency(code) in (None, "EUR"):
                yield Rejected(f"{document} column {column + 1}", "header: not an ISO 4217 code")
            elif column and code:
                columns[column] = []
        for line, row in table.rows:
            yield from _take(columns, table.header, f"{document} line {line}", row)
        for column, values in columns.items():
            quote = currency(table.header[column])
            yield SeriesColumn(f"FX.EUR.{quote}", "fx", "daily", "", document, values, on_its_day=True)
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED_RATES}")


def _take(
    columns: dict[int, list[ReportedValue]], header: list[str], position: str, row: list[str]
) -> Iterator[Rejected]:
    """Adds one day's rates, each to its column."""
    if not any(row):
        return
    if len(row) != len(header):
        yield Rejected(position, f"{len(row)} fields where the header has {len(header)}")
        return
    try:
        day = parse_day(row[0].strip()).isoformat()
    except ValueError as failure:
        yield Rejected(position, f"date: {failure}")
        return
    for column, values in columns.items():
        text = row[column].strip()
        try:
            rate = "" if text in _NOT_QUOTED else exact(text)
            if rate and (rate == "0" or rate[0] == "-"):
                raise ValueError("not above zero")
        except ValueError as failure:
            yield Rejected(f"{position}, {header[column]}", f"rate: {failure}")
            continue
        values.append(ReportedValue(day, "", rate, header[column].upper(), ""))
