"""The rows the surfaces serve: the one definition behind the wire, OpenAPI and the MCP schemas.

Every field is always present; null where unknown. Every row carries its provenance.
"""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from types import GenericAlias
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sankofa.model.facts import METHODS, SHARED_METHODS
from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.identifiers import ID_TYPES
from sankofa.model.observations import FREQUENCIES
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import SKUS

Figure = Annotated[Decimal, Meta(extra={"figure": True})]
"""A figure as it was given, every digit kept, as against a number rounded to ten digits."""
_Day = date  # where a row has a field of that name


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What every row carries."""

    source_ref: Annotated[str, doc("Where it is from: `<source id>:<document>#<location>`.", min_length=1)]
    license_class: Annotated[str, doc("Licence class the source is held under.", min_length=1)]
    observed_at: Annotated[str, instant("When Sankofa captured it (RFC 3339, UTC).")]


class FundamentalsRow(Row, frozen=True, kw_only=True):
    """One vintage of one reported fact."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    record_ref: Annotated[str, doc("Identifies this vintage across editions.")]
    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    value_reported: Annotated[Figure | None, doc("As reported, every digit; null where withdrawn.")]
    currency_reported: Annotated[str | None, doc("ISO 4217 code; null where the unit is not money.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    period_start: Annotated[date | None, doc("Null for an instant.")]
    period_end: Annotated[date, doc("The last day of the period, or the day of an instant.")]
    period_type: Annotated[
        str,
        one_of(
            PERIOD_TYPES, "Told from the dates; TTM are twelve months that end on no year-end of the issuer."
        ),
    ]
    fiscal_year: Annotated[int | None, doc("The year in which the financial year ends.")]
    available_at: Annotated[date, doc("The day it became public.")]
    vintage: Annotated[int, doc("1 is the figure as first reported.", ge=1)]
    restated: Annotated[bool, doc("True where this figure replaced an earlier one.")]
    superseded_at: Annotated[date | None, doc("The day a later figure replaced it, where knowable.")]
    superseding_record_ref: Annotated[str | None, doc("The vintage that replaced it, where knowable.")]
    extraction_confidence: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, doc("Null where structured.")]
    method: Annotated[
        str, one_of(METHODS, "Extracted from a document, or published as data, maybe with rounded dates.")
    ]


class Listing(msgspec.Struct, frozen=True):
    """Where the organisation's shares are listed."""

    exchange: Annotated[str, doc("Name of the exchange, e.g. JSE.")]
    ticker: Annotated[str, doc("Its symbol there.")]


class Predecessor(msgspec.Struct, frozen=True):
    """An organisation that another one took over from."""

    service_id: Annotated[str, doc("Organisation identifier, under which its figures are.")]
    legal_name: Annotated[str | None, doc("As registered; null where no source says.")]


class EntityRow(Row, frozen=True, kw_only=True):
    """One organisation's resolved entity record."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("As registered; null where no source says.")]
    other_names: Annotated[list[str], doc("Former, trading and translated names.")]
    jurisdiction: Annotated[str | None, doc("ISO 3166-1 or 3166-2 code of its law.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2.")]
    status: Annotated[str | None, doc("Of its registration, as published: ISSUED, LAPSED, MERGED.")]
    category: Annotated[str | None, doc("As the register has it: GENERAL, FUND, BRANCH.")]
    legal_form: Annotated[str | None, doc("ISO 20275 entity legal form code; in words where it has none.")]
    lei: Annotated[str | None, doc("Legal Entity Identifier, where one exists.")]
    listings: Annotated[list[Listing], doc("Where its shares are listed.")]


class Match(msgspec.Struct, frozen=True):
    """Why an organisation was found, and how well."""

    on: Annotated[str, doc("What matched: a kind of identifier, legal_name or other_name.")]
    value: Annotated[str, doc("The name or identifier that matched.")]
    score: Annotated[float, doc("1 for an exact identifier.", ge=0, le=1)]


class CrosswalkRow(Row, frozen=True, kw_only=True):
    """One identifier held for an organisation."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    id_type: Annotated[str, one_of(sorted(ID_TYPES), "Kind of identifier.")]
    id_value: Annotated[str, doc("The identifier; a ticker is written EXCHANGE:TICKER.")]
    scheme: Annotated[str | None, doc("The register, exchange or aggregator that issued it.")]


class CrosswalkMatchRow(CrosswalkRow, frozen=True, kw_only=True):
    """An organisation that an outside identifier leads to."""

    legal_name: Annotated[str | None, doc("As registered; null where no source says.")]


class MetricInput(msgspec.Struct, frozen=True):
    """One figure that a value is computed from, or that proves a part of it to be nothing."""

    line_item: Annotated[str, doc("The line item of the formula that it is for.")]
    concept: Annotated[str | None, doc("As the taxonomy names it; null where the source names none.")]
    period_end: Annotated[date, doc("Of the full year, or of the one before.")]
    value: Annotated[Figure, doc("As reported, every digit.")]
    vintage: Annotated[int, doc("Which vintage of the fact it is: the latest.", ge=1)]
    source_ref: Annotated[str, doc("Source reference: document plus location.")]


class MetricsRow(Row, frozen=True, kw_only=True):
    """One derived value. Its provenance is that of the input that became public last."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("As registered; null where no source says.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2.")]
    metric: Annotated[str, doc("Slug of the metrics-v1 set.")]
    value: Annotated[Decimal, doc("Exact, rounded half-even to 10 significant digits.")]
    unit: Annotated[str, one_of(("days", "ratio"), "Of the value.")]
    period_end: Annotated[date, doc("The last day of the full year.")]
    as_of: Annotated[date, doc("The day applied.")]
    available_at: Annotated[date, doc("The day the last of its inputs became public.")]
    methodology_ref: Annotated[
        str, doc("Names the documented formula; the service explains it under /methodology/.")
    ]
    inputs: Annotated[list[MetricInput], doc("The figures it is computed from.")]


class ScreenRow(MetricsRow, frozen=True, kw_only=True):
    """One derived value in a ranking."""

    rank: Annotated[int, doc("Position by size in the whole result; not a rating.", ge=1)]


class MacroAnnualRow(Row, frozen=True, kw_only=True):
    """One annual indicator of one country in one year: the value of the table captured last."""

    country: Annotated[str, doc("ISO 3166-1 alpha-2.")]
    country_iso3: Annotated[str, doc("ISO 3166-1 alpha-3.")]
    indicator: Annotated[str, doc("Indicator code, e.g. NY.GDP.MKTP.CD.")]
    indicator_name: Annotated[str | None, doc("In words; null where no table says.")]
    year: Annotated[int, doc("The year it is of.")]
    value: Annotated[Figure | None, doc("Every digit; null where withdrawn.")]
    unit: Annotated[str | None, doc("By its metadata, else its name, else its code.")]
    note: Annotated[str | None, doc("Remarks of the publisher, e.g. modeled ILO estimate.")]
    available_at: Annotated[None, doc("Always null: no release date is evidenced.")]
    vintage: Annotated[int, doc("Counts the captures that changed the value.", ge=1)]


class MacroSeriesRow(Row, frozen=True, kw_only=True):
    """One value of a dated series: its latest vintage known on the day."""

    series: Annotated[str, doc("Series key; FX.<base>.<quote> is quote units for one base unit.")]
    series_type: Annotated[str, doc("Family, e.g. fx or cpi.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2; null where it is of no one country.")]
    date: Annotated[_Day, doc("The day, or the period by the day its source dates it with.")]
    value: Annotated[Figure | None, doc("Every digit; null where withdrawn.")]
    unit: Annotated[str | None, doc("Unit as the source writes it, without its remarks.")]
    note: Annotated[str | None, doc("Remarks of the publisher, e.g. period average.")]
    available_at: Annotated[_Day, doc("The day this vintage became public.")]
    vintage: Annotated[int, doc("1 is the value as first released.", ge=1)]


class FactRow(Row, frozen=True, kw_only=True):
    """The latest vintage of one value of any dataset, with who it is of and where it is from."""

    fact_id: Annotated[
        str, doc("`<dataset>:<record_ref>:<measure>`: names this vintage, the same in every edition.")
    ]
    entity_id: Annotated[str, doc("An organisation's service_id, or an ISO 3166-1 alpha-3 code.")]
    entity_name: Annotated[
        str | None, doc("Name of the organisation or country; under `as_of` too, the name it has today.")
    ]
    country_iso3: Annotated[str | None, doc("ISO 3166-1 alpha-3 code of the entity's country.")]
    dataset: Annotated[str, one_of(SKUS, "SKU.")]
    measure: Annotated[
        str, doc("A line item, award_value, tender_value, an indicator code or the key of a series.")
    ]
    value: Annotated[Figure | None, doc("Every digit; null where withdrawn.")]
    unit: Annotated[str | None, doc("Unit or currency as the source writes it.")]
    period_end: Annotated[
        date, doc("Last day of the period; of an award its day, of a tender that of the release.")
    ]
    period_type: Annotated[
        str, doc("Of the report, the frequency of a series, `annual`, `award` or `tender`.")
    ]
    available_at: Annotated[
        date | None, doc("The day this value became public; null where none is evidenced (annual macro).")
    ]
    vintage: Annotated[str, doc("1 is the value as first told.")]
    provenance_id: Annotated[str, doc("Stands for the five fields of its provenance together.")]
    extraction_confidence: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, doc("Null where structured.")]
    method: Annotated[str, one_of(SHARED_METHODS, "Extracted from a document, or published as data.")]


def decoder_of(fields: Iterable[tuple[str, Any] | tuple[str, Any, Any]]) -> msgspec.json.Decoder[list[Any]]:
    """Reads a list of rows, of each only these fields (name, type, and the value where it is absent).

    What is read does not refer to itself, so cycles are not looked for.
    """
    row = msgspec.defstruct("Fields", fields, gc=False)
    return msgspec.json.Decoder(GenericAlias(list, (row,)))


wire = msgspec.json.Encoder(decimal_format="number")
"""How every row is written: decimals as JSON numbers, every digit kept."""
