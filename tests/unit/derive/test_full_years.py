"""An issuer's full years: which figures stand for a line item, in which currency; which year is before."""

from decimal import Decimal

import pytest

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import derive
from sankofa.derive.metrics.full_years import FullYear, full_years, year_before
from sankofa.derive.metrics.year_ends import YearEnds
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.reports import Report, Reports
from sankofa.model.days import ordinal
from sankofa.model.financial_years import YearEvidence
from sankofa.model.metric_states import State

CAPTURE = CaptureInfo("test", "2024-01-01T00:00:00Z", "synthetic", "file")
Told = tuple[str, str, str, str, str, str | None]  # concept, unit, start, end, available, value


def issuer(*told: Told) -> list[FullYear]:
    reports: Reports = {}
    evidence = []
    for concept, unit, start, end, available, value in told:
        report = Report(value, ordinal(available), available, "s", f"d{available}", "", "", 1, CAPTURE)
        reports.setdefault((concept, unit, end, start), []).append(report)
        evidence.append(
            YearEvidence(ordinal(available), ordinal(start) if start else None, ordinal(end), None)
        )
    ends = YearEnds(evidence)
    wanted = {
        identity: found for identity, found in reports.items() if ends.ever_full(identity[3], identity[2])
    }
    return full_years(wanted, ends)


def flow(
    concept: str, value: str | None, available: str = "2023-03-01", unit: str = "USD", year: int = 2022
) -> Told:
    return concept, unit, f"{year}-01-01", f"{year}-12-31", available, value


def values(year: FullYear, unit: str = "USD") -> dict[str, Decimal]:
    return {name: figure.value for name, figure in year.figures[unit].items()}


@pytest.mark.rule("MET-5")
def test_the_documented_order_of_concepts_decides() -> None:
    (year,) = issuer(flow("us-gaap:NetIncomeLoss", "7"), flow("us-gaap:ProfitLoss", "9"))
    assert values(year) == {"profit": 9, "profit_owners": 7}
    (year,) = issuer(flow("us-gaap:NetIncomeLoss", "7"))
    assert values(year) == {"profit": 7, "profit_owners": 7}
    (year,) = issuer(flow("ifrs-full:ProfitLoss", "9"))
    assert values(year) == {"profit": 9, "profit_owners": 9}


def test_a_figure_that_was_only_ever_reported_as_unknown_is_no_input() -> None:
    (year,) = issuer(flow("us-gaap:Revenues", None), flow("us-gaap:Assets", "7"))
    assert values(year) == {"assets": 7}


@pytest.mark.rule("MET-5")
def test_a_concept_that_merely_looks_alike_is_no_input() -> None:
    (year,) = issuer(flow("us-gaap:SalesRevenueGoodsNet", "7"), flow("us-gaap:Assets", "7"))
    assert values(year) == {"assets": 7}


def test_a_withdrawn_figure_gives_way_only_from_that_day_on() -> None:
    (year,) = issuer(
        flow("us-gaap:ProfitLoss", "9"),
        flow("us-gaap:ProfitLoss", None, "2023-06-01"),
        flow("us-gaap:NetIncomeLoss", "7"),
    )
    assert values(year)["profit"] == 7
    assert year.figures["USD"]["profit"].stands_from == ordinal("2023-06-01")
    assert year.figures["USD"]["profit_owners"].stands_from == ordinal("2023-03-01")


def test_a_quarter_is_no_full_year_and_a_53_week_year_is_one() -> None:
    years = issuer(
        ("revenue", "ZAR", "2022-06-27", "2023-07-02", "2023-09-01", "5"),
        ("revenue", "ZAR", "2023-07-03", "2023-10-01", "2023-11-01", "1"),
    )
    assert [year.end for year in years] == [ordinal("2023-07-02")]


def test_opening_balances_of_a_new_standard_are_no_full_year() -> None:
    years = issuer(
        flow("revenue", "5", "2019-02-01", year=2018),
        ("assets", "USD", "", "2018-12-31", "2019-02-01", "8"),
        ("assets", "USD", "", "2019-01-01", "2019-05-01", "9"),
    )
    assert [year.end for year in years] == [ordinal("2018-12-31")]
    assert values(years[0]) == {"revenue": 5, "assets": 8}


def test_durations_are_taken_of_one_stretch_of_days() -> None:
    (year,) = issuer(
        flow("revenue", "5"),
        flow("profit", "2"),
        ("operating_profit", "USD", "2022-01-03", "2022-12-31", "2023-03-01", "3"),
    )
    assert values(year) == {"revenue": 5, "profit": 2, "profit_owners": 2}


@pytest.mark.rule("MET-10")
def test_the_year_before_ended_within_ten_days_of_one_year_ago() -> None:
    def prior(end: str) -> bool:
        years = issuer(
            ("revenue", "ZAR", "2021-06-28", end, "2022-09-01", "5"),
            ("revenue", "ZAR", "2022-06-27", "2023-07-02", "2023-09-01", "6"),
        )
        return year_before(years, years[-1]) is not None

    assert prior("2022-06-26")
    assert prior("2022-06-22")
    assert not prior("2022-06-21")
    assert prior("2022-07-12")
    assert not prior("2022-07-13")


def first_years(*opening: Told) -> list[FullYear]:
    """An issuer that was founded in June 2018, and the figures of its first full year."""
    return issuer(
        ("us-gaap:NetIncomeLoss", "USD", "2018-06-18", "2018-12-31", "2019-04-01", "1"),
        *opening,
        flow("us-gaap:NetIncomeLoss", "6", "2020-03-27", year=2019),
        ("us-gaap:Assets", "USD", "", "2019-12-31", "2020-03-27", "50"),
    )


@pytest.mark.rule("MET-10")
def test_the_opening_balance_of_a_first_full_year_is_the_one_that_its_report_repeats() -> None:
    balance = ("us-gaap:Assets", "USD", "", "2018-12-31")
    years = first_years((*balance, "2019-04-01", "30"), (*balance, "2020-03-27", "30"))
    assert [year.end for year in years] == [ordinal("2019-12-31")]  # the half-year before is none
    (value,) = [v for v in derive(years).values if v.metric.slug == "return_on_assets"]
    assert (value.value, value.first) == (Decimal("0.15"), ordinal("2020-03-27"))


@pytest.mark.rule("MET-10")
@pytest.mark.parametrize("told_again", ["31", None])
def test_a_balance_that_no_report_of_a_full_year_repeats_opens_none(told_again: str | None) -> None:
    balance = ("us-gaap:Assets", "USD", "", "2018-12-31")
    years = first_years(
        (*balance, "2019-04-01", "30"),
        *([] if told_again is None else [(*balance, "2020-03-27", told_again)]),
    )
    shown = {v.metric.slug: v.value for v in derive(years).values}
    # told anew with another figure it is a balance of a year-end like any other
    assert shown.get("return_on_assets") == (None if told_again is None else Decimal("0.1481481481"))


def test_the_currency_with_the_best_coverage_is_taken_and_another_where_it_alone_has_all_inputs() -> None:
    years = issuer(
        flow("revenue", "100"),
        flow("profit", "10"),
        flow("assets", "200"),
        flow("cash", "20"),
        flow("revenue", "50", unit="EUR"),
        flow("profit", "6", unit="EUR"),
        flow("operating_profit", "7", unit="EUR"),
        flow("liabilities", "80", unit="GBP"),
    )
    found = derive(years)
    shown = {value.metric.slug: value.value for value in found.values}
    assert shown == {"net_margin": Decimal("0.1"), "operating_margin": Decimal("0.14")}
    states = {m: h[-1].state for m, h in zip(slugs(), found.histories, strict=True)}
    assert states["liabilities_to_assets"] is State.CURRENCY_MIXED
    assert states["cash_ratio"] is State.INPUT_ABSENT


def test_a_unit_that_is_not_money_is_no_input() -> None:
    (year,) = issuer(flow("revenue", "100", unit="shares"))
    assert year.figures == {}
