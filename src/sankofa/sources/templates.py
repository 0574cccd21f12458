"""Our own templates: figures taken from documents, identifiers gathered by hand or from a register, values of
series, and decisions about parties; one row each.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sankofa.model.countries import country, currency
from sankofa.model.days import day_in
from sankofa.model.figures import figure_in
from sankofa.model.identifiers import ID_TYPES, Identifier, exchange, make_identifier
from sankofa.model.line_items import snake_case
from sankofa.model.observations import FREQUENCIES, ReportedValue, SeriesColumn, series_key, series_type
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.records import Fact, IdentifierLink, Record, Skipped
from sankofa.model.text import fit
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.template import ISSUER_COLUMNS, SUCCESSOR, Template, subject

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

    A ticker is written EXCHANGE:TICKER, or its exchange stands in `registry`. A registry number needs its
    register in `registry`. An aggregator id may name its aggregator there, else its scheme is AGGREGATOR.
    `from` and `to` are the first and the last day on which the entity had it; empty is open.
    `legal_name` and `country` are the entity's; `successor` names who took over from it, as `entity` does. A
    row whose identifier is the entity's own says only that.
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
_Identity = tuple[str, str, str, str, str]


@adapter("series-csv")
def dated_series(file: InputFile) -> Iterator[Record]:
    """Dated series (exchange rates, price indices) in our own CSV template, one row per vintage.

    An empty value says that the release withdraws it.
    """
    document = file.name

    def column(row: dict[str, str], location: str) -> SeriesColumn:
        return SeriesColumn(*_series(*map(row.get, _IDENTITY)), document, [_reported_value(row, location)])

    return _gathered(SERIES.read(file, column))


_IDENTITY: Final = ("series", "series_type", "frequency", "country")


def _gathered(records: Iterable[Record]) -> Iterator[Record]:
    """The rows of a series as one column; of a large file, one from time to time."""
    pending: dict[_Identity, list[ReportedValue]] = {}
    rows = 0
    for record in records:
        if not isinstance(record, SeriesColumn):
            yield record
            continue
        pending.setdefault(record[:5], []).extend(record.values)
        rows += 1
        if rows == _MOST_PENDING:
            yield from (SeriesColumn(*identity, values) for identity, values in pending.items())
            pending, rows = {}, 0
    yield from (SeriesColumn(*identity, values) for identity, values in pending.items())


@lru_cache(maxsize=4096)
def _series(key: str, family: str, frequency: str, country_code: str | None) -> tuple[str, str, str, str]:
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
    """Which organisation a party of tenders is, decided by hand: no name, only a keyed hash of it."""
    return _REVIEWS.read(file, _decision)


def _decision(row: dict[str, str], location: str) -> Record:
    if not _MATCH.fullmatch(row["match"]):
        raise ValueError("match: expected 12 hexadecimal digits")
    if not _SERVICE_ID.fullmatch(row["service_id"]):
        raise ValueError("service_id: expected DC and 24 hexadecimal digits")
    if row["verdict"] not in _VERDICTS:
        raise ValueError(f"verdict: expected one of {', '.join(_VERDICTS)}")
    # With its instant, or a decision that is taken again within a second would count as known already.
    decision = f"{row['verdict']}@{row['decided_at']}"
    return IdentifierLink(f"match:{row['match']}:{row['service_id']}", decision, location)
