"""Cursors of every list: bound to their filters, and not for the sample tier. test_truth.py follows them."""

from typing import Any

import pytest

from sankofa.model.line_items import LINE_ITEMS
from tests.every import every
from tests.live import LiveServer

pytestmark = pytest.mark.rule("PAR-6", "PAR-12")

RETAILER = "DC46AF1B1AAA424B58D1368176"
FILER = "DC8342E4A6CD9A7F25CAC383F4"
LISTS: list[tuple[str, dict[str, str]]] = [
    (f"/v1/fundamentals/{RETAILER}", {}),
    (f"/v1/fundamentals/{RETAILER}", {"vintages": "all", "as_of": "2025-06-30"}),
    (f"/v1/fundamentals/{RETAILER}", {"period_type": "FY", "line_items": "revenue,assets,profit"}),
    (f"/v1/fundamentals/{RETAILER}", {"order": "statement"}),
    (f"/v1/fundamentals/{FILER}", {"order": "statement", "vintages": "all"}),
    (f"/v1/statements/{RETAILER}", {}),
    (f"/v1/statements/{RETAILER}", {"shape": "wide", "kind": "income"}),
    ("/v1/macro", {}),
    ("/v1/macro", {"country": "ZA", "from": "2001"}),
    ("/v1/macro", {"country": "ZA", "indicator": "NY.GDP.MKTP.CD"}),
    ("/v1/macro", {"as_of": "2024-12-31", "series_type": "cpi"}),
    ("/v1/macro", {"series": "CPI.ZA"}),
    ("/v1/macro", {"series": "FX.EUR.ZAR", "country": "ZA"}),
    ("/v1/cross-rates", {"base": "USD", "quote": "ZAR"}),
    ("/v1/series", {}),
    ("/v1/series", {"country": "ZA"}),
    ("/v1/series", {"q": "gdp"}),
    ("/v1/series/CPI.ZA/vintages", {}),
    ("/v1/shared/facts", {"entity_id": RETAILER}),
    ("/v1/shared/facts", {"entity_id": RETAILER, "measure": "revenue"}),
    ("/v1/shared/facts", {"entity_id": RETAILER, "dataset": "AF-TENDER"}),
    ("/v1/shared/facts", {"country": "ZAF", "dataset": "AF-TENDER"}),
    ("/v1/shared/facts", {"country": "NGA", "dataset": "AF-MACRO"}),
    ("/v1/shared/facts", {"entity_id": "ZAF", "as_of": "2024-06-30"}),
    ("/v1/shared/facts", {"entity_id": "ZAF", "measure": "NY.GDP.MKTP.CD"}),
    (f"/v1/metrics/{RETAILER}", {}),
    ("/v1/screen", {"metric": "net_margin"}),
    ("/v1/screen", {"metric": "revenue_growth", "order": "asc", "as_of": "2024-06-30"}),
    ("/v1/issuers", {}),
    ("/v1/issuers", {"country": "NG"}),
    ("/v1/signals/procurement-demand", {}),
    ("/v1/signals/macro-momentum", {}),
    ("/v1/signals/fundamentals-factors", {}),
    ("/v1/signals/fundamentals-revisions", {}),
    ("/v1/signals/tender-award-concentration", {}),
    ("/v1/signals/supplier-issuer-demand", {}),
    ("/v1/tender-parties", {}),
    ("/v1/tender-parties", {"role": "buyer", "country": "ZA"}),
    ("/v1/tenders", {"detail": "compact"}),
    ("/v1/tenders", {"country": "KE"}),
    ("/v1/tenders", {"query": "supply"}),
    (f"/v1/crosswalk/{RETAILER}", {}),
    ("/v1/coverage", {}),
    ("/v1/search", {"q": "sample"}),
    ("/v1/quality-metrics/AF-MACRO", {}),
    ("/v1/changes", {}),
    ("/v1/changes", {"dataset": "tenders"}),
]


def first_page(server: LiveServer, key: str, path: str, query: dict[str, str]) -> Any:
    answer = server.http.get(path, params={**query, "limit": "1"}, headers={"x-api-key": key})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    rows = body["data"] if "data" in body else body["observations"]
    assert body["count"] == len(rows) <= 1
    assert body["truncated"] == (body["next_cursor"] is not None) == ("link" in answer.headers)
    return body


@every(("path", "query"), LISTS, ids=lambda part: str(part))
def test_a_cursor_is_bound_to_its_filters_and_the_sample_tier_gets_none(
    server: LiveServer, paid_key: str, sample_key: str, path: str, query: dict[str, str]
) -> None:
    first = first_page(server, paid_key, path, query)
    cursor = first["next_cursor"]
    assert cursor

    def status(key: str, **parameters: str) -> tuple[int, Any]:
        answer = server.http.get(path, params=parameters, headers={"x-api-key": key})
        return answer.status_code, answer.json().get("parameter")

    altered = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    assert status(paid_key, **{**query, "cursor": altered}) == (400, "cursor")
    elsewhere = server.http.get(
        "/v1/signals/fundamentals-quality", params={"cursor": cursor}, headers={"x-api-key": paid_key}
    )
    assert (elsewhere.status_code, elsewhere.json()["parameter"]) == (400, "cursor")
    if "as_of" not in query and "as_of" in first:
        assert status(paid_key, **query, cursor=cursor, as_of="2024-01-01")[0] == 400
    sample = server.http.get(path, params=query, headers={"x-api-key": sample_key}).json()
    if path != "/v1/tenders":
        assert sample.get("next_cursor") is None
        assert status(sample_key, **query, cursor=cursor)[0] == 402


@pytest.mark.rule("FUND-8")
def test_statement_order_has_the_core_line_items_first_newest_period_first(server: LiveServer, paid_key: str):
    path = f"/v1/fundamentals/{RETAILER}"
    ordered = server.get(f"{path}?order=statement", paid_key).json()["data"]
    plain = server.get(path, paid_key).json()["data"]
    assert sorted(map(str, ordered)) == sorted(map(str, plain))
    core = [row for row in plain if row["line_item"] in LINE_ITEMS]
    positions = {(row["period_end"], row["period_type"]): n for n, row in reversed(list(enumerate(core)))}
    core.sort(key=lambda r: (positions[r["period_end"], r["period_type"]], LINE_ITEMS.index(r["line_item"])))
    assert 30 < len(core) < len(plain)
    assert ordered == core + [row for row in plain if row["line_item"] not in LINE_ITEMS]


@pytest.mark.rule("FUND-8")
def test_a_cursor_is_bound_to_its_order(server: LiveServer, paid_key: str) -> None:
    path = f"/v1/fundamentals/{RETAILER}"
    whole = server.get(f"{path}?order=statement", paid_key).json()["data"]
    first = server.get(f"{path}?order=statement&limit=5", paid_key).json()
    following = server.get(f"{path}?limit=5&cursor={first['next_cursor']}", paid_key).json()
    assert first["data"] + following["data"] == whole[:10]
    refused = server.get(f"{path}?order=period&limit=5&cursor={first['next_cursor']}", paid_key)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "order")


@pytest.mark.rule("FUND-9")
def test_line_items_of_the_query_are_separated_by_commas(server: LiveServer, paid_key: str) -> None:
    path = f"/v1/fundamentals/{RETAILER}"
    everything = server.get(path, paid_key).json()["data"]
    filtered = server.get(f"{path}?line_items=revenue,assets,no_such_item", paid_key).json()
    assert filtered["data"] == [row for row in everything if row["line_item"] in ("revenue", "assets")]
    assert server.get(f"{path}?line_items=no_such_item", paid_key).json()["count"] == 0
    for wrong in ("", "Revenue", "revenue,", "a b", ",".join(["revenue"] * 101)):
        refused = server.http.get(path, params={"line_items": wrong}, headers={"x-api-key": paid_key})
        assert (refused.status_code, refused.json()["parameter"]) == (400, "line_items")
