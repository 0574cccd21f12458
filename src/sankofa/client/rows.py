"""The rows of every endpoint, and the words its parameters take.

Written by tools/client.py (make docs). Change the operation, not this module.
"""

from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

Day = Annotated[str, "day"]
"""A day, as YYYY-MM-DD. In brackets: what kind of column it is in a frame (`sankofa.client.frames`)."""
Instant = Annotated[str, "instant"]
"""An instant in UTC, as RFC 3339 has it."""
Number = Annotated[int | Decimal, "figure"]
"""A figure with every digit it was given."""
Float = Annotated[int | Decimal, "float"]
"""A number that was never more exact than a float: a score, a confidence."""

Basis = Literal["current", "as_known"]

Dataset = Literal["crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders"]

Detail = Literal["compact", "full"]

Every = Literal["week", "month", "quarter", "year", "change"]

Frequency = Literal["daily", "weekly", "monthly", "quarterly", "annual"]

IdType = Literal["lei", "ticker", "registry", "aggregator", "isin", "figi"]

Kind = Literal["income", "balance", "cash"]

Metric = Literal[
    "accruals_ratio",
    "asset_turnover",
    "capex_intensity",
    "cash_conversion",
    "cash_ratio",
    "current_ratio",
    "debt_to_equity",
    "ebitda_margin",
    "effective_tax_rate",
    "free_cash_flow_margin",
    "gross_margin",
    "interest_cover",
    "inventory_days",
    "liabilities_to_assets",
    "loan_to_deposit",
    "net_debt_to_ebitda",
    "net_margin",
    "operating_margin",
    "payable_days",
    "payout_ratio",
    "pretax_margin",
    "profit_growth",
    "quick_ratio",
    "receivable_days",
    "return_on_assets",
    "return_on_capital_employed",
    "return_on_equity",
    "revenue_growth",
]

Order = Literal["period", "statement"]

PeriodType = Literal["FY", "H1", "H2", "Q1", "Q2", "Q3", "Q4", "9M", "other", "TTM"]

Proof = Literal["true", "false"]

ScreenOrder = Literal["asc", "desc"]

Shape = Literal["long", "wide"]

SharedFactsDataset = Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]

Sku = Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]

Type = Literal["organisation", "series", "indicator"]

Vintages = Literal["latest", "as_reported", "all"]


class Row(TypedDict):
    """Fields that every row carries."""

    source_ref: str
    """Source reference: `<source id>:<document>#<location>`."""
    license_class: str
    """Licence class of the source."""
    observed_at: Instant | None
    """When Sankofa captured it (RFC 3339, UTC); null in a locked view."""


class ChangeRow(Row):
    """One row that is not as it was in an earlier edition."""

    dataset: Literal["crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders"]
    """Which rows it is one of."""
    change: Literal["added", "changed", "removed"]
    """Removed: withheld now, or no longer served."""
    key: list[str]
    """Key of the row, unique in its dataset."""
    row: dict[str, Any] | None
    """Row as its endpoint serves it; null if it was removed."""


class CheckRow(Row):
    """The verdict on a claim, and the figure that it rests on; null fields if there is none."""

    verdict: Literal["supported", "supported_then", "contradicted", "unknown"]
    """Whether the claim is borne out."""
    value: Number | None
    """Figure with every digit; the replaced one where supported_then."""
    unit: str | None
    """Unit as the source writes it."""
    available_at: Day | None
    """Day on which the figure became public."""
    vintage: int | None
    """Number of its vintage."""
    restated_at: Day | None
    """Day on which a later figure replaced it."""


class SetBy(TypedDict):
    """The release that set a value."""

    release_id: str
    """Identifier of the release within its process."""
    release_date: Instant
    """Its date, an instant in UTC."""


class ContractChange(TypedDict):
    """A value that a release replaced."""

    field: Literal["amount", "deadline", "status", "supplier"]
    """What changed."""
    path: str
    """JSON pointer into `release`."""
    old: dict[str, Any]
    """Value before: an amount, a text, or the names of suppliers; null if none."""
    new: dict[str, Any]
    """Value set by the release; null if it removed the value."""
    release_id: str
    """Release that changed it."""
    release_date: Instant
    """Its date, an instant in UTC."""


class ContractRow(Row):
    """One contracting process as its releases up to a day add up."""

    country: str
    """Country code, ISO 3166-1 alpha-2."""
    ocid: str
    """Open Contracting process identifier."""
    release_count: int
    """Number of releases up to the day."""
    first_release_date: Instant
    """Date of the first release, an instant in UTC."""
    last_release_date: Instant
    """Date of the last release up to the day, an instant in UTC."""
    release: dict[str, Any]
    """Compiled release by the merge rules of OCDS 1.1.5, without extensions."""
    set_by: dict[str, Any]
    """For every value of `release`, by JSON pointer, the release that set it."""
    changes: list[ContractChange]
    """Amounts, deadlines, statuses and suppliers that a release replaced, oldest first."""


class CoverageRow(Row):
    """How much there is of a dataset for a country, by source."""

    sku: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """The dataset."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null if it has none."""
    source_id: str
    """Source; see `/v1/sources`."""
    count: int
    """Number of issuers, releases, series or indicators; see `unit_of_count`."""
    unit_of_count: Literal["issuers", "releases", "series", "indicators"]
    """What `count` counts: issuers, releases, series or indicators."""
    first_date: Day | None
    """Earliest period_end, release date or observation."""
    last_date: Day | None
    """Latest period_end, release date or observation."""
    freshness_days: int | None
    """Days from the newest evidenced publication to the last capture; null without evidence."""


class CrossRateInput(TypedDict):
    """A published rate that a cross rate is computed from."""

    series: str
    """Series key, as `/v1/macro` serves it."""
    value: Number
    """Value as published, with every digit."""
    unit: str | None
    """Unit as the source writes it."""
    available_at: Day
    """Day on which this vintage became public."""
    vintage: int
    """Number of this vintage."""
    source_ref: str
    """Source reference: `<source id>:<document>#<location>`."""
    license_class: str
    """Licence class of the source."""
    observed_at: Instant | None
    """When Sankofa captured it; null in a locked view."""


class CrossRateRow(Row):
    """A rate that nobody published: computed from two that were.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later."""

    base: str
    """Currency that is priced, ISO 4217."""
    quote: str
    """Currency of the price, ISO 4217."""
    via: str
    """Currency that both inputs are rates of, ISO 4217."""
    date: Day
    """Date of both inputs."""
    value: Number
    """Quote units for one base unit, every digit, rounded half-even to 10 significant digits."""
    unit: str
    """Unit in words, e.g. `KES per NGN`."""
    available_at: Day
    """Day on which the later input became public."""
    method: Literal["derived"]
    """Never published, always derived."""
    methodology_ref: Literal["cross-rates-v1"]
    """Names the formula; see `/methodology/` and this name."""
    inputs: list[CrossRateInput]
    """Rate of the base currency, then rate of the quote currency."""


class CrosswalkRow(Row):
    """One identifier held for an organisation."""

    service_id: str
    """Organisation identifier."""
    id_type: Literal["aggregator", "figi", "isin", "lei", "registry", "ticker"]
    """Kind of identifier."""
    id_value: str
    """The identifier; a ticker is written EXCHANGE:TICKER."""
    scheme: str | None
    """Register, exchange or aggregator that issued the identifier."""


class CrosswalkMatchRow(CrosswalkRow):
    """An organisation that an outside identifier leads to."""

    legal_name: str | None
    """Legal name as registered; null if unknown."""


class Listing(TypedDict):
    """Where the organisation's shares are listed."""

    exchange: str
    """Name of the exchange, e.g. JSE."""
    ticker: str
    """Symbol on the exchange."""


class Parent(TypedDict):
    """The organisation whose accounts consolidate another one."""

    service_id: str | None
    """Organisation identifier; null if it is not held."""
    lei: str
    """Legal Entity Identifier."""
    legal_name: str | None
    """Legal name of the day; null if it is not held."""


class EntityRow(Row):
    """One organisation's resolved entity record."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    other_names: list[str]
    """Former, trading and translated names."""
    jurisdiction: str | None
    """Jurisdiction of incorporation, ISO 3166-1 or 3166-2 code."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    status: str | None
    """Status of its LEI registration as published, e.g. ISSUED, LAPSED, MERGED."""
    category: str | None
    """Category in the LEI register, e.g. GENERAL, FUND, BRANCH."""
    legal_form: str | None
    """Legal form: ISO 20275 code, or words where it has none."""
    lei: str | None
    """Legal Entity Identifier, where one exists."""
    listings: list[Listing]
    """Exchanges and tickers of its shares."""
    direct_parent: Parent | None
    """Nearest organisation that consolidates its accounts."""
    ultimate_parent: Parent | None
    """Organisation at the top of the consolidation."""


SpellRow = TypedDict(
    "SpellRow",
    {
        "source_ref": str,
        "license_class": str,
        "observed_at": Instant | None,
        "kind": Literal[
            "identifier",
            "jurisdiction",
            "legal_form",
            "listing",
            "name",
            "parent",
            "predecessor",
            "status",
            "successor",
        ],
        "value": str,
        "relationship": str | None,
        "from": Day,
        "until": Day | None,
    },
)
"""Something that an organisation was called or had, and the days on which it did."""


class ExportRow(Row):
    """One published Parquet file."""

    name: str
    """Name of the file; a large table has several."""
    sku: str | None
    """Dataset in the file; null for a file of all datasets."""
    signal_key: str | None
    """Signal panel in the file; null for other tables."""
    access: Literal["open", "licensed"]
    """Open files need no key."""
    license: str
    """Licence of the file: SPDX id, or the service's own reference."""
    url: str
    """Web address of the file."""
    media_type: str
    """Media type: application/vnd.apache.parquet."""
    size_bytes: int
    """Size of the file in bytes."""
    sha256: str
    """SHA-256 of the file, which is also its ETag."""
    row_count: int
    """Number of rows in the file."""
    columns: list[str]
    """Names of the columns, in order."""
    min_tier: str | None
    """Lowest tier whose keys may fetch the file; null if none is needed."""
    updated_at: Instant
    """The instant of the edition's last capture."""


class FlagRow(Row):
    """What one indicator says of one process or party. A flag is a reason to look, and proves nothing."""

    country: str
    """Country of the population, ISO 3166-1 alpha-2."""
    indicator: Literal["R003", "R018", "R024", "R025", "R028", "R030", "R035", "R036", "R038", "R048", "R058"]
    """Code of the indicator."""
    title: str
    """Name of the indicator."""
    subject_type: Literal["process", "buyer", "procuring_entity", "tenderer"]
    """What the row is about."""
    subject: str
    """The ocid, or the id of the party in its releases."""
    name: str | None
    """Title of the tender, or name of the party; null if not published."""
    service_id: str | None
    """Organisation identifier of the party, where resolved."""
    flagged: bool | None
    """Null if it cannot be computed: `reason` says why."""
    value: Number | None
    """Value of the indicator; 1 and 0 stand for yes and no."""
    threshold: Number | None
    """Value that `value` was compared with, from the population of the day."""
    formula: str
    """When the indicator is flagged."""
    inputs: dict[str, Any]
    """Values that it was computed from."""
    population: int
    """Number of processes in the country's population of the day."""
    reason: str | None
    """Why it cannot be computed; null if it can."""
    methodology_ref: str
    """Name of the method; `/methodology/` explains it."""


class FundamentalsRow(Row):
    """One vintage of one reported fact."""

    service_id: str
    """Organisation identifier."""
    record_ref: str
    """Identifier of this vintage, the same in every edition."""
    line_item: str
    """Financial line item, e.g. revenue."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    value_reported: Number | None
    """Figure as reported, with every digit; null if withdrawn."""
    currency_reported: str | None
    """Currency code, ISO 4217; null if the unit is not money."""
    unit: str | None
    """Unit as the source writes it."""
    period_start: Day | None
    """First day of the period; null for an instant."""
    period_end: Day
    """Last day of the period, or the day of an instant."""
    period_type: Literal["FY", "H1", "H2", "Q1", "Q2", "Q3", "Q4", "9M", "other", "TTM"]
    """Kind of period, from its dates. TTM: twelve months that end on no year-end of the issuer."""
    fiscal_year: int | None
    """Year in which the financial year ends."""
    available_at: Day
    """Day on which the figure became public."""
    available_instant: Instant | None
    """Instant at which its filing was accepted (UTC); null if only the day is known."""
    available_precision: Literal["day", "second"]
    """How exactly it is known when the figure became public."""
    tradable_from: Day | None
    """First session of the issuer's exchange after that; null without a listing or a calendar."""
    vintage: int
    """Number of this vintage; 1 is the figure as first reported."""
    restated: bool
    """True if this figure replaced an earlier one."""
    split_ratio: Number | None
    """New shares for an old one, where the figure was restated for a split; else null."""
    superseded_at: Day | None
    """Day on which a later figure replaced it; null if none is known by `as_of`."""
    superseding_record_ref: str | None
    """Vintage that replaced it; null if none is known by `as_of`."""
    extraction_confidence: Float | None
    """Confidence of the extraction, 0 to 1; null for structured data."""
    method: Literal["extracted", "structured", "structured-rounded"]
    """Extracted from a document, or published as data, maybe with rounded dates."""


class MatrixRow(Row):
    """One date of a series, with a further column for each release day: the value known on that day.

    Its provenance is that of the newest value."""

    date: Day
    """Date of the value, or last day of the period."""


class FigureMatrixRow(MatrixRow):
    """One period of a line item, with a further column for each release day: the figure known that day."""

    period_type: str
    """Kind of period, e.g. FY."""
    period_start: Day | None
    """First day of the period; null for an instant."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    unit: str | None
    """Unit as the source writes it."""


class NthReleaseRow(Row):
    """One date of a series in one release: the first, the latest, or the n-th."""

    date: Day
    """Date of the value, or last day of the period."""
    available_at: Day
    """Day on which this value became public."""
    value: Number | None
    """Value with every digit; null if withdrawn."""


class NthFigureRow(NthReleaseRow):
    """One period of a line item in one release: the first, the latest, or the n-th."""

    period_type: str
    """Kind of period, e.g. FY."""
    period_start: Day | None
    """First day of the period; null for an instant."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    unit: str | None
    """Unit as the source writes it."""


class IssuerRow(Row):
    """An issuer as it was knowable on a day."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name on that day, as registered."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    lei: str | None
    """Legal Entity Identifier."""
    listings: list[Listing]
    """Exchanges and tickers on that day."""
    first_available: Day
    """Day on which its first figure known by then became public."""
    last_available: Day
    """Day on which its last figure known by then became public."""
    fact_count: int
    """Number of facts known by then: the rows of `/v1/fundamentals` for that day."""


class MacroAnnualRow(Row):
    """One annual indicator of one country in one year: the value of the table captured last."""

    country: str
    """Country code, ISO 3166-1 alpha-2."""
    country_iso3: str
    """Country code, ISO 3166-1 alpha-3."""
    indicator: str
    """Indicator code, e.g. NY.GDP.MKTP.CD."""
    indicator_name: str | None
    """Name of the indicator; null if unknown."""
    year: int
    """Year of the value."""
    value: Number | None
    """Value with every digit; null if withdrawn."""
    unit: str | None
    """Unit, from the indicator's metadata, name or code."""
    note: str | None
    """Remarks of the publisher, e.g. modeled ILO estimate."""
    available_at: Annotated[None, "day"]
    """Always null: annual indicators have no evidenced release date."""
    vintage: int
    """Number of captures that changed the value."""


class MacroSeriesRow(Row):
    """One value of a dated series: its latest vintage known on the day."""

    series: str
    """Series key; FX.<base>.<quote> is quote units for one base unit."""
    series_type: str
    """Family, e.g. fx or cpi."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null for a series of several countries."""
    date: Day
    """Day of the value, or the date that the source gives the period."""
    value: Number | None
    """Value with every digit; null if withdrawn."""
    unit: str | None
    """Unit as the source writes it, without its remarks."""
    note: str | None
    """Remarks of the publisher, e.g. period average."""
    available_at: Day
    """Day on which this vintage became public."""
    vintage: int
    """Number of this vintage; 1 is the value as first released."""


class MetricInput(TypedDict):
    """One figure that a value is computed from, or that proves a part of it to be nothing."""

    line_item: str
    """Line item of the formula."""
    concept: str | None
    """Concept of the taxonomy; null if the source names none."""
    period_end: Day
    """Last day of the full year, or of the year before."""
    value: Number
    """Figure as reported, with every digit."""
    vintage: int
    """Number of the vintage used, the latest."""
    source_ref: str
    """Source reference: `<source id>:<document>#<location>`."""


class MetricsRow(Row):
    """One derived value. Its provenance is that of the input that became public last."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    metric: str
    """Name of the metric."""
    value: Number
    """Value, computed exactly and rounded half-even to 10 significant digits."""
    unit: Literal["days", "ratio"]
    """Unit of the value."""
    period_end: Day
    """Last day of the full year."""
    as_of: Day
    """Day that the answer is as of."""
    age_days: int
    """Days from `period_end` to `as_of`."""
    available_at: Day
    """Day on which the last input became public."""
    methodology_ref: str
    """Name of the formula; /methodology/ explains it."""
    inputs: list[MetricInput]
    """Figures that the value is computed from."""


class IssuerDayRow(Row):
    """One issuer on one day, with a further column for each metric, line item and series asked for.

    Its provenance is that of the first column with a value, its licence class the strictest of all."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    as_of: Day
    """Day of the row: every column is as known on it."""
    age_days: dict[str, Any]
    """For each column: days from the end of the year, or the observation, to `as_of`."""
    units: dict[str, Any]
    """For each line item and series: unit of the value, such as USD."""
    missing: dict[str, Any]
    """For each column without a value: why it has none."""


class CompactTenderRow(Row):
    """One OCDS release, without the release itself."""

    buyer_service_id: str | None
    """Organisation identifier of the buyer, where resolved."""
    country: str
    """Country code, ISO 3166-1 alpha-2."""
    ocid: str
    """Open Contracting process identifier."""
    release_id: str
    """Identifier of the release within its process."""
    release_date: Instant
    """An instant in UTC."""
    tag: list[str]
    """Release tags as published."""
    title: str | None
    """Title of the tender."""
    description: str | None
    """First 300 characters of the description of the tender."""
    category: str | None
    """Category as published by the source portal."""
    procurement_method: str | None
    """Procurement method as published."""
    status: str | None
    """Status of the tender as published."""
    closing_date: Instant | None
    """End of the tender period, an instant in UTC; null if not published."""
    value_amount: Number | None
    """The tender's own value, with every digit; null if not published."""
    value_currency: str | None
    """Currency code, ISO 4217."""
    buyer_name: str | None
    """Name of the buyer; null if it is not known to be an organisation."""
    award_count: int
    """Number of awards in this release."""
    withheld_parties: int
    """Number of parties that are not known to be organisations; they are never served."""


class TenderRow(CompactTenderRow):
    """One OCDS release."""

    release: dict[str, Any]
    """Cleaned OCDS release with the fields of the standard and its extensions; zero amounts are null."""


class QualityRow(Row):
    """One measure of a dataset's coverage or freshness."""

    sku: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """The dataset."""
    measure: str
    """Name of the measure."""
    value: Number | None
    """Measured value; null if not measured."""
    floor: Number | None
    """Minimum, or for age, rejects and restatements the maximum."""
    status: str | None
    """Null if there is no floor; a floor not measured is never a pass."""
    measured_at: Instant
    """The instant of the last capture."""


class RestatementRow(Row):
    """A reported figure that replaced an earlier one. Its provenance is that of the later document."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    line_item: str
    """Financial line item, e.g. revenue."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    unit: str | None
    """Unit as the source writes it."""
    period_start: Day | None
    """First day of the period; null for an instant."""
    period_end: Day
    """Last day of the period, or the day of an instant."""
    value_before: Number | None
    """Figure that was replaced, with every digit; null if withdrawn."""
    value_after: Number | None
    """Figure that replaced it, with every digit; null if withdrawn."""
    change: Number | None
    """(after - before) / |before|, 10 significant digits; null if either is null or before is 0."""
    available_before: Day
    """Day on which the replaced figure became public."""
    available_at: Day
    """Day on which the new figure became public."""
    vintage: int
    """Number of the new vintage."""
    record_ref: str
    """Identifier of the new vintage, the same in every edition."""


class ScreenRow(MetricsRow):
    """One derived value in a ranking."""

    rank: int
    """Position by size in the whole result; not a rating."""


class SearchRow(Row):
    """Something that a search found."""

    type: Literal["organisation", "series", "indicator"]
    """Kind of result."""
    id: str
    """A service_id, a series key or an indicator code."""
    name: str | None
    """Legal name, or the series or indicator in words."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null for several countries."""
    matched: str
    """Name or identifier that matched the query, e.g. `lei:...` or `ticker:JSE:NPN`."""
    score: Float
    """Quality of the match; 1 for an exact identifier."""


class SeriesCatalogueRow(Row):
    """A series, or an annual indicator of a country."""

    series: str
    """Series key, or indicator code."""
    name: str | None
    """Name of the series; built from its key where the source gives none."""
    unit: str | None
    """Unit of the newest value."""
    note: str | None
    """Remarks of the publisher on its newest value."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null if it has none."""
    first_date: Day
    """Date of the oldest value; the last day of a year for annual series."""
    last_date: Day
    """Date of the newest value; the last day of a year for annual series."""
    vintages: int
    """Number of release days; 0 for annual indicators, which have none."""
    source_id: str
    """Source of the newest value; see `/v1/sources`."""


class SeriesRevisionsRow(Row):
    """How the values of a series were revised after their first release, as known on a day.

    A relative revision is (latest - first) / |first|. its provenance is that of the newest vintage."""

    series: str
    """Series key."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null if it has none."""
    first_date: Day
    """Date of the oldest value."""
    last_date: Day
    """Date of the newest value."""
    values: int
    """Number of values."""
    revised: int
    """Number of values with more than one vintage."""
    revisions: int
    """Number of vintages that replaced an earlier one."""
    mean_absolute_revision: Number | None
    """Size: mean of |relative revision| of the revised values; null if none is."""
    largest_absolute_revision: Number | None
    """Largest |relative revision|; null if no value was revised."""
    mean_revision: Number | None
    """Bias: mean relative revision of the revised values; above 0 if values tend to be raised."""
    median_days_to_final: Number | None
    """Median days from the first release of a revised value to its latest vintage."""
    largest_days_to_final: int | None
    """Most days from the first release of a value to its latest vintage."""


class SeriesReleaseRow(Row):
    """A day on which values of a series were released."""

    series: str
    """Series key."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null if it has none."""
    release_date: Day
    """The `available_at` of the values."""
    added: int
    """Number of values first released that day."""
    changed: int
    """Number of values that replaced or withdrew an earlier one."""


class FactRow(Row):
    """The latest vintage of one value of any dataset, with who it is of and where it is from."""

    fact_id: str
    """Identifier of this vintage, the same in every edition: `<dataset>:<record_ref>:<measure>`."""
    entity_id: str
    """Identifier: an organisation's service_id, or an ISO 3166-1 alpha-3 code."""
    entity_name: str | None
    """Today's name of the organisation or country, under `as_of` too."""
    country_iso3: str | None
    """ISO 3166-1 alpha-3 code of the entity's country."""
    dataset: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """Code of the dataset."""
    measure: str
    """Measure: a line item, award_value, tender_value, indicator code or series key."""
    value: Number | None
    """Value with every digit; null if withdrawn."""
    unit: str | None
    """Unit or currency as the source writes it."""
    period_end: Day
    """Last day of the period, day of the award, or release day of the tender."""
    period_type: str
    """Kind of period, frequency of a series, `annual`, `award` or `tender`."""
    available_at: Day | None
    """Day on which this value became public; null if none is evidenced (annual macro)."""
    vintage: str
    """Number of this vintage; 1 is the value as first published."""
    provenance_id: str
    """Identifier of the five provenance fields together."""
    extraction_confidence: Float | None
    """Confidence of the extraction, 0 to 1; null for structured data."""
    method: Literal["extracted", "structured"]
    """Extracted from a document, or published as data."""


class PanelRow(Row):
    """A row of a panel: it ends with `methodology_ref`, a literal that names the panel's method."""


class ProcurementDemandRow(PanelRow):
    """One category of one country in one closed month."""

    country: str
    """Country code, ISO 3166-1 alpha-2."""
    category: str
    """Category as published by the source portal."""
    month: str
    """Month of the release dates in UTC, as YYYY-MM."""
    closed_at: Day
    """Last day of the month."""
    tender_count: int
    """Number of tenders of the category in the month."""
    category_share: Number
    """Share of the country's tenders of the month that are of the category, 0 to 1."""
    buyer_hhi: Number | None
    """Concentration of buyers, 0 to 1; null if a buyer is withheld or not named."""
    momentum_3m: Number | None
    """Tenders of three months divided by those of the three before, minus 1; null without them."""
    value_coverage: Number
    """Share of the tenders with a published amount, 0 to 1."""
    methodology_ref: Literal["signals-v1/procurement-demand"]
    """Name of the method; /methodology/ explains it."""


class FullYearRow(PanelRow):
    """The first fields of rows about one full year of one issuer."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    period_end: Day
    """Last day of the full year."""


class FundamentalsFactorsRow(FullYearRow):
    """One factor of one issuer in one full year."""

    metric: Literal[
        "asset_turnover",
        "debt_to_equity",
        "free_cash_flow_margin",
        "liabilities_to_assets",
        "net_margin",
        "operating_margin",
        "payout_ratio",
        "profit_growth",
        "return_on_assets",
        "return_on_equity",
        "revenue_growth",
    ]
    """Slug of the metrics-v1 set."""
    value: Number
    """Value, computed exactly and rounded half-even to 10 significant digits."""
    available_at: Day
    """Day on which the last input became public."""
    methodology_ref: Literal["signals-v1/fundamentals-factors"]
    """Name of the method; /methodology/ explains it."""


class FundamentalsQualityRow(FullYearRow):
    """The quality of one issuer's earnings in one full year."""

    accruals_ratio: Number | None
    """(profit - operating cash flow) / average assets."""
    cash_conversion: Number | None
    """Operating cash flow / EBITDA."""
    margin_volatility: Number | None
    """Standard deviation of net margin; null with fewer than three."""
    margin_years: int
    """Number of net margins of the last five years used."""
    available_at: Day
    """Day on which the last input became public."""
    methodology_ref: Literal["signals-v1/fundamentals-quality"]
    """Name of the method; /methodology/ explains it."""


class FundamentalsRevisionsRow(PanelRow):
    """A full-year figure that was revised: as first reported, and as it stands today."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    period_start: Day | None
    """First day of the period; null for an instant."""
    period_end: Day
    """Last day of the full year."""
    line_item: str
    """Financial line item, e.g. revenue."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    unit: str | None
    """Unit as the source writes it."""
    vintages: int
    """Number of figures reported one after another."""
    first_value: Number
    """Figure as first reported, with every digit."""
    latest_value: Number | None
    """Figure as reported last, with every digit; null if withdrawn."""
    revision_size: Number | None
    """(latest - first) / |first|; null if first is 0 or latest withdrawn."""
    direction: str | None
    """Direction from the first figure to the latest; null if withdrawn."""
    first_available_at: Day
    """Day on which the first figure became public."""
    available_at: Day
    """Day on which the latest figure became public."""
    methodology_ref: Literal["signals-v1/fundamentals-revisions"]
    """Name of the method; /methodology/ explains it."""


class IssuerPersistenceRow(FullYearRow):
    """How steadily one issuer earned and grew up to one full year."""

    years_held: int
    """Full years held without a gap up to this one."""
    profit_years: int | None
    """Consecutive years with a profit, including this one; 0 after a loss, null if unknown."""
    revenue_growth_years: int | None
    """Consecutive years of revenue growth, including this one; null if unknown."""
    available_at: Day
    """Day on which the last input became public."""
    methodology_ref: Literal["signals-v1/issuer-persistence"]
    """Name of the method; /methodology/ explains it."""


class MacroMomentumRow(PanelRow):
    """One value of a series as it first became known, and how it compares with those before it."""

    series: str
    """Series key, e.g. CPI.ZA."""
    series_type: str
    """Family, e.g. cpi or gdp."""
    frequency: Literal["monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2; null for a series of several countries."""
    date: Day
    """Date that the source gives the period."""
    known_at: Day
    """Day on which the value became known; nothing known later is used."""
    value: Number
    """Value as known on that day, with every digit."""
    unit: str | None
    """Unit as the source writes it."""
    momentum_1p: Number | None
    """Value divided by that of one period earlier, minus 1; null if unknown."""
    momentum_3p: Number | None
    """Value divided by that of three periods earlier, minus 1; null if unknown."""
    methodology_ref: Literal["signals-v1/macro-momentum"]
    """Name of the method; /methodology/ explains it."""


class PublicBuyerConcentrationRow(PanelRow):
    """The buyers of one country in one closed quarter."""

    country: str
    """Country of the tenders, ISO 3166-1 alpha-2."""
    quarter: str
    """Quarter of the release dates in UTC, as YYYY-Qn."""
    closed_at: Day
    """Last day of the quarter."""
    tender_count: int
    """Number of tenders with a release in the quarter."""
    attributed_share: Number
    """Share of the tenders whose buyer is named, 0 to 1."""
    buyer_count: int
    """Number of buyers of the attributed tenders."""
    buyer_hhi: Number | None
    """Concentration of attributed tenders, 0 to 1; null without any."""
    top_buyer_share: Number | None
    """Share of attributed tenders of the largest buyer, 0 to 1."""
    effective_buyers: Number | None
    """Number of equal buyers with the same concentration: 1 / buyer_hhi."""
    methodology_ref: Literal["signals-v1/public-buyer-concentration"]
    """Name of the method; /methodology/ explains it."""


class RedFlagsRow(PanelRow):
    """One indicator over the processes of a country that were known when a quarter closed."""

    country: str
    """Country of the tenders, ISO 3166-1 alpha-2."""
    quarter: str
    """Quarter of the release dates in UTC, as YYYY-Qn."""
    closed_at: Day
    """Last day of the quarter."""
    indicator: Literal["R003", "R018", "R024", "R025", "R028", "R030", "R035", "R036", "R038", "R048", "R058"]
    """Code of the indicator, such as R018."""
    population: int
    """Number of processes with a release by the last day."""
    computed_count: int
    """Processes it can be computed for; parties for R025, R038 and R048."""
    flagged_processes: int
    """Number of flagged processes."""
    flagged_buyers: int
    """Number of flagged buyers."""
    flagged_procuring_entities: int
    """Number of flagged procuring entities."""
    flagged_tenderers: int
    """Number of flagged tenderers."""
    methodology_ref: Literal["signals-v1/red-flags"]
    """Name of the method; /methodology/ explains it."""


class SupplierIssuerDemandRow(PanelRow):
    """The awards that one issuer won in one country in one closed quarter, by currency."""

    service_id: str
    """Organisation identifier of the issuer."""
    legal_name: str | None
    """Legal name as registered; null if unknown."""
    country: str | None
    """Country of the issuer, ISO 3166-1 alpha-2."""
    tender_country: str
    """Country of the tenders, ISO 3166-1 alpha-2."""
    quarter: str
    """Quarter of the release dates in UTC, as YYYY-Qn."""
    closed_at: Day
    """Last day of the quarter."""
    award_count: int
    """Number of awards won in the quarter, in any currency."""
    buyer_count: int | None
    """Number of buyers of these awards; null if one is withheld or not named."""
    value_coverage: Number
    """Share of these awards with a published amount that is the issuer's alone, 0 to 1."""
    currency: str | None
    """Currency code, ISO 4217; null if no amount is published."""
    award_value: Number | None
    """Sum of the amounts in this currency, with every digit."""
    methodology_ref: Literal["signals-v1/supplier-issuer-demand"]
    """Name of the method; /methodology/ explains it."""


class TenderAwardConcentrationRow(PanelRow):
    """The awards of one country in one closed quarter."""

    country: str
    """Country of the tenders, ISO 3166-1 alpha-2."""
    quarter: str
    """Quarter of the release dates in UTC, as YYYY-Qn."""
    closed_at: Day
    """Last day of the quarter."""
    award_count: int
    """Number of awards first released in the quarter."""
    attributed_share: Number
    """Share of the awards whose winners are all named, 0 to 1."""
    supplier_count: int
    """Number of winners of the attributed awards."""
    supplier_hhi: Number | None
    """Concentration of attributed awards, 0 to 1; null without any."""
    top_supplier_share: Number | None
    """Share of attributed awards of the largest winner, 0 to 1."""
    effective_suppliers: Number | None
    """Number of equal winners with the same concentration: 1 / supplier_hhi."""
    repeat_winner_share: Number | None
    """Share of attributed awards of earlier winners, 0 to 1; null in the first quarter."""
    methodology_ref: Literal["signals-v1/tender-award-concentration"]
    """Name of the method; /methodology/ explains it."""


class SourceRow(Row):
    """A source of the edition."""

    source_id: str
    """Identifier of the source; every `source_ref` of its rows begins with it."""
    title: str | None
    """Title of the published data."""
    publisher: str | None
    """Name of the publisher."""
    url: str | None
    """Web address of the publication."""
    licence: str | None
    """SPDX id or name of its licence."""
    licence_url: str | None
    """Web address of the licence."""
    attribution: str
    """Name that users of the data must give."""
    sku: str | None
    """Dataset that the source feeds; null for a source of identifiers alone."""
    countries: list[str]
    """Country codes of its rows, ISO 3166-1 alpha-2."""
    row_count: int
    """Number of rows served, every vintage counted; records for a source of identifiers."""
    first_date: Day | None
    """Earliest period_end, release date or observation."""
    last_date: Day | None
    """Latest period_end, release date or observation."""
    captured_at: Instant | None
    """When it was captured last; null in a locked view."""
    freshness_days: int | None
    """Days from the newest evidenced publication to the last capture; null without evidence."""
    rejected: int | None
    """Number of records rejected when its files were read; null in a locked view."""


class StatementFigureRow(FundamentalsRow):
    """The figure of one line item for one period."""

    alternatives: int
    """Number of other figures of this line item and period in `/v1/fundamentals`."""
    sign_turned: bool
    """Whether the filing has this outflow as a negative figure and proves that the sign is wrong."""


class WideStatementRow(Row):
    """One line item, with a further column for each period, named by its period_end."""

    line_item: str
    """Financial line item, e.g. revenue."""
    period_type: str
    """Kind of period of every column, e.g. FY."""
    unit: str | None
    """Unit of every value of the row; null for a bare number."""
    cells: dict[str, Any]
    """For each period_end: concept, unit, available_at, vintage, alternatives, references."""


class PartyIdentifier(TypedDict):
    """How a register names a party."""

    scheme: str
    """Register, as an org-id.guide code where published so."""
    id: str
    """Number in the register."""


class TenderPartyRow(Row):
    """A buyer or supplier named in releases, in one role."""

    service_id: str | None
    """Organisation identifier; null when unresolved."""
    name: str
    """Name as published."""
    role: str
    """Role in OCDS terms: buyer, supplier, tenderer."""
    country: str | None
    """Country code, ISO 3166-1 alpha-2."""
    identifier: PartyIdentifier | None
    """First identifier as published."""
    org_evidence: str
    """Evidence that it is an organisation, as `kind: detail`."""
    match_method: str | None
    """How it was resolved; null when unresolved."""
    match_score: Float | None
    """How sure the match is, from 0 to 1; null when unresolved."""
    release_count: int
    """Number of releases that name it in this role."""
    first_seen: Day
    """Day of the earliest of these releases."""
    last_seen: Day
    """Day of the latest of these releases."""


class UsageRow(Row):
    """The usage of a key and its limits."""

    tier: str
    """Tier of the key: sample, starter or professional."""
    minute_limit: int | None
    """Requests per UTC minute; null for the owner."""
    minute_used: int
    """Requests in this minute, including this one."""
    minute_reset_at: Instant
    """When the next minute begins."""
    month_limit: int | None
    """Requests per UTC calendar month; null for the owner."""
    month_used: int
    """Requests in this month, including this one."""
    month_reset_at: Instant
    """When the next month begins."""
    expires_at: str | None
    """Last second in which the key is valid; null if it does not expire."""


FundamentalsMatrixRow = FigureMatrixRow | NthFigureRow

MacroRow = MacroAnnualRow | MacroSeriesRow

ProofRow = FundamentalsRow | CrosswalkRow | EntityRow | MacroAnnualRow | MacroSeriesRow | TenderRow

SeriesMatrixRow = MatrixRow | NthReleaseRow

SignalRow = (
    ProcurementDemandRow
    | FundamentalsFactorsRow
    | FundamentalsQualityRow
    | FundamentalsRevisionsRow
    | IssuerPersistenceRow
    | MacroMomentumRow
    | PublicBuyerConcentrationRow
    | RedFlagsRow
    | SupplierIssuerDemandRow
    | TenderAwardConcentrationRow
)

StatementRow = StatementFigureRow | WideStatementRow

TendersRow = TenderRow | CompactTenderRow
