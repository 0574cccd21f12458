"""A concept that is a line item for one issuer and a part of it for another: its filing proves which."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import cik, service_id
from tests.live import LiveServer, succeed

GOLD = "GoldProductsAndServicesRevenue"
PRETAX = (
    "IncomeLossFromContinuingOperationsBeforeIncomeTaxes"
    "MinorityInterestAndIncomeLossFromEquityMethodInvestments"
)
ALL, PART, UNPROVEN, ODD, STRANGE, LATER, CENTS = range(9999900081, 9999900088)
FIGURES: dict[str, int | str] = {
    GOLD: 900,
    "CostsAndExpenses": 700,
    "NonoperatingIncomeExpense": -50,
    PRETAX: 150,
    "NetIncomeLoss": 110,
}
LONG = (
    "DeconsolidatedRevenueExpensesAndOtherIncomeFromTheSaleOfLongTermTimberRightsAndOtherNoncurrentAssetsHeldByASubsidiaryWhoseControl"
    "WasLostInTheYearNetOfTaxAndOfTheShareOfNoncontrollingInterestsAndOfOtherHoldersOfEquity"
)
FILED: dict[int, dict[str, int | str]] = {
    ALL: FIGURES,
    PART: {**FIGURES, GOLD: 800, "Revenues": 900},
    UNPROVEN: {**FIGURES, GOLD: 800},
    ODD: {**FIGURES, "Revenues": 900, "GrossProfit": 5000, "IncomeTaxExpenseBenefit": -40},
    STRANGE: {
        "Revenues": 900,
        "InterestExpense": 950,
        PRETAX: 150,
        "IncomeTaxExpenseBenefit": 200,
        "NetIncomeLoss": -60,
        LONG: 3,
    },
    LATER: {
        "Revenues": 480,
        PRETAX: 150,
        "IncomeTaxExpenseBenefit": 40,
        "NetIncomeLoss": 110,
        "LiabilitiesCurrent": -5,
        "EarningsPerShareBasic": 5000,
        "EarningsPerShareDiluted": "0.005",
        "CommonStockSharesOutstanding": 22,
    },
    CENTS: {
        "NetIncomeLoss": 110,
        "EarningsPerShareBasic": 55,
        "WeightedAverageNumberOfSharesOutstandingBasic": 200,
    },
}
UNITS = {
    "EarningsPerShareBasic": "USD/shares",
    "EarningsPerShareDiluted": "USD/shares",
    "CommonStockSharesOutstanding": "shares",
    "WeightedAverageNumberOfSharesOutstandingBasic": "shares",
}
INSTANTS = {
    "LiabilitiesCurrent",
    "CommonStockSharesOutstanding",
    "Assets",
    "Liabilities",
    "StockholdersEquity",
}
SHEET = {"Assets": 100, "Liabilities": 55, "StockholdersEquity": 40}
"""The balance sheet of one of them, which does not add up."""


def companyfacts(path: Path, number: int) -> Path:
    concepts: dict[str, Any] = {}

    def file(concept: str, value: int | str, year: int, filed: int) -> None:
        unit = UNITS.get(concept, "USD")
        reported = concepts.setdefault(concept, {"units": {unit: []}})["units"][unit]
        accession = f"00{number}-{filed % 100}-000001"
        period = {"start": f"{year}-01-01", "end": f"{year}-12-31"}
        if concept in INSTANTS:
            del period["start"]
        reported.append({**period, "val": float(value), "accn": accession, "filed": f"{filed}-04-20"})

    for year in (2012, 2013):
        for concept, value in FILED[number].items():
            file(concept, value, year, year + 1)
        for concept, value in SHEET.items() if number == PART else ():
            file(concept, value, year, year + 1)
    if number == ALL:  # a later report repeats the year under the usual name, restated
        file("Revenues", 910, 2013, 2015)
        file(GOLD, 890, 2013, 2015)
    if number == LATER:  # a quarter with the dates of the year, and a revenue that the gross profit proves
        file("NetIncomeLoss", 30, 2013, 2015)
        for concept, value in (("SalesRevenueNet", 470), ("CostOfRevenue", 390), ("GrossProfit", 80)):
            file(concept, value, 2012, 2016)
    document = {"cik": number, "entityName": f"Mine {number}", "facts": {"us-gaap": concepts}}
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(scope="module")
def mines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("mines")
    home = folder / "home"
    files = [companyfacts(folder / f"{number}.json", number) for number in FILED]
    succeed(home, "ingest", "--strict", "sec-companyfacts", *files)
    succeed(home, "publish")
    with LiveServer(home) as live:
        yield live


def rows(server: LiveServer, number: int, path: str, query: str = "") -> list[dict[str, Any]]:
    return server.rows(f"/v1/{path}/{service_id(cik(number))}?{query}", server.key("starter"))


@pytest.mark.rule("FUND-10")
def test_a_concept_that_the_filing_proves_to_be_revenue_is_revenue(mines: LiveServer) -> None:
    revenues = rows(mines, ALL, "fundamentals", "line_items=revenue&as_of=2014-12-31")
    assert {(r["period_end"], r["concept"], r["value_reported"]) for r in revenues} == {
        (f"{year}-12-31", f"us-gaap:{GOLD}", 900) for year in (2012, 2013)
    }
    metrics = {r["metric"]: r for r in rows(mines, ALL, "metrics", "as_of=2013-12-31")}
    assert metrics["pretax_margin"]["value"] == pytest.approx(150 / 900)
    assert "operating_margin" in metrics


@pytest.mark.rule("FUND-10")
def test_every_vintage_of_a_fact_has_the_name_of_its_first(mines: LiveServer) -> None:
    revenues = rows(mines, ALL, "fundamentals", "line_items=revenue&vintages=all")
    gold = [(r["vintage"], r["value_reported"]) for r in revenues if r["concept"] == f"us-gaap:{GOLD}"]
    assert {(1, 900), (2, 890)} <= set(gold)


@pytest.mark.rule("FUND-10")
@pytest.mark.parametrize("number", [PART, UNPROVEN])
def test_a_part_keeps_its_own_name(mines: LiveServer, number: int) -> None:
    facts = rows(mines, number, "fundamentals")
    assert {r["line_item"] for r in facts if r["concept"] == f"us-gaap:{GOLD}"} == {
        "gold_products_and_services_revenue"
    }


@pytest.mark.rule("FUND-10")
@pytest.mark.parametrize("number", [ALL, PART])
def test_a_statement_has_one_revenue_for_a_period(mines: LiveServer, number: int) -> None:
    revenues = [r for r in rows(mines, number, "statements") if r["line_item"] == "revenue"]
    assert len(revenues) == len({r["period_end"] for r in revenues}) == 2
    if number == PART:
        assert {r["value_reported"] for r in revenues} == {900}


@pytest.mark.rule("MET-7")
def test_a_tax_with_the_wrong_sign_is_corrected_and_a_gross_profit_above_revenue_is_left_out(
    mines: LiveServer,
):
    metrics = {r["metric"]: r["value"] for r in rows(mines, ODD, "metrics")}
    assert metrics["effective_tax_rate"] == pytest.approx(40 / 150)
    assert "gross_margin" not in metrics
    assert "net_margin" in metrics
    statement = {
        r["line_item"]: (r["value_reported"], r["sign_turned"]) for r in rows(mines, ODD, "statements")
    }
    assert statement["income_tax"] == (40, True)
    assert "gross_profit" not in statement
    quality = mines.get("/v1/quality-metrics/AF-FUND", mines.key("starter")).json()["data"]
    assert next(r["value"] for r in quality if r["measure"] == "identity_conflicts") >= 2
    assert next(r["value"] for r in quality if r["measure"] == "unbalanced_years") == 2
    items = {r["line_item"] for r in rows(mines, PART, "statements")}
    assert ("assets" in items, "liabilities" in items, "equity" in items) == (True, False, False)


@pytest.mark.rule("MET-7")
def test_impossible_figures_are_left_out_of_statements_but_stay_among_the_facts(mines: LiveServer) -> None:
    statement = {
        (r["line_item"], r["fiscal_year"]): r["value_reported"] for r in rows(mines, LATER, "statements")
    }
    assert statement["profit", 2012] == 110
    assert ("profit", 2013) not in statement, "a later figure alone contradicts the profit before tax"
    assert ("profit_owners", 2013) not in statement
    then = rows(mines, LATER, "statements", "as_of=2014-12-31")
    assert {r["value_reported"] for r in then if r["line_item"] == "profit"} == {110}
    assert (statement["revenue", 2012], statement["revenue", 2013]) == (470, 480)
    for item in ("current_liabilities", "eps_basic", "shares_outstanding"):
        assert (item, 2012) not in statement, item
    assert statement["eps_diluted", 2012] == 0.005
    assert {row["line_item"] for row in rows(mines, CENTS, "statements")} == {"profit", "profit_owners"}
    facts = rows(mines, LATER, "fundamentals")
    served = {(r["line_item"], r["fiscal_year"]): r["value_reported"] for r in facts}
    assert (served["profit_owners", 2013], served["current_liabilities", 2012]) == (30, -5)
    assert (served["eps_basic", 2012], served["shares_outstanding", 2012]) == (5000, 22)


@pytest.mark.rule("MET-15")
def test_years_whose_figures_contradict_each_other_are_counted(mines: LiveServer) -> None:
    rows = mines.get("/v1/quality-metrics/AF-FUND", mines.key("starter")).json()["data"]
    counted = {r["measure"]: r["value"] for r in rows if r["measure"].endswith("_years")}
    assert counted == {
        "eps_of_other_sign_years": 0,
        "interest_above_revenue_years": 2,
        "negative_balance_years": 0,
        "owners_above_equity_years": 0,
        "profit_not_after_tax_years": 2,
        "shares_unlike_eps_years": 0,
        "tax_above_profit_years": 2,
        "unbalanced_years": 2,
    }


@pytest.mark.rule("FUND-6", "FUND-9")
def test_a_line_item_with_a_long_name_can_be_asked_on_every_surface(mines: LiveServer) -> None:
    key = mines.key("professional")
    issuer = service_id(cik(STRANGE))
    rows = mines.rows(f"/v1/fundamentals/{issuer}", key)
    (item,) = {row["line_item"] for row in rows if row["concept"] == f"us-gaap:{LONG}"}
    assert len(item) > 256
    query = f"line_items={item}"
    assert {row["concept"] for row in mines.rows(f"/v1/fundamentals/{issuer}?{query}", key)} == {
        f"us-gaap:{LONG}"
    }
    assert mines.rows(f"/v1/shared/facts?entity_id={issuer}&measure={item}", key)
    assert mines.rows(f"/v1/fundamentals/{issuer}/matrix?line_item={item}", key)
    assert mines.rows(f"/v1/restatements?line_item={item}", key) == []
    assert (
        mines.rows(f"/v1/check?subject={issuer}&measure={item}&period=2013&value=3&unit=USD", key)[0][
            "verdict"
        ]
        == "supported"
    )
    page = mines.http.get(
        f"/company/{issuer}/figure?line_item={item}&period_end=2013-12-31", headers={"X-API-Key": key}
    )
    assert page.status_code == 200
