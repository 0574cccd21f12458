"""The columns of each endpoint and the words of its parameters. /docs/api explains each field.

Written by tools/client.py (make docs). Change the operation, not this module.
"""

from typing import Final, Literal

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

_EVERY_ROW: Final = "source_ref license_class observed_at:instant"

_TABLE: Final = """\
ChangeRow dataset change key:nested row:nested
CheckRow verdict value:figure unit available_at:day vintage:whole restated_at:day
CompactTenderRow buyer_service_id country ocid release_id release_date:instant tag:nested title description
    category procurement_method status closing_date:instant value_amount:figure value_currency buyer_name
    award_count:whole withheld_parties:whole
ContractRow country ocid release_count:whole first_release_date:instant last_release_date:instant
    release:nested set_by:nested changes:nested
CoverageRow sku country source_id count:whole unit_of_count first_date:day last_date:day
    freshness_days:whole
CrossRateRow base quote via date:day value:figure unit available_at:day method methodology_ref inputs:nested
CrosswalkMatchRow service_id id_type id_value scheme legal_name
CrosswalkRow service_id id_type id_value scheme
EntityRow service_id legal_name other_names:nested jurisdiction country status category legal_form lei
    listings:nested direct_parent:nested ultimate_parent:nested
ExportRow name sku signal_key access license url media_type size_bytes:whole sha256 row_count:whole
    columns:nested min_tier updated_at:instant
FactRow fact_id entity_id entity_name country_iso3 dataset measure value:figure unit period_end:day
    period_type available_at:day vintage provenance_id extraction_confidence:float method
FigureMatrixRow date:day period_type period_start:day concept unit
FlagRow country indicator title subject_type subject name service_id flagged:truth value:figure
    threshold:figure formula inputs:nested population:whole reason methodology_ref
FundamentalsFactorsRow service_id legal_name country period_end:day metric value:figure available_at:day
    methodology_ref
FundamentalsQualityRow service_id legal_name country period_end:day accruals_ratio:figure
    cash_conversion:figure margin_volatility:figure margin_years:whole available_at:day methodology_ref
FundamentalsRevisionsRow service_id legal_name country period_start:day period_end:day line_item concept
    unit vintages:whole first_value:figure latest_value:figure revision_size:figure direction
    first_available_at:day available_at:day methodology_ref
FundamentalsRow service_id record_ref line_item concept value_reported:figure currency_reported unit
    period_start:day period_end:day period_type fiscal_year:whole available_at:day available_instant:instant
    available_precision tradable_from:day vintage:whole restated:truth split_ratio:figure superseded_at:day
    superseding_record_ref extraction_confidence:float method
IssuerDayRow service_id legal_name country as_of:day age_days:nested units:nested missing:nested
IssuerPersistenceRow service_id legal_name country period_end:day years_held:whole profit_years:whole
    revenue_growth_years:whole available_at:day methodology_ref
IssuerRow service_id legal_name country lei listings:nested first_available:day last_available:day
    fact_count:whole
MacroAnnualRow country country_iso3 indicator indicator_name year:whole value:figure unit note
    available_at:day vintage:whole
MacroMomentumRow series series_type frequency country date:day known_at:day value:figure unit
    momentum_1p:figure momentum_3p:figure methodology_ref
MacroSeriesRow series series_type frequency country date:day value:figure unit note available_at:day
    vintage:whole
MatrixRow date:day
MetricsRow service_id legal_name country metric value:figure unit period_end:day as_of:day age_days:whole
    available_at:day methodology_ref inputs:nested
NthFigureRow date:day available_at:day value:figure period_type period_start:day concept unit
NthReleaseRow date:day available_at:day value:figure
ProcurementDemandRow country category month closed_at:day tender_count:whole category_share:figure
    buyer_hhi:figure momentum_3m:figure value_coverage:figure methodology_ref
PublicBuyerConcentrationRow country quarter closed_at:day tender_count:whole attributed_share:figure
    buyer_count:whole buyer_hhi:figure top_buyer_share:figure effective_buyers:figure methodology_ref
QualityRow sku measure value:figure floor:figure status measured_at:instant
RedFlagsRow country quarter closed_at:day indicator population:whole computed_count:whole
    flagged_processes:whole flagged_buyers:whole flagged_procuring_entities:whole flagged_tenderers:whole
    methodology_ref
RestatementRow service_id legal_name line_item concept unit period_start:day period_end:day
    value_before:figure value_after:figure change:figure available_before:day available_at:day vintage:whole
    record_ref
ScreenRow service_id legal_name country metric value:figure unit period_end:day as_of:day age_days:whole
    available_at:day methodology_ref inputs:nested rank:whole
SearchRow type id name country matched score:float
SeriesCatalogueRow series name unit note frequency country first_date:day last_date:day vintages:whole
    source_id
SeriesReleaseRow series frequency country release_date:day added:whole changed:whole
SeriesRevisionsRow series frequency country first_date:day last_date:day values:whole revised:whole
    revisions:whole mean_absolute_revision:figure largest_absolute_revision:figure mean_revision:figure
    median_days_to_final:figure largest_days_to_final:whole
SourceRow source_id title publisher url licence licence_url attribution sku countries:nested row_count:whole
    first_date:day last_date:day captured_at:instant freshness_days:whole rejected:whole
SpellRow kind value relationship from:day until:day
StatementFigureRow service_id record_ref line_item concept value_reported:figure currency_reported unit
    period_start:day period_end:day period_type fiscal_year:whole available_at:day available_instant:instant
    available_precision tradable_from:day vintage:whole restated:truth split_ratio:figure superseded_at:day
    superseding_record_ref extraction_confidence:float method alternatives:whole sign_turned:truth
SupplierIssuerDemandRow service_id legal_name country tender_country quarter closed_at:day award_count:whole
    buyer_count:whole value_coverage:figure currency award_value:figure methodology_ref
TenderAwardConcentrationRow country quarter closed_at:day award_count:whole attributed_share:figure
    supplier_count:whole supplier_hhi:figure top_supplier_share:figure effective_suppliers:figure
    repeat_winner_share:figure methodology_ref
TenderPartyRow service_id name role country identifier:nested org_evidence match_method match_score:float
    release_count:whole first_seen:day last_seen:day
TenderRow buyer_service_id country ocid release_id release_date:instant tag:nested title description
    category procurement_method status closing_date:instant value_amount:figure value_currency buyer_name
    award_count:whole withheld_parties:whole release:nested
UsageRow tier minute_limit:whole minute_used:whole minute_reset_at:instant month_limit:whole
    month_used:whole month_reset_at:instant expires_at
WideStatementRow line_item period_type unit cells:nested
"""

"""The shapes of rows and their columns, each with its kind if that is not text (`frames`)."""

_SHAPES: Final = (line.split() for line in _TABLE.replace("\n    ", " ").splitlines())

COLUMNS: Final = {name: (*_EVERY_ROW.split(), *own) for name, *own in _SHAPES}
