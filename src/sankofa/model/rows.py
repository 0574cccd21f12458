"""The rows the surfaces serve: the one definition behind the wire, OpenAPI and the MCP schemas.

Every field is always present; null if unknown. Every row carries its provenance.
"""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from enum import IntEnum
from types import GenericAlias
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from sankofa.model.identifiers import ID_TYPES
from sankofa.model.observations import FREQUENCIES
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import METHODS, SHARED_METHODS, SKUS


def doc(description: str, **limits: Any) -> Meta:
    """Describe a field, with the limits that msgspec enforces (`ge`, `min_length` ...)."""
    return Meta(description=description, **limits)


def one_of(words: Iterable[str | None], description: str) -> Meta:
    """Describe a field that has one of these values."""
    return Meta(description=description, extra_json_schema={"enum": list(words)})


def instant(description: str) -> Meta:
    """Describes a field that holds an RFC 3339 instant."""
    return Meta(description=description, extra_json_schema={"format": "date-time"})


class State(IntEnum):
    """Whether a metric has a value, or why it has none."""

    STANDS = 0
    NOT_PUBLISHED = 1
    INPUT_ABSENT = 2
    CURRENCY_MIXED = 3
    DENOMINATOR_NOT_POSITIVE = 4
    COMPLETED_AFTER_AS_OF = 5
    REVISED_AFTER_AS_OF = 6


REASONS: dict[State, str] = {state: state.name.lower() for state in State if state is not State.STANDS}


def panel_key(*values: str) -> str:
    """The key of the rows with these filter values; without filters, of all rows."""
    return "|".join(values)


def is_widest(key: str) -> bool:
    """Whether it has exactly one filter: each row is under one such key, and under narrower ones too."""
    return "|" not in key


Figure = Annotated[Decimal, Meta(extra={"figure": True})]
"""A figure with every digit of its source, unlike a number rounded to ten digits."""
SplitRatio = Annotated[
    Decimal | None, doc("New shares for one old share, if the figure was restated for a split; else null.")
]
Confidence = Annotated[
    Annotated[float, Meta(ge=0, le=1)] | None,
    doc("Confidence of the extraction, 0 to 1; null for structured data."),
]
_Day = date  # for rows with a field named `date`


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that every row carries."""

    source_ref: Annotated[str, doc("Source reference: `<source id>:<document>#<location>`.", min_length=1)]
    license_class: Annotated[str, doc("Licence class of the source.", min_length=1)]
    observed_at: Annotated[str, instant("When Sankofa captured it (RFC 3339, UTC).")]


AVAILABLE_PRECISIONS: Final = ("day", "second")


class FundamentalsRow(Row, frozen=True, kw_only=True):
    """One vintage of one reported fact."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    record_ref: Annotated[str, doc("Identifier of this vintage, the same in every edition.")]
    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    value_reported: Annotated[Figure | None, doc("Figure as reported, with every digit; null if withdrawn.")]
    currency_reported: Annotated[str | None, doc("Currency code, ISO 4217; null if the unit is not money.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    period_start: Annotated[date | None, doc("First day of the period; null for an instant.")]
    period_end: Annotated[date, doc("Last day of the period, or the day of an instant.")]
    period_type: Annotated[
        str,
        one_of(
            PERIOD_TYPES,
            "Kind of period, from its dates. TTM: twelve months that do not end on the issuer's year end.",
        ),
    ]
    fiscal_year: Annotated[int | None, doc("Year in which the financial year ends.")]
    available_at: Annotated[date, doc("Day on which the figure became public.")]
    available_instant: Annotated[
        str | None, instant("Instant at which its filing was accepted (UTC); null if only the day is known.")
    ]
    available_precision: Annotated[
        str, one_of(AVAILABLE_PRECISIONS, "Precision of the time at which the figure became public.")
    ]
    tradable_from: Annotated[
        date | None,
        doc("First session of the issuer's exchange after publication; null without a listing or calendar."),
    ]
    vintage: Annotated[int, doc("Number of this vintage; 1 is the figure as first reported.", ge=1)]
    restated: Annotated[bool, doc("True if this figure replaced an earlier one.")]
    split_ratio: SplitRatio
    superseded_at: Annotated[
        date | None, doc("Day on which a later figure replaced it; null if none is known by `as_of`.")
    ]
    superseding_record_ref: Annotated[
        str | None, doc("Vintage that replaced it; null if none is known by `as_of`.")
    ]
    extraction_confidence: Confidence
    method: Annotated[
        str, one_of(METHODS, "Extracted from a document, or published as data, possibly with rounded dates.")
    ]


class Listing(msgspec.Struct, frozen=True):
    """Where the organisation's shares are listed."""

    exchange: Annotated[str, doc("Name of the exchange, e.g. JSE.")]
    ticker: Annotated[str, doc("Symbol on the exchange.")]


class Predecessor(msgspec.Struct, frozen=True):
    """An organisation that another one took over from."""

    service_id: Annotated[str, doc("Organisation identifier of its figures.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]


class Parent(msgspec.Struct, frozen=True):
    """The organisation whose accounts consolidate another one."""

    service_id: Annotated[str | None, doc("Organisation identifier; null if Sankofa has no record of it.")]
    lei: Annotated[str, doc("Legal Entity Identifier.")]
    legal_name: Annotated[str | None, doc("Legal name on the day; null if Sankofa has no record of it.")]


class EntityRow(Row, frozen=True, kw_only=True):
    """One organisation's resolved entity record."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    other_names: Annotated[list[str], doc("Former, trading and translated names.")]
    jurisdiction: Annotated[str | None, doc("Jurisdiction of incorporation, ISO 3166-1 or 3166-2 code.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    status: Annotated[
        str | None, doc("Status of its LEI registration as published, e.g. ISSUED, LAPSED, MERGED.")
    ]
    category: Annotated[str | None, doc("Category in the LEI register, e.g. GENERAL, FUND, BRANCH.")]
    legal_form: Annotated[str | None, doc("Legal form: ISO 20275 code, or words where it has none.")]
    lei: Annotated[str | None, doc("Legal Entity Identifier, where one exists.")]
    listings: Annotated[list[Listing], doc("Exchanges and tickers of its shares.")]
    direct_parent: Annotated[Parent | None, doc("Nearest organisation that consolidates its accounts.")]
    ultimate_parent: Annotated[Parent | None, doc("Organisation at the top of the consolidation.")]


_SPELL_KINDS: Final = (
    *("identifier", "jurisdiction", "legal_form", "listing", "name", "parent", "predecessor", "status"),
    "successor",
)
RELATIONSHIPS: Final = ("direct", "ultimate")


class RelationRow(Row, frozen=True, kw_only=True):
    """A successor, predecessor or parent of an organisation, as an edition stores it."""

    kind: str
    value: str
    relationship: str | None


class SpellRow(Row, frozen=True, kw_only=True):
    """A name, status, listing or other attribute of an organisation, with its first and last day."""

    kind: Annotated[str, one_of(_SPELL_KINDS, "Kind of attribute.")]
    value: Annotated[
        str,
        doc(
            "The name or code; Listing: EXCHANGE:TICKER; identifier: TYPE:VALUE; parent: LEI; else a "
            "service_id."
        ),
    ]
    relationship: Annotated[
        str | None, one_of((*RELATIONSHIPS, None), "For a parent: the nearest one, or the one at the top.")
    ]
    from_: Annotated[date, doc("First day on which it is known.")] = msgspec.field(name="from")
    until: Annotated[date | None, doc("Last day; null while it is current.")]


class Match(msgspec.Struct, frozen=True):
    """Why an organisation was found, and how well."""

    on: Annotated[str, doc("Field that matched: a kind of identifier, legal_name or other_name.")]
    value: Annotated[str, doc("The name or identifier that matched.")]
    score: Annotated[float, doc("Quality of the match; 1 for an exact identifier.", ge=0, le=1)]


class CrosswalkRow(Row, frozen=True, kw_only=True):
    """One identifier held for an organisation."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    id_type: Annotated[str, one_of(sorted(ID_TYPES), "Kind of identifier.")]
    id_value: Annotated[str, doc("The identifier; a ticker is written EXCHANGE:TICKER.")]
    scheme: Annotated[str | None, doc("Register, exchange or aggregator that issued the identifier.")]


class CrosswalkMatchRow(CrosswalkRow, frozen=True, kw_only=True):
    """An organisation that an outside identifier leads to."""

    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]


class MetricInput(msgspec.Struct, frozen=True):
    """One input of a value, or a figure that proves one of its parts to be zero."""

    line_item: Annotated[str, doc("Line item of the formula.")]
    concept: Annotated[str | None, doc("Concept of the taxonomy; null if the source names none.")]
    period_end: Annotated[date, doc("Last day of the full year, or of the year before.")]
    value: Annotated[Figure, doc("Figure as reported, with every digit.")]
    vintage: Annotated[int, doc("Number of the vintage used, the latest.", ge=1)]
    source_ref: Annotated[str, doc("Source reference: `<source id>:<document>#<location>`.")]


class MetricsRow(Row, frozen=True, kw_only=True):
    """One derived value, with the provenance of the input that became public last."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    metric: Annotated[str, doc("Name of the metric.")]
    value: Annotated[Decimal, doc("Value, computed exactly and rounded half-even to 10 significant digits.")]
    unit: Annotated[str, one_of(("days", "ratio"), "Unit of the value.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    as_of: Annotated[date, doc("The `as_of` day of the answer.")]
    age_days: Annotated[int, doc("Days from `period_end` to `as_of`.", ge=0)]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[str, doc("Name of the formula; /methodology/ explains it.")]
    inputs: Annotated[list[MetricInput], doc("Figures that the value is computed from.")]


class ScreenRow(MetricsRow, frozen=True, kw_only=True):
    """One derived value in a ranking."""

    rank: Annotated[int, doc("Position by size in the whole result; not a rating.", ge=1)]


class MacroAnnualRow(Row, frozen=True, kw_only=True):
    """One annual indicator of one country in one year, from the table captured last."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    country_iso3: Annotated[str, doc("Country code, ISO 3166-1 alpha-3.")]
    indicator: Annotated[str, doc("Indicator code, e.g. NY.GDP.MKTP.CD.")]
    indicator_name: Annotated[str | None, doc("Name of the indicator; null if unknown.")]
    year: Annotated[int, doc("Year of the value.")]
    value: Annotated[Figure | None, doc("Value with every digit; null if withdrawn.")]
    unit: Annotated[str | None, doc("Unit, from the indicator's metadata, name or code.")]
    note: Annotated[str | None, doc("Remarks of the publisher, e.g. modeled ILO estimate.")]
    available_at: Annotated[None, doc("Always null: annual indicators have no evidenced release date.")]
    vintage: Annotated[int, doc("Number of captures that changed the value.", ge=1)]


class MacroSeriesRow(Row, frozen=True, kw_only=True):
    """One value of a dated series, in the latest vintage known on the day."""

    series: Annotated[str, doc("Series key; FX.<base>.<quote> is quote units for one base unit.")]
    series_type: Annotated[str, doc("Family, e.g. fx or cpi.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[
        str | None, doc("Country code, ISO 3166-1 alpha-2; null for a series of several countries.")
    ]
    date: Annotated[_Day, doc("Day of the value, or the source's date for the period.")]
    value: Annotated[Figure | None, doc("Value with every digit; null if withdrawn.")]
    unit: Annotated[str | None, doc("Unit as the source writes it, without its remarks.")]
    note: Annotated[str | None, doc("Remarks of the publisher, e.g. period average.")]
    available_at: Annotated[_Day, doc("Day on which this vintage became public.")]
    vintage: Annotated[int, doc("Number of this vintage; 1 is the value as first released.", ge=1)]


class FactRow(Row, frozen=True, kw_only=True):
    """The latest vintage of one value of any dataset, with its entity and its source."""

    fact_id: Annotated[
        str, doc("Identifier of this vintage, the same in every edition: `<dataset>:<record_ref>:<measure>`.")
    ]
    entity_id: Annotated[str, doc("Identifier: an organisation's service_id, or an ISO 3166-1 alpha-3 code.")]
    entity_name: Annotated[str | None, doc("Today's name of the organisation or country, at any `as_of`.")]
    country_iso3: Annotated[str | None, doc("ISO 3166-1 alpha-3 code of the entity's country.")]
    dataset: Annotated[str, one_of(SKUS, "Code of the dataset.")]
    measure: Annotated[
        str, doc("Measure: a line item, award_value, tender_value, indicator code or series key.")
    ]
    value: Annotated[Figure | None, doc("Value with every digit; null if withdrawn.")]
    unit: Annotated[str | None, doc("Unit or currency as the source writes it.")]
    period_end: Annotated[
        date, doc("Last day of the period, day of the award, or release day of the tender.")
    ]
    period_type: Annotated[str, doc("Kind of period, frequency of a series, `annual`, `award` or `tender`.")]
    available_at: Annotated[
        date | None, doc("Day on which this value became public; null if none is evidenced (annual macro).")
    ]
    vintage: Annotated[str, doc("Number of this vintage; 1 is the value as first published.")]
    provenance_id: Annotated[str, doc("Identifier of the five provenance fields together.")]
    extraction_confidence: Confidence
    method: Annotated[str, one_of(SHARED_METHODS, "Extracted from a document, or published as data.")]


def decoder_of(fields: Iterable[tuple[str, Any] | tuple[str, Any, Any]]) -> msgspec.json.Decoder[list[Any]]:
    """Reads a list of rows, only these fields of each (name, type, default). The values have no cycles, so
    the collector ignores them."""
    row = msgspec.defstruct("Fields", fields, gc=False)
    return msgspec.json.Decoder(GenericAlias(list, (row,)))


wire = msgspec.json.Encoder(decimal_format="number")
"""Encodes every row: decimals become JSON numbers with every digit."""
