"""Rows of the API extensions: search, issuers, statements, series, sources, cross rates, quality, usage; and
of contracting processes: releases, their parties, compiled releases and red flags.
"""

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from sankofa.model.observations import FREQUENCIES
from sankofa.model.ocds.compiled import ContractChange, SetBy
from sankofa.model.ocds.process_facts import SUBJECT_TYPES
from sankofa.model.ocds.red_flags import INDICATORS
from sankofa.model.provenance import SKUS
from sankofa.model.rows import (
    EntityRow,
    Figure,
    FundamentalsRow,
    Listing,
    Match,
    Row,
    SplitRatio,
    doc,
    instant,
    one_of,
)

SEARCH_TYPES = ("organisation", "series", "indicator")
"""In the order in which equally good matches are listed."""
UNITS_OF_COUNT = ("issuers", "releases", "series", "indicators")

_Day = date  # for rows with a field named `date`
_Freshness = Annotated[
    int | None, doc("Days from the newest evidenced publication to the last capture; null without evidence.")
]


class SearchRow(Row, frozen=True, kw_only=True):
    """Something that a search found."""

    type: Annotated[str, one_of(SEARCH_TYPES, "Kind of result.")]
    id: Annotated[str, doc("A service_id, a series key or an indicator code.")]
    name: Annotated[str | None, doc("Legal name, or the series or indicator in words.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2; null for several countries.")]
    matched: Annotated[
        str, doc("Name or identifier that matched the query, e.g. `lei:...` or `ticker:JSE:NPN`.")
    ]
    score: Annotated[float, doc("Quality of the match; 1 for an exact identifier.", ge=0, le=1)]


class EntityMatchRow(EntityRow, frozen=True, kw_only=True):
    """An organisation found by search: its record plus the fields of a search row."""

    type: Annotated[str, one_of((SEARCH_TYPES[0],), "Always `organisation`.")]
    id: Annotated[str, doc("Organisation identifier.")]
    name: Annotated[str | None, doc("Legal name.")]
    matched: Annotated[str, doc("Name or identifier that matched the query.")]
    score: Annotated[float, doc("Quality of the match; 1 for an exact identifier.", ge=0, le=1)]
    match: Annotated[Match, doc("Reason for the match.")]


class IssuerRow(Row, frozen=True, kw_only=True):
    """An issuer as known on a day."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name on that day, as registered.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    lei: Annotated[str | None, doc("Legal Entity Identifier.")]
    listings: Annotated[list[Listing], doc("Exchanges and tickers on that day.")]
    first_available: Annotated[date, doc("Day on which its first figure became public.")]
    last_available: Annotated[date, doc("Day on which its last figure known on that day became public.")]
    fact_count: Annotated[
        int, doc("Number of facts known on that day: the rows of `/v1/fundamentals` for it.", ge=1)
    ]


class StatementFigureRow(FundamentalsRow, frozen=True, kw_only=True):
    """The figure of one line item for one period."""

    alternatives: Annotated[
        int, doc("Number of other figures of this line item and period in `/v1/fundamentals`.", ge=0)
    ]
    sign_turned: Annotated[
        bool,
        doc("Whether the filing reports this outflow as negative but proves that sign wrong."),
    ]


class WideStatementRow(Row, frozen=True, kw_only=True):
    """One line item, with a further column for each period, named by its period_end."""

    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    period_type: Annotated[str, doc("Kind of period of every column, e.g. FY.")]
    unit: Annotated[str | None, doc("Unit of every value of the row; null for a bare number.")]
    cells: Annotated[
        dict[str, dict[str, str | int | None]],
        doc("By period_end: concept, unit, available_at, vintage, alternatives, references."),
    ]


class MatrixRow(Row, frozen=True, kw_only=True):
    """One date of a series, with a further column for each release day: the value known on that day.

    Its provenance is that of the newest value.
    """

    MORE_COLUMNS: ClassVar = {"type": ["number", "null"], "description": "Value known on that release day."}

    date: Annotated[_Day, doc("Date of the value, or last day of the period.")]


class NthReleaseRow(Row, frozen=True, kw_only=True):
    """One date of a series in one release: the first, the latest, or the n-th."""

    date: Annotated[_Day, doc("Date of the value, or last day of the period.")]
    available_at: Annotated[_Day, doc("Day on which this value became public.")]
    value: Annotated[Figure | None, doc("Value with every digit; null if withdrawn.")]


class FigureMatrixRow(MatrixRow, frozen=True, kw_only=True):
    """One period of a line item, with a further column for each release day: the figure known that day."""

    period_type: Annotated[str, doc("Kind of period, e.g. FY.")]
    period_start: Annotated[_Day | None, doc("First day of the period; null for an instant.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]


class NthFigureRow(NthReleaseRow, frozen=True, kw_only=True):
    """One period of a line item in one release: the first, the latest, or the n-th."""

    period_type: Annotated[str, doc("Kind of period, e.g. FY.")]
    period_start: Annotated[_Day | None, doc("First day of the period; null for an instant.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]


class IssuerDayRow(Row, frozen=True, kw_only=True):
    """One issuer on one day, with a further column for each requested metric, line item and series.

    Provenance is that of the first column with a value; the licence class is the strictest of all.
    """

    MORE_COLUMNS: ClassVar = {"type": ["number", "null"], "description": "A requested column."}

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    as_of: Annotated[date, doc("Day of the row: every column is as known on that day.")]
    age_days: Annotated[
        dict[str, int], doc("By column: days from the end of the year, or from the observation, to `as_of`.")
    ]
    units: Annotated[dict[str, str], doc("By line item and series: unit of the value, such as USD.")]
    missing: Annotated[dict[str, str], doc("By column without a value: the reason.")]


class SeriesCatalogueRow(Row, frozen=True, kw_only=True):
    """A series, or an annual indicator of a country."""

    series: Annotated[str, doc("Series key, or indicator code.")]
    name: Annotated[str | None, doc("Name of the series; built from its key if the source gives none.")]
    unit: Annotated[str | None, doc("Unit of the newest value.")]
    note: Annotated[str | None, doc("Remarks of the publisher on its newest value.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2; null if it has none.")]
    first_date: Annotated[date, doc("Date of the oldest value; the last day of a year for annual series.")]
    last_date: Annotated[date, doc("Date of the newest value; the last day of a year for annual series.")]
    vintages: Annotated[int, doc("Number of release days; 0 for annual indicators, which have none.", ge=0)]
    source_id: Annotated[str, doc("Source of the newest value; see `/v1/sources`.")]


class SeriesReleaseRow(Row, frozen=True, kw_only=True):
    """A day on which values of a series were released."""

    series: Annotated[str, doc("Series key.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2; null if it has none.")]
    release_date: Annotated[date, doc("The `available_at` of the values.")]
    added: Annotated[int, doc("Number of values first released that day.", ge=0)]
    changed: Annotated[int, doc("Number of values that replaced or withdrew an earlier one.", ge=0)]


class SeriesRevisionsRow(Row, frozen=True, kw_only=True):
    """How the values of a series were revised after their first release, as known on a day.

    A relative revision is (latest - first) / |first|. Provenance is that of the newest vintage.
    """

    series: Annotated[str, doc("Series key.")]
    frequency: Annotated[str, one_of(FREQUENCIES, "How often it is observed.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2; null if it has none.")]
    first_date: Annotated[date, doc("Date of the oldest value.")]
    last_date: Annotated[date, doc("Date of the newest value.")]
    values: Annotated[int, doc("Number of values.", ge=1)]
    revised: Annotated[int, doc("Number of values with more than one vintage.", ge=0)]
    revisions: Annotated[int, doc("Number of vintages that replaced an earlier one.", ge=0)]
    mean_absolute_revision: Annotated[
        Decimal | None, doc("Size: mean of |relative revision| of the revised values; null if none is.")
    ]
    largest_absolute_revision: Annotated[
        Decimal | None, doc("Largest |relative revision|; null if no value was revised.")
    ]
    mean_revision: Annotated[
        Decimal | None,
        doc("Bias: mean relative revision of the revised values; above 0 if values tend to be raised."),
    ]
    median_days_to_final: Annotated[
        Decimal | None, doc("Median days from the first release of a revised value to its latest vintage.")
    ]
    largest_days_to_final: Annotated[
        int | None, doc("Most days from the first release of a value to its latest vintage.")
    ]


VERDICTS = ("supported", "supported_then", "contradicted", "unknown")


class CheckRow(Row, frozen=True, kw_only=True):
    """The verdict on a claim and the figure behind it; without a figure its fields are null."""

    verdict: Annotated[str, one_of(VERDICTS, "Result of the check.")]
    value: Annotated[Figure | None, doc("Figure with every digit; for supported_then the replaced figure.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    available_at: Annotated[date | None, doc("Day on which the figure became public.")]
    vintage: Annotated[int | None, doc("Number of its vintage.")]
    restated_at: Annotated[date | None, doc("Day on which a later figure replaced it.")]
    period_start: Annotated[
        date | None, doc("First day of its period; null for a balance, metric or series.")
    ]
    period_end: Annotated[date | None, doc("Last day of its period, or the day of a series value.")]


class RestatementRow(Row, frozen=True, kw_only=True):
    """A reported figure that replaced an earlier one, with the provenance of the later document."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    period_start: Annotated[date | None, doc("First day of the period; null for an instant.")]
    period_end: Annotated[date, doc("Last day of the period, or the day of an instant.")]
    value_before: Annotated[
        Figure | None, doc("Figure that was replaced, with every digit; null if withdrawn.")
    ]
    value_after: Annotated[
        Figure | None, doc("Figure that replaced it, with every digit; null if withdrawn.")
    ]
    change: Annotated[
        Decimal | None,
        doc("(after - before) / |before|, 10 significant digits; null if either is null or before is 0."),
    ]
    available_before: Annotated[date, doc("Day on which the replaced figure became public.")]
    available_at: Annotated[date, doc("Day on which the new figure became public.")]
    vintage: Annotated[int, doc("Number of the new vintage.", ge=2)]
    split_ratio: SplitRatio
    record_ref: Annotated[str, doc("Identifier of the new vintage, the same in every edition.")]


class SourceRow(Row, frozen=True, kw_only=True):
    """A source of the edition."""

    source_id: Annotated[str, doc("Identifier of the source; every `source_ref` of its rows begins with it.")]
    title: Annotated[str | None, doc("Title of the published data.")]
    publisher: Annotated[str | None, doc("Name of the publisher.")]
    url: Annotated[str | None, doc("Web address of the publication.")]
    licence: Annotated[str | None, doc("SPDX id or name of its licence.")]
    licence_url: Annotated[str | None, doc("Web address of the licence.")]
    attribution: Annotated[str, doc("Attribution that users of the data must give.")]
    sku: Annotated[
        str | None,
        one_of((*SKUS, None), "Dataset that the source feeds; null for a source of identifiers alone."),
    ]
    countries: Annotated[list[str], doc("Country codes of its rows, ISO 3166-1 alpha-2.")]
    row_count: Annotated[
        int, doc("Number of rows served, with all vintages; for a source of identifiers, of records.", ge=0)
    ]
    first_date: Annotated[date | None, doc("Earliest period_end, release date or observation.")]
    last_date: Annotated[date | None, doc("Latest period_end, release date or observation.")]
    captured_at: Annotated[str | None, instant("Time of the last capture; null in a locked view.")]
    freshness_days: _Freshness
    rejected: Annotated[
        int | None, doc("Number of records rejected when its files were read; null in a locked view.")
    ]


class CoverageRow(Row, frozen=True, kw_only=True):
    """How much of a dataset a source covers for a country."""

    sku: Annotated[str, one_of(SKUS, "The dataset.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2; null if it has none.")]
    source_id: Annotated[str, doc("Source; see `/v1/sources`.")]
    count: Annotated[
        int, doc("Number of issuers, releases, series or indicators; see `unit_of_count`.", ge=1)
    ]
    unit_of_count: Annotated[
        str, one_of(UNITS_OF_COUNT, "What `count` counts: issuers, releases, series or indicators.")
    ]
    first_date: Annotated[date | None, doc("Earliest period_end, release date or observation.")]
    last_date: Annotated[date | None, doc("Latest period_end, release date or observation.")]
    freshness_days: _Freshness


FOLLOWED = ("crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders")
"""The datasets whose changes can be followed, in the order in which changes are listed."""


class QualityRow(Row, frozen=True, kw_only=True):
    """One measure of a dataset's coverage or freshness."""

    sku: Annotated[str, one_of(SKUS, "The dataset.")]
    measure: Annotated[str, doc("Name of the measure.")]
    value: Annotated[Decimal | None, doc("Measured value; null if not measured.")]
    floor: Annotated[Decimal | None, doc("Minimum; for age, rejects and restatements a maximum.")]
    status: Annotated[
        str | None,
        one_of(
            ("PASS", "FAIL", "UNMEASURED", None),
            "Null if there is no floor. An unmeasured floor is never a pass.",
        ),
    ]
    measured_at: Annotated[str, instant("Instant of the last capture.")]


class ExportRow(Row, frozen=True, kw_only=True):
    """One published Parquet file."""

    name: Annotated[str, doc("Name of the file; a large table has several.")]
    sku: Annotated[str | None, one_of((*SKUS, None), "Dataset in the file; null for a file of all datasets.")]
    signal_key: Annotated[str | None, doc("Signal panel in the file; null for other tables.")]
    access: Annotated[str, one_of(("open", "licensed"), "Open files need no key.")]
    license: Annotated[str, doc("Licence of the file: SPDX id, or the service's own reference.")]
    url: Annotated[str, doc("Web address of the file.", extra_json_schema={"format": "uri"})]
    media_type: Annotated[str, doc("Media type: application/vnd.apache.parquet.")]
    size_bytes: Annotated[int, doc("Size of the file in bytes.", ge=0)]
    sha256: Annotated[str, doc("SHA-256 of the file, which is also its ETag.", pattern="^[0-9a-f]{64}$")]
    row_count: Annotated[int, doc("Number of rows in the file.", ge=0)]
    columns: Annotated[list[str], doc("Names of the columns, in order.")]
    min_tier: Annotated[
        str | None,
        one_of(("starter", None), "Lowest tier that may fetch the file; null if no key is needed."),
    ]
    updated_at: Annotated[str, instant("Instant of the edition's last capture.")]


class UsageRow(Row, frozen=True, kw_only=True):
    """The usage of a key and its limits."""

    tier: Annotated[str, doc("Tier of the key: sample, starter or professional.")]
    minute_limit: Annotated[int | None, doc("Requests per UTC minute; null for the owner.")]
    minute_used: Annotated[int, doc("Requests in this minute, including this one.", ge=0)]
    minute_reset_at: Annotated[str, instant("When the next minute begins.")]
    month_limit: Annotated[int | None, doc("Requests per UTC calendar month; null for the owner.")]
    month_used: Annotated[int, doc("Requests in this month, including this one.", ge=0)]
    month_reset_at: Annotated[str, instant("When the next month begins.")]
    expires_at: Annotated[
        str | None, doc("Last second in which the key is valid; null if it does not expire.")
    ]


class ChangeRow(Row, frozen=True, kw_only=True):
    """One row that differs from an earlier edition."""

    dataset: Annotated[str, one_of(FOLLOWED, "Dataset of the row.")]
    change: Annotated[
        str, one_of(("added", "changed", "removed"), "`removed`: now withheld or no longer served.")
    ]
    key: Annotated[list[str], doc("Key of the row, unique in its dataset.")]
    row: Annotated[
        msgspec.Raw,
        doc(
            "Row as its endpoint serves it; null if it was removed.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ]


DERIVED: Final = "derived"
METHODOLOGY: Final = "cross-rates-v1"


class CrossRateInput(msgspec.Struct, frozen=True):
    """A published rate that a cross rate is computed from."""

    series: Annotated[str, doc("Series key, as `/v1/macro` serves it.")]
    value: Annotated[Figure, doc("Value as published, with every digit.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    available_at: Annotated[_Day, doc("Day on which this vintage became public.")]
    vintage: Annotated[int, doc("Number of this vintage.", ge=1)]
    source_ref: Annotated[str, doc("Source reference: `<source id>:<document>#<location>`.")]
    license_class: Annotated[str, doc("Licence class of the source.")]
    observed_at: Annotated[str, instant("When Sankofa captured it.")]


class CrossRateRow(Row, frozen=True, kw_only=True):
    """An unpublished rate, computed from two published ones.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later.
    """

    base: Annotated[str, doc("Currency that is priced, ISO 4217.")]
    quote: Annotated[str, doc("Currency of the price, ISO 4217.")]
    via: Annotated[str, doc("Third currency that both inputs quote, ISO 4217.")]
    date: Annotated[_Day, doc("Date of both inputs.")]
    value: Annotated[
        Figure, doc("Quote units for one base unit, every digit, rounded half-even to 10 significant digits.")
    ]
    unit: Annotated[str, doc("Unit in words, e.g. `KES per NGN`.")]
    available_at: Annotated[_Day, doc("Day on which the later input became public.")]
    method: Annotated[str, one_of((DERIVED,), "Never published, always derived.")]
    methodology_ref: Annotated[str, one_of((METHODOLOGY,), "Name of the formula; see `/methodology/<name>`.")]
    inputs: Annotated[
        list[CrossRateInput], doc("Rate of the base currency, then rate of the quote currency.")
    ]


class ContractRow(Row, frozen=True, kw_only=True):
    """One contracting process as its releases up to a day add up."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_count: Annotated[int, doc("Number of releases up to the day.", ge=1)]
    first_release_date: Annotated[str, instant("Date of the first release, an instant in UTC.")]
    last_release_date: Annotated[str, instant("Date of the last release up to the day, an instant in UTC.")]
    release: Annotated[
        dict[str, Any], doc("Compiled release by the merge rules of OCDS 1.1.5, without extensions.")
    ]
    set_by: Annotated[
        dict[str, SetBy], doc("For every value of `release`, by JSON pointer, the release that set it.")
    ]
    changes: Annotated[
        list[ContractChange],
        doc("Amounts, deadlines, statuses and suppliers that a release replaced, oldest first."),
    ]


class FlagRow(Row, frozen=True, kw_only=True):
    """What one indicator says of one process or party. A flag is a reason to look, and proves nothing."""

    country: Annotated[str, doc("Country of the population, ISO 3166-1 alpha-2.")]
    indicator: Annotated[str, one_of(INDICATORS, "Code of the indicator.")]
    title: Annotated[str, doc("Name of the indicator.")]
    subject_type: Annotated[str, one_of(SUBJECT_TYPES, "What the row is about.")]
    subject: Annotated[str, doc("The ocid, or the id of the party in its releases.")]
    name: Annotated[str | None, doc("Title of the tender, or name of the party; null if not published.")]
    service_id: Annotated[str | None, doc("Organisation identifier of the party, where resolved.")]
    flagged: Annotated[bool | None, doc("Null if it cannot be computed: `reason` says why.")]
    value: Annotated[Decimal | None, doc("Value of the indicator; 1 and 0 stand for yes and no.")]
    threshold: Annotated[
        Decimal | None, doc("Value that `value` was compared with, from the population of the day.")
    ]
    formula: Annotated[str, doc("When the indicator is flagged.")]
    inputs: Annotated[dict[str, Any], doc("Values that it was computed from.")]
    population: Annotated[int, doc("Number of processes in the country's population of the day.", ge=1)]
    reason: Annotated[str | None, doc("Why it cannot be computed; null if it can.")]
    methodology_ref: Annotated[str, doc("Name of the method; `/methodology/` explains it.")]


class CompactTenderRow(Row, frozen=True, kw_only=True):
    """One OCDS release, without the release itself."""

    buyer_service_id: Annotated[str | None, doc("Organisation identifier of the buyer, where resolved.")]
    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.", min_length=1)]
    release_id: Annotated[str, doc("Identifier of the release within its process.", min_length=1)]
    release_date: Annotated[str, instant("An instant in UTC.")]
    tag: Annotated[list[str], doc("Release tags as published.")]
    title: Annotated[str | None, doc("Title of the tender.")]
    description: Annotated[str | None, doc("First 300 characters of the description of the tender.")]
    category: Annotated[str | None, doc("Category as published by the source portal.")]
    procurement_method: Annotated[str | None, doc("Procurement method as published.")]
    status: Annotated[str | None, doc("Status of the tender as published.")]
    closing_date: Annotated[
        str | None, instant("End of the tender period, an instant in UTC; null if not published.")
    ]
    value_amount: Annotated[
        Figure | None, doc("The tender's own value, with every digit; null if not published.")
    ]
    value_currency: Annotated[str | None, doc("Currency code, ISO 4217.")]
    buyer_name: Annotated[
        str | None, doc("Name of the buyer; null if it is not known to be an organisation.")
    ]
    award_count: Annotated[int, doc("Number of awards in this release.", ge=0)]
    withheld_parties: Annotated[
        int, doc("Number of parties that are not known to be organisations; they are never served.", ge=0)
    ]
    available_instant: Annotated[
        str | None,
        instant("Date of the release (UTC), if published with a time and its zone; null if only the day."),
    ]
    available_precision: Annotated[
        Literal["day", "second"], doc("Precision of the time at which the release became public.")
    ]


class TenderRow(CompactTenderRow, frozen=True, kw_only=True):
    """One OCDS release."""

    release: Annotated[
        msgspec.Raw,
        doc(
            "Cleaned OCDS release with the fields of the standard and its extensions; zero amounts are null.",
            extra_json_schema={"type": "object"},
        ),
    ]


class PartyIdentifier(msgspec.Struct, frozen=True):
    """How a register names a party."""

    scheme: Annotated[str, doc("Register, as an org-id.guide code where published so.")]
    id: Annotated[str, doc("Number in the register.")]


class TenderPartyRow(Row, frozen=True, kw_only=True):
    """A buyer or supplier named in releases, in one role."""

    service_id: Annotated[str | None, doc("Organisation identifier; null when unresolved.")]
    name: Annotated[str, doc("Name as published.", min_length=1)]
    role: Annotated[str, doc("Role in OCDS terms: buyer, supplier, tenderer.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    identifier: Annotated[PartyIdentifier | None, doc("First identifier as published.")]
    org_evidence: Annotated[str, doc("Evidence that it is an organisation, as `kind: detail`.", min_length=1)]
    match_method: Annotated[
        str | None,
        one_of(
            ("lei", "identifier", "review", "name", "similar_name", None),
            "How it was resolved; null when unresolved.",
        ),
    ]
    match_score: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        doc("How sure the match is, from 0 to 1; null when unresolved."),
    ]
    release_count: Annotated[int, doc("Number of releases that name it in this role.", ge=1)]
    first_seen: Annotated[date, doc("Day of the earliest of these releases.")]
    last_seen: Annotated[date, doc("Day of the latest of these releases.")]
