"""The endpoints as the client knows them: path, parameters in it, row types.

Written by tools/client.py (make docs). Change the operation, not this module.
"""

from typing import Final, NamedTuple


class Endpoint(NamedTuple):
    """Where an endpoint is, what its path asks for, which shapes its rows may have, and what its
    envelope has besides the common members."""

    path: str
    in_path: tuple[str, ...]
    rows_under: str
    shapes: tuple[str, ...]
    members: tuple[str, ...]


ENDPOINTS: Final = {
    "get_changes": Endpoint("/v1/changes", (), "data", ("ChangeRow",), ("since",)),
    "check_claim": Endpoint("/v1/check", (), "data", ("CheckRow",), ()),
    "get_contract": Endpoint("/v1/contracts/{ocid}", ("ocid",), "data", ("ContractRow",), ()),
    "get_coverage": Endpoint("/v1/coverage", (), "data", ("CoverageRow",), ()),
    "get_cross_rates": Endpoint("/v1/cross-rates", (), "data", ("CrossRateRow",), ()),
    "find_by_identifier": Endpoint("/v1/crosswalk", (), "data", ("CrosswalkMatchRow",), ("ambiguous",)),
    "get_crosswalk": Endpoint(
        "/v1/crosswalk/{service_id}",
        ("service_id",),
        "data",
        ("CrosswalkRow",),
        ("withheld_id_types", "crosswalk_loaded"),
    ),
    "get_entity": Endpoint(
        "/v1/entities/{service_id}", ("service_id",), "data", ("EntityRow",), ("successor", "predecessors")
    ),
    "get_entity_history": Endpoint(
        "/v1/entities/{service_id}/history", ("service_id",), "data", ("SpellRow",), ()
    ),
    "get_export": Endpoint("/v1/export", (), "data", ("ExportRow",), ()),
    "get_flags": Endpoint("/v1/flags", (), "data", ("FlagRow",), ()),
    "get_fundamentals": Endpoint(
        "/v1/fundamentals/{service_id}", ("service_id",), "data", ("FundamentalsRow",), ()
    ),
    "get_fundamentals_matrix": Endpoint(
        "/v1/fundamentals/{service_id}/matrix",
        ("service_id",),
        "data",
        ("FigureMatrixRow", "NthFigureRow"),
        (),
    ),
    "list_issuers": Endpoint("/v1/issuers", (), "data", ("IssuerRow",), ()),
    "get_macro": Endpoint("/v1/macro", (), "data", ("MacroAnnualRow", "MacroSeriesRow"), ("as_of",)),
    "get_metrics": Endpoint(
        "/v1/metrics/{service_id}", ("service_id",), "data", ("MetricsRow",), ("omitted", "missing", "basis")
    ),
    "get_panel": Endpoint("/v1/panel", (), "data", ("IssuerDayRow",), ("basis",)),
    "get_proof": Endpoint(
        "/v1/proof",
        (),
        "data",
        ("FundamentalsRow", "CrosswalkRow", "EntityRow", "MacroAnnualRow", "MacroSeriesRow", "TenderRow"),
        ("proof",),
    ),
    "get_quality_metrics": Endpoint("/v1/quality-metrics/{sku}", ("sku",), "data", ("QualityRow",), ()),
    "get_restatements": Endpoint("/v1/restatements", (), "data", ("RestatementRow",), ()),
    "get_screen": Endpoint("/v1/screen", (), "data", ("ScreenRow",), ("omitted", "basis")),
    "search": Endpoint("/v1/search", (), "data", ("SearchRow",), ()),
    "list_series": Endpoint("/v1/series", (), "data", ("SeriesCatalogueRow",), ()),
    "get_series_matrix": Endpoint(
        "/v1/series/{series}/matrix", ("series",), "data", ("MatrixRow", "NthReleaseRow"), ()
    ),
    "get_series_revisions": Endpoint(
        "/v1/series/{series}/revisions", ("series",), "data", ("SeriesRevisionsRow",), ()
    ),
    "get_series_vintages": Endpoint(
        "/v1/series/{series}/vintages", ("series",), "data", ("SeriesReleaseRow",), ()
    ),
    "get_shared_facts": Endpoint("/v1/shared/facts", (), "data", ("FactRow",), ("as_of",)),
    "get_procurement_demand": Endpoint(
        "/v1/signals/procurement-demand", (), "observations", ("ProcurementDemandRow",), ("basis",)
    ),
    "get_signal": Endpoint(
        "/v1/signals/{signal_key}",
        ("signal_key",),
        "observations",
        (
            "ProcurementDemandRow",
            "FundamentalsFactorsRow",
            "FundamentalsQualityRow",
            "FundamentalsRevisionsRow",
            "IssuerPersistenceRow",
            "MacroMomentumRow",
            "PublicBuyerConcentrationRow",
            "RedFlagsRow",
            "SupplierIssuerDemandRow",
            "TenderAwardConcentrationRow",
        ),
        ("basis",),
    ),
    "get_sources": Endpoint("/v1/sources", (), "data", ("SourceRow",), ()),
    "get_statement": Endpoint(
        "/v1/statements/{service_id}", ("service_id",), "data", ("StatementFigureRow", "WideStatementRow"), ()
    ),
    "get_resolved_parties": Endpoint("/v1/tender-parties", (), "data", ("TenderPartyRow",), ()),
    "search_tenders": Endpoint("/v1/tenders", (), "data", ("TenderRow", "CompactTenderRow"), ("filters",)),
    "get_usage": Endpoint("/v1/usage", (), "data", ("UsageRow",), ()),
}
