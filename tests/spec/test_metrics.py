"""GET /v1/metrics/{service_id}, and the methodology pages."""

from decimal import Decimal
from typing import Any

import pytest

from sankofa.derive.metrics.contract import slugs
from sankofa.model.identifiers import service_id
from tests.every import every
from tests.live import LiveServer
from tests.spec import market
from tests.spec.market import Desk
from tests.spec.test_changes import FILINGS

plain_desk = market.plain_desk

KGALAGADI = service_id("lei:999900SAMPLEZA000189")
FUND = service_id("lei:999900SAMPLEZA000286")
BANK = service_id("lei:999900SAMPLENG000126")
FILER = service_id("registry:US-SEC-CIK:9999900003")
ZAR_AND_USD = service_id("registry:US-SEC-CIK:9999900001")
NOBODY = "DC000000000000000000000000"
DAYS = ("2021-12-31", "2023-08-27", "2024-06-30", "2026-01-01")


def ask(server: LiveServer, key: str, issuer: str, query: str = "") -> dict[str, Any]:
    return server.exact(f"/v1/metrics/{issuer}?{query}", key)


def test_rows_are_ordered_by_metric_and_one_can_be_asked_for(server: LiveServer, paid_key: str) -> None:
    body = ask(server, paid_key, KGALAGADI)
    names = [row["metric"] for row in body["data"]]
    assert names == sorted(names)
    for slug in slugs():
        one = ask(server, paid_key, KGALAGADI, f"metric={slug}")
        assert one["data"] == [row for row in body["data"] if row["metric"] == slug]
        assert one["count"] + sum(one["omitted"].values()) == 1


@pytest.mark.rule("MET-6")
@every("issuer", [KGALAGADI, BANK, FILER, ZAR_AND_USD])
def test_every_input_is_a_full_year_fact_that_fundamentals_serves(
    server: LiveServer, paid_key: str, issuer: str
) -> None:
    for day in DAYS:
        facts = server.exact(f"/v1/fundamentals/{issuer}?period_type=FY&as_of={day}", paid_key)["data"]
        served = {(f["period_end"], f["value_reported"], f["vintage"], f["source_ref"]) for f in facts}
        for row in ask(server, paid_key, issuer, f"as_of={day}")["data"]:
            for i in row["inputs"]:
                assert (i["period_end"], i["value"], i["vintage"], i["source_ref"]) in served, row["metric"]
            assert row["available_at"] == max(
                f["available_at"] for f in facts for i in row["inputs"] if f["source_ref"] == i["source_ref"]
            )


@pytest.mark.rule("MET-3")
def test_figures_in_two_currencies_are_never_mixed(server: LiveServer, paid_key: str) -> None:
    """Revenue, profit and assets exist in ZAR and in USD, everything else in ZAR."""
    facts = server.exact(f"/v1/fundamentals/{ZAR_AND_USD}?period_type=FY", paid_key)["data"]
    money = {(f["period_end"], f["value_reported"]): f["currency_reported"] for f in facts}
    rows = ask(server, paid_key, ZAR_AND_USD)["data"]
    assert {row["metric"] for row in rows} >= {"net_margin", "return_on_assets", "revenue_growth"}
    for row in rows:
        assert {money[i["period_end"], i["value"]] for i in row["inputs"]} == {"ZAR"}


@pytest.mark.rule("MET-4")
def test_a_value_is_exact_to_ten_digits(server: LiveServer, paid_key: str) -> None:
    for row in ask(server, paid_key, KGALAGADI)["data"]:
        digits = row["value"].as_tuple().digits
        assert len(digits) <= 10
    (margin,) = ask(server, paid_key, KGALAGADI, "metric=net_margin")["data"]
    profit, revenue = (i["value"] for i in margin["inputs"])
    assert [i["line_item"] for i in margin["inputs"]] == ["profit", "revenue"]
    assert abs(profit / revenue - margin["value"]) < Decimal("1e-11")


@pytest.mark.rule("PAR-9", "MET-9")
def test_an_unknown_issuer_is_an_empty_answer(server: LiveServer, paid_key: str) -> None:
    for issuer in (NOBODY, FUND):
        body = ask(server, paid_key, issuer)
        assert (body["data"], body["count"], body["truncated"]) == ([], 0, False)
        assert set(body["omitted"].values()) == {0}


@pytest.mark.rule("MET-6")
@every("slug", slugs())
def test_methodology_ref_leads_to_a_page_without_a_key(server: LiveServer, slug: str) -> None:
    page = server.get(f"/methodology/metrics-v1/{slug}")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    for part in (f"# {slug}", "## Formula", "## Inputs", "Unit: ", "## No value", "## Under `as_of`"):
        assert part in page.text


def test_a_year_repeated_in_another_currency_keeps_its_values(plain_desk: Desk) -> None:
    """AED and ZAR have equally many figures, and AED is first by name: the currency reported first wins."""
    reported = [
        f"ticker:JSE:TST,{item},{value},{currency},{year}-01-01,{year}-12-31,{filed},{document},p1,"
        for year, currency, filed, document, revenue, profit in (
            (2022, "ZAR", "2023-03-01", "afs2022", 100, 10),
            (2022, "AED", "2024-03-01", "afs2023", 20, 3),
            (2023, "AED", "2024-03-01", "afs2023", 25, 5),
        )
        for item, value in (("revenue", revenue), ("profit", profit))
    ]
    plain_desk.ingest("filings", "filings.csv", "\n".join([FILINGS, *reported]) + "\n")
    with plain_desk.publish_and_serve() as caller:
        path = f"/v1/metrics/{service_id('ticker:JSE:TST')}"
        before = {row["metric"]: row["value"] for row in caller.get(path, as_of="2023-12-31")["data"]}
        assert before == {"net_margin": Decimal("0.1")}
        after = {row["metric"]: row["value"] for row in caller.get(path, as_of="2024-03-01")["data"]}
        assert after == {
            "net_margin": Decimal("0.2"),
            "revenue_growth": Decimal("0.25"),
            "profit_growth": Decimal("0.6666666667"),
        }


@pytest.mark.rule("MET-7", "STMT-2")
def test_costs_reported_as_negative_become_positive_if_their_document_proves_it(plain_desk: Desk) -> None:
    reported = [
        f"ticker:JSE:TST,{item},{value},ZAR,2022-01-01,2022-12-31,2023-03-01,afs,p1,"
        for item, value in (
            *(("revenue", 100), ("cost_of_sales", -60), ("gross_profit", 40), ("operating_profit", 30)),
            *(("finance_costs", -6), ("profit_before_tax", 24), ("income_tax", -8), ("profit", 16)),
            ("capex", -5),
        )
    ]
    plain_desk.ingest("filings", "filings.csv", "\n".join([FILINGS, *reported]) + "\n")
    with plain_desk.publish_and_serve() as caller:
        issuer = service_id("ticker:JSE:TST")
        rows = caller.get(f"/v1/statements/{issuer}")["data"]
        turned = {row["line_item"]: row["value_reported"] for row in rows if row["sign_turned"]}
        assert turned == {"cost_of_sales": 60, "finance_costs": 6, "income_tax": 8}
        assert "capex" not in {row["line_item"] for row in rows}  # nothing proves its sign
        quality = {row["measure"]: row["value"] for row in caller.get("/v1/quality-metrics/AF-FUND")["data"]}
        assert quality["identity_conflicts"] == 1
        values = {row["metric"]: row["value"] for row in caller.get(f"/v1/metrics/{issuer}")["data"]}
        assert (values["interest_cover"], values["effective_tax_rate"]) == (5, Decimal("0.3333333333"))
        facts = caller.get(f"/v1/fundamentals/{issuer}", line_items="cost_of_sales")["data"]
        assert [row["value_reported"] for row in facts] == [-60]


@pytest.mark.rule("MET-12")
def test_an_issuer_without_a_full_year_has_a_reason_for_every_metric(plain_desk: Desk) -> None:
    interim = "ticker:JSE:TST,revenue,50,ZAR,2022-07-01,2022-12-31,2023-03-01,interim,p1,"
    plain_desk.ingest("filings", "filings.csv", f"{FILINGS}\n{interim}\n")
    with plain_desk.publish_and_serve() as caller:
        path = f"/v1/metrics/{service_id('ticker:JSE:TST')}"
        for basis in ("current", "as_known"):
            body = caller.get(path, basis=basis)
            assert [one["metric"] for one in body["missing"]] == sorted(slugs())
            assert {one["reason"] for one in body["missing"]} == {"not_published"}
            assert body["omitted"]["not_published"] == len(slugs())
            assert len(caller.get(path, basis=basis, metric="net_margin")["missing"]) == 1
            assert caller.get(path, basis=basis, as_of="2023-02-28")["missing"] == []
