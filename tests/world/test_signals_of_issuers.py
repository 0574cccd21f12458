"""The signal panels of issuers, on small histories."""

from datetime import date
from decimal import Decimal

import pytest

from tests.live import columns_of
from tests.spec.register import sid
from tests.world.desk import Desk
from tests.world.signals_desk import ALPHA, BETA, figure, observed, take
from tests.world.signals_desk import desk as desk


def test_factors_are_the_metrics_of_every_year_with_its_current_figures(desk: Desk) -> None:
    desk.filings(
        "alpha.csv",
        [
            figure(ALPHA, "revenue", 200, 2021),
            figure(ALPHA, "profit", 20, 2021),
            figure(ALPHA, "profit", 30, 2021, "2023-03-31"),  # restated a year later
            figure(ALPHA, "revenue", 300, 2022),
            figure(ALPHA, "revenue", 0, 2023),
            figure(ALPHA, "profit", 5, 2023),
        ],
    )
    columns = ("service_id", "period_end", "metric", "value", "available_at")
    alpha = sid(f"lei:{ALPHA}")
    assert columns_of(observed(desk, "fundamentals-factors"), *columns) == [
        (alpha, "2023-12-31", "revenue_growth", -1, "2024-03-31"),
        (alpha, "2022-12-31", "revenue_growth", Decimal("0.5"), "2023-03-31"),
        (alpha, "2021-12-31", "net_margin", Decimal("0.15"), "2023-03-31"),
    ]


def test_quality_needs_its_inputs_and_three_margins(desk: Desk) -> None:
    rows = []
    for year, profit in ((2018, 10), (2019, 20), (2020, 30), (2022, 40), (2023, 50)):
        rows += [figure(ALPHA, "revenue", 100, year), figure(ALPHA, "profit", profit, year)]
    rows += [
        figure(ALPHA, "operating_cash_flow", 60, 2023),
        figure(ALPHA, "operating_profit", 70, 2023),
        figure(ALPHA, "depreciation_amortisation", 10, 2023),
        figure(ALPHA, "assets", 90, 2022),
        figure(ALPHA, "assets", 110, 2023),
    ]
    desk.filings("alpha.csv", rows)
    columns = ("period_end", "accruals_ratio", "cash_conversion", "margin_volatility", "margin_years")
    assert columns_of(observed(desk, "fundamentals-quality"), *columns) == [
        ("2023-12-31", Decimal("-0.1"), Decimal("0.75"), None, 2),  # no year 2021: earlier years do not count
        ("2020-12-31", None, None, Decimal("0.08164965809"), 3),  # sqrt(2/300)
    ]


def test_volatility_covers_five_years_at_most(desk: Desk) -> None:
    margins = (1, 2, 3, 4, 5, 60)
    rows = []
    for year, profit in enumerate(reversed(margins), 2018):
        rows += [figure(ALPHA, "revenue", 100, year), figure(ALPHA, "profit", profit, year)]
    desk.filings("alpha.csv", rows)
    volatility = columns_of(
        observed(desk, "fundamentals-quality"), "period_end", "margin_volatility", "margin_years"
    )
    assert volatility[0] == ("2023-12-31", Decimal("0.01414213562"), 5)  # sqrt(2) / 100
    assert [row[0][:4] for row in volatility] == ["2023", "2022", "2021", "2020"]


def test_revisions_compare_the_latest_figure_with_the_first(desk: Desk) -> None:
    later, last = "2023-06-30", "2024-06-30"
    desk.filings(
        "alpha.csv",
        [
            figure(ALPHA, "revenue", -100, 2022),
            figure(ALPHA, "revenue", -150, 2022, later),
            figure(ALPHA, "profit", 10, 2022),
            figure(ALPHA, "profit", 20, 2022, later),
            figure(ALPHA, "profit", 10, 2022, last),
            figure(ALPHA, "income_tax", 0, 2022),
            figure(ALPHA, "income_tax", 5, 2022, later),
            figure(ALPHA, "capex", 7, 2022),
            figure(ALPHA, "capex", "", 2022, later),
            figure(ALPHA, "finance_costs", 3, 2022),
            figure(ALPHA, "finance_costs", 3, 2022, later),  # reported again: no revision
            figure(ALPHA, "odd_item", 1, 2022),
            figure(ALPHA, "odd_item", 2, 2022, later),  # not one of our items
            [*figure(ALPHA, "revenue", 1, 2022)[:4], "2022-01-01", "2022-06-30", "2022-09-01", "h1", "", ""],
            [*figure(ALPHA, "revenue", 2, 2022)[:4], "2022-01-01", "2022-06-30", later, "h2", "", ""],
        ],
    )
    rows = observed(desk, "fundamentals-revisions")
    columns = ("line_item", "vintages", "first_value", "latest_value", "revision_size", "direction")
    assert columns_of(rows, *columns, "first_available_at", "available_at") == [
        ("capex", 2, 7, None, None, None, "2023-03-31", later),
        ("income_tax", 2, 0, 5, None, "up", "2023-03-31", later),
        ("profit", 3, 10, 10, 0, "none", "2023-03-31", last),
        ("revenue", 2, -100, -150, Decimal("-0.5"), "down", "2023-03-31", later),
    ]
    assert {(row["period_start"], row["period_end"]) for row in rows} == {("2022-01-01", "2022-12-31")}


def test_persistence_counts_years_in_a_row(desk: Desk) -> None:
    years = {
        2017: (1, 100),
        2018: (-1, 110),
        2019: (2, 120),
        2020: (3, 120),
        2021: (None, 130),
        2022: (4, 140),
        2023: (5, None),
    }
    rows = []
    for year, (profit, revenue) in years.items():
        rows += [figure(ALPHA, "profit", profit, year)] if profit is not None else []
        rows += [figure(ALPHA, "revenue", revenue, year)] if revenue is not None else []
    rows += [figure(BETA, "revenue", 1, 2021), figure(BETA, "revenue", 2, 2022, money="USD")]
    desk.filings("alpha.csv", rows)
    columns = ("period_end", "years_held", "profit_years", "revenue_growth_years")
    alpha = [row for row in observed(desk, "issuer-persistence") if row["service_id"] == sid(f"lei:{ALPHA}")]
    assert columns_of(alpha, *columns) == [
        ("2023-12-31", 7, 2, None),
        ("2022-12-31", 6, 1, 2),
        ("2021-12-31", 5, None, 1),
        ("2020-12-31", 4, 2, 0),
        ("2019-12-31", 3, 1, 2),
        ("2018-12-31", 2, 0, 1),
        ("2017-12-31", 1, 1, None),
    ]
    assert len(observed(desk, "issuer-persistence")) == 7, "revenue in two currencies tells nothing"


@pytest.mark.rule("PROV-3", "PROV-10")
def test_a_row_has_the_strictest_licence_and_the_latest_capture_of_its_inputs(desk: Desk) -> None:
    desk.filings("alpha.csv", [figure(ALPHA, "revenue", 100, 2022)])
    desk.set_day(date(2024, 11, 20))
    licensed = (
        '[sources.licensed]\nadapter = "filings-csv"\nsku = "AF-FUND"\n'
        'license_class = "licensed-redistribution"\ncommercial_redistribution = true\n'
    )
    (desk.home / "sources.toml").write_text(licensed)
    header = (
        "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence"
    )
    take(desk, "licensed", "more.csv", f"{header}\n{','.join(figure(ALPHA, 'profit', 5, 2022))}\n")
    (row,) = observed(desk, "fundamentals-factors")
    assert (row["metric"], row["license_class"]) == ("net_margin", "licensed-redistribution")
    assert row["observed_at"] == "2024-11-20T12:00:00Z"
    assert row["source_ref"].startswith("licensed:"), "of the first of its inputs"
