"""GET /v1/sources and GET /v1/coverage: who publishes the data, and how much there is."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, create_key
from tests.spec.ingesting import source_entry
from tests.world.desk import Desk

SOURCE_FIELDS = set(
    "source_id title publisher url licence licence_url license_class attribution sku countries row_count "
    "first_date last_date captured_at freshness_days rejected source_ref observed_at".split()
)
COVERAGE_FIELDS = set(
    "sku country source_id count unit_of_count first_date last_date freshness_days source_ref license_class "
    "observed_at".split()
)
FILINGS = (
    *("entity", "line_item", "value", "currency", "period_start", "period_end", "available_at"),
    *("document", "country"),
)
Rows = list[dict[str, Any]]


@pytest.mark.rule("SRCS-1")
def test_every_source_says_who_publishes_it_and_under_which_licence(server: LiveServer, sample_key: str):
    rows = server.rows("/v1/sources", sample_key)
    assert all(set(row) == SOURCE_FIELDS for row in rows)
    ids = [row["source_id"] for row in rows]
    assert ids == sorted(set(ids))
    assert {"sample-filings", "sample-worldbank", "sample-tenders-za", "sample-lei"} <= set(ids)
    for row in rows:
        assert row["source_ref"].startswith(row["source_id"] + ":")
        assert all(row[name] for name in ("attribution", "licence", "title", "publisher", "url"))
        assert row["licence_url"].startswith("https://")
        assert row["row_count"] > 0
    by_id = {row["source_id"]: row for row in rows}
    assert by_id["sample-tenders-za"]["countries"] == ["ZA"]
    assert by_id["sample-lei"]["sku"] is None
    assert by_id["sample-worldbank"]["freshness_days"] is None  # no evidence for the day of release


@pytest.mark.rule("SRCS-1")
def test_rows_are_counted_as_they_are_served(server: LiveServer, paid_key: str) -> None:
    rows = server.rows("/v1/sources", paid_key)
    facts = {row["measure"]: row["value"] for row in server.rows("/v1/quality-metrics/AF-FUND", paid_key)}
    assert sum(row["row_count"] for row in rows if row["sku"] == "AF-FUND") == facts["facts"]
    tenders = server.rows("/v1/quality-metrics/AF-TENDER", paid_key)
    releases = {row["measure"]: row["value"] for row in tenders}["releases"]
    assert sum(row["row_count"] for row in rows if row["sku"] == "AF-TENDER") == releases


@pytest.mark.rule("SRCS-2")
def test_coverage_counts_the_rows_that_endpoints_serve(server: LiveServer, paid_key: str) -> None:
    rows = server.rows("/v1/coverage", paid_key)
    assert all(set(row) == COVERAGE_FIELDS for row in rows)
    order = [(r["sku"], r["country"] or "", r["source_id"], r["unit_of_count"]) for r in rows]
    assert order == sorted(set(order))
    issuers = server.rows("/v1/issuers?limit=1000", paid_key)
    for country in {row["country"] for row in issuers}:
        counted = [r for r in rows if (r["unit_of_count"], r["country"]) == ("issuers", country)]
        own = [row for row in issuers if row["country"] == country]
        assert max(r["count"] for r in counted) <= len(own) <= sum(r["count"] for r in counted)
    for country in ("ZA", "KE"):
        releases = [r for r in rows if (r["unit_of_count"], r["country"]) == ("releases", country)]
        tenders = server.rows(f"/v1/tenders?country={country}&limit=10000", paid_key)
        assert sum(r["count"] for r in releases) == len(tenders)
        assert max(r["last_date"] for r in releases) == max(t["release_date"][:10] for t in tenders)
        assert min(r["first_date"] for r in releases) == min(t["release_date"][:10] for t in tenders)
    catalogue = server.rows("/v1/series?limit=1000", paid_key)
    series = [row for row in catalogue if row["vintages"]]
    assert sum(r["count"] for r in rows if r["unit_of_count"] == "series") >= len(series)
    indicators = [row for row in catalogue if not row["vintages"]]
    assert sum(r["count"] for r in rows if r["unit_of_count"] == "indicators") >= len(indicators)


@pytest.mark.rule("SRCS-2")
def test_coverage_can_be_asked_of_a_country_and_a_dataset(server: LiveServer, paid_key: str) -> None:
    rows = server.rows("/v1/coverage", paid_key)
    own = [row for row in rows if row["country"] == "ZA"]
    assert server.rows("/v1/coverage?country=za", paid_key) == own
    assert server.rows("/v1/coverage?country=ZA&sku=AF-MACRO", paid_key) == [
        row for row in own if row["sku"] == "AF-MACRO"
    ]
    assert server.rows("/v1/coverage?country=AQ", paid_key) == []
    assert server.tool("get_coverage", paid_key, {"country": "ZA"})["data"] == own
    assert server.get("/v1/coverage?contry=ZA", paid_key).json()["parameter"] == "contry"


@pytest.mark.rule("SRCS-3")
def test_freshness_uses_only_days_with_evidence(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home", date(2024, 3, 1))
    desk.home.mkdir(exist_ok=True)
    (desk.home / "sources.toml").write_text(
        "".join(
            source_entry(name, "filings-csv", licence="Of its own", licence_url=f"https://example.org/{name}")
            for name in ("dated", "undated", "withdrawn")
        )
    )
    for name, available in (("dated", "2024-02-10"), ("undated", ""), ("withdrawn", "2024-02-28")):
        path = desk.inbox / f"{name}.csv"
        row = f"ticker:JSE:{name[:3].upper()},revenue,1,ZAR,2023-01-01,2023-12-31,{available},d,ZA"
        path.write_text(f"{','.join(FILINGS)}\n{row}\n")
        assert desk.take(name, path).failures == []
    before, _, last = (desk.home / "sources.toml").read_text().rpartition("[sources.withdrawn]")
    (desk.home / "sources.toml").write_text(f"{before}[sources.withdrawn]{last.replace('= true', '= false')}")
    desk.publish()
    with LiveServer(desk.home) as server:
        key = create_key(desk.home, "starter")
        sources = {row["source_id"]: row for row in server.rows("/v1/sources", key)}
        coverage = {row["source_id"]: row for row in server.rows("/v1/coverage", key)}
    assert sources.keys() == coverage.keys() == {"dated", "undated"}
    assert (sources["dated"]["freshness_days"], sources["undated"]["freshness_days"]) == (20, None)
    assert (coverage["dated"]["freshness_days"], coverage["undated"]["freshness_days"]) == (20, None)
    assert sources["dated"]["last_date"] == coverage["undated"]["last_date"] == "2023-12-31"
    assert sources["dated"]["licence_url"] == "https://example.org/dated"
