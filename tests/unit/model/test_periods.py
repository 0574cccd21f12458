"""Period names from dates alone."""

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sankofa.model.periods import PERIOD_TYPES, IssuerYears, Period, YearEvidence, months_of
from tests.every import every


def on(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def years(*ends: str, known: str = "2000-01-01", days: int = 365) -> IssuerYears:
    """An issuer that reported full years of this length, ending on these days."""
    return IssuerYears(YearEvidence(on(known), on(end) - days + 1, on(end)) for end in ends)


def name_of(issuer: IssuerYears, start: str, end: str, known: str = "2030-01-01") -> Period:
    return issuer.name(on(start) if start else None, on(end), on(known))


@pytest.mark.rule("PER-2")
@every(
    ("start", "end", "expected"),
    [
        ("2023-01-01", "2023-12-31", ("FY", 2023)),
        ("2023-01-01", "2023-03-31", ("Q1", 2023)),
        ("2023-04-01", "2023-06-30", ("Q2", 2023)),
        ("2023-07-01", "2023-09-30", ("Q3", 2023)),
        ("2023-10-01", "2023-12-31", ("Q4", 2023)),
        ("2023-01-01", "2023-06-30", ("H1", 2023)),
        ("2023-07-01", "2023-12-31", ("H2", 2023)),
        ("2023-01-01", "2023-09-30", ("9M", 2023)),
        ("", "2023-12-31", ("FY", 2023)),
        ("", "2023-03-31", ("Q1", 2023)),
        ("", "2023-06-30", ("H1", 2023)),
        ("", "2023-09-30", ("9M", 2023)),
        ("", "2023-02-14", ("other", 2023)),
        ("2023-01-01", "2023-01-31", ("other", 2023)),
        ("2022-07-01", "2023-12-31", ("other", 2023)),
        ("2023-04-01", "2023-09-30", ("other", 2023)),
        ("2023-04-01", "2023-12-31", ("other", 2023)),
    ],
)
def test_a_calendar_year(start: str, end: str, expected: tuple[str, int]) -> None:
    assert name_of(years("2022-12-31", "2023-12-31"), start, end) == expected


@pytest.mark.rule("PER-5")
@every(
    ("start", "end", "expected"),
    [
        ("2022-07-01", "2023-06-30", ("FY", 2023)),
        ("2022-07-01", "2022-09-30", ("Q1", 2023)),
        ("2022-10-01", "2022-12-31", ("Q2", 2023)),
        ("2022-07-01", "2022-12-31", ("H1", 2023)),
        ("2023-01-01", "2023-06-30", ("H2", 2023)),
        ("2022-07-01", "2023-03-31", ("9M", 2023)),
        ("", "2022-12-31", ("H1", 2023)),
        ("", "2023-06-30", ("FY", 2023)),
    ],
)
def test_a_year_that_ends_in_june(start: str, end: str, expected: tuple[str, int]) -> None:
    assert name_of(years("2022-06-30"), start, end) == expected


@every(
    ("start", "end", "expected"),
    [
        ("2023-01-30", "2024-01-28", ("FY", 2024)),
        ("2023-01-30", "2023-04-30", ("Q1", 2024)),
        ("2023-05-01", "2023-07-30", ("Q2", 2024)),
        ("2023-01-30", "2023-07-30", ("H1", 2024)),
        ("2023-07-31", "2023-10-29", ("Q3", 2024)),
        ("2023-01-30", "2023-10-29", ("9M", 2024)),
        ("2023-10-30", "2024-01-28", ("Q4", 2024)),
        ("", "2024-01-28", ("FY", 2024)),
        ("", "2023-04-30", ("Q1", 2024)),
        ("2016-02-01", "2017-01-29", ("FY", 2017)),  # 52 weeks after a year of 53
    ],
)
def test_a_year_of_weeks_that_ends_on_the_last_sunday_of_january(
    start: str, end: str, expected: tuple[str, int]
) -> None:
    assert name_of(years("2023-01-29", "2016-01-31", days=364), start, end) == expected


@pytest.mark.rule("PER-2")
@every(
    ("days", "months"),
    [
        *((90, 3), (92, 3), (112, 3), (181, 6), (184, 6), (273, 9), (365, 12)),
        *((30, None), (140, None), (548, None)),
    ],
)
def test_a_duration_is_rounded_to_months(days: int, months: int | None) -> None:
    assert months_of(1000, 1000 + days - 1) == months


def test_a_changed_year_end_names_each_period_by_the_years_known_then() -> None:
    issuer = IssuerYears(
        [
            YearEvidence(on("2021-03-01"), on("2020-01-01"), on("2020-12-31")),
            YearEvidence(on("2023-09-01"), on("2022-07-01"), on("2023-06-30")),
        ]
    )
    assert name_of(issuer, "2021-01-01", "2021-06-30", "2021-09-01") == ("H1", 2021)
    assert name_of(issuer, "2023-07-01", "2023-12-31", "2024-03-01") == ("H1", 2024)


def year_evidence(known: str, start: str, end: str, facts: int, declared: str | None = None) -> YearEvidence:
    return YearEvidence(on(known), on(start), on(end), declared, facts)


def test_twelve_months_within_a_year_are_no_year_if_more_figures_disagree() -> None:
    trailing = year_evidence("2021-08-01", "2020-07-01", "2021-06-30", 30)
    for other in (
        year_evidence("2021-08-01", "2021-01-01", "2021-06-30", 50),
        year_evidence("2021-03-01", "2020-01-01", "2020-12-31", 30),
    ):
        issuer = IssuerYears([trailing, other])
        assert name_of(issuer, "2021-04-01", "2021-06-30", "2021-08-01") == ("Q2", 2021)
        assert name_of(issuer, "", "2021-06-30", "2021-08-01") == ("H1", 2021)
        assert name_of(issuer, "", "2020-12-31", "2021-08-01") == ("FY", 2020)


def test_a_second_half_does_not_move_the_year() -> None:
    year = year_evidence("2021-08-01", "2020-07-01", "2021-06-30", 20)
    for second in (
        year_evidence("2021-08-01", "2021-01-01", "2021-06-30", 20),
        year_evidence("2021-08-01", "2021-01-01", "2021-06-30", 30, "H2"),
    ):
        assert name_of(IssuerYears([year, second]), "2021-01-01", "2021-06-30", "2021-08-01") == ("H2", 2021)


def test_a_year_is_doubted_only_from_the_day_of_contrary_evidence() -> None:
    trailing = year_evidence("2021-05-01", "2020-04-01", "2021-03-31", 30)
    issuer = IssuerYears([trailing, year_evidence("2022-03-01", "2021-01-01", "2021-12-31", 60)])
    assert name_of(issuer, "", "2021-03-31", "2021-05-01") == ("FY", 2021)
    assert name_of(issuer, "", "2022-03-31", "2022-05-01") == ("Q1", 2022)


def test_half_years_give_the_year_if_no_full_year_was_reported() -> None:
    issuer = IssuerYears([YearEvidence(on("2021-09-01"), on("2021-01-01"), on("2021-06-30"))])
    assert name_of(issuer, "2021-01-01", "2021-03-31", "2021-09-01") == ("Q1", 2021)
    assert name_of(issuer, "", "2020-12-31", "2021-09-01") == ("FY", 2020)


def test_without_any_evidence_nothing_is_a_full_year() -> None:
    issuer = IssuerYears([])
    assert name_of(issuer, "2021-01-01", "2021-03-31") == ("other", None)
    assert name_of(issuer, "", "2021-12-31") == ("other", None)
    assert name_of(issuer, "2021-01-01", "2021-12-31") == ("TTM", None)


@pytest.mark.rule("PER-3")
@every(
    ("day", "expected"),
    [
        ("2023-09-30", "9M"),
        ("2023-10-01", "other"),  # an opening balance
        ("2023-09-29", "other"),
        ("2023-07-02", "H1"),  # quarters of weeks in a calendar year: a period is reported to end here
        ("2023-06-30", "other"),
        ("2023-07-03", "other"),  # so is one here, but only by a single stray figure
    ],
)
def test_an_instant_belongs_to_a_quarter_on_its_last_day_only(day: str, expected: str) -> None:
    issuer = IssuerYears(
        [
            year_evidence("2023-03-01", "2022-01-01", "2022-12-31", 50),
            year_evidence("2023-08-01", "2023-01-01", "2023-07-02", 40),
            year_evidence("2023-08-01", "2023-01-01", "2023-07-03", 1),
        ]
    )
    assert name_of(issuer, "", day).period_type == expected


@pytest.mark.rule("PER-3")
@every(
    ("year_end", "day", "expected"),
    [
        ("2018-12-31", "2019-01-01", ("other", 2019)),
        ("2018-12-31", "2018-12-30", ("other", 2018)),
        ("2018-12-31", "2018-01-01", ("other", 2018)),
        ("2018-12-31", "2017-12-31", ("FY", 2017)),
        ("2018-12-31", "2015-12-31", ("FY", 2015)),  # the anniversary of a year that has no other evidence
        ("2018-12-31", "2016-01-01", ("other", 2016)),
        ("2023-06-30", "2023-07-01", ("other", 2024)),
        ("2023-02-28", "2020-02-29", ("FY", 2020)),
        ("2020-02-29", "2023-02-28", ("FY", 2023)),
        ("2020-02-29", "2023-03-01", ("other", 2024)),
    ],
)
def test_an_instant_belongs_to_the_year_on_its_last_day_only(
    year_end: str, day: str, expected: tuple[str, int]
) -> None:
    assert name_of(years(year_end), "", day) == expected


def test_the_last_day_of_a_year_of_weeks_moves_with_the_year() -> None:
    issuer = years("2009-01-25", "2010-01-31", days=364)  # of 52 weeks, and (reported here) 52 after a gap
    for day in ("2009-01-25", "2010-01-31", "2011-01-30", "2008-01-27"):
        assert name_of(issuer, "", day).period_type == "FY", day
    for day in ("2009-01-26", "2009-01-31", "2010-02-01", "2011-01-31", "2008-01-31"):
        assert name_of(issuer, "", day).period_type == "other", day


def test_the_balance_sheet_gives_the_year_end_if_a_half_year_begins_a_day_early() -> None:
    half = year_evidence("2009-08-20", "2009-01-25", "2009-07-26", 40)
    closing = YearEvidence(on("2009-08-20"), None, on("2009-01-25"), None, 22)
    opening = YearEvidence(on("2009-08-20"), None, on("2009-01-26"), None, 4)
    issuer = IssuerYears([half, closing, opening])
    assert name_of(issuer, "", "2009-01-25", "2009-08-20") == ("FY", 2009)
    assert name_of(issuer, "", "2009-01-26", "2009-08-20").period_type == "other"
    # If the reported day has balances, no other day is the year-end.
    dated = half._replace(start=on("2009-01-26"))
    many = opening._replace(facts=30)
    assert name_of(IssuerYears([dated, closing, many]), "", "2009-01-26", "2009-08-20").period_type == "other"


def test_the_first_annual_report_after_a_change_of_the_year_is_one() -> None:
    issuer = IssuerYears(
        [
            year_evidence("2017-06-29", "2016-04-01", "2017-03-31", 92),
            year_evidence("2017-11-14", "2017-04-01", "2017-09-30", 33),
            year_evidence("2018-04-02", "2016-01-01", "2016-12-31", 80),
            year_evidence("2018-04-02", "2017-01-01", "2017-12-31", 110),
        ]
    )
    for year in (2016, 2017):
        assert name_of(issuer, f"{year}-01-01", f"{year}-12-31", "2018-04-02") == ("FY", year)
    assert name_of(issuer, "2016-04-01", "2017-03-31", "2017-06-29") == ("FY", 2017)


@every(("start", "end"), [("2013-01-01", "2013-12-31"), ("2012-10-04", "2013-10-03")])
def test_a_stray_date_makes_no_year_of_its_own(start: str, end: str) -> None:
    issuer = IssuerYears(
        [
            year_evidence("2012-12-15", "2011-10-01", "2012-09-30", 85),
            year_evidence("2013-12-15", "2012-10-01", "2013-09-30", 85),
            year_evidence("2013-12-15", start, end, 1),
        ]
    )
    assert name_of(issuer, start, end, "2013-12-15").period_type == "TTM"
    assert name_of(issuer, "2012-10-01", "2013-09-30", "2013-12-15") == ("FY", 2013)


def test_a_period_declared_as_trailing_is_no_year() -> None:
    issuer = IssuerYears(
        [
            year_evidence("2021-05-01", "2020-04-01", "2021-03-31", 30, "TTM"),
            year_evidence("2021-08-01", "2021-01-01", "2021-06-30", 1),
        ]
    )
    assert name_of(issuer, "2020-04-01", "2021-03-31", "2021-05-01") == ("TTM", None)
    assert name_of(issuer, "", "2020-12-31", "2021-08-01") == ("FY", 2020)


def test_a_quarter_that_opens_with_a_balance_sheet_is_the_first_of_its_year() -> None:
    ends = ("2010-06-30", "2010-09-30")
    balances = [YearEvidence(on("2010-11-02"), None, on(end), facts=30) for end in ends]
    issuer = IssuerYears([*balances, year_evidence("2010-11-02", "2010-07-01", "2010-09-30", 35)])
    assert name_of(issuer, "2010-07-01", "2010-09-30", "2010-11-02") == ("Q1", 2011)
    assert name_of(issuer, "", "2010-09-30", "2010-11-02") == ("Q1", 2011)
    assert name_of(issuer, "", "2010-06-30", "2010-11-02") == ("FY", 2010)


@pytest.mark.rule("PER-3")
def test_the_balance_sheet_that_a_later_quarter_compares_with_is_of_the_year_end() -> None:
    known, quarter = "2011-08-12", ("2011-04-01", "2011-06-30")
    counts = {"2011-06-30": 25, "2011-03-31": 6, "2010-12-31": 25, "2009-12-31": 2}
    balances = [YearEvidence(on(known), None, on(end), facts=facts) for end, facts in counts.items()]
    issuer = IssuerYears(
        [*balances, year_evidence(known, *quarter, 15), year_evidence(known, "2010-04-01", "2010-06-30", 15)]
    )
    assert name_of(issuer, "", "2010-12-31", known) == ("FY", 2010)
    assert name_of(issuer, *quarter, known) == ("Q2", 2011)
    assert name_of(issuer, "", "2011-06-30", known) == ("H1", 2011)


evidence = st.builds(
    lambda known, end, days, declared: YearEvidence(
        known.toordinal(), None if days is None else max(1, end.toordinal() - days), end.toordinal(), declared
    ),
    st.dates(),
    st.dates(),
    st.sampled_from((None, 90, 181, 272, 364, 370)),
    st.sampled_from((None, *PERIOD_TYPES)),
)


@given(st.lists(evidence, max_size=6), evidence)
def test_any_day_of_the_calendar_gets_some_name(reported: list[YearEvidence], period_: YearEvidence) -> None:
    period = IssuerYears(reported).name(period_.start, period_.end, period_.known)
    assert period.period_type in PERIOD_TYPES
    near = date.fromordinal(period_.end).year
    assert period.fiscal_year is None or near <= period.fiscal_year <= near + 1


@example([YearEvidence(known=730120, start=None, end=221342, declared="FY")], -1, date(2000, 1, 1))
@given(st.lists(evidence, max_size=3), st.integers(-40, 40), st.dates())
def test_no_day_far_from_every_anniversary_is_a_year_end(
    reported: list[YearEvidence], years_on: int, as_of: date
) -> None:
    issuer = IssuerYears(reported)
    for one in reported:
        for days_on in range(-15, 16):
            day = round(one.end + 365.25 * years_on) + days_on
            if 0 < day <= date.max.toordinal():
                name = issuer.name(None, day, as_of.toordinal())
                assert issuer.can_end_a_year(day) or name.period_type != "FY"


@given(st.lists(evidence, max_size=6), evidence, st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_does_not_matter(
    reported: list[YearEvidence], period: YearEvidence, chance: object
) -> None:
    shuffled = chance.sample(reported, len(reported))  # type: ignore[attr-defined]
    question = (period.start, period.end, period.known)
    assert IssuerYears(shuffled).name(*question) == IssuerYears(reported).name(*question)


@pytest.mark.rule("PER-8")
@given(st.lists(evidence, min_size=1, max_size=6))
def test_a_period_has_one_name_whenever_its_figures_became_known(reported: list[YearEvidence]) -> None:
    issuer = IssuerYears(reported)
    for e in reported:
        assert len({issuer.name(e.start, e.end, other.known) for other in reported}) == 1
