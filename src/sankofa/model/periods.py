"""The name of a period, derived from its dates and the issuer's own year (contract: PER-1, PER-2).

A filing's fy and fp describe the filing, not the figure, so they are never read. The issuer's year comes from
the full-year durations it reported, as far as was known on a day (`FullYears`). Some issuers also report the
twelve months to each quarter's end, and now and then a filing misdates a figure: what else was known by then
tells such trailing figures from years. A period has one name in every answer: the name given by the years
evidenced on the day of its first figure. So a past view stays reproducible. If nothing public by then shows
its year, the period is `other`. Twelve months are a full year only if they end on an evidenced year-end.
"""

import calendar
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import chain, groupby, pairwise
from typing import Final, NamedTuple

YEAR: Final = 365.25
TRAILING: Final = "TTM"
ROUNDED_WITHIN: Final = 16
"""Days by which a date rounded to a month's end can miss the real one."""

# Days a duration may last to be "about" that many months: 52/53-week years, and the
# 12/12/12/16-week quarters some retailers keep.
_MONTHS = {
    days: months
    for low, high, months in ((75, 118, 3), (160, 203, 6), (245, 292, 9), (345, 385, 12))
    for days in range(low, high + 1)
}
_OVERLAP = 25
"""Days by which two periods must overlap to count as the same period."""
_SAME_END = 7
"""Days from one year-end within which two others are less than half a month apart."""
DWARFED: Final = 4
"""A year-end is discarded if a year-end close to it has this many times more figures."""

Year = tuple[int | None, int]
"""The first and the last day of a financial year; only the last where the first is not reported."""


class YearEvidence(NamedTuple):
    """One reported duration or declared period, and the day it became known, as ordinals."""

    known: int
    start: int | None
    end: int
    declared: str | None = None
    facts: int = 1
    """Number of its figures that became known that day."""
    rounded: bool = False
    """Whether its source rounds dates to month ends."""


class _YearEndClaim(NamedTuple):
    """A reported duration, how many months it lasts, and the year-end that follows from it."""

    evidence: YearEvidence
    months: int
    year_end: int


def months_of(start: int, end: int) -> int | None:
    """About how many months a duration lasts: 3, 6, 9, 12, or None."""
    return _MONTHS.get(end - start + 1)


class KnownYears:
    """Years in the order they became known, each once."""

    def __init__(self, years: Iterable[tuple[int, int | None, int]]) -> None:
        first_known: dict[Year, int] = {}
        for known, start, end in years:
            first_known.setdefault((start, end), known)
        self._days = list(first_known.values())
        self._years = list(first_known)

    @property
    def ends(self) -> Iterator[int]:
        """Every day on which a year ends, or before which one begins."""
        for start, end in self._years:
            yield end
            if start:
                yield start - 1

    def known_by(self, day: int) -> list[Year]:
        return self._years[: bisect_right(self._days, day)]


class FullYears(KnownYears):
    """Full years, without trailing twelve months that end on another day than the financial year.

    Other durations known by then tell the two apart. The year ends on the day with the most figures. Full
    years, half-years and nine months (which begin with the year) are counted, each year-end by its best
    duration; on a tie the first reported year-end wins. Twelve months with more figures than the other year
    are kept: they are an annual report after a change of the year-end. A stray year, with a fraction of the
    figures of another within a year or a few days of it, is dropped.

    A year known only by rounded dates is left out if an exact year-end is close to it: they are one year.
    Rounding is a fault of the source, not of the filing, so the exact date may come later here.
    """

    def __init__(self, durations: Sequence[tuple[YearEvidence, int]]) -> None:
        full = [e for e, months in durations if months == 12 and e.declared != TRAILING]
        super().__init__((e.known, e.start, e.end) for e in full)
        self._switch_days = _doubts(self._years, durations)
        self._known_by: dict[int, list[Year]] = {}
        self.real_ends: list[int] = []
        """Year-ends with exact dates, in order; filled only where other year-ends have rounded dates."""
        if any(e.rounded for e, _ in durations):
            self._leave_out_rounded({(e.start, e.end) for e in full if not e.rounded})

    def known_by(self, day: int) -> list[Year]:
        """The full years known, and not doubted, on a day."""
        years = self._known_by.get(day)
        if years is None:
            years = self._known_by[day] = [
                year for year in super().known_by(day) if not self._doubted(year, day)
            ]
        return years

    def _doubted(self, year: Year, day: int) -> bool:
        switch_days = self._switch_days.get(year)
        return bool(switch_days) and bisect_right(switch_days or (), day) % 2 == 1

    def _leave_out_rounded(self, real: set[Year]) -> None:
        days = zip(self._years, self._days, strict=True)
        sure = {year for year, day in days if year in real and not self._doubted(year, day)}
        ends = sorted({end for _, end in sure} | {start - 1 for start, _ in sure if start})
        self.real_ends = ends
        stays = [year in real or not close_to(ends, year[1]) for year in self._years]
        self._days = [day for day, one_stays in zip(self._days, stays, strict=True) if one_stays]
        self._years = [year for year, one_stays in zip(self._years, stays, strict=True) if one_stays]


def close_to(ends: Sequence[int], day: int) -> bool:
    """Whether one of the sorted ends is close enough to the day to be its rounded date."""
    at = bisect_left(ends, day - ROUNDED_WITHIN)
    near = ends[at : bisect_right(ends, day + ROUNDED_WITHIN)]
    return bool(near) and day not in near


def _doubts(years: Sequence[Year], durations: Sequence[tuple[YearEvidence, int]]) -> dict[Year, list[int]]:
    """For each full year ever doubted: the days on which the doubt began, ended, began again, and so on."""
    claims = [
        _YearEndClaim(e, months, e.end if months == 12 else (e.start or 0) - 1)
        for e, months in durations
        if e.declared != TRAILING and (months == 12 or (months in (6, 9) and e.declared != "H2"))
    ]
    if _agree([claim.year_end for claim in claims]) and not _crowded(sorted({end for _, end in years})):
        return {}
    switch_days_by_year = {(start, end): _switch_days(start or 0, end, claims) for start, end in years}
    return {year: switch_days for year, switch_days in switch_days_by_year.items() if switch_days}


def _agree(year_ends: Sequence[int]) -> bool:
    """Whether all durations agree on about one day for the year-end, as for nearly every issuer."""
    return all(
        abs((year_end - year_ends[0] + YEAR / 2) % YEAR - YEAR / 2) <= _SAME_END for year_end in year_ends
    )


def _crowded(ends: Sequence[int]) -> bool:
    """Whether two sorted year-ends are too close to belong to two years."""
    return any(after - before <= ROUNDED_WITHIN for before, after in pairwise(ends))


def _switch_days(start: int, end: int, claims: Sequence[_YearEndClaim]) -> list[int]:
    """The days on which doubt about one full year began, ended, began again, and so on."""
    tally = _Tally(start, end)
    switch_days: list[int] = []
    for known, of_a_day in groupby(
        [claim for claim in claims if tally.concerns(claim)], key=lambda claim: claim[0].known
    ):
        for claim in of_a_day:
            tally.count(claim)
        if tally.doubted() != len(switch_days) % 2:
            switch_days.append(known)
    return switch_days


class _Tally:
    """Counts the figures known so far for and against one full year."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._figures: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """Figures of overlapping periods: by months between their year-end and this one, then by duration."""
        self._first_claimed: dict[int, int] = {}
        self._around: defaultdict[int, int] = defaultdict(int)
        """Figures of full years within a year of this one, by months between the two year-ends."""
        self._on_this_day = self._near = 0
        """Figures of full years that end on this day, and on another day too close to it."""

    def concerns(self, claim: _YearEndClaim) -> bool:
        """Whether a duration overlaps the year or, for a full year, lies within a year of it."""
        e = claim.evidence
        reach = -YEAR if claim.months == 12 else _OVERLAP
        return e.end > self._start + reach and (e.start or 0) < self._end - reach

    def count(self, claim: _YearEndClaim) -> None:
        e, months, year_end = claim
        months_away = round((year_end - self._end) / (YEAR / 12)) % 12
        if months == 12:
            self._around[months_away] = max(self._around[months_away], e.facts)
            if e.end == self._end:
                self._on_this_day = max(self._on_this_day, e.facts)
            elif abs(e.end - self._end) <= ROUNDED_WITHIN and not e.rounded:
                self._near = max(self._near, e.facts)
        if e.end > self._start + _OVERLAP and (e.start or 0) < self._end - _OVERLAP:
            facts_by_months = self._figures[months_away]
            facts_by_months[months] = max(facts_by_months.get(months, 0), e.facts)
            self._first_claimed.setdefault(months_away, e.known)

    def doubted(self) -> bool:
        if not self._on_this_day:
            return False
        elsewhere = max([facts for months_away, facts in self._around.items() if months_away], default=0)
        if self._on_this_day * DWARFED <= self._near or self._around[0] * DWARFED <= elsewhere:
            return True
        claims = {
            months_after: (sum(by_months.values()), -self._first_claimed[months_after])
            for months_after, by_months in self._figures.items()
        }
        rival = max(claims, key=claims.__getitem__, default=0)
        if not rival:
            return False
        years_there = self._figures[rival].get(12)
        return years_there is None or self._around[0] <= years_there


QUARTER: Final = YEAR / 4
PERIOD_TYPES: Final = ("FY", "H1", "H2", "Q1", "Q2", "Q3", "Q4", "9M", "other", TRAILING)
"""Editions store a period type as its index in this tuple: add new ones at the end."""

_INSTANT_TOLERANCE = 10
_DURATION_TOLERANCE = 25
_BALANCE_SHEET = 5
"""Least number of figures for a day that is not a stray."""
_OF_THREE = {0: "Q4", 1: "Q1", 2: "Q2", 3: "Q3"}
_OF_SIX = {0: "H2", 2: "H1"}
_OF_NINE = {3: "9M"}
_OF_INSTANT = {1: "Q1", 2: "H1", 3: "9M"}
_HINT_QUARTERS = {"FY": 0, "Q4": 0, "H2": 0, "Q1": 1, "Q2": 2, "H1": 2, "Q3": 3, "9M": 3}


class Period(NamedTuple):
    """How a period is labelled in served rows."""

    period_type: str
    fiscal_year: int | None


class IssuerYears:
    """The financial years of one issuer, as evidence for naming its periods."""

    def __init__(self, evidence: Iterable[YearEvidence]) -> None:
        durations = set()
        self._instants: defaultdict[int, list[YearEvidence]] = defaultdict(list)
        self._lasting: defaultdict[int, list[YearEvidence]] = defaultdict(list)
        self._first_reported: dict[tuple[int | None, int], tuple[int, bool]] = {}
        """By start and end of a period: the day of its first figure, and whether its dates are rounded."""
        for e in evidence:
            known = (e.known, e.rounded)
            self._first_reported[e.start, e.end] = min(
                known, self._first_reported.get((e.start, e.end), known)
            )
            if e.start or e.declared:
                durations.add(e)
            if not e.start:
                self._instants[e.end].append(e)
            elif months_of(e.start, e.end):
                self._lasting[e.end].append(e)
        rows = sorted(durations, key=lambda e: (e.known, e.end, e.start or 0, e.declared or "", e.facts))
        years = FullYears([(e, months) for e in rows if e.start and (months := months_of(e.start, e.end))])
        # Without a full year: the template's own declaration, then half-years and nine months, which begin
        # with the year, then the balance sheets that quarters are compared with.
        declared = [
            (e.known, None, max(1, round(e.end - _HINT_QUARTERS[e.declared] * QUARTER)))
            for e in rows
            if e.declared in _HINT_QUARTERS
        ]
        opening = [(e, e.start - 1) for e in rows if e.start and months_of(e.start, e.end) in (6, 9)]
        sheets: defaultdict[int, list[YearEvidence]] = defaultdict(list)
        for e in chain.from_iterable(self._instants.values()):
            if e.facts >= _BALANCE_SHEET:
                sheets[e.known].append(e)
        opened = [
            (e, eve)
            for e in rows
            if e.start and (eve := _balance_sheet_before(e.start, e.end, sheets.get(e.known, ())))
        ]
        cumulative, compared = (
            KnownYears((e.known, None, max(1, eve)) for e, eve in _exact_ones(kind, years))
            for kind in (opening, opened)
        )
        self._evidence = (years, KnownYears(declared), cumulative, compared)
        ends = {int(end % YEAR) for kind in self._evidence for end in kind.ends}
        reach = range(-_INSTANT_TOLERANCE - 2, _INSTANT_TOLERANCE + 3)  # two more, for rounding in the year
        near = {int((end + step) % YEAR) for end in ends for step in reach}
        # Day 365 lasts a quarter of a day: whole steps may pass it over.
        self._anniversaries = near | {365} if near & {0, 364} else near
        self._periods: dict[tuple[int | None, int, int, bool], Period] = {}
        self._known: dict[int, _YearEnds] = {}

    def can_end_a_year(self, day: int) -> bool:
        """Whether an instant is near the anniversary of any evidenced year-end. No other instant is an FY."""
        return int(day % YEAR) in self._anniversaries

    def name(self, start: int | None, end: int, known: int, *, rounded: bool = False) -> Period:
        """The period_type and fiscal_year of a period, the same for all its figures.

        The evidence of the day of its first figure decides. If no day evidences the period, the evidence
        of `known` decides; `rounded` says whether its dates are rounded to month ends.
        """
        known, rounded = self._first_reported.get((start, end), (known, rounded))
        return self.name_by(start, end, known, rounded=rounded)

    def name_by(self, start: int | None, end: int, known: int, *, rounded: bool = False) -> Period:
        """The name of a period by one day's evidence alone."""
        key = (start, end, known, rounded)
        period = self._periods.get(key)
        if period is None:
            period = self._periods[key] = self._name(*key)
        return period

    def _year_ends_known_on(self, known: int) -> "_YearEnds":
        """The year-ends by the best evidence known on a day."""
        year_ends = self._known.get(known)
        if year_ends is None:
            best = (years for kind in self._evidence if (years := kind.known_by(known)))
            year_ends = self._known[known] = _YearEnds(next(best, []))
        return year_ends

    def _name(self, start: int | None, end: int, known: int, rounded: bool) -> Period:
        months = None if start is None else months_of(start, end)
        year_ends = self._year_ends_known_on(known)
        if not year_ends.years:
            return Period(TRAILING if months == 12 else "other", None)
        if (start is None or months == 12) and year_ends.ends_a_year(end):
            return Period("FY", date.fromordinal(end).year)
        if start is None and year_ends.may_end_a_year(end) and self._is_balance_sheet(end, known, year_ends):
            return Period("FY", date.fromordinal(end).year)
        if start is None:
            quarter = year_ends.quarter(end, _INSTANT_TOLERANCE)
            ended = quarter and self._ends_a_quarter(end, known, year_ends)
            period_type = _OF_INSTANT[quarter] if quarter and ended else "other"
            return Period(period_type, year_ends.year_of_instant(end, rounded=rounded))
        if months == 12:
            return Period(TRAILING, year_ends.year_of(start, end))
        quarter = year_ends.quarter(end, _DURATION_TOLERANCE, start)
        names = {3: _OF_THREE, 6: _OF_SIX, 9: _OF_NINE}.get(months or 0, {})
        return Period(
            "other" if quarter is None else names.get(quarter, "other"), year_ends.year_of(start, end)
        )

    def _is_balance_sheet(self, day: int, known: int, year_ends: "_YearEnds") -> bool:
        """Whether the balances near a year-end, which may itself be misdated, belong to this day."""
        count = _most(self._instants.get(day), known)
        if count < _BALANCE_SHEET:
            return False
        around = range(day - _INSTANT_TOLERANCE, day + _INSTANT_TOLERANCE + 1)
        figures = {
            other: other_count
            for other in around
            if other != day and (other_count := _most(self._instants.get(other), known))
        }
        return not any(
            year_ends.ends_a_year(other) or (other_count, day) > (count, other)
            for other, other_count in figures.items()
        )

    def _ends_a_quarter(self, day: int, known: int, year_ends: "_YearEnds") -> bool:
        """Whether a day close to a quarter's end is its last: a reported period ends on it.

        If none ends close to it, the day must be a whole number of quarters from a year-end.
        """
        around = range(day - _INSTANT_TOLERANCE, day + _INSTANT_TOLERANCE + 1)
        ends = {end: figures for end in around if (figures := _most(self._lasting.get(end), known))}
        if ends:
            return ends.get(day, 0) * DWARFED > max(ends.values())
        return year_ends.quarters_from_a_year_end(day)


def _most(evidence: list[YearEvidence] | None, known: int) -> int:
    """The most figures on any one day up to `known`."""
    return max([e.facts for e in evidence if e.known <= known], default=0) if evidence else 0


def _balance_sheet_before(start: int, end: int, sheets: Iterable[YearEvidence]) -> int | None:
    """The year-end whose balance sheet the report of a quarter compares with, the one of most figures.

    A quarterly report compares with that of the last year-end: three, six or nine months before.
    """
    if months_of(start, end) != 3:
        return None
    compared = [(e.facts, e.end) for e in sheets if months_of(e.end + 1, end) in (3, 6, 9)]
    return max(compared)[1] if compared else None


def _exact_ones(eves: list[tuple[YearEvidence, int]], years: FullYears) -> list[tuple[YearEvidence, int]]:
    """Periods, each with the year-end before it, without rounded ones close to an exact one."""
    if not any(e.rounded for e, _ in eves):
        return eves
    real = sorted({*years.real_ends, *(eve for e, eve in eves if not e.rounded)})
    return [(e, eve) for e, eve in eves if not (e.rounded and close_to(real, eve))]


class _YearEnds:
    """An issuer's year-ends as known on a day."""

    def __init__(self, years: list[Year]) -> None:
        self.years = years
        self._starts = {end: start for start, end in reversed(years)}
        self._closing = sorted(self._starts)
        self._reported = [end for end in self._closing if self._starts[end]]
        # The day before a year is a year-end too, unless a year is known to end a few days from it.
        opening = {start - 1 for start, _ in years if start and not _near(self._closing, start - 1)}
        self._days = sorted(opening.union(self._closing)) if opening else self._closing

    def ends_a_year(self, day: int) -> bool:
        """Whether a day is a year-end: an evidenced one or, in a year without, the anniversary of one."""
        near = _near(self._days, day)
        if near:
            return day in near
        start, end = self._nearest(day)
        if _astray(day, end) > _INSTANT_TOLERANCE:
            return False
        return (day - end) % 7 == 0 if _in_weeks(start, end) else _same_day_of_a_month(day, end, 12)

    def quarters_from_a_year_end(self, day: int) -> bool:
        """Whether a day, which is close to a quarter's end, is that day by the dates of the nearest year."""
        start, end = self._nearest(day)
        return (day - end) % 7 == 0 if _in_weeks(start, end) else _same_day_of_a_month(day, end, 3)

    def may_end_a_year(self, day: int) -> bool:
        """Whether a day is close to a year-end inferred from the period after it or from an anniversary."""
        if _near(self._reported, day):
            return False
        return bool(_near(self._days, day)) or _astray(day, self._nearest(day)[1]) <= _INSTANT_TOLERANCE

    def quarter(self, end: int, tolerance: int, start: int | None = None) -> int | None:
        """How many quarters after a year-end a period ends: 0 to 3; None if it is at no quarter's end."""
        year_end = self._containing(end if start is None else start, end) or self._nearest(end)[1]
        quarters = round((end - year_end) / QUARTER)
        return quarters % 4 if abs(end - year_end - quarters * QUARTER) <= tolerance else None

    def year_of(self, start: int, end: int) -> int:
        """The calendar year in which the financial year of a duration ends."""
        containing = self._containing(start, end)
        if containing is not None:
            return date.fromordinal(containing).year
        return _year_of_end(self._nearest(end)[1], end, _INSTANT_TOLERANCE)

    def year_of_instant(self, day: int, *, rounded: bool) -> int:
        """The fiscal year of an instant other than a year-end; the day after a year-end is in the new
        year."""
        if rounded:
            near = _near(self._days, day, ROUNDED_WITHIN)
            if near:
                return date.fromordinal(min(near, key=lambda end: abs(end - day))).year
        containing = self._containing(day, day)
        if containing is not None:
            return date.fromordinal(containing).year
        start, end = self._nearest(day)
        return _year_of_end(end, day, _INSTANT_TOLERANCE if _in_weeks(start, end) else 0)

    def _containing(self, start: int, end: int) -> int | None:
        return next((last for first, last in self.years if first and first <= start and end <= last), None)

    def _nearest(self, day: int) -> Year:
        at = bisect_left(self._closing, day)
        end = min(self._closing[max(0, at - 1) : at + 1], key=lambda end: abs(day - end))
        return self._starts[end], end


def _near(days: list[int], day: int, within: int = _INSTANT_TOLERANCE) -> list[int]:
    """The days, out of a sorted list, that are close to this one."""
    at = bisect_left(days, day - within)
    return days[at : bisect_right(days, day + within)]


def _in_weeks(start: int | None, end: int) -> bool:
    """Whether a year seems to have 52 or 53 weeks, so that it ends on a weekday, not on a date."""
    if start:
        return (end - start + 1) % 7 == 0
    return not _ends_a_month(date.fromordinal(end))


def _astray(day: int, end: int) -> float:
    """Days from the closest anniversary."""
    return abs(day - end - round((day - end) / YEAR) * YEAR)


def _same_day_of_a_month(day: int, end: int, months: int) -> bool:
    """Whether two days are the same, or the last, of months that are a multiple of so many months apart."""
    this, other = date.fromordinal(day), date.fromordinal(end)
    if (this.month - other.month) % months:
        return False
    return this.day == other.day or (_ends_a_month(this) and _ends_a_month(other))


def _ends_a_month(day: date) -> bool:
    return day.day == calendar.monthrange(day.year, day.month)[1]


def _year_of_end(year_end: int, end: int, tolerance: int) -> int:
    """The calendar year in which the financial year around `end` ends, by anniversary of a known one."""
    anniversary = date.fromordinal(year_end)
    day = date.fromordinal(end)
    last = calendar.monthrange(day.year, anniversary.month)[1]
    day_of_month = last if _ends_a_month(anniversary) else min(anniversary.day, last)
    this_year = date(day.year, anniversary.month, day_of_month).toordinal()
    if end <= this_year + tolerance or end >= this_year + 365 - tolerance:
        return day.year
    return day.year + 1
