"""Questions about the sample world for each operation, as parameters of its endpoint; each has rows."""

from typing import Any

from sankofa.operations.contract import Operation

ISSUER = "DC46AF1B1AAA424B58D1368176"
QUESTIONS: dict[str, tuple[dict[str, str], ...]] = {
    "get_contract": ({"ocid": "ocds-999sza-00134"}, {"ocid": "ocds-999sza-00134", "as_of": "2026-02-01"}),
    "get_flags": ({"ocid": "ocds-999sza-00134"}, {"ocid": "ocds-999sza-00134", "as_of": "2026-02-01"}),
    "check_claim": ({"subject": "JSE:SMPKG", "measure": "revenue", "period": "2021", "value": "37.5bn"},),
    "find_by_identifier": (
        {"id_type": "ticker", "id_value": "JSE:SMPKG"},
        {"id_type": "registry", "id_value": "99900123"},
    ),
    "get_changes": ({}, {"dataset": "tenders"}, {"dataset": "crosswalk"}),
    "get_coverage": ({}, {"country": "ZA"}),
    "get_cross_rates": (
        {"base": "GBP", "quote": "ZAR"},
        {"base": "ZAR", "quote": "USD", "as_of": "2020-06-30"},
    ),
    "get_crosswalk": ({"service_id": ISSUER},),
    "get_entity": ({"service_id": ISSUER}, {"service_id": ISSUER, "as_of": "2023-12-31"}),
    "get_entity_history": ({"service_id": ISSUER},),
    "get_export": ({},),
    "get_fundamentals": ({"service_id": ISSUER}, {"service_id": ISSUER, "as_of": "2022-12-31"}),
    "get_macro": (
        {},
        {"country": "ZA", "indicator": "NY.GDP.MKTP.CD"},
        {"series": "CPI.ZA"},
        {"as_of": "2024-06-30"},
    ),
    "get_metrics": ({"service_id": ISSUER}, {"service_id": ISSUER, "as_of": "2023-12-31"}),
    "get_panel": (
        {"metrics": "net_margin", "from": "2022-01-01", "to": "2024-12-31"},
        {"line_items": "revenue", "from": "2022-01-01", "to": "2024-12-31", "issuers": ISSUER},
    ),
    "get_procurement_demand": ({}, {"country": "KE", "as_of": "2025-06-30"}),
    "get_proof": ({"record_ref": "30b0939ed17a65fb79375e04"}, {"record_ref": f"entities:{ISSUER}"}),
    "get_quality_metrics": ({"sku": "AF-FUND"},),
    "get_restatements": ({},),
    "get_series_revisions": ({"series": "CPI.ZA"},),
    "get_series_matrix": ({"series": "CPI.ZA"}, {"series": "CPI.ZA", "release": "first"}),
    "get_fundamentals_matrix": (
        {"service_id": ISSUER, "line_item": "revenue"},
        {"service_id": ISSUER, "line_item": "revenue", "release": "latest"},
    ),
    "get_resolved_parties": ({}, {"country": "ZA", "role": "supplier"}),
    "get_screen": ({"metric": "net_margin"}, {"metric": "net_margin", "as_of": "2023-12-31"}),
    "get_shared_facts": (
        {"entity_id": ISSUER},
        {"entity_id": ISSUER, "dataset": "AF-TENDER"},
        {"country": "ZAF", "dataset": "AF-TENDER"},
        {"country": "ZAF", "dataset": "AF-MACRO"},
        {"country": "ZAF", "dataset": "AF-MACRO", "measure": "CPI.ZA"},
        {"country": "KEN", "dataset": "AF-MACRO", "measure": "NY.GDP.MKTP.CD"},
    ),
    "get_series_vintages": ({"series": "CPI.ZA"},),
    "get_sources": ({},),
    "get_statement": ({"service_id": ISSUER}, {"service_id": ISSUER, "as_of": "2022-12-31", "kind": "cash"}),
    "get_signal": ({"signal_key": "macro-momentum"}, {"signal_key": "fundamentals-factors"}),
    "get_usage": ({},),
    "list_issuers": ({}, {"as_of": "2022-12-31"}),
    "list_series": ({}, {"country": "ZA"}),
    "search": ({"q": "Sample Bank"}, {"q": "gdp", "type": "indicator"}),
    "search_entities": ({"query": "Sample Bank"}, {"query": "sample"}),
    "search_tenders": ({}, {"country": "NG", "from": "2026-01-01"}),
}


def address(operation: Operation, question: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path and the query of a question."""
    inside = {name: value for name, value in question.items() if f"{{{name}}}" in operation.path}
    return operation.path.format(**inside), {n: v for n, v in question.items() if n not in inside}


def arguments_of(operation: Operation, question: dict[str, Any]) -> dict[str, Any]:
    """The question as arguments of the operation's tool."""
    return {
        operation.tool_names.get(name, name): value.split(",")
        if operation.parameters[name].kind.schema()["type"] == "array"
        else value
        for name, value in question.items()
    }
