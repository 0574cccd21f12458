"""Persistence: for how many years in a row an issuer made a profit, and grew."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Annotated, Literal

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import unchanged_since
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList, YearOnDay
from sankofa.derive.metrics.lines import Figure
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import issuer_panel, year_fields, years_back
from sankofa.model.rows import doc


class IssuerPersistenceRow(PanelRow, frozen=True, kw_only=True):
    """How steadily one issuer earned and grew up to one full year."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null where unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    years_held: Annotated[int, doc("Full years held without a gap up to this one.", ge=1)]
    profit_years: Annotated[
        int | None,
        doc("Consecutive years with a profit, including this one; 0 after a loss, null where unknown."),
    ]
    revenue_growth_years: Annotated[
        int | None, doc("Consecutive years of revenue growth, including this one; null where unknown.")
    ]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[
        Literal["signals-v1/issuer-persistence"],
        doc("Name of the method; /methodology/ explains it."),
    ] = "signals-v1/issuer-persistence"


_YearResult = tuple[bool, list[Figure], int]
"""Whether a year was a good one, the figures that say so, and the day since which they are the same."""


@issuer_panel(
    "issuer-persistence", access="licensed", row=IssuerPersistenceRow, order=("service_id", "-period_end")
)
def issuer_persistence(issuer: Issuer) -> Iterator[Observation]:
    """For how many full years in a row an issuer made a profit, and for how many its revenue grew.

    - profit_years = full years in a row, back from this one, with a profit above zero. 0 where this year has
      none; null where its profit is not reported.
    - revenue_growth_years = full years in a row, back from this one, with revenue above that of the year
      before in the same currency and by the same route. 0 where it did not grow; null where one of the two is
      not reported.
    - years_held = full years held without a gap, back from this one. A count that reaches the oldest of them
      may be longer than the history that is held.

    A year of which a figure is not reported ends a count. Figures as they stand today; `available_at` says
    when the last that is used became public. A year of which neither is told has no row. Ordered by
    service_id, then period_end descending.
    """
    years = issuer.years
    for year in reversed(years.published):
        yield from _observed(issuer, years, year)


def _observed(issuer: Issuer, years: IssuerYearList, year: FullYear) -> Iterator[Observation]:
    consecutive = list(years_back(years, year))
    profit, profit_figures, profit_since = _in_a_row(_result(years, one, _profit) for one in consecutive)
    growth, growth_figures, growth_since = _in_a_row(_result(years, one, _growth) for one in consecutive)
    figures = profit_figures + growth_figures
    if not figures:
        return
    fields, sources = year_fields(issuer, year, figures)
    row = IssuerPersistenceRow(
        **fields, years_held=len(consecutive), profit_years=profit, revenue_growth_years=growth
    )
    yield Observation(row, year.end, max(profit_since, growth_since), sources)


def _in_a_row(years: Iterable[_YearResult | None]) -> tuple[int | None, list[Figure], int]:
    """How many good years there are from the first on, their figures, and since when they are the same.

    None where the first year is not told.
    """
    count: int | None = None
    figures: list[Figure] = []
    since = 0
    for year in years:
        if year is None:
            break
        good, used, unchanged = year
        figures += used
        since = max(since, unchanged)
        count = (count or 0) + good
        if not good:
            break
    return count, figures, since


def _result(
    years: IssuerYearList, year: FullYear, read: Callable[[YearOnDay], tuple[bool, list[Figure]] | None]
) -> _YearResult | None:
    now = years.on(year)
    result = read(now) if now else None
    if result is None:
        return None
    good, figures = result

    def same(day: int) -> bool:
        then = years.on(year, day)
        known = read(then) if then else None
        return known is not None and all(a.same_as(b) for a, b in zip(figures, known[1], strict=True))

    return good, figures, unchanged_since(years.days(year), same)


def _profit(year: YearOnDay) -> tuple[bool, list[Figure]] | None:
    profit = year.lines.figure("profit")
    return (profit.value > 0, [profit]) if profit else None


def _growth(year: YearOnDay) -> tuple[bool, list[Figure]] | None:
    pair = year.both("revenue")
    return (pair[0].value > pair[1].value, list(pair)) if pair else None
