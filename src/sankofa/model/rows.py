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
from sankofa.model.identifiers import ID_TYPES
from sankofa.model.observations import FREQUENCIES
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import SKUS

Figure = Annotated[Decimal, Meta(extra={"figure": True})]
"""A figure as it was given, every digit kept, as against a number rounded to ten digits."""
_Day = date  # where a row has a field of that name


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What every row carries."""

    source_ref: Annotated[
        str, Meta(description="Where it is from: `<source id>:<document>#<location>`.", min_length=1)
    ]
    license_class: Annotated[str, Meta(description="Licence class the source is held under.", min_length=1)]
    observed_at: Annotated[
        str,
        Meta(
            description="When Sankofa captured it (RFC 3339, UTC).", extra_json_schema={"format": "date-time"}
        ),
    ]


class FundamentalsRow(Row, frozen=True, kw_only=True):
    """One vintage of one reported fact."""

    service_id: Annotated[str, Meta(description="Organisation identifier.")]
    record_ref: Annotated[str, Meta(description="Identifies this vintage across editions.")]
    line_item: Annotated[str, Meta(description="Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, Meta(description="The source's own concept, e.g. us-gaap:Revenues.")]
    value_reported: Annotated[
        Figure | None, Meta(description="As reported, every digit; null where withdrawn.")
    ]
    currency_reported: Annotated[
        str | None, Meta(description="ISO 4217 code; null where the unit is not money.")
    ]
    unit: Annotated[str | None, Meta(description="Unit as the source writes it.")]
    period_start: Annotated[date | None, Meta(description="Null for an instant.")]
    period_end: Annotated[date, Meta(description="The last day of the period, or the day of an instant.")]
    period_type: Annotated[
        str,
        Meta(
            description="Told from the dates; TTM are twelve months that end on no year-end of the issuer.",
            extra_json_schema={"enum": list(PERIOD_TYPES)},
        ),
    ]
    fiscal_year: Annotated[int | None, Meta(description="The year in which the financial year ends.")]
    available_at: Annotated[date, Meta(description="The day it became public.")]
    vintage: Annotated[int, Meta(description="1 is the figure as first reported.", ge=1)]
    restated: Annotated[bool, Meta(description="True where this figure replaced an earlier one.")]
    superseded_at: Annotated[
        date | None, Meta(description="The day a later figure replaced it, where knowable.")
    ]
    superseding_record_ref: Annotated[
        str | None, Meta(description="The vintage that replaced it, where knowable.")
    ]
    extraction_confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="Null where structured.")
    ]
    method: Annotated[
        str,
        Meta(
            description="Extracted from a document, or published as data, maybe with rounded dates.",
            extra_json_schema={"enum": list(METHODS)},
        ),
    ]


class Listing(msgspec.Struct, frozen=True):
    """Where the organisation's shares are listed."""

    exchange: Annotated[str, Meta(description="Name of the exchange, e.g. JSE.")]
    ticker: Annotated[str, Meta(description="Its symbol there.")]


class EntityRow(Row, frozen=True, kw_only=True):
    """One organisation's resolved entity record."""

    service_id: Annotated[str, Meta(description="Organisation identifier.")]
    legal_name: Annotated[str | None, Meta(description="As registered; null where no source says.")]
    other_names: Annotated[list[str], Meta(description="Former, trading and translated names.")]
    jurisdiction: Annotated[str | None, Meta(description="ISO 3166-1 or 3166-2 code of its law.")]
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2.")]
    status: Annotated[
        str | None, Meta(description="Of its registration, as published: ISSUED, LAPSED, MERGED.")
    ]
    category: Annotated[str | None, Meta(description="As the register has it: GENERAL, FUND, BRANCH.")]
    legal_form: Annotated[
        str | None, Meta(description="ISO 20275 entity legal form code; in words where it has none.")
    ]
    lei: Annotated[str | None, Meta(description="Legal Entity Identifier, where one exists.")]
    listings: Annotated[list[Listing], Meta(description="Where its shares are listed.")]


class Match(msgspec.Struct, frozen=True):
    """Why an organisation was found, and how well."""

    on: Annotated[str, Meta(description="What matched: a kind of identifier, legal_name or other_name.")]
    value: Annotated[str, Meta(description="The name or identifier that matched.")]
    score: Annotated[float, Meta(description="1 for an exact identifier.", ge=0, le=1)]


class CrosswalkRow(Row, frozen=True, kw_only=True):
    """One identifier held for an organisation."""

    service_id: Annotated[str, Meta(description="Organisation identifier.")]
    id_type: Annotated[
        str, Meta(description="Kind of identifier.", extra_json_schema={"enum": sorted(ID_TYPES)})
    ]
    id_value: Annotated[str, Meta(description="The identifier; a ticker is written EXCHANGE:TICKER.")]
    scheme: Annotated[str | None, Meta(description="The register, exchange or aggregator that issued it.")]


class CrosswalkMatchRow(CrosswalkRow, frozen=True, kw_only=True):
    """An organisation that an outside identifier leads to."""

    legal_name: Annotated[str | None, Meta(description="As registered; null where no source says.")]


class MetricInput(msgspec.Struct, frozen=True):
    """One figure that a value is computed from, or that proves a part of it to be nothing."""

    line_item: Annotated[str, Meta(description="The line item of the formula that it is for.")]
    concept: Annotated[
        str | None, Meta(description="As the taxonomy names it; null where the source names none.")
    ]
    period_end: Annotated[date, Meta(description="Of the full year, or of the one before.")]
    value: Annotated[Figure, Meta(description="As reported, every digit.")]
    vintage: Annotated[int, Meta(description="Which vintage of the fact it is: the latest.", ge=1)]
    source_ref: Annotated[str, Meta(description="Source reference: document plus location.")]


class MetricsRow(Row, frozen=True, kw_only=True):
    """One derived value. Its provenance is that of the input that became public last."""

    service_id: Annotated[str, Meta(description="Organisation identifier.")]
    legal_name: Annotated[str | None, Meta(description="As registered; null where no source says.")]
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2.")]
    metric: Annotated[str, Meta(description="Slug of the metrics-v1 set.")]
    value: Annotated[Decimal, Meta(description="Exact, rounded half-even to 10 significant digits.")]
    unit: Annotated[str, Meta(description="Of the value.", extra_json_schema={"enum": ["days", "ratio"]})]
    period_end: Annotated[date, Meta(description="The last day of the full year.")]
    as_of: Annotated[date, Meta(description="The day applied.")]
    available_at: Annotated[date, Meta(description="The day the last of its inputs became public.")]
    methodology_ref: Annotated[
        str, Meta(description="Names the documented formula; the service explains it under /methodology/.")
    ]
    inputs: Annotated[list[MetricInput], Meta(description="The figures it is computed from.")]


class ScreenRow(MetricsRow, frozen=True, kw_only=True):
    """One derived value in a ranking."""

    rank: Annotated[int, Meta(description="Position by size in the whole result; not a rating.", ge=1)]


class MacroAnnualRow(Row, frozen=True, kw_only=True):
    """One annual indicator of one country in one year: the value of the table captured last."""

    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2.")]
    country_iso3: Annotated[str, Meta(description="ISO 3166-1 alpha-3.")]
    indicator: Annotated[str, Meta(description="Indicator code, e.g. NY.GDP.MKTP.CD.")]
    indicator_name: Annotated[str | None, Meta(description="In words; null where no table says.")]
    year: Annotated[int, Meta(description="The year it is of.")]
    value: Annotated[Figure | None, Meta(description="Every digit; null where withdrawn.")]
    unit: Annotated[str | None, Meta(description="As the indicator's name has it in parentheses.")]
    available_at: Annotated[None, Meta(description="Always null: no release date is evidenced.")]
    vintage: Annotated[int, Meta(description="Counts the captures that changed the value.", ge=1)]


class MacroSeriesRow(Row, frozen=True, kw_only=True):
    """One value of a dated series: its latest vintage known on the day."""

    series: Annotated[
        str, Meta(description="Series key; FX.<base>.<quote> is quote units for one base unit.")
    ]
    series_type: Annotated[str, Meta(description="Family, e.g. fx or cpi.")]
    frequency: Annotated[
        str, Meta(description="How often it is observed.", extra_json_schema={"enum": list(FREQUENCIES)})
    ]
    country: Annotated[
        str | None, Meta(description="ISO 3166-1 alpha-2; null where it is of no one country.")
    ]
    date: Annotated[_Day, Meta(description="The day, or the period by the day its source dates it with.")]
    value: Annotated[Figure | None, Meta(description="Every digit; null where withdrawn.")]
    unit: Annotated[str | None, Meta(description="Unit as the source writes it.")]
    available_at: Annotated[_Day, Meta(description="The day this vintage became public.")]
    vintage: Annotated[int, Meta(description="1 is the value as first released.", ge=1)]


class FactRow(Row, frozen=True, kw_only=True):
    """The latest vintage of one value of any dataset, with who it is of and where it is from."""

    fact_id: Annotated[
        str,
        Meta(
            description="`<dataset>:<record_ref>:<measure>`: names this vintage, the same in every edition."
        ),
    ]
    entity_id: Annotated[
        str, Meta(description="An organisation's service_id, or an ISO 3166-1 alpha-3 code.")
    ]
    entity_name: Annotated[str | None, Meta(description="Of the organisation or country.")]
    country_iso3: Annotated[str | None, Meta(description="ISO 3166-1 alpha-3 code of the entity's country.")]
    dataset: Annotated[str, Meta(description="SKU.", extra_json_schema={"enum": list(SKUS)})]
    measure: Annotated[
        str,
        Meta(description="A line item, award_value, tender_value, an indicator code or the key of a series."),
    ]
    value: Annotated[Figure | None, Meta(description="Every digit; null where withdrawn.")]
    unit: Annotated[str | None, Meta(description="Unit or currency as the source writes it.")]
    period_end: Annotated[
        date,
        Meta(description="Last day of the period; of an award its day, of a tender that of the release."),
    ]
    period_type: Annotated[
        str,
        Meta(description="Of the report, the frequency of a series, `annual`, `award` or `tender`."),
    ]
    available_at: Annotated[
        date | None,
        Meta(description="The day this value became public; null where none is evidenced (annual macro)."),
    ]
    vintage: Annotated[str, Meta(description="1 is the value as first told.")]
    provenance_id: Annotated[str, Meta(description="Stands for the five fields of its provenance together.")]
    extraction_confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="Null where structured.")
    ]
    method: Annotated[
        str,
        Meta(
            description="Extracted from a document, or published as data.",
            extra_json_schema={"enum": list(SHARED_METHODS)},
        ),
    ]


def decoder_of(fields: Iterable[tuple[str, Any] | tuple[str, Any, Any]]) -> msgspec.json.Decoder[list[Any]]:
    """Reads a list of rows, of each only these fields (name, type, and the value where it is absent).

    What is read does not refer to itself, so cycles are not looked for.
    """
    row = msgspec.defstruct("Fields", fields, gc=False)
    return msgspec.json.Decoder(GenericAlias(list, (row,)))


wire = msgspec.json.Encoder(decimal_format="number")
"""How every row is written: decimals as JSON numbers, every digit kept."""
