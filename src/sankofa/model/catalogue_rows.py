"""The rows of the extensions of the API: search, issuers, statements, series, sources, coverage."""

from datetime import date
from typing import Annotated

from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.observations import FREQUENCIES
from sankofa.model.provenance import SKUS
from sankofa.model.rows import EntityRow, FundamentalsRow, Listing, Match, Row

SEARCH_TYPES = ("organisation", "series", "indicator")
"""In the order in which equally good matches are listed."""
UNITS_OF_COUNT = ("issuers", "releases", "series", "indicators")

_Freshness = Annotated[
    int | None, doc("Days from the newest evidenced publication to the last capture; null without evidence.")
]


class SearchRow(Row, frozen=True, kw_only=True):
    """Something that a search found."""

    type: Annotated[str, one_of(SEARCH_TYPES, "What it is.")]
    id: Annotated[str, doc("A service_id, a series key or an indicator code.")]
    name: Annotated[str | None, doc("Legal name, or the series or indicator in words.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2 code; null where it is of several countries.")]
    matched: Annotated[
        str, doc("The name that the query met, or the identifier, as `lei:...` or `ticker:JSE:NPN`.")
    ]
    score: Annotated[float, doc("How well it matches; 1 is an exact identifier.", ge=0, le=1)]


class EntityMatchRow(EntityRow, frozen=True, kw_only=True):
    """An organisation that a search found: its record, and the members of a search row."""

    type: Annotated[str, one_of((SEARCH_TYPES[0],), "`organisation`.")]
    id: Annotated[str, doc("The service_id.")]
    name: Annotated[str | None, doc("The legal name.")]
    matched: Annotated[str, doc("The name that the query met, or the identifier.")]
    score: Annotated[float, doc("How well it matches; 1 is an exact identifier.", ge=0, le=1)]
    match: Annotated[Match, doc("Why it was found.")]


class IssuerRow(Row, frozen=True, kw_only=True):
    """An issuer as it was knowable on a day."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("As registered; the current one.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2 code.")]
    lei: Annotated[str | None, doc("Legal Entity Identifier.")]
    listings: Annotated[list[Listing], doc("Where it is listed, as far as known today.")]
    first_available: Annotated[date, doc("The day the first of its figures known by then became public.")]
    last_available: Annotated[date, doc("The day the last of its figures known by then became public.")]
    fact_count: Annotated[int, doc("Facts known by then: the rows of `/v1/fundamentals` for that day.", ge=1)]


class StatementFigureRow(FundamentalsRow, frozen=True, kw_only=True):
    """The figure of one line item for one period."""

    alternatives: Annotated[
        int, doc("Figures of this line item and period in `/v1/fundamentals` that were not chosen.", ge=0)
    ]
    sign_turned: Annotated[
        bool,
        doc("Whether the filing has this outflow as a negative figure and proves that the sign is wrong."),
    ]


class WideStatementRow(Row, frozen=True, kw_only=True):
    """One line item, with a further column for each period, named by its period_end."""

    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    period_type: Annotated[str, doc("Of every column.")]
    unit: Annotated[str | None, doc("Unit of every value of the row; null for a bare number.")]
    cells: Annotated[
        dict[str, dict[str, str | int | None]],
        doc("By period_end: concept, unit, available_at, vintage, alternatives and references."),
    ]


class SeriesCatalogueRow(Row, frozen=True, kw_only=True):
    """A series, or an annual indicator of a country."""

    series: Annotated[str, doc("Series key, or indicator code.")]
    name: Annotated[str | None, doc("In words: the source's own, else put together from its key.")]
    unit: Annotated[str | None, doc("Of its newest value.")]
    note: Annotated[str | None, doc("Remarks of the publisher on its newest value.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2 code; null where of none.")]
    first_date: Annotated[date, doc("Of its oldest value; the last day of a year.")]
    last_date: Annotated[date, doc("Of its newest value; the last day of a year.")]
    vintages: Annotated[
        int, doc("Distinct days of release; 0 for annual indicators, which evidence none.", ge=0)
    ]
    source_id: Annotated[str, doc("The source of its newest value; see `/v1/sources`.")]


class SeriesReleaseRow(Row, frozen=True, kw_only=True):
    """A day on which values of a series were released."""

    series: Annotated[str, doc("Series key.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2 code; null where of none.")]
    release_date: Annotated[date, doc("The `available_at` of the values.")]
    added: Annotated[int, doc("Values that had none before.", ge=0)]
    changed: Annotated[int, doc("Values that replaced an earlier one, withdrawals among them.", ge=0)]


class SourceRow(Row, frozen=True, kw_only=True):
    """A source of the edition."""

    source_id: Annotated[str, doc("What every `source_ref` of its rows begins with.")]
    title: Annotated[str | None, doc("What is published.")]
    publisher: Annotated[str | None, doc("Who publishes it.")]
    url: Annotated[str | None, doc("Where it is published.")]
    licence: Annotated[str | None, doc("SPDX id or name of its licence.")]
    licence_url: Annotated[str | None, doc("Where the licence can be read.")]
    attribution: Annotated[str, doc("Who is to be named where its data is used.")]
    sku: Annotated[
        str | None, one_of((*SKUS, None), "The dataset it is of; null where it only says who is who.")
    ]
    countries: Annotated[list[str], doc("Alpha-2 codes of the countries its rows are of.")]
    row_count: Annotated[
        int, doc("What is served of it, every vintage; of one that says who is who, its records.", ge=0)
    ]
    first_date: Annotated[date | None, doc("The earliest period_end, release date or observation.")]
    last_date: Annotated[date | None, doc("The latest of these.")]
    captured_at: Annotated[str, instant("When it was captured last.")]
    freshness_days: _Freshness
    rejected: Annotated[int, doc("Records rejected when its files were read.", ge=0)]


class CoverageRow(Row, frozen=True, kw_only=True):
    """How much there is of a dataset for a country, by source."""

    sku: Annotated[str, one_of(SKUS, "The dataset.")]
    country: Annotated[str | None, doc("ISO 3166-1 alpha-2 code; null where of none.")]
    source_id: Annotated[str, doc("See `/v1/sources`.")]
    count: Annotated[int, doc("How many there are.", ge=1)]
    unit_of_count: Annotated[str, one_of(UNITS_OF_COUNT, "Of what.")]
    first_date: Annotated[date | None, doc("The earliest period_end, release date or observation.")]
    last_date: Annotated[date | None, doc("The latest of these.")]
    freshness_days: _Freshness
