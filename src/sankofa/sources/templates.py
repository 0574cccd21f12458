"""Our own templates, one row per item: figures from documents, identifiers gathered by hand or from a
register, values of series, and decisions about parties.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from sankofa.model.countries import country, currency
from sankofa.model.days import day_in
from sankofa.model.errors import FormatError
from sankofa.model.figures import figure_in
from sankofa.model.identifiers import (
    ID_TYPES,
    Identifier,
    exchange,
    make_identifier,
    parse_identifier,
    stored_identifier,
)
from sankofa.model.observations import FREQUENCIES, ReportedValue, SeriesColumn, series_key, series_type
from sankofa.model.ocds.redaction import Secrets
from sankofa.model.organisations import is_no_persons, names_a_person, org_evidence
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.records import (
    EntityRecord,
    Fact,
    IdentifierLink,
    Profile,
    Record,
    Rejected,
    Skipped,
    Withheld,
)
from sankofa.model.text import fit, harmless, one_line, snake_case
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.tables import Cells, best_sheet

T = TypeVar("T")


class Template(NamedTuple):
    """A template by the name of its adapter, and its columns."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    """Columns of free text: names of persons are removed."""

    def read(
        self, file: InputFile, record: Callable[[dict[str, str], str], T]
    ) -> Iterator[T | EntityRecord | Rejected | Withheld]:
        """The record of each row and its location; a row for which `record` raises ValueError is rejected."""
        issuers = Issuers()
        names_issuers = set(ISSUER_COLUMNS) <= set(self.optional)
        people = self._withheld_names(file) if names_issuers else Secrets()
        for prefix, columns, rows in self._tables(file):
            before = f"{people.cut(prefix)}row "
            named = [(at, column) for at, column in enumerate(columns) if column]
            for number, cells in rows:
                location = f"{before}{number}"
                row: dict[str, str] = {}
                result: T | Rejected | None = None
                withheld = False
                try:
                    if isinstance(cells, ValueError):
                        withheld = LEGAL_NAME in columns  # it may hold a name
                        raise cells
                    if not any(cells):
                        continue
                    row = {column: cells[at] for at, column in named}
                    withheld = bool(self.free) and self._cut(row, people)
                    converted = record(row, location)
                    unproven = names_issuers and not issuers.add(row)
                    withheld = withheld or unproven
                    if not unproven or is_no_persons(stored_identifier(subject(row["entity"]))):
                        result = converted
                except ValueError as failure:
                    column = str(failure).partition(":")[0].partition(" ")[0]
                    result = Rejected(location, str(failure), harmless(row.get(column, "")))
                    withheld = withheld or people.repeats(row.get(LEGAL_NAME, ""))
                if result is not None:
                    yield result
                if withheld:
                    yield Withheld(location)
        yield from issuers.records(file.name)

    def _cut(self, row: dict[str, str], people: Secrets) -> bool:
        """Remove names of persons from free text; returns whether there were any."""
        before = [row.get(column) for column in self.free]
        for column in self.free:
            if text := row.get(column):
                row[column] = people.cut(text, numbers=" " in text)
        return before != [row.get(column) for column in self.free]

    def _withheld_names(self, file: InputFile) -> Secrets:
        """The names without evidence of an organisation: nothing else may repeat them."""
        people = Secrets()
        for _, columns, rows in self._tables(InputFile(file.path, file.limits)):
            for _, cells in rows if LEGAL_NAME in columns else ():
                row = {} if isinstance(cells, ValueError) else dict(zip(columns, cells, strict=True))
                if name := one_line(row.get(LEGAL_NAME, "")):
                    code = country(row.get("country", "")) or ""
                    is_organisation = _is_organisation(row["entity"], name, code)
                    (people.spare if is_organisation else people.add)(name)
        return people

    def _tables(self, file: InputFile) -> Iterator[tuple[str, list[str], Iterator[tuple[int, Cells]]]]:
        """Each table of a file: the prefix of row locations, the columns, and the rows.

        A table is a CSV file in UTF-8, separated by comma, semicolon or tab, with the header in its first
        line; or the sheet of an xlsx workbook that has the header.
        """
        if file.is_xlsx:
            sheet = best_sheet(file, lambda cells: len({*map(snake_case, cells)} & {*self.required}))
            title = f"{file.name}: sheet {sheet.number}:"
            yield f"sheet {sheet.number} ", self._columns(title, sheet.header, unnamed=True), sheet.rows
            return
        for name, stream in file.documents(".csv", expected="expected a .csv in the archive"):
            prefix = f"{name} " if file.is_zip else ""
            title = f"{file.name}: {prefix}".rstrip()
            try:
                text = stream.readline().decode("utf-8-sig").strip()
            except UnicodeDecodeError:
                raise FormatError(f"{title} expected the {self.name} template in UTF-8") from None
            separator = max(",;\t", key=text.count)
            columns = self._columns(title, [name.strip().strip('"') for name in text.split(separator)])
            width = len(columns)
            yield prefix, columns, ((n, _fields(line, separator, width)) for n, line in enumerate(stream, 2))

    def _columns(self, title: str, names: list[str], *, unnamed: bool = False) -> list[str]:
        """The columns by the names in a header, which may leave some `unnamed`. Raises FormatError."""
        columns = [snake_case(name) for name in names]
        if not set(columns) & set(self.required):
            expected = f"the {self.name} template, with columns {', '.join(self.required)}"
            raise FormatError(f"{title} expected {expected}")
        named = [column for column in columns if column or not unnamed]
        unknown = [column for column in named if column not in self.required + self.optional]
        for column in self.required:
            if column not in columns:
                beside = f" (unknown column {unknown[0][:40]!r})" if unknown else ""
                raise FormatError(f"{title} the required column {column} is missing{beside}")
        for column in named:
            if column in unknown:
                raise FormatError(f"{title} unknown column {column[:40]!r}")
            if named.count(column) > 1:
                raise FormatError(f"{title} column {column} is given twice")
        return columns


LEGAL_NAME: Final = "legal_name"
ISSUER_COLUMNS: Final = (LEGAL_NAME, "country")
"""Columns about the entity, in every template with an entity."""
SUCCESSOR: Final = "successor"
"""The column that names who took over from the entity."""
_LISTED: Final = ("ticker", "isin")
_LONGEST_NAME: Final = 300


class Issuers:
    """Entities as the rows of a file describe them in the columns `ISSUER_COLUMNS`."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._countries: dict[str, str] = {}
        self._successors: dict[str, str] = {}

    def add(self, row: dict[str, str]) -> bool:
        """Add one row; False if its name may be a person's. Raises ValueError naming the column."""
        legal_name, country_code = (row.get(column, "") for column in ISSUER_COLUMNS)
        if following := row.get(SUCCESSOR):
            self._successors[subject(row["entity"])] = subject(following, SUCCESSOR)
        if not (legal_name or country_code):
            return True
        code = country(country_code) if country_code else None
        if country_code and not code:
            raise ValueError("country: expected an ISO 3166-1 code")
        legal_name = one_line(legal_name)
        if not fit(legal_name) or len(legal_name) > _LONGEST_NAME:
            raise ValueError(f"legal_name: a control character, or more than {_LONGEST_NAME} characters")
        entity = subject(row["entity"])
        if code:
            self._countries[entity] = code
        if legal_name and not _is_organisation(entity, legal_name, code or ""):
            return False
        if legal_name:
            names = self._names.setdefault(entity, {})
            names.pop(legal_name, None)
            names[legal_name] = None  # the last is the one in use
        return True

    def records(self, document: str) -> Iterator[EntityRecord]:
        """A profile of each entity that was named, placed or succeeded."""
        for entity in sorted({*self._names, *self._countries, *self._successors}):
            *former, legal_name = self._names.get(entity) or [None]
            profile = Profile(
                legal_name=legal_name,
                other_names=tuple(sorted(name for name in former if name)),
                country=self._countries.get(entity),
                successor=self._successors.get(entity),
                identifiers=(entity,),
                document=document,
                secondary=True,
            )
            yield EntityRecord(entity, "", profile, incidental=True)


@lru_cache(maxsize=4096)
def _is_organisation(entity: str, legal_name: str, country_code: str) -> bool:
    """The organisation gate. Listed shares prove an organisation; an LEI by itself proves nothing."""
    try:
        identifier = stored_identifier(subject(entity))
    except ValueError:  # the row will be rejected
        return False
    if identifier.id_type in _LISTED:
        return not names_a_person(legal_name)
    registered = [(identifier.scheme, identifier.value)] if identifier.scheme else []
    return org_evidence(legal_name, registered, country=country_code) is not None


@lru_cache(maxsize=4096)
def subject(entity: str, column: str = "entity") -> str:
    """The strong identifier in a column. Raises ValueError."""
    try:
        identifier = parse_identifier(entity)
    except ValueError as failure:
        raise ValueError(f"{column}: {failure}") from None
    if not identifier.strong:
        raise ValueError(f"{column}: a {identifier.id_type} does not identify an organisation")
    return str(identifier)


def _fields(line: bytes, separator: str, width: int) -> Cells:
    """The cells of a line, or its fault. A row is one line: an open quote costs only its own row."""
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        return ValueError("not UTF-8")
    if "\0" in text:
        return ValueError("a NUL byte")
    if '"' not in text and "\r" not in text and len(text) <= _SPLIT_AT_MOST:  # as the reader would, sooner
        row = text.split(separator)
    else:
        try:
            row = next(csv.reader([text], delimiter=separator, strict=True))
        except (csv.Error, StopIteration):
            return ValueError("a quote is left open, or is misplaced")
    if len(row) != width:
        if not text.strip(separator + " "):
            return [""] * width
        return ValueError(f"{len(row)} fields where the header has {width}")
    return list(map(str.strip, row))


_SPLIT_AT_MOST: Final = 100_000
"""Characters: less than the longest field that the reader of CSV accepts."""


FILINGS: Final = Template(
    "filings-csv",
    required=("entity", "line_item", "value", "currency", "period_end", "document"),
    optional=("period_start", "period_type", "available_at", "location", "confidence", *ISSUER_COLUMNS),
    free=("document", "location"),
)
_LINE_ITEM = re.compile(r"[a-z][a-z0-9_]{0,99}\Z")
_DECLARED: Final = {name.lower(): name for name in PERIOD_TYPES}


@adapter("filings-csv")
def filings(file: InputFile) -> Iterator[Record]:
    """Figures taken from documents, in our own CSV template.

    An empty value says that the document withdraws the figure. `legal_name` and `country` are the entity's.
    """
    return FILINGS.read(file, _fact)


def _fact(row: dict[str, str], _: str) -> Fact:
    """The fact of a row, located in its own document. Raises ValueError naming the column at fault."""
    line_item = snake_case(row["line_item"])
    if not _LINE_ITEM.match(line_item) or ":" in row["line_item"]:
        raise ValueError("line_item: expected a name in snake_case")
    end, start = day_in("period_end", row["period_end"]), row.get("period_start", "")
    if start and day_in("period_start", start) > end:
        raise ValueError("period_start is after period_end")
    available_at = row.get("available_at", "")
    unit, document, location = row["currency"], row["document"], row.get("location", "")
    if unit and not currency(unit):
        raise ValueError("currency: expected an ISO 4217 code")
    if not document:
        raise ValueError("document is missing")
    if not (fit(document) and fit(location)):
        raise ValueError("document, location: a control character")
    declared = row.get("period_type", "")
    if declared and declared.lower() not in _DECLARED:
        raise ValueError(f"period_type: expected one of {', '.join(PERIOD_TYPES)}")
    return Fact(
        subject=subject(row["entity"]),
        concept=line_item,
        unit=currency(unit) or "",
        period_start=start,
        period_end=end,
        available_at=day_in("available_at", available_at) if available_at else "",
        document=document,
        value=figure_in("value", row["value"]),
        location=location,
        declared_period=_DECLARED.get(declared.lower(), ""),
        confidence=_share("confidence", row.get("confidence", "")),
    )


def _share(column: str, text: str) -> str:
    number = figure_in(column, text)
    if number and not 0 <= Decimal(number) <= 1:
        raise ValueError(f"{column}: expected a number from 0 to 1")
    return number


_DAYS: Final = ("from", "to")
_IDENTIFIERS: Final = Template(
    "identifiers-csv", ("entity", "id_type", "id_value"), ("registry", *_DAYS, *ISSUER_COLUMNS, SUCCESSOR)
)
_ASSIGNED: Final = {"registry": re.compile(r"[1-9]"), "ticker": re.compile(r"\A(?!#?N/A\Z).*[0-9A-Z]")}
"""Patterns that a real value matches. `N/A`, `-` or `0` in a hundred rows would merge a hundred strangers."""


@adapter("identifiers-csv")
def identifiers(file: InputFile) -> Iterator[Record]:
    """Tickers, registry numbers, aggregator ids, LEI, ISIN and FIGI, in our own CSV template.

    A ticker is written EXCHANGE:TICKER, or its exchange is in `registry`. A registry number needs its
    register in `registry`. An aggregator id may name its aggregator there, else its scheme is AGGREGATOR.
    `from` and `to` are the first and last day on which the entity had the identifier; empty is open.
    `legal_name` and `country` are the entity's; `successor` identifies its successor, in the form of
    `entity`. A row whose identifier is the entity's own only declares the entity.
    """
    return _IDENTIFIERS.read(file, _link)


def _link(row: dict[str, str], location: str) -> Record:
    entity = subject(row["entity"])
    identifier = str(_identifier(row["id_type"].lower(), row["id_value"], row.get("registry", "")))
    first, last = (day_in(column, row[column]) if row.get(column) else "" for column in _DAYS)
    if first and last and last < first:
        raise ValueError("to: before from")
    return Skipped(1) if identifier == entity else IdentifierLink(identifier, entity, location, first, last)


def _identifier(id_type: str, value: str, registry: str) -> Identifier:
    """The identifier of a row. Raises ValueError naming the column at fault."""
    if id_type not in ID_TYPES:
        raise ValueError(f"id_type: expected one of {', '.join(ID_TYPES)}")
    if not value:
        raise ValueError("id_value is missing")
    scheme = registry
    if id_type == "ticker" and ":" in value:
        scheme, _, value = value.partition(":")
        if registry and exchange(registry) != exchange(scheme):
            raise ValueError("registry: another exchange than in id_value")
    if id_type == "aggregator":
        scheme = scheme.strip() or "AGGREGATOR"
    if id_type in ("registry", "ticker") and not scheme.strip():
        missing = "the exchange, here or as EXCHANGE:TICKER" if id_type == "ticker" else "the registry"
        raise ValueError(f"registry is missing: expected {missing}")
    try:
        identifier = make_identifier(id_type, value, scheme)
    except ValueError as failure:
        raise ValueError(f"id_value: {failure}") from None
    if id_type in _ASSIGNED and not _ASSIGNED[id_type].search(identifier.value):
        raise ValueError("id_value: a placeholder")
    return identifier


SERIES: Final = Template(
    "series-csv",
    required=("series", "series_type", "frequency", "date", "value"),
    optional=("country", "unit", "release_date"),
)
_LONGEST_UNIT = 100
_MOST_PENDING = 200_000


@adapter("series-csv")
def dated_series(file: InputFile) -> Iterator[Record]:
    """Dated series (exchange rates, price indices) in our own CSV template, one row per vintage.

    An empty value says that the release withdraws it.
    """
    document = file.name
    pending: defaultdict[_Identity, list[ReportedValue]] = defaultdict(list)
    rows = 0
    for record in SERIES.read(file, _series_row):
        if not isinstance(record, _SeriesRow):
            yield record
            continue
        pending[record.identity].append(record.value)
        rows += 1
        if rows == _MOST_PENDING:  # a large file gives several columns of a series
            yield from (SeriesColumn(*identity, document, values) for identity, values in pending.items())
            pending.clear()
            rows = 0
    yield from (SeriesColumn(*identity, document, values) for identity, values in pending.items())


_Identity = tuple[str, str, str, str]


class _SeriesRow(NamedTuple):
    identity: _Identity
    value: ReportedValue


def _series_row(row: dict[str, str], location: str) -> _SeriesRow:
    identity = _series(row["series"], row["series_type"], row["frequency"], row.get("country"))
    return _SeriesRow(identity, _reported_value(row, location))


@lru_cache(maxsize=4096)
def _series(key: str, family: str, frequency: str, country_code: str | None) -> _Identity:
    """The identity of a series. Raises ValueError naming the column at fault."""
    if frequency.lower() not in FREQUENCIES:
        raise ValueError(f"frequency: expected one of {', '.join(FREQUENCIES)}")
    if country_code and not country(country_code):
        raise ValueError("country: not an ISO 3166-1 code")
    return series_key(key), series_type(family), frequency.lower(), country(country_code or "") or ""


def _reported_value(row: dict[str, str], location: str) -> ReportedValue:
    """The value of a row. Raises ValueError naming the column at fault."""
    unit, release, text = row.get("unit", ""), row.get("release_date", ""), row["value"]
    if len(unit) > _LONGEST_UNIT or not fit(unit):
        raise ValueError(f"unit: expected up to {_LONGEST_UNIT} characters")
    value, day = figure_in("value", text), day_in("date", row["date"])
    return ReportedValue(day, day_in("release_date", release) if release else "", value, unit, location)


REVIEWS: Final = "match-reviews"
REVIEW_COLUMNS: Final = ("match", "service_id", "verdict", "decided_at")
_REVIEWS: Final = Template(REVIEWS, REVIEW_COLUMNS)
_VERDICTS: Final = ("confirmed", "refused", "open")
_MATCH: Final = re.compile(r"[0-9a-f]{12}")
_SERVICE_ID: Final = re.compile(r"DC[0-9A-F]{24}")


@adapter(REVIEWS)
def reviews(file: InputFile) -> Iterator[Record]:
    """Decisions made by hand on which organisation a party is. Names are stored only as a keyed hash."""
    return _REVIEWS.read(file, _decision)


def _decision(row: dict[str, str], location: str) -> Record:
    if not _MATCH.fullmatch(row["match"]):
        raise ValueError("match: expected 12 hexadecimal digits")
    if not _SERVICE_ID.fullmatch(row["service_id"]):
        raise ValueError("service_id: expected DC and 24 hexadecimal digits")
    if row["verdict"] not in _VERDICTS:
        raise ValueError(f"verdict: expected one of {', '.join(_VERDICTS)}")
    # With its instant: otherwise a decision repeated within a second would count as known already.
    decision = f"{row['verdict']}@{row['decided_at']}"
    return IdentifierLink(f"match:{row['match']}:{row['service_id']}", decision, location)
