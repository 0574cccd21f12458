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

Dataset = Literal["crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders"]

Detail = Literal["compact", "full"]

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

ScreenOrder = Literal["asc", "desc"]

Shape = Literal["long", "wide"]

SharedFactsDataset = Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]

Sku = Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]

Type = Literal["organisation", "series", "indicator"]

Vintages = Literal["latest", "as_reported", "all"]


class Row(TypedDict):
    """What every row carries."""

    source_ref: str
    """Where it is from: `<source id>:<document>#<location>`."""
    license_class: str
    """Licence class the source is held under."""
    observed_at: Instant
    """When Sankofa captured it (RFC 3339, UTC)."""


class ChangeRow(Row):
    """One row that is not as it was in an earlier edition."""

    dataset: Literal["crosswalk", "entities", "fundamentals", "macro-annual", "macro-series", "tenders"]
    """Which rows it is one of."""
    change: Literal["added", "changed", "removed"]
    """Removed: withheld now, or no longer served."""
    key: list[str]
    """What tells the row apart from every other of its dataset."""
    row: dict[str, Any] | None
    """The row as its endpoint serves it; null where it was removed."""


class CoverageRow(Row):
    """How much there is of a dataset for a country, by source."""

    sku: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """The dataset."""
    country: str | None
    """ISO 3166-1 alpha-2 code; null where of none."""
    source_id: str
    """See `/v1/sources`."""
    count: int
    """How many there are."""
    unit_of_count: Literal["issuers", "releases", "series", "indicators"]
    """Of what."""
    first_date: Day | None
    """The earliest period_end, release date or observation."""
    last_date: Day | None
    """The latest of these."""
    freshness_days: int | None
    """Days from the newest evidenced publication to the last capture; null without evidence."""


class CrossRateInput(TypedDict):
    """A published rate that a cross rate is computed from."""

    series: str
    """Series key, as `/v1/macro` serves it."""
    value: Number
    """As published, every digit."""
    unit: str | None
    """Unit as the source writes it."""
    available_at: Day
    """The day this vintage became public."""
    vintage: int
    """Which vintage of the value it is."""
    source_ref: str
    """Source reference: document plus location."""
    license_class: str
    """Licence class its source is held under."""
    observed_at: Instant
    """When Sankofa captured it."""


class CrossRateRow(Row):
    """A rate that nobody published: computed from two that were.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later."""

    base: str
    """ISO 4217 code: one unit of it is priced."""
    quote: str
    """ISO 4217 code: the price is in units of it."""
    via: str
    """ISO 4217 code of the currency that both inputs are rates of."""
    date: Day
    """The day that both inputs are of."""
    value: Number
    """Quote units for one base unit, every digit: 10 significant, rounded half-even."""
    unit: str
    """In words: `KES per NGN`."""
    available_at: Day
    """The day on which the later of the inputs became public."""
    method: Literal["derived"]
    """Never published, always derived."""
    methodology_ref: Literal["cross-rates-v1"]
    """Names the formula; see `/methodology/` and this name."""
    inputs: list[CrossRateInput]
    """The rate of the base currency, then that of the quote currency."""


class CrosswalkRow(Row):
    """One identifier held for an organisation."""

    service_id: str
    """Organisation identifier."""
    id_type: Literal["aggregator", "figi", "isin", "lei", "registry", "ticker"]
    """Kind of identifier."""
    id_value: str
    """The identifier; a ticker is written EXCHANGE:TICKER."""
    scheme: str | None
    """The register, exchange or aggregator that issued it."""


class CrosswalkMatchRow(CrosswalkRow):
    """An organisation that an outside identifier leads to."""

    legal_name: str | None
    """As registered; null where no source says."""


class Listing(TypedDict):
    """Where the organisation's shares are listed."""

    exchange: str
    """Name of the exchange, e.g. JSE."""
    ticker: str
    """Its symbol there."""


class EntityRow(Row):
    """One organisation's resolved entity record."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    other_names: list[str]
    """Former, trading and translated names."""
    jurisdiction: str | None
    """ISO 3166-1 or 3166-2 code of its law."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    status: str | None
    """Of its registration, as published: ISSUED, LAPSED, MERGED."""
    category: str | None
    """As the register has it: GENERAL, FUND, BRANCH."""
    legal_form: str | None
    """ISO 20275 entity legal form code; in words where it has none."""
    lei: str | None
    """Legal Entity Identifier, where one exists."""
    listings: list[Listing]
    """Where its shares are listed."""


class ExportRow(Row):
    """One published Parquet file."""

    name: str
    """Of the file; a large table is several."""
    sku: str | None
    """The dataset it is of; null where it is of all."""
    signal_key: str | None
    """The signal panel it is; null where it is none."""
    access: Literal["open", "licensed"]
    """Open files need no key."""
    license: str
    """SPDX id, or a reference of ours."""
    url: str
    """Where it is fetched."""
    media_type: str
    """application/vnd.apache.parquet."""
    size_bytes: int
    """Of the file."""
    sha256: str
    """Of the file; its ETag too."""
    row_count: int
    """Rows in it."""
    columns: list[str]
    """Names of its columns, in order."""
    min_tier: str | None
    """The least tier of a key that may fetch it; null where none is needed."""
    updated_at: Instant
    """The instant of the edition's last capture."""


class FundamentalsRow(Row):
    """One vintage of one reported fact."""

    service_id: str
    """Organisation identifier."""
    record_ref: str
    """Identifies this vintage across editions."""
    line_item: str
    """Financial line item, e.g. revenue."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    value_reported: Number | None
    """As reported, every digit; null where withdrawn."""
    currency_reported: str | None
    """ISO 4217 code; null where the unit is not money."""
    unit: str | None
    """Unit as the source writes it."""
    period_start: Day | None
    """Null for an instant."""
    period_end: Day
    """The last day of the period, or the day of an instant."""
    period_type: Literal["FY", "H1", "H2", "Q1", "Q2", "Q3", "Q4", "9M", "other", "TTM"]
    """Told from the dates; TTM are twelve months that end on no year-end of the issuer."""
    fiscal_year: int | None
    """The year in which the financial year ends."""
    available_at: Day
    """The day it became public."""
    vintage: int
    """1 is the figure as first reported."""
    restated: bool
    """True where this figure replaced an earlier one."""
    superseded_at: Day | None
    """The day a later figure replaced it, where knowable."""
    superseding_record_ref: str | None
    """The vintage that replaced it, where knowable."""
    extraction_confidence: Float | None
    """Null where structured."""
    method: Literal["extracted", "structured", "structured-rounded"]
    """Extracted from a document, or published as data, maybe with rounded dates."""


class IssuerRow(Row):
    """An issuer as it was knowable on a day."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; the current one."""
    country: str | None
    """ISO 3166-1 alpha-2 code."""
    lei: str | None
    """Legal Entity Identifier."""
    listings: list[Listing]
    """Where it is listed, as far as known today."""
    first_available: Day
    """The day the first of its figures known by then became public."""
    last_available: Day
    """The day the last of its figures known by then became public."""
    fact_count: int
    """Facts known by then: the rows of `/v1/fundamentals` for that day."""


class MacroAnnualRow(Row):
    """One annual indicator of one country in one year: the value of the table captured last."""

    country: str
    """ISO 3166-1 alpha-2."""
    country_iso3: str
    """ISO 3166-1 alpha-3."""
    indicator: str
    """Indicator code, e.g. NY.GDP.MKTP.CD."""
    indicator_name: str | None
    """In words; null where no table says."""
    year: int
    """The year it is of."""
    value: Number | None
    """Every digit; null where withdrawn."""
    unit: str | None
    """By its metadata, else its name, else its code."""
    note: str | None
    """Remarks of the publisher, e.g. modeled ILO estimate."""
    available_at: Annotated[None, "day"]
    """Always null: no release date is evidenced."""
    vintage: int
    """Counts the captures that changed the value."""


class MacroSeriesRow(Row):
    """One value of a dated series: its latest vintage known on the day."""

    series: str
    """Series key; FX.<base>.<quote> is quote units for one base unit."""
    series_type: str
    """Family, e.g. fx or cpi."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """ISO 3166-1 alpha-2; null where it is of no one country."""
    date: Day
    """The day, or the period by the day its source dates it with."""
    value: Number | None
    """Every digit; null where withdrawn."""
    unit: str | None
    """Unit as the source writes it, without its remarks."""
    note: str | None
    """Remarks of the publisher, e.g. period average."""
    available_at: Day
    """The day this vintage became public."""
    vintage: int
    """1 is the value as first released."""


class MetricInput(TypedDict):
    """One figure that a value is computed from, or that proves a part of it to be nothing."""

    line_item: str
    """The line item of the formula that it is for."""
    concept: str | None
    """As the taxonomy names it; null where the source names none."""
    period_end: Day
    """Of the full year, or of the one before."""
    value: Number
    """As reported, every digit."""
    vintage: int
    """Which vintage of the fact it is: the latest."""
    source_ref: str
    """Source reference: document plus location."""


class MetricsRow(Row):
    """One derived value. Its provenance is that of the input that became public last."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    metric: str
    """Slug of the metrics-v1 set."""
    value: Number
    """Exact, rounded half-even to 10 significant digits."""
    unit: Literal["days", "ratio"]
    """Of the value."""
    period_end: Day
    """The last day of the full year."""
    as_of: Day
    """The day applied."""
    available_at: Day
    """The day the last of its inputs became public."""
    methodology_ref: str
    """Names the documented formula; the service explains it under /methodology/."""
    inputs: list[MetricInput]
    """The figures it is computed from."""


class QualityRow(Row):
    """One measure of a dataset's coverage or freshness."""

    sku: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """The dataset."""
    measure: str
    """What is measured."""
    value: Number | None
    """Null where it was not measured."""
    floor: Number | None
    """The least it may be (of age, rejects and restatements: the most)."""
    status: str | None
    """Null where there is no floor; a floor not measured is never a pass."""
    measured_at: Instant
    """The instant of the last capture."""


class ScreenRow(MetricsRow):
    """One derived value in a ranking."""

    rank: int
    """Position by size in the whole result; not a rating."""


class SearchRow(Row):
    """Something that a search found."""

    type: Literal["organisation", "series", "indicator"]
    """What it is."""
    id: str
    """A service_id, a series key or an indicator code."""
    name: str | None
    """Legal name, or the series or indicator in words."""
    country: str | None
    """ISO 3166-1 alpha-2 code; null where it is of several countries."""
    matched: str
    """The name that the query met, or the identifier, as `lei:...` or `ticker:JSE:NPN`."""
    score: Float
    """How well it matches; 1 is an exact identifier."""


class SeriesCatalogueRow(Row):
    """A series, or an annual indicator of a country."""

    series: str
    """Series key, or indicator code."""
    name: str | None
    """In words: the source's own, else put together from its key."""
    unit: str | None
    """Of its newest value."""
    note: str | None
    """Remarks of the publisher on its newest value."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """ISO 3166-1 alpha-2 code; null where of none."""
    first_date: Day
    """Of its oldest value; the last day of a year."""
    last_date: Day
    """Of its newest value; the last day of a year."""
    vintages: int
    """Distinct days of release; 0 for annual indicators, which evidence none."""
    source_id: str
    """The source of its newest value; see `/v1/sources`."""


class SeriesReleaseRow(Row):
    """A day on which values of a series were released."""

    series: str
    """Series key."""
    frequency: Literal["daily", "weekly", "monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """ISO 3166-1 alpha-2 code; null where of none."""
    release_date: Day
    """The `available_at` of the values."""
    added: int
    """Values that had none before."""
    changed: int
    """Values that replaced an earlier one, withdrawals among them."""


class FactRow(Row):
    """The latest vintage of one value of any dataset, with who it is of and where it is from."""

    fact_id: str
    """`<dataset>:<record_ref>:<measure>`: names this vintage, the same in every edition."""
    entity_id: str
    """An organisation's service_id, or an ISO 3166-1 alpha-3 code."""
    entity_name: str | None
    """Name of the organisation or country; under `as_of` too, the name it has today."""
    country_iso3: str | None
    """ISO 3166-1 alpha-3 code of the entity's country."""
    dataset: Literal["AF-FUND", "AF-TENDER", "AF-MACRO"]
    """SKU."""
    measure: str
    """A line item, award_value, tender_value, an indicator code or the key of a series."""
    value: Number | None
    """Every digit; null where withdrawn."""
    unit: str | None
    """Unit or currency as the source writes it."""
    period_end: Day
    """Last day of the period; of an award its day, of a tender that of the release."""
    period_type: str
    """Of the report, the frequency of a series, `annual`, `award` or `tender`."""
    available_at: Day | None
    """The day this value became public; null where none is evidenced (annual macro)."""
    vintage: str
    """1 is the value as first told."""
    provenance_id: str
    """Stands for the five fields of its provenance together."""
    extraction_confidence: Float | None
    """Null where structured."""
    method: Literal["extracted", "structured"]
    """Extracted from a document, or published as data."""


class PanelRow(Row):
    """A row of a panel: it ends with `methodology_ref`, a literal that names the panel's method."""


class ProcurementDemandRow(PanelRow):
    """One category of one country in one closed month."""

    country: str
    """ISO 3166-1 alpha-2."""
    category: str
    """As published by the source portal."""
    month: str
    """YYYY-MM, of the release dates in UTC."""
    closed_at: Day
    """The last day of the month."""
    tender_count: int
    """Tenders of the category in the month."""
    category_share: Number
    """Of all tenders of the country in the month, 0 to 1."""
    buyer_hhi: Number | None
    """Concentration of buyers, 0 to 1; null where a buyer is withheld or not named."""
    momentum_3m: Number | None
    """Tenders of three months against the three before, less 1; null without them."""
    value_coverage: Number
    """Share of the tenders with a published amount, 0 to 1."""
    methodology_ref: Literal["signals-v1/procurement-demand"]
    """Names the documented method; the service explains it under /methodology/."""


class FundamentalsFactorsRow(PanelRow):
    """One factor of one issuer in one full year."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    period_end: Day
    """The last day of the full year."""
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
    """Exact, rounded half-even to 10 significant digits."""
    available_at: Day
    """The day the last of its inputs became public."""
    methodology_ref: Literal["signals-v1/fundamentals-factors"]
    """Names the documented method; the service explains it under /methodology/."""


class FundamentalsQualityRow(PanelRow):
    """The quality of one issuer's earnings in one full year."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    period_end: Day
    """The last day of the full year."""
    accruals_ratio: Number | None
    """(profit - operating cash flow) / average assets."""
    cash_conversion: Number | None
    """Operating cash flow / EBITDA."""
    margin_volatility: Number | None
    """Standard deviation of net margin; null with fewer than three."""
    margin_years: int
    """Net margins of the last five years it rests on."""
    available_at: Day
    """The day the last of its inputs became public."""
    methodology_ref: Literal["signals-v1/fundamentals-quality"]
    """Names the documented method; the service explains it under /methodology/."""


class FundamentalsRevisionsRow(PanelRow):
    """A full-year figure that was revised: as first reported, and as it stands today."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    period_start: Day | None
    """Null for an instant."""
    period_end: Day
    """The last day of the full year."""
    line_item: str
    """Financial line item, e.g. revenue."""
    concept: str | None
    """The source's own concept, e.g. us-gaap:Revenues."""
    unit: str | None
    """Unit as the source writes it."""
    vintages: int
    """How many figures were reported one after another."""
    first_value: Number
    """As first reported, every digit."""
    latest_value: Number | None
    """As it stands today, every digit; null where withdrawn."""
    revision_size: Number | None
    """(latest - first) / |first|; null where first is 0 or latest withdrawn."""
    direction: str | None
    """Of the latest against the first; null where withdrawn."""
    first_available_at: Day
    """The day the first figure became public."""
    available_at: Day
    """The day the latest figure became public."""
    methodology_ref: Literal["signals-v1/fundamentals-revisions"]
    """Names the documented method; the service explains it under /methodology/."""


class IssuerPersistenceRow(PanelRow):
    """How steadily one issuer earned and grew up to one full year."""

    service_id: str
    """Organisation identifier."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    period_end: Day
    """The last day of the full year."""
    years_held: int
    """Full years held without a gap up to this one."""
    profit_years: int | None
    """In a row with a profit, this one included; 0 after a loss, null where not told."""
    revenue_growth_years: int | None
    """In a row in which revenue grew, this one included; null where not told."""
    available_at: Day
    """The day the last of its inputs became public."""
    methodology_ref: Literal["signals-v1/issuer-persistence"]
    """Names the documented method; the service explains it under /methodology/."""


class MacroMomentumRow(PanelRow):
    """One value of a series as it first became known, and how it compares with those before it."""

    series: str
    """Series key, e.g. CPI.ZA."""
    series_type: str
    """Family, e.g. cpi or gdp."""
    frequency: Literal["monthly", "quarterly", "annual"]
    """How often it is observed."""
    country: str | None
    """ISO 3166-1 alpha-2; null where it is of no one country."""
    date: Day
    """The period, by the day its source dates it with."""
    known_at: Day
    """The day it became known; nothing known later is used."""
    value: Number
    """As known on that day, every digit."""
    unit: str | None
    """Unit as the source writes it."""
    momentum_1p: Number | None
    """Against one period earlier, less 1; null where not computable."""
    momentum_3p: Number | None
    """Against three periods earlier, less 1; null where not computable."""
    methodology_ref: Literal["signals-v1/macro-momentum"]
    """Names the documented method; the service explains it under /methodology/."""


class PublicBuyerConcentrationRow(PanelRow):
    """The buyers of one country in one closed quarter."""

    country: str
    """ISO 3166-1 alpha-2, of the tenders."""
    quarter: str
    """YYYY-Qn, of the release dates in UTC."""
    closed_at: Day
    """The last day of the quarter."""
    tender_count: int
    """Tenders with a release in the quarter."""
    attributed_share: Number
    """Share of the tenders whose buyer is named, 0 to 1."""
    buyer_count: int
    """Buyers of the attributed tenders."""
    buyer_hhi: Number | None
    """Concentration of attributed tenders, 0 to 1; null without any."""
    top_buyer_share: Number | None
    """Attributed tenders of whoever has most, 0 to 1."""
    effective_buyers: Number | None
    """As many equal buyers would be as concentrated: 1 / buyer_hhi."""
    methodology_ref: Literal["signals-v1/public-buyer-concentration"]
    """Names the documented method; the service explains it under /methodology/."""


class SupplierIssuerDemandRow(PanelRow):
    """The awards that one issuer won in one country in one closed quarter, by currency."""

    service_id: str
    """Organisation identifier of the issuer."""
    legal_name: str | None
    """As registered; null where no source says."""
    country: str | None
    """ISO 3166-1 alpha-2, of the issuer."""
    tender_country: str
    """ISO 3166-1 alpha-2, of the tenders."""
    quarter: str
    """YYYY-Qn, of the release dates in UTC."""
    closed_at: Day
    """The last day of the quarter."""
    award_count: int
    """Awards won in the quarter, in any currency."""
    buyer_count: int | None
    """Buyers of these; null where one is withheld or not named."""
    value_coverage: Number
    """Share of these with a published amount that is the issuer's alone, 0 to 1."""
    currency: str | None
    """ISO 4217; null where there is no amount at all."""
    award_value: Number | None
    """Sum of the amounts in this currency, every digit."""
    methodology_ref: Literal["signals-v1/supplier-issuer-demand"]
    """Names the documented method; the service explains it under /methodology/."""


class TenderAwardConcentrationRow(PanelRow):
    """The awards of one country in one closed quarter."""

    country: str
    """ISO 3166-1 alpha-2, of the tenders."""
    quarter: str
    """YYYY-Qn, of the release dates in UTC."""
    closed_at: Day
    """The last day of the quarter."""
    award_count: int
    """Awards first released in the quarter."""
    attributed_share: Number
    """Share of the awards whose winners are all named, 0 to 1."""
    supplier_count: int
    """Winners of the attributed awards."""
    supplier_hhi: Number | None
    """Concentration of attributed awards, 0 to 1; null without any."""
    top_supplier_share: Number | None
    """Attributed awards won by whoever won most, 0 to 1."""
    effective_suppliers: Number | None
    """As many equal winners would be as concentrated: 1 / supplier_hhi."""
    repeat_winner_share: Number | None
    """Attributed awards of those who had won before, 0 to 1; null in the first quarter."""
    methodology_ref: Literal["signals-v1/tender-award-concentration"]
    """Names the documented method; the service explains it under /methodology/."""


class SourceRow(Row):
    """A source of the edition."""

    source_id: str
    """What every `source_ref` of its rows begins with."""
    title: str | None
    """What is published."""
    publisher: str | None
    """Who publishes it."""
    url: str | None
    """Where it is published."""
    licence: str | None
    """SPDX id or name of its licence."""
    licence_url: str | None
    """Where the licence can be read."""
    attribution: str
    """Who is to be named where its data is used."""
    sku: str | None
    """The dataset it is of; null where it only says who is who."""
    countries: list[str]
    """Alpha-2 codes of the countries its rows are of."""
    row_count: int
    """What is served of it, every vintage; of one that says who is who, its records."""
    first_date: Day | None
    """The earliest period_end, release date or observation."""
    last_date: Day | None
    """The latest of these."""
    captured_at: Instant
    """When it was captured last."""
    freshness_days: int | None
    """Days from the newest evidenced publication to the last capture; null without evidence."""
    rejected: int
    """Records rejected when its files were read."""


class StatementFigureRow(FundamentalsRow):
    """The figure of one line item for one period."""

    alternatives: int
    """Figures of this line item and period in `/v1/fundamentals` that were not chosen."""
    sign_turned: bool
    """Whether the filing has this outflow as a negative figure and proves that the sign is wrong."""


class WideStatementRow(Row):
    """One line item, with a further column for each period, named by its period_end."""

    line_item: str
    """Financial line item, e.g. revenue."""
    period_type: str
    """Of every column."""
    unit: str | None
    """Unit of every value of the row; null for a bare number."""
    cells: dict[str, Any]
    """By period_end: concept, unit, available_at, vintage, alternatives and references."""


class PartyIdentifier(TypedDict):
    """How a register names a party."""

    scheme: str
    """The register, as an org-id.guide code where published so."""
    id: str
    """Its number there."""


class TenderPartyRow(Row):
    """A buyer or supplier named in releases, in one role."""

    service_id: str | None
    """Organisation identifier; null when unresolved."""
    name: str
    """As published."""
    role: str
    """In the words of OCDS: buyer, supplier, tenderer."""
    country: str | None
    """ISO 3166-1 alpha-2."""
    identifier: PartyIdentifier | None
    """Its first, as published."""
    org_evidence: str
    """Why it is taken for an organisation, `kind: detail`."""
    match_method: str | None
    """How it was resolved; null when unresolved."""
    release_count: int
    """Releases that name it in this role."""
    first_seen: Day
    """Day of the earliest of them."""
    last_seen: Day
    """Day of the latest of them."""


class CompactTenderRow(Row):
    """One OCDS release, without the release itself."""

    buyer_service_id: str | None
    """The buyer, where resolved."""
    country: str
    """ISO 3166-1 alpha-2."""
    ocid: str
    """Open Contracting process identifier."""
    release_id: str
    """Of the release within its process."""
    release_date: Instant
    """An instant in UTC."""
    tag: list[str]
    """Release tags as published."""
    title: str | None
    """Of the tender."""
    category: str | None
    """As published by the source portal."""
    procurement_method: str | None
    """As published."""
    status: str | None
    """Of the tender, as published."""
    value_amount: Number | None
    """The tender's own value, every digit; null where not published."""
    value_currency: str | None
    """ISO 4217."""
    buyer_name: str | None
    """Null where not established to be an organisation."""
    award_count: int
    """Awards in this release."""
    withheld_parties: int
    """Parties not established to be organisations: never served."""


class TenderRow(CompactTenderRow):
    """One OCDS release."""

    release: dict[str, Any]
    """The cleaned OCDS release: fields of the standard and its extensions; zero is null."""


class UsageRow(Row):
    """Where a key stands."""

    tier: str
    """Of the key: sample, starter or professional."""
    minute_limit: int
    """Requests per UTC minute."""
    minute_used: int
    """Requests in this minute, this one included."""
    minute_reset_at: Instant
    """When the next minute begins."""
    month_limit: int
    """Requests per UTC calendar month."""
    month_used: int
    """Requests in this month, this one included."""
    month_reset_at: Instant
    """When the next month begins."""
    expires_at: str | None
    """The last second in which the key is valid; null where it does not expire."""


MacroRow = MacroAnnualRow | MacroSeriesRow

SignalRow = (
    ProcurementDemandRow
    | FundamentalsFactorsRow
    | FundamentalsQualityRow
    | FundamentalsRevisionsRow
    | IssuerPersistenceRow
    | MacroMomentumRow
    | PublicBuyerConcentrationRow
    | SupplierIssuerDemandRow
    | TenderAwardConcentrationRow
)

StatementRow = StatementFigureRow | WideStatementRow

TendersRow = TenderRow | CompactTenderRow
