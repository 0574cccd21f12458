"""The rows of every endpoint, and the words its parameters take. /docs/api says what a field means.

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
Indicator = Literal[
    "R001",
    "R003",
    "R004",
    "R005",
    "R013",
    "R014",
    "R015",
    "R016",
    "R017",
    "R018",
    "R019",
    "R020",
    "R021",
    "R022",
    "R023",
    "R024",
    "R025",
    "R028",
    "R030",
    "R031",
    "R035",
    "R036",
    "R038",
    "R039",
    "R040",
    "R048",
    "R050",
    "R052",
    "R053",
    "R058",
    "R059",
    "R060",
    "R061",
    "R062",
    "R063",
    "R064",
    "R065",
    "R066",
    "R067",
    "R068",
    "R069",
    "R071",
    "R072",
]
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
    license_class: str
    observed_at: Instant | None


class ChangeRow(Row):
    """One row that differs from an earlier edition."""

    dataset: Dataset
    change: Literal["added", "changed", "removed"]
    key: list[str]
    row: dict[str, Any] | None


class CheckRow(Row):
    """The verdict on a claim and the figure behind it; without a figure its fields are null."""

    verdict: Literal["supported", "supported_then", "contradicted", "unknown"]
    value: Number | None
    unit: str | None
    available_at: Day | None
    vintage: int | None
    restated_at: Day | None
    period_start: Day | None
    period_end: Day | None


class SetBy(TypedDict):
    """The release that set a value."""

    release_id: str
    release_date: Instant


class ContractChange(TypedDict):
    """A value that a release replaced."""

    field: Literal["amount", "deadline", "status", "supplier"]
    path: str
    old: dict[str, Any]
    new: dict[str, Any]
    release_id: str
    release_date: Instant


class ContractRow(Row):
    """One contracting process as its releases up to a day add up."""

    country: str
    ocid: str
    release_count: int
    first_release_date: Instant
    last_release_date: Instant
    release: dict[str, Any]
    set_by: dict[str, Any]
    changes: list[ContractChange]


class CoverageRow(Row):
    """How much of a dataset a source covers for a country."""

    sku: Sku
    country: str | None
    source_id: str
    count: int
    unit_of_count: Literal["issuers", "releases", "series", "indicators"]
    first_date: Day | None
    last_date: Day | None
    freshness_days: int | None


class CrossRateInput(TypedDict):
    """A published rate that a cross rate is computed from."""

    series: str
    value: Number
    unit: str | None
    available_at: Day
    vintage: int
    source_ref: str
    license_class: str
    observed_at: Instant | None


class CrossRateRow(Row):
    """An unpublished rate, computed from two published ones.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later."""

    base: str
    quote: str
    via: str
    date: Day
    value: Number
    unit: str
    available_at: Day
    method: Literal["derived"]
    methodology_ref: Literal["cross-rates-v1"]
    inputs: list[CrossRateInput]


class CrosswalkRow(Row):
    """One identifier held for an organisation."""

    service_id: str
    id_type: Literal["aggregator", "figi", "isin", "lei", "registry", "ticker"]
    id_value: str
    scheme: str | None


class CrosswalkMatchRow(CrosswalkRow):
    """An organisation that an outside identifier leads to."""

    legal_name: str | None


class Listing(TypedDict):
    """Where the organisation's shares are listed."""

    exchange: str
    ticker: str


class Parent(TypedDict):
    """The organisation whose accounts consolidate another one."""

    service_id: str | None
    lei: str
    legal_name: str | None


class EntityRow(Row):
    """One organisation's resolved entity record."""

    service_id: str
    legal_name: str | None
    other_names: list[str]
    jurisdiction: str | None
    country: str | None
    status: str | None
    category: str | None
    legal_form: str | None
    lei: str | None
    listings: list[Listing]
    direct_parent: Parent | None
    ultimate_parent: Parent | None


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
"""A name, status, listing or other attribute of an organisation, with its first and last day."""


class ExportRow(Row):
    """One published Parquet file."""

    name: str
    sku: str | None
    signal_key: str | None
    access: Literal["open", "licensed"]
    license: str
    url: str
    media_type: str
    size_bytes: int
    sha256: str
    row_count: int
    columns: list[str]
    min_tier: str | None
    updated_at: Instant


class FlagRow(Row):
    """What one indicator says of one process or party. A flag is a reason to look, and proves nothing."""

    country: str
    indicator: Indicator
    title: str
    subject_type: Literal["process", "buyer", "procuring_entity", "tenderer"]
    subject: str
    name: str | None
    service_id: str | None
    flagged: bool | None
    value: Number | None
    threshold: Number | None
    formula: str
    inputs: dict[str, Any]
    population: int
    reason: str | None
    methodology_ref: str


class FundamentalsRow(Row):
    """One vintage of one reported fact."""

    service_id: str
    record_ref: str
    line_item: str
    concept: str | None
    value_reported: Number | None
    currency_reported: str | None
    unit: str | None
    period_start: Day | None
    period_end: Day
    period_type: PeriodType
    fiscal_year: int | None
    available_at: Day
    available_instant: Instant | None
    available_precision: Literal["day", "second"]
    tradable_from: Day | None
    vintage: int
    restated: bool
    split_ratio: Number | None
    superseded_at: Day | None
    superseding_record_ref: str | None
    extraction_confidence: Float | None
    method: Literal["extracted", "structured", "structured-rounded"]


class MatrixRow(Row):
    """One date of a series, with a further column for each release day: the value known on that day.

    Its provenance is that of the newest value."""

    date: Day


class FigureMatrixRow(MatrixRow):
    """One period of a line item, with a further column for each release day: the figure known that day."""

    period_type: str
    period_start: Day | None
    concept: str | None
    unit: str | None


class NthReleaseRow(Row):
    """One date of a series in one release: the first, the latest, or the n-th."""

    date: Day
    available_at: Day
    value: Number | None


class NthFigureRow(NthReleaseRow):
    """One period of a line item in one release: the first, the latest, or the n-th."""

    period_type: str
    period_start: Day | None
    concept: str | None
    unit: str | None


class IssuerRow(Row):
    """An issuer as known on a day."""

    service_id: str
    legal_name: str | None
    country: str | None
    lei: str | None
    listings: list[Listing]
    first_available: Day
    last_available: Day
    fact_count: int


class MacroAnnualRow(Row):
    """One annual indicator of one country in one year, from the table captured last."""

    country: str
    country_iso3: str
    indicator: str
    indicator_name: str | None
    year: int
    value: Number | None
    unit: str | None
    note: str | None
    available_at: Annotated[None, "day"]
    vintage: int


class MacroSeriesRow(Row):
    """One value of a dated series, in the latest vintage known on the day."""

    series: str
    series_type: str
    frequency: Frequency
    country: str | None
    date: Day
    value: Number | None
    unit: str | None
    note: str | None
    available_at: Day
    vintage: int


class MetricInput(TypedDict):
    """One input of a value, or a figure that proves one of its parts to be zero."""

    line_item: str
    concept: str | None
    period_end: Day
    value: Number
    vintage: int
    source_ref: str


class MetricsRow(Row):
    """One derived value, with the provenance of the input that became public last."""

    service_id: str
    legal_name: str | None
    country: str | None
    metric: str
    value: Number
    unit: Literal["days", "ratio"]
    period_end: Day
    as_of: Day
    age_days: int
    available_at: Day
    methodology_ref: str
    inputs: list[MetricInput]


class IssuerDayRow(Row):
    """One issuer on one day, with a further column for each requested metric, line item and series.

    Provenance is that of the first column with a value; the licence class is the strictest of all."""

    service_id: str
    legal_name: str | None
    country: str | None
    as_of: Day
    age_days: dict[str, Any]
    units: dict[str, Any]
    missing: dict[str, Any]


class CompactTenderRow(Row):
    """One OCDS release, without the release itself."""

    buyer_service_id: str | None
    country: str
    ocid: str
    release_id: str
    release_date: Instant
    tag: list[str]
    title: str | None
    description: str | None
    category: str | None
    procurement_method: str | None
    status: str | None
    closing_date: Instant | None
    value_amount: Number | None
    value_currency: str | None
    buyer_name: str | None
    award_count: int
    withheld_parties: int
    available_instant: Instant | None
    available_precision: Literal["day", "second"]


class TenderRow(CompactTenderRow):
    """One OCDS release."""

    release: dict[str, Any]


class QualityRow(Row):
    """One measure of a dataset's coverage or freshness."""

    sku: Sku
    measure: str
    value: Number | None
    floor: Number | None
    status: str | None
    measured_at: Instant


class RestatementRow(Row):
    """A reported figure that replaced an earlier one, with the provenance of the later document."""

    service_id: str
    legal_name: str | None
    line_item: str
    concept: str | None
    unit: str | None
    period_start: Day | None
    period_end: Day
    value_before: Number | None
    value_after: Number | None
    change: Number | None
    available_before: Day
    available_at: Day
    vintage: int
    split_ratio: Number | None
    record_ref: str


class ScreenRow(MetricsRow):
    """One derived value in a ranking."""

    rank: int


class SearchRow(Row):
    """Something that a search found."""

    type: Type
    id: str
    name: str | None
    country: str | None
    matched: str
    score: Float


class SeriesCatalogueRow(Row):
    """A series, or an annual indicator of a country."""

    series: str
    name: str | None
    unit: str | None
    note: str | None
    frequency: Frequency
    country: str | None
    first_date: Day
    last_date: Day
    vintages: int
    source_id: str


class SeriesRevisionsRow(Row):
    """How the values of a series were revised after their first release, as known on a day.

    A relative revision is (latest - first) / |first|. Provenance is that of the newest vintage."""

    series: str
    frequency: Frequency
    country: str | None
    first_date: Day
    last_date: Day
    values: int
    revised: int
    revisions: int
    mean_absolute_revision: Number | None
    largest_absolute_revision: Number | None
    mean_revision: Number | None
    median_days_to_final: Number | None
    largest_days_to_final: int | None


class SeriesReleaseRow(Row):
    """A day on which values of a series were released."""

    series: str
    frequency: Frequency
    country: str | None
    release_date: Day
    added: int
    changed: int


class FactRow(Row):
    """The latest vintage of one value of any dataset, with its entity and its source."""

    fact_id: str
    entity_id: str
    entity_name: str | None
    country_iso3: str | None
    dataset: Sku
    measure: str
    value: Number | None
    unit: str | None
    period_end: Day
    period_type: str
    available_at: Day | None
    vintage: str
    provenance_id: str
    extraction_confidence: Float | None
    method: Literal["extracted", "structured"]


class PanelRow(Row):
    """A row of a panel: it ends with `methodology_ref`, a literal that names the panel's method."""


class ProcurementDemandRow(PanelRow):
    """One category of one country in one closed month."""

    country: str
    category: str
    month: str
    closed_at: Day
    tender_count: int
    category_share: Number
    buyer_hhi: Number | None
    momentum_3m: Number | None
    value_coverage: Number
    methodology_ref: Literal["signals-v1/procurement-demand"]


class FullYearRow(PanelRow):
    """The first fields of rows about one full year of one issuer."""

    service_id: str
    legal_name: str | None
    country: str | None
    period_end: Day


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
    value: Number
    available_at: Day
    methodology_ref: Literal["signals-v1/fundamentals-factors"]


class FundamentalsQualityRow(FullYearRow):
    """The quality of one issuer's earnings in one full year."""

    accruals_ratio: Number | None
    cash_conversion: Number | None
    margin_volatility: Number | None
    margin_years: int
    available_at: Day
    methodology_ref: Literal["signals-v1/fundamentals-quality"]


class FundamentalsRevisionsRow(PanelRow):
    """A full-year figure that was revised: as first reported, and as it stands today."""

    service_id: str
    legal_name: str | None
    country: str | None
    period_start: Day | None
    period_end: Day
    line_item: str
    concept: str | None
    unit: str | None
    vintages: int
    first_value: Number
    latest_value: Number | None
    revision_size: Number | None
    direction: str | None
    first_available_at: Day
    available_at: Day
    methodology_ref: Literal["signals-v1/fundamentals-revisions"]


class IssuerPersistenceRow(FullYearRow):
    """How steadily one issuer earned and grew up to one full year."""

    years_held: int
    profit_years: int | None
    revenue_growth_years: int | None
    available_at: Day
    methodology_ref: Literal["signals-v1/issuer-persistence"]


class MacroMomentumRow(PanelRow):
    """One value of a series as it first became known, and how it compares with those before it."""

    series: str
    series_type: str
    frequency: Literal["monthly", "quarterly", "annual"]
    country: str | None
    date: Day
    known_at: Day
    value: Number
    unit: str | None
    momentum_1p: Number | None
    momentum_3p: Number | None
    methodology_ref: Literal["signals-v1/macro-momentum"]


class PublicBuyerConcentrationRow(PanelRow):
    """The buyers of one country in one closed quarter."""

    country: str
    quarter: str
    closed_at: Day
    tender_count: int
    attributed_share: Number
    buyer_count: int
    buyer_hhi: Number | None
    top_buyer_share: Number | None
    effective_buyers: Number | None
    methodology_ref: Literal["signals-v1/public-buyer-concentration"]


class RedFlagsRow(PanelRow):
    """One indicator over the processes of a country that were known when a quarter closed."""

    country: str
    quarter: str
    closed_at: Day
    indicator: Indicator
    population: int
    computed_count: int
    flagged_processes: int
    flagged_buyers: int
    flagged_procuring_entities: int
    flagged_tenderers: int
    methodology_ref: Literal["signals-v1/red-flags"]


class SupplierIssuerDemandRow(PanelRow):
    """The awards that one issuer won in one country in one closed quarter, by currency."""

    service_id: str
    legal_name: str | None
    country: str | None
    tender_country: str
    quarter: str
    closed_at: Day
    award_count: int
    buyer_count: int | None
    value_coverage: Number
    currency: str | None
    award_value: Number | None
    methodology_ref: Literal["signals-v1/supplier-issuer-demand"]


class TenderAwardConcentrationRow(PanelRow):
    """The awards of one country in one closed quarter."""

    country: str
    quarter: str
    closed_at: Day
    award_count: int
    attributed_share: Number
    supplier_count: int
    supplier_hhi: Number | None
    top_supplier_share: Number | None
    effective_suppliers: Number | None
    repeat_winner_share: Number | None
    methodology_ref: Literal["signals-v1/tender-award-concentration"]


class SourceRow(Row):
    """A source of the edition."""

    source_id: str
    title: str | None
    publisher: str | None
    url: str | None
    licence: str | None
    licence_url: str | None
    attribution: str
    sku: str | None
    countries: list[str]
    row_count: int
    first_date: Day | None
    last_date: Day | None
    captured_at: Instant | None
    freshness_days: int | None
    rejected: int | None


class StatementFigureRow(FundamentalsRow):
    """The figure of one line item for one period."""

    alternatives: int
    sign_turned: bool


class WideStatementRow(Row):
    """One line item, with a further column for each period, named by its period_end."""

    line_item: str
    period_type: str
    unit: str | None
    cells: dict[str, Any]


class PartyIdentifier(TypedDict):
    """How a register names a party."""

    scheme: str
    id: str


class TenderPartyRow(Row):
    """A buyer or supplier named in releases, in one role."""

    service_id: str | None
    name: str
    role: str
    country: str | None
    identifier: PartyIdentifier | None
    org_evidence: str
    match_method: str | None
    match_score: Float | None
    release_count: int
    first_seen: Day
    last_seen: Day


class UsageRow(Row):
    """The usage of a key and its limits."""

    tier: str
    minute_limit: int | None
    minute_used: int
    minute_reset_at: Instant
    month_limit: int | None
    month_used: int
    month_reset_at: Instant
    expires_at: str | None


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
