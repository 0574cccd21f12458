"""World Bank indicators: pages of the Indicators API (JSON), the bulk CSV and other wide tables, tidy CSV.

The tables mix countries with aggregates ("Sub-Saharan Africa", "Low income"). Aggregates are not countries:
they are recognised by code and left out. Other unknown codes are rejected.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, Final

import msgspec

from sankofa.model.countries import alpha3_of, country
from sankofa.model.days import day_of_name
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact, figure_in
from sankofa.model.observations import AnnualColumn, SeriesInfo, indicator_code
from sankofa.model.records import Record, Rejected, Skipped
from sankofa.model.text import fit, one_line
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.tables import Table, peek, read_table, words

_EXPECTED: Final = (
    "expected World Bank indicators: a page of the Indicators API (JSON), a table with a column per year, "
    "or one with the columns Country Code, Year and Value"
)
# Every aggregate of the World Development Indicators, including discontinued ones; and their two-character
# codes in the API, which has no three-letter code for some.
_AGGREGATES: Final = frozenset(
    (
        "AFE AFR AFW ARB BEA BEC BHI BLA BMN BSS CAA CEA CEB CEU CLA CME CSA CSS DEA DEC DFS DLA DMN DNF "
        "DNS DSA DSF DSS DXS EAP EAR EAS ECA ECS EMU EUU FCS FXS HIC HPC IBB IBD IBT IDA IDB IDX INX LAC "
        "LCN LDC LIC LMC LMY LTE MDE MEA MIC MNA NAC NAF NLS NOC NRS NXS OEC OED OSS PRE PSS PST RRS SAS "
        "SSA SSF SST SXZ TEA TEC TLA TMN TSA TSS UMC WLD XZN 1A 1W 4E 7E 8S A4 A5 A9 B1 B2 B3 B4 B6 B7 B8 "
        "C4 C5 C6 C7 C8 C9 D2 D3 D4 D5 D6 D7 D8 D9 EU F1 F6 M1 M2 N6 OE R6 S1 S2 S3 S4 T2 T3 T4 T5 T6 T7 "
        "V1 V2 V3 V4 XC XD XE XF XG XH XI XJ XL XM XN XO XP XQ XT XU XY Z4 Z7 ZB ZF ZG ZH ZI ZJ ZQ ZT"
    ).split(" ")
)
_YEAR = re.compile(r"([12][0-9]{3})(?: \[YR\1\])?\Z")
_NOTHING: Final = ("", "..")
_COMPANIONS: Final = re.compile(r"metadata_country|wdicountry|wdifootnote|wdi.*time", re.IGNORECASE)
_METADATA: Final = (
    ("indicator_code", "indicator_name", "source_note"),
    ("series code", "indicator name", "long definition"),
    ("code", "indicator name", "long definition"),
)
"""The columns that identify metadata: in API downloads, the bulk archive (WDISeries.csv) and DataBank. The
first has the code, the second the name."""
_LONGEST_UNIT: Final = 100


class _Named(msgspec.Struct):
    id: str
    value: str | None = None


class _Point(msgspec.Struct):
    indicator: _Named
    country: _Named
    date: str
    value: msgspec.Raw = msgspec.Raw(b"null")
    countryiso3code: str | None = None
    obs_status: str | None = None
    unit: str | None = None


class _Described(msgspec.Struct):
    """An indicator in the metadata of the API (`/v2/indicator/...`)."""

    id: str
    name: str
    source_note: str = msgspec.field(name="sourceNote")
    unit: str | None = None


class _Refusal(msgspec.Struct):
    message: list[_Named]


_pages = msgspec.json.Decoder(tuple[msgspec.Raw, list[_Point] | None]).decode
_descriptions = msgspec.json.Decoder(tuple[msgspec.Raw, list[_Described]]).decode
_refusals = msgspec.json.Decoder(tuple[_Refusal]).decode


@adapter("worldbank")
def read(file: InputFile) -> Iterator[Record]:
    """World Bank indicators: Indicators API v2 JSON, the WDI bulk CSV and DataBank tables, tidy CSV.

    The indicator of a tidy CSV is the name of its file. UTF-8 or UTF-16; a preamble is skipped. Aggregates
    and forecasts are skipped. Metadata of indicators, from the API or as tables, have their names and units.
    """
    readable = False
    for name, stream in file.documents(".csv", ".json", ".txt"):
        document = PurePosixPath(name).name
        if file.is_zip and _COMPANIONS.match(document):
            continue
        records = _document(file.name, document, stream)
        if records is None and not file.is_zip:
            raise FormatError(f"{file.name}: {_EXPECTED}")
        readable |= records is not None
        yield from records or ()
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED}; the archive holds none")


def _document(title: str, document: str, stream: IO[bytes]) -> Iterator[Record] | None:
    if peek(stream).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{"):
        data = stream.read()
        try:
            _, described = _descriptions(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _page(title, document, data)
        return _infos(
            document, ((f"row {n}", one.id, one.name, one.unit or "") for n, one in enumerate(described))
        )
    table = read_table(title, stream, (("country code",), *_METADATA))
    if table is None:
        return None
    header = [name.lower() for name in table.header]
    for columns in _METADATA:
        if set(columns) <= set(header):
            return _metadata(document, table, header, columns)
    code = next((header.index(n) for n in ("indicator code", "series code") if n in header), None)
    years = {column: year[1] for column, name in enumerate(table.header) if (year := _YEAR.match(name))}
    if code is not None and years:
        return _wide(document, table, header, code, years)
    if "year" in header and "value" in header:
        return _tidy(document, table, header, _indicator_of(title, document))
    return None


def _indicator_of(title: str, document: str) -> str:
    stem = document.removesuffix(PurePosixPath(document).suffix)
    if day_of_name(stem) and "." in stem:  # 2018-08-01-ny.gdp.mktp.cd.csv
        stem = stem[len("YYYY-MM-DD") :].lstrip("-_ ")
    try:
        code = indicator_code(stem)
    except ValueError:
        code = ""
    if not code or not (code[0].isalpha() or "." in code):
        raise FormatError(
            f"{title}: a tidy table is named after its indicator (ny.gdp.mktp.cd.csv), not {stem[:64]!r}"
        )
    return code


def _wide(
    document: str, table: Table, header: list[str], code: int, years: dict[int, str]
) -> Iterator[Record]:
    """One line per country and indicator, one column per year."""
    country_at = header.index("country code")
    named = next((header.index(n) for n in ("indicator name", "series name") if n in header), code)
    first, last = min(years), max(years)
    titles = [years.get(column, "") for column in range(first, last + 1)]
    covers = frozenset(years.values())
    if len(covers) < len(years):
        raise FormatError(f"{document}: a year is twice in the header")
    widest = len(header)
    skipped = 0
    for line, row in table.rows:
        cells = row[first : last + 1]
        values = {year: value for year, value in zip(titles, cells, strict=False) if value and year}
        if len(row) <= country_at:  # a blank line, or the notes below a table
            continue
        if len(row) not in (widest, widest - 1, widest + 1):
            yield Rejected(f"{document} line {line}", f"{len(row)} fields where the header has {widest}")
            continue
        alpha2 = _country(row[country_at])
        if not alpha2:
            if alpha2 is None:
                yield Rejected(f"{document} line {line}", "country: not an ISO 3166-1 code")
            skipped += len(values) if alpha2 is not None else 0
            continue
        try:
            indicator = _code(row[code])
        except ValueError as failure:
            yield Rejected(f"{document} line {line}", str(failure))
            continue
        unread = []
        for year, text in tuple(values.items()):
            if text in _NOTHING:
                del values[year]
                continue
            try:
                values[year] = exact(text)
            except ValueError as failure:
                del values[year]
                unread.append(year)
                yield Rejected(f"{document} line {line}, {year}", f"value: {failure}")
        name = _name(row[named]) if named != code else ""
        yield AnnualColumn(indicator, alpha2, document, values, covers, name, frozenset(unread))
    if skipped:
        yield Skipped(skipped)


def _tidy(document: str, table: Table, header: list[str], indicator: str) -> Iterator[Record]:
    """One line per country and year: the whole table of an indicator."""
    country_at, year_at, value_at = (header.index(name) for name in ("country code", "year", "value"))
    columns: dict[str, dict[str, str]] = {}
    unread: defaultdict[str, set[str]] = defaultdict(set)
    skipped = 0
    for line, row in table.rows:
        if not any(row):
            continue
        position = f"{document} line {line}"
        if len(row) != len(header):
            yield Rejected(position, f"{len(row)} fields where the header has {len(header)}")
            continue
        alpha2 = _country(row[country_at])
        if not alpha2:
            skipped += alpha2 is not None
            if alpha2 is None:
                yield Rejected(position, "country: not an ISO 3166-1 code")
            continue
        year = row[year_at].strip()
        values = columns.setdefault(alpha2, {})
        try:
            if not re.match(r"[12][0-9]{3}\Z", year):
                raise ValueError("year: expected four digits")
            value = _value(row[value_at].strip())
            if values.setdefault(year, value) != value:
                raise ValueError("year: given twice with another value")
        except ValueError as failure:
            unread[alpha2].add(year)
            yield Rejected(position, str(failure))
    if skipped:
        yield Skipped(skipped)
    # A country that is no longer listed has left the table; a list without rows changes nothing.
    unlisted = sorted(alpha3_of().keys() - columns.keys()) if columns else ()
    for alpha2 in (*columns, *unlisted):
        values = columns.get(alpha2, {})
        yield AnnualColumn(indicator, alpha2, document, values, None, "", frozenset(unread[alpha2]))


def _metadata(document: str, table: Table, header: list[str], columns: tuple[str, ...]) -> Iterator[Record]:
    """One line per indicator; the unit if there is a column for it."""
    code_at, name_at = (header.index(column) for column in columns[:2])
    unit_at = header.index("unit of measure") if "unit of measure" in header else len(header)
    return _infos(
        document,
        (
            (f"line {line}", row[code_at], row[name_at], row[unit_at] if unit_at < len(row) else "")
            for line, row in table.rows
            if len(row) > max(code_at, name_at)  # else a blank line, or the notes below a table
        ),
    )


def _infos(document: str, described: Iterable[tuple[str, str, str, str]]) -> Iterator[Record]:
    """The metadata of indicators, given as position, code, name and unit."""
    for position, code, name, unit in described:
        try:
            yield SeriesInfo(_code(code), _name(name), _unit(unit))
        except ValueError as failure:
            yield Rejected(f"{document} {position}", str(failure))


def _page(title: str, document: str, data: bytes) -> Iterator[Record]:
    """A page of the API. Raises FormatError if it is something else; a refusal in its own words."""
    try:
        _, points = _pages(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            (refusal,) = _refusals(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise FormatError(f"{title}: {_EXPECTED}") from None
        messages = "; ".join(f"{m.id} {m.value}" for m in refusal.message)
        raise FormatError(
            f"{title}: not a page of indicators but a refusal of the World Bank: {messages[:200]}"
        ) from None
    columns: dict[tuple[str, str], dict[str, str]] = {}
    names: dict[str, str] = {}
    units: dict[str, str] = {}
    skipped = 0
    for number, point in enumerate(points or ()):
        alpha2 = _country(point.countryiso3code or point.country.id)
        text = str(point.value, "utf-8").strip('"')
        if alpha2 == "" or point.obs_status == "F":
            skipped += text != "null"
            continue
        try:
            if alpha2 is None:
                raise ValueError("country: not an ISO 3166-1 code")
            if not re.match(r"[12][0-9]{3}\Z", point.date):
                raise ValueError("date: expected a year")
            indicator = _code(point.indicator.id)
            value = _value("" if text == "null" else text)
            columns.setdefault((indicator, alpha2), {})[point.date] = value
            names[indicator] = _name(point.indicator.value or "")
            if point.unit:
                units[indicator] = _unit(point.unit)
        except ValueError as failure:
            yield Rejected(f"{document} row {number}", str(failure))
    if skipped:
        yield Skipped(skipped)
    for (indicator, alpha2), values in columns.items():
        stated = {year: value for year, value in values.items() if value}
        yield AnnualColumn(indicator, alpha2, document, stated, frozenset(values), names[indicator])
    for indicator, unit in units.items():
        yield SeriesInfo(indicator, names[indicator], unit)


def _value(text: str) -> str:
    """A figure, empty if there is none. Raises ValueError."""
    return figure_in("value", "" if text in _NOTHING else text)


@lru_cache(maxsize=4096)
def _country(code: str) -> str | None:
    """The alpha-2 code of a country; empty for an aggregate; None for anything else."""
    code = code.strip().upper()
    return country(code) or ("" if code in _AGGREGATES else None)


@lru_cache(maxsize=8192)
def _code(text: str) -> str:
    return indicator_code(text.strip())


@lru_cache(maxsize=8192)
def _name(text: str) -> str:
    name = one_line(words(text).strip().strip('"'))
    return name if fit(name) and len(name) <= 500 else ""


@lru_cache(maxsize=8192)
def _unit(text: str) -> str:
    unit = _name(text)
    return unit if len(unit) <= _LONGEST_UNIT else ""
