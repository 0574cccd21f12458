"""An issuer's full years: the figures and the currency used for a line item, and the year before."""

from decimal import Decimal

import pytest

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import derive
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList, YearEnds, full_years
from sankofa.derive.metrics.routes import metric_inputs
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.reports import Report, Reports
from sankofa.model.days import ordinal
from sankofa.model.periods import YearEvidence
from sankofa.model.rows import State
from tests.every import every

CAPTURE = CaptureInfo("test", "2024-01-01T00:00:00Z", "synthetic", "file")
ReportedValue = tuple[str, str, str, str, str, str | None]  # concept, unit, start, end, available, value


def issuer(*reported: ReportedValue) -> IssuerYearList:
    reports: Reports = {}
    evidence = []
    for concept, unit, start, end, available, value in reported:
        report = Report(value, ordinal(available), available, "s", f"d{available}", "", "", 1, CAPTURE)
        reports.setdefault((concept, unit, end, start), []).append(report)
        evidence.append(
            YearEvidence(ordinal(available), ordinal(start) if start else None, ordinal(end), None)
        )
    return full_years(reports, YearEnds(evidence))


def flow(
    concept: str, value: str | None, available: str = "2023-03-01", unit: str = "USD", year: int = 2022
) -> ReportedValue:
    return concept, unit, f"{year}-01-01", f"{year}-12-31", available, value


def values(year: FullYear, day: str = "2030-01-01") -> dict[str, Decimal]:
    """The line items that enter a metric, as known on a day."""
    view = year.history.on(ordinal(day))
    lines = view.lines() if view else None
    return {item: figure.value for item in metric_inputs() if lines and (figure := lines.figure(item))}


@pytest.mark.rule("MET-5")
def test_the_documented_order_of_concepts_decides() -> None:
    (year,) = issuer(flow("us-gaap:NetIncomeLoss", "7"), flow("us-gaap:ProfitLoss", "9")).published
    assert values(year) == {"profit": 9, "profit_owners": 7}
    (year,) = issuer(flow("us-gaap:NetIncomeLoss", "7")).published
    assert values(year) == {"profit": 7, "profit_owners": 7}
    (year,) = issuer(flow("ifrs-full:ProfitLoss", "9")).published
    assert values(year) == {"profit": 9, "profit_owners": 9}


def test_a_withdrawn_figure_gives_way_only_from_that_day_on() -> None:
    (year,) = issuer(
        flow("us-gaap:ProfitLoss", "9"),
        flow("us-gaap:ProfitLoss", None, "2023-06-01"),
        flow("us-gaap:NetIncomeLoss", "7"),
    ).published
    assert values(year, "2023-03-01") == values(year, "2023-05-31") == {"profit": 9, "profit_owners": 7}
    assert values(year, "2023-06-01") == {"profit": 7, "profit_owners": 7}


def test_all_durations_of_a_year_cover_the_same_days() -> None:
    (year,) = issuer(
        flow("revenue", "5"),
        flow("profit", "2"),
        ("operating_profit", "USD", "2022-01-03", "2022-12-31", "2023-03-01", "3"),
    ).published
    assert values(year) == {"revenue": 5, "profit": 2, "profit_owners": 2}


@pytest.mark.rule("MET-10")
def test_the_year_before_ended_within_ten_days_of_one_year_ago() -> None:
    def prior(end: str) -> bool:
        years = issuer(
            ("revenue", "ZAR", "2021-06-28", end, "2022-09-01", "5"),
            ("revenue", "ZAR", "2022-06-27", "2023-07-02", "2023-09-01", "6"),
        )
        return years.before(years.published[-1]) is not None

    assert prior("2022-06-26")
    assert prior("2022-06-22")
    assert not prior("2022-06-21")
    assert prior("2022-07-12")
    assert not prior("2022-07-13")


def first_years(*opening: ReportedValue) -> IssuerYearList:
    """An issuer founded in June 2018, and the figures of its first full year."""
    return issuer(
        ("us-gaap:NetIncomeLoss", "USD", "2018-06-18", "2018-12-31", "2019-04-01", "1"),
        *opening,
        flow("us-gaap:NetIncomeLoss", "6", "2020-03-27", year=2019),
        ("us-gaap:Assets", "USD", "", "2019-12-31", "2020-03-27", "50"),
    )


@pytest.mark.rule("MET-10")
def test_the_opening_balance_of_a_first_full_year_comes_from_its_report() -> None:
    balance = ("us-gaap:Assets", "USD", "", "2018-12-31")
    years = first_years((*balance, "2019-04-01", "30"), (*balance, "2020-03-27", "30"))
    assert [year.end for year in years.published] == [ordinal("2019-12-31")]  # not the half-year before
    (value,) = [v for v in derive(years).values if v.metric.slug == "return_on_assets"]
    assert (value.value, value.first) == (Decimal("0.15"), ordinal("2020-03-27"))


@pytest.mark.rule("MET-10")
@every("repeated", ["31", None])
def test_a_balance_that_no_annual_report_repeats_opens_no_year(repeated: str | None) -> None:
    balance = ("us-gaap:Assets", "USD", "", "2018-12-31")
    years = first_years(
        (*balance, "2019-04-01", "30"), *([] if repeated is None else [(*balance, "2020-03-27", repeated)])
    )
    derived = {v.metric.slug: v.value for v in derive(years).values}
    # repeated with another figure, it is a balance of a year-end like any other
    assert derived.get("return_on_assets") == (None if repeated is None else Decimal("0.1481481481"))


@pytest.mark.rule("MET-3")
def test_every_ratio_is_in_the_currency_of_the_latest_filing_that_reports_assets() -> None:
    years = issuer(
        flow("revenue", "100"),
        flow("profit", "10"),
        flow("cash", "20"),
        flow("revenue", "50", "2023-04-01", unit="EUR"),
        flow("profit", "6", "2023-04-01", unit="EUR"),
        ("assets", "EUR", "", "2022-12-31", "2023-04-01", "80"),
    )
    (year,) = years.published
    assert values(year, "2023-03-01") == {"revenue": 100, "profit": 10, "profit_owners": 10, "cash": 20}
    assert values(year, "2023-04-01") == {"revenue": 50, "profit": 6, "profit_owners": 6, "assets": 80}
    derived = derive(years)
    by_slug = {value.metric.slug: (value.value, value.first) for value in derived.values}
    assert by_slug == {"net_margin": (Decimal("0.12"), ordinal("2023-04-01"))}


@pytest.mark.rule("MET-3")
def test_a_year_is_in_one_accounting_standard() -> None:
    (year,) = issuer(
        flow("us-gaap:Revenues", "100"),
        ("us-gaap:Assets", "USD", "", "2022-12-31", "2023-03-01", "50"),
        flow("ifrs-full:ProfitLoss", "6", "2024-03-01"),
        ("ifrs-full:Assets", "USD", "", "2022-12-31", "2024-03-01", "60"),
    ).published
    assert values(year, "2023-12-31") == {"revenue": 100, "assets": 50}
    assert values(year, "2024-03-01") == {"profit": 6, "profit_owners": 6, "assets": 60}


@pytest.mark.rule("MET-1")
def test_a_figure_filed_before_the_year_ended_publishes_nothing() -> None:
    years = issuer(
        flow("us-gaap:ProfitLoss", "9", "2018-03-01", year=2017),
        flow("capital_commitments", "5", "2018-03-01", year=2018),
    )
    assert [year.end for year in years.published] == [ordinal("2017-12-31")]
    years = issuer(
        flow("capital_commitments", "5", "2018-03-01", year=2018),
        flow("capital_commitments", "5", "2019-03-01", year=2018),
    )
    assert [(year.end, year.published) for year in years.published] == [
        (ordinal("2018-12-31"), ordinal("2019-03-01"))
    ]


def test_a_proof_in_a_later_filing_opens_a_route_from_then_on_only() -> None:
    """Long-term debt is all debt if the note on debt has it as its total; the note comes later."""
    balances = [
        ("us-gaap:LongTermDebtNoncurrent", "USD", "", "2022-12-31", "2023-03-01", "70"),
        ("us-gaap:StockholdersEquity", "USD", "", "2022-12-31", "2023-03-01", "100"),
        ("us-gaap:LongTermDebtNoncurrent", "USD", "", "2022-12-31", "2023-05-01", "70"),
        ("us-gaap:StockholdersEquity", "USD", "", "2022-12-31", "2023-05-01", "100"),
        ("us-gaap:LongTermDebt", "USD", "", "2022-12-31", "2023-05-01", "70"),
    ]
    derived = derive(issuer(flow("us-gaap:Revenues", "9"), *balances))
    (value,) = [value for value in derived.values if value.metric.slug == "debt_to_equity"]
    assert (value.value, value.first) == (Decimal("0.7"), ordinal("2023-05-01"))
    before = derived.histories[slugs().index("debt_to_equity")][-2]
    assert before.state is State.COMPLETED_AFTER_AS_OF
    assert [change.concept for change in before.changes] == ["us-gaap:LongTermDebt"]


def test_a_restated_decider_is_named_as_the_reason_why_a_value_is_left_out() -> None:
    def balance_sheet(available: str, noncontrolling: str) -> list[ReportedValue]:
        return [
            ("us-gaap:Assets", "USD", "", "2022-12-31", available, "90"),
            ("us-gaap:LiabilitiesAndStockholdersEquity", "USD", "", "2022-12-31", available, "90"),
            ("us-gaap:StockholdersEquity", "USD", "", "2022-12-31", available, "50"),
            ("us-gaap:MinorityInterest", "USD", "", "2022-12-31", available, noncontrolling),
        ]

    derived = derive(
        issuer(
            flow("us-gaap:Revenues", "9"),
            *balance_sheet("2023-03-01", "0"),
            *balance_sheet("2023-06-01", "5"),
        )
    )
    (stretch,) = [
        one
        for one in derived.histories[slugs().index("liabilities_to_assets")]
        if one.state is State.REVISED_AFTER_AS_OF
    ]
    assert (stretch.first, stretch.until) == (ordinal("2023-03-01"), ordinal("2023-06-01"))
    assert [change.concept for change in stretch.changes] == ["us-gaap:MinorityInterest"]
