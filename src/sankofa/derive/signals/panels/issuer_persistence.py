"""Persistence: for how many years in a row an issuer made a profit, and grew."""

from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from typing import Annotated, Literal, NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import MetricYears, stretches
from sankofa.derive.metrics.full_years import FullYear, YearOnDay
from sankofa.derive.metrics.lines import Figure
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import issuer_panel, year_fields
from sankofa.model.rows import doc


class IssuerPersistenceRow(PanelRow, frozen=True, kw_only=True):
    """How steadily one issuer earned and grew up to one full year."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    years_held: Annotated[int, doc("Full years held without a gap up to this one.", ge=1)]
    profit_years: Annotated[
        int | None,
        doc("Consecutive years with a profit, including this one; 0 after a loss, null if unknown."),
    ]
    revenue_growth_years: Annotated[
        int | None, doc("Consecutive years of revenue growth, including this one; null if unknown.")
    ]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[
        Literal["signals-v1/issuer-persistence"],
        doc("Name of the method; /methodology/ explains it."),
    ] = "signals-v1/issuer-persistence"


_YearResult = tuple[bool, list[Figure]]
"""Whether a year was a good one, and the figures that say so."""


class _Known(NamedTuple):
    """The counts up to a year and their figures, as known on a day."""

    years_held: int
    profit: int | None
    growth: int | None
    figures: list[Figure]

    def same_as(self, other: "_Known") -> bool:
        return (self[:3], len(self.figures)) == (other[:3], len(other.figures)) and all(
            a.same_as(b) for a, b in zip(self.figures, other.figures, strict=True)
        )


@issuer_panel(
    "issuer-persistence", access="licensed", row=IssuerPersistenceRow, order=("service_id", "-period_end")
)
def issuer_persistence(issuer: Issuer) -> Iterator[Observation]:
    """For how many full years in a row an issuer made a profit, and for how many its revenue grew.

    - profit_years = full years in a row, back from this one, with a profit above zero. 0 if this year has
      none; null if its profit is not reported.
    - revenue_growth_years = full years in a row, back from this one, with revenue above that of the year
      before in the same currency and by the same route. 0 if it did not grow; null if one of the two is
      not reported.
    - years_held = full years held without a gap, back from this one. A count that reaches the oldest of them
      may be longer than the history that is held.

    A year of which a figure is not reported ends a count. Figures as they stand today, with `basis=as_known`
    as known that day; `available_at` says when the last that is used became public. A year of which neither
    is told has no row. Ordered by service_id, then period_end descending.
    """
    known = MetricYears(issuer.years)
    for year in reversed(issuer.years.published):
        days = known.days_with_earlier(year)
        for first, until, now in stretches(days, partial(_known, known, year), _Known.same_as):
            if now.figures:
                fields, sources = year_fields(issuer, year, now.figures)
                row = IssuerPersistenceRow(
                    **fields,
                    years_held=now.years_held,
                    profit_years=now.profit,
                    revenue_growth_years=now.growth,
                )
                yield Observation(row, year.end, first, sources, until)


def _known(known: MetricYears, year: FullYear, day: int) -> _Known:
    consecutive = list(known.back(year, day))
    views = [known.years.on(one, day) for one in consecutive]
    profit, profit_figures = _in_a_row(_profit(view) if view else None for view in views)
    growth, growth_figures = _in_a_row(_growth(view) if view else None for view in views)
    return _Known(len(consecutive), profit, growth, profit_figures + growth_figures)


def _in_a_row(years: Iterable[_YearResult | None]) -> tuple[int | None, list[Figure]]:
    """How many good years there are in a row, and their figures; None if that is not known."""
    count: int | None = None
    figures: list[Figure] = []
    for year in years:
        if year is None:
            break
        good, used = year
        figures += used
        count = (count or 0) + good
        if not good:
            break
    return count, figures


def _profit(year: YearOnDay) -> _YearResult | None:
    profit = year.lines.figure("profit")
    return (profit.value > 0, [profit]) if profit else None


def _growth(year: YearOnDay) -> _YearResult | None:
    pair = year.both("revenue")
    return (pair[0].value > pair[1].value, list(pair)) if pair else None
