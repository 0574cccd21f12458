"""An issuer's full years.

A full year is identified by its last day. It counts as published on the first day, from its end on, on which
one of its full-year facts was reported. Its figures are those of `/v1/fundamentals` with `period_type=FY`, in
the latest vintage known on a day (`period_views`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cached_property, lru_cache
from typing import Any

from sankofa.derive.metrics.contract import ANNIVERSARY_TOLERANCE
from sankofa.derive.metrics.lines import Figure, Lines
from sankofa.derive.metrics.period_views import History, PeriodView, ReportedFigure, StatementBasis
from sankofa.ledger.reports import Reports
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import table
from sankofa.model.periods import IssuerYears, YearEvidence, months_of


class YearEnds:
    """The year-ends of one issuer, from all the evidence for them."""

    def __init__(self, evidence: Iterable[YearEvidence]) -> None:
        evidence = list(evidence)
        self.names = IssuerYears(evidence)
        self._reported: defaultdict[tuple[int | None, int], set[int]] = defaultdict(set)
        for report in evidence:
            start, end = report.start, report.end
            if start is None or months_of(start, end) == 12:
                self._reported[start, end].add(report.known)
        self._full: dict[tuple[int | None, int], set[int]] = {}

    def full_on(self, start: str, end: str) -> set[int]:
        """Days on which a report had a period that, as known then, is or ends a full year.

        The period is in the ledger's form: the start of an instant is empty.
        """
        period = (ordinal(start) if start else None, ordinal(end))
        days = self._full.get(period)
        if days is None:
            possible = start or self.names.can_end_a_year(period[1])
            reported = self._reported.get(period, ()) if possible else ()
            days = {known for known in reported if self.names.name_by(*period, known).period_type == "FY"}
            self._full[period] = days
        return days

    def is_full_year(self, start: str, end: str) -> bool:
        """Whether a period is, or ends, a full year, judging by its served name."""
        first = ordinal(start) if start else None
        return self.names.name(first, ordinal(end), 0).period_type == "FY"


class FullYear:
    """A full year. Its views are computed on first use, because many years are never used."""

    def __init__(
        self, end: int, published: int, lasting_from: int, reported: Sequence[ReportedFigure]
    ) -> None:
        self.end = end
        self.published = published
        """FOREVER if only balances of its last day were reported, as opening balances of the next year."""
        self.lasting_from = lasting_from
        """The day on which any figure of the whole year, not only of its last day, was reported."""
        self._reported = reported

    @cached_property
    def history(self) -> History:
        return History(self.end, self._reported)


class YearOnDay:
    """A full year and the one before it, as known on a day, both in one standard and currency."""

    def __init__(self, year: PeriodView, before: PeriodView | None, basis: StatementBasis) -> None:
        self.year = year
        self.before = before
        self.basis = basis
        self.lines = year.lines(basis)
        self.metrics: Any = None
        """The metrics computed from it (`derive.metrics.derive`)."""

    @cached_property
    def lines_before(self) -> Lines | None:
        return self.before.lines(self.basis) if self.before else None

    def both(self, item: str) -> tuple[Figure, Figure] | None:
        """The figures of an item for the two years by the same route: the first that both have."""
        if self.lines_before is None:
            return None
        return by_one_route(self.lines, self.lines_before, item)


def by_one_route(now: Lines, then: Lines, item: str) -> tuple[Figure, Figure] | None:
    """The figures of an item in two years by the first route that both have."""
    first, other = now.figure(item), then.figure(item)
    if first is None or other is None:
        return None
    if first.route == other.route:
        return first, other
    earlier = {figure.route: figure for figure in then.figures(item)}
    return next(((one, earlier[one.route]) for one in now.figures(item) if one.route in earlier), None)


class IssuerYearList:
    """The full years of an issuer, oldest first, as known on a day."""

    def __init__(self, years: Sequence[FullYear], openings: Sequence[FullYear] = ()) -> None:
        self.published = years
        self._every = [*years, *openings]
        self._before: dict[tuple[int, int], FullYear | None] = {}
        self._on: dict[tuple[int, int, StatementBasis | None], YearOnDay | None] = {}
        self._same: dict[tuple[int, int, StatementBasis], YearOnDay] = {}
        self._days: dict[int, list[int]] = {}

    def before(self, year: FullYear, day: int = FOREVER) -> FullYear | None:
        """The full year that ended one year earlier, among the years published by a day.

        If there is none: that day's balances, if a later report repeats them as of a year-end.
        """
        if (year.end, day) not in self._before:
            near = [one for one in self._every if _is_year_before(one, year)]
            known = [one for one in near if one.published <= day]
            balances = (one for one in near if one.published > day and one.history.on(day))
            self._before[year.end, day] = _closest(known, year, day) or _closest(balances, year, day)
        return self._before[year.end, day]

    def on(self, year: FullYear, day: int = FOREVER, basis: StatementBasis | None = None) -> YearOnDay | None:
        """A year as known on a day, with the year before it; None if nothing was known.

        Uses that day's standard and currency by default.
        """
        key = (year.end, day, basis)
        if key not in self._on:
            self._on[key] = None
            if view := year.history.on(day):
                earlier = self.before(year, day)
                before = earlier.history.on(day) if earlier else None
                same = (id(view), id(before), basis or view.basis)
                if same not in self._same:
                    self._same[same] = YearOnDay(view, before, same[2])
                self._on[key] = self._same[same]
        return self._on[key]

    def days(self, year: FullYear) -> list[int]:
        """Days on which the known figures of a year or of the year before may have changed."""
        if year.end not in self._days:
            days = {year.published, *year.history.days}
            for one in self._every:
                if _is_year_before(one, year):
                    days.update((one.published, one.lasting_from, *one.history.days))
            self._days[year.end] = sorted(day for day in days if year.published <= day < FOREVER)
        return self._days[year.end]

    def days_with_earlier(self, year: FullYear) -> list[int]:
        """Like `days`, with all earlier years."""
        days = {day for one in self.published if one.end <= year.end for day in self.days(one)}
        return sorted(day for day in days if day >= year.published)

    def back(self, year: FullYear, day: int) -> Iterator[FullYear]:
        """A year and the years before it without a gap, newest first, as known on a day."""
        earlier: FullYear | None = year
        while earlier is not None and earlier.lasting_from <= day:
            yield earlier
            earlier = self.before(earlier, day)


def full_years(reports: Reports, ends: YearEnds) -> IssuerYearList:
    used = table().concepts
    published: dict[int, int] = {}
    lasting: dict[int, int] = {}
    reported: defaultdict[int, list[ReportedFigure]] = defaultdict(list)
    periods: dict[tuple[str, str], tuple[set[int], bool]] = {}
    for (concept, unit, period_end, period_start), same_fact in reports.items():
        period = period_start, period_end
        if period not in periods:
            full_on = ends.full_on(*period)
            periods[period] = full_on, bool(full_on) and ends.is_full_year(*period)
        full_on, is_full_year = periods[period]
        if not full_on:
            continue
        end = ordinal(period_end)
        if is_full_year:
            days = [r.available for r in same_fact if r.value is not None and r.available in full_on]
            if first := min((day for day in days if day >= end), default=0):
                published[end] = min(first, published.get(end, FOREVER))
                if period_start:
                    lasting[end] = min(first, lasting.get(end, FOREVER))
        if concept in used:
            reported[end].append(ReportedFigure(concept, unit, period_start, same_fact, full_on))
    years = [
        FullYear(end, published[end], lasting.get(end, FOREVER), reported[end]) for end in sorted(published)
    ]
    openings = [FullYear(end, FOREVER, FOREVER, own) for end, own in reported.items() if end not in published]
    return IssuerYearList(years, openings)


def _is_year_before(one: FullYear, year: FullYear) -> bool:
    """Whether a year ended one year before another, within the tolerance."""
    return abs(one.end - _year_earlier(year.end)) <= ANNIVERSARY_TOLERANCE


def _closest(years: Iterable[FullYear], year: FullYear, day: int) -> FullYear | None:
    """The year whose end is closest to one year before the end of another."""
    ended = _year_earlier(year.end)
    return min(years, key=lambda y: (y.lasting_from > day, abs(y.end - ended), y.end), default=None)


@lru_cache(maxsize=65536)
def _year_earlier(end: int) -> int:
    day = date.fromordinal(end)
    last = 28 if (day.month, day.day) == (2, 29) else day.day
    return date(day.year - 1, day.month, last).toordinal()
