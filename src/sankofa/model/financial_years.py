"""When an issuer's financial years end, as its reported periods evidence it, as far as was known on a day.

Full-year durations are the evidence. Some issuers also report the twelve months to each quarter's end, and
now and then a filing misdates a figure: what else was known by then tells such trailing figures from years.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
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
"""Days by which two periods must overlap to be of the same time."""
_SAME_END = 7
"""Days from one year-end within which two others are less than half a month apart."""
DWARFED: Final = 4
"""A year-end with this many times fewer figures than another close to it is not the year's."""

Year = tuple[int | None, int]
"""The first and the last day of a financial year; only the last where the first is not reported."""


class YearEvidence(NamedTuple):
    """One reported duration (or a declared period), and the day it became known. Ordinals."""

    known: int
    start: int | None
    end: int
    declared: str | None = None
    facts: int = 1
    """How many figures of it became known that day."""
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
        """The years that were known on a day."""
        return self._years[: bisect_right(self._days, day)]


class FullYears(KnownYears):
    """Full years, without trailing twelve months that end on another day than the financial year.

    Other durations known by then tell the two apart. A year ends where more figures say it does: those
    of full years, of half-years and of nine months (which begin with the year), each counted by the duration
    that has most; where as many say so, it is where it was first said to be. More figures of twelve months
    than the other year has stand for themselves: that is an annual report after a change of the year-end. And
    a stray year, of a fraction of the figures of another one within a year or a few days of it, is none.

    A year known only by rounded dates is left out where an exact year-end is close to it: they are one year.
    Rounding is a fault of the source and not what the filing says, so here the exact date may come later.
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
        """The full years known on a day and not doubted on that day."""
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
        wanted = [year in real or not close_to(ends, year[1]) for year in self._years]
        self._days = [day for day, is_wanted in zip(self._days, wanted, strict=True) if is_wanted]
        self._years = [year for year, is_wanted in zip(self._years, wanted, strict=True) if is_wanted]


def close_to(ends: Sequence[int], day: int) -> bool:
    """Whether one of the ends, which are in order, is within what rounding moves a date, not on the day."""
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
    """Whether all say that the year ends on about one day, as they do of nearly every issuer."""
    return all(
        abs((year_end - year_ends[0] + YEAR / 2) % YEAR - YEAR / 2) <= _SAME_END for year_end in year_ends
    )


def _crowded(ends: Sequence[int]) -> bool:
    """Whether two year-ends, which are in order, are too close to be those of two years."""
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
    """Counts the figures known so far that speak for and against one full year."""

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
        """Whether it overlaps the year or, for a full year, lies within a year of it."""
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
