"""What a period is called, told from its dates and the issuer's own year (decisions, section 2).

A filing's fy and fp describe the filing, not the figure, so they are never read. The issuer's year is told
from the full-year durations it reported, but for the twelve months to each quarter's end that some report
beside it. To keep a past view reproducible, a figure is named by the years evidenced on the day it became
known; only a figure older than all such evidence borrows the first that came later.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final, NamedTuple

QUARTER: Final = 365.25 / 4
_YEAR: Final = 4 * QUARTER
PERIOD_TYPES: Final = ("FY", "H1", "H2", "Q1", "Q2", "Q3", "Q4", "9M", "other")

# Days a duration may last to be "about" that many months: 52/53-week years, and the
# 12/12/12/16-week quarters some retailers keep.
_MONTHS = {
    days: months
    for low, high, months in ((75, 118, 3), (160, 203, 6), (245, 292, 9), (345, 385, 12))
    for days in range(low, high + 1)
}
_INSTANT_TOLERANCE = 10
_DURATION_TOLERANCE = 25
_SAME_END = 7
"""Days from one year-end within which two others are less than half a month apart."""
_OF_THREE = {0: "Q4", 1: "Q1", 2: "Q2", 3: "Q3"}
_OF_SIX = {0: "H2", 2: "H1"}
_OF_NINE = {3: "9M"}
_OF_INSTANT = {0: "FY", 1: "Q1", 2: "H1", 3: "9M"}
_HINT_QUARTERS = {"FY": 0, "Q4": 0, "H2": 0, "Q1": 1, "Q2": 2, "H1": 2, "Q3": 3, "9M": 3}


class Period(NamedTuple):
    period_type: str
    fiscal_year: int | None


class YearEvidence(NamedTuple):
    """One reported duration (or a declared period), and the day it became known. Ordinals."""

    known: int
    start: int | None
    end: int
    declared: str | None = None
    facts: int = 1
    """How many figures of it became known that day."""


def months_of(start: int, end: int) -> int | None:
    """About how many months a duration lasts: 3, 6, 9, 12, or None."""
    return _MONTHS.get(end - start + 1)


class IssuerYears:
    """The financial years of one issuer, as evidence for naming its periods."""

    def __init__(self, evidence: Iterable[YearEvidence]) -> None:
        telling = {e for e in evidence if e.start or e.declared}
        rows = sorted(telling, key=lambda e: (e.known, e.end, e.start or 0, e.declared or "", e.facts))
        years = _FullYears([(e, months) for e in rows if e.start and (months := months_of(e.start, e.end))])
        # Where no full year is reported: what the template itself declares, and last the half-years
        # and nine months, which begin with the year.
        declared = [
            (e.known, None, max(1, round(e.end - _HINT_QUARTERS[e.declared] * QUARTER)))
            for e in rows
            if e.declared in _HINT_QUARTERS
        ]
        cumulative = [
            (e.known, None, max(1, e.start - 1))
            for e in rows
            if e.start and months_of(e.start, e.end) in (6, 9)
        ]
        self._evidence = (years, _Known(declared), _Known(cumulative))
        ends = {int(end % _YEAR) for kind in self._evidence for end in kind.ends}
        reach = range(-_INSTANT_TOLERANCE - 2, _INSTANT_TOLERANCE + 3)  # two more, for what the year rounds
        near = {int((end + step) % _YEAR) for end in ends for step in reach}
        # Day 365 lasts a quarter of a day: whole steps may pass it over.
        self._anniversaries = near | {365} if near & {0, 364} else near
        self._named: dict[tuple[int | None, int, int], Period] = {}

    def can_end_a_year(self, day: int) -> bool:
        """Whether an instant is near the anniversary of any year-end there is evidence of: no other is FY."""
        return int(day % _YEAR) in self._anniversaries

    def name(self, start: int | None, end: int, known: int) -> Period:
        """The period_type and fiscal_year of a period whose figure became known on `known`."""
        key = (start, end, known)
        period = self._named.get(key)
        if period is None:
            period = self._named[key] = self._name(start, end, known)
        return period

    def _told(self, known: int) -> list[tuple[int | None, int]]:
        """The years that the best evidence there was by a day tells of; without any, the first that came."""
        for kind in self._evidence:
            if years := kind.by(known):
                return years
        return next((kind.first for kind in self._evidence if kind.first), [])

    def _name(self, start: int | None, end: int, known: int) -> Period:
        months = None if start is None else months_of(start, end)
        if months == 12:
            return Period("FY", date.fromordinal(end).year)
        years = self._told(known)
        if not years:
            return Period("other", None)
        begin = start or end
        containing = [year_end for first, year_end in years if first and first <= begin and end <= year_end]
        if containing:
            year_end = containing[0]
            fiscal_year = date.fromordinal(year_end).year
        else:
            year_end = min([(abs(end - year_end), year_end) for _, year_end in years])[1]
            fiscal_year = _year_of_end(year_end, end)
        quarters = round((end - year_end) / QUARTER)
        astray = abs(end - year_end - quarters * QUARTER)
        if start is None:
            place = _OF_INSTANT[quarters % 4] if astray <= _INSTANT_TOLERANCE else None
        elif astray <= _DURATION_TOLERANCE:
            place = {3: _OF_THREE, 6: _OF_SIX, 9: _OF_NINE}.get(months or 0, {}).get(quarters % 4)
        else:
            place = None
        return Period(place or "other", fiscal_year)


class _Known:
    """Year ends in the order they became known, each once."""

    def __init__(self, years: Sequence[tuple[int, int | None, int]]) -> None:
        first_known: dict[tuple[int | None, int], int] = {}
        for known, start, end in years:
            first_known.setdefault((start, end), known)
        self._days = list(first_known.values())
        self._years = list(first_known)

    @property
    def ends(self) -> Iterator[int]:
        return (end for _, end in self._years)

    def by(self, day: int) -> list[tuple[int | None, int]]:
        """Those known by a day."""
        return self._years[: bisect_right(self._days, day)]

    @property
    def first(self) -> list[tuple[int | None, int]]:
        """Those that became known before any other."""
        return self.by(self._days[0]) if self._days else []


class _FullYears(_Known):
    """Full years, but while they are known to be the twelve months to a day amid the year.

    Some issuers report the twelve months to each quarter's end, beside the year to date. What was known of
    the same time then tells the two apart: a year's end is where more figures say it is, those of full years,
    of half-years and of nine months (which begin with the year) each counted by the duration that has most;
    and where as many say so, it is where it was first said to be.
    """

    def __init__(self, durations: Sequence[tuple[YearEvidence, int]]) -> None:
        super().__init__([(e.known, e.start, e.end) for e, months in durations if months == 12])
        telling = [
            (e, months, e.end if months == 12 else (e.start or 0) - 1)
            for e, months in durations
            if months == 12 or (months in (6, 9) and e.declared != "H2")
        ]
        self._turns: dict[tuple[int | None, int], list[int]] = {}
        if not _agree([year_end for _, _, year_end in telling]):
            self._turns = {(start, end): _turns(start or 0, end, telling) for start, end in self._years}
        self._by: dict[int, list[tuple[int | None, int]]] = {}

    def by(self, day: int) -> list[tuple[int | None, int]]:
        """Those known by a day that were not doubted by then."""
        found = self._by.get(day)
        if found is None:
            turns = self._turns
            found = self._by[day] = [
                year for year in super().by(day) if not turns or bisect_right(turns[year], day) % 2 == 0
            ]
        return found


def _agree(year_ends: Sequence[int]) -> bool:
    """Whether all say that the year ends on about one day, as they do of nearly every issuer."""
    return all(
        abs((year_end - year_ends[0] + _YEAR / 2) % _YEAR - _YEAR / 2) <= _SAME_END for year_end in year_ends
    )


def _turns(start: int, end: int, telling: Sequence[tuple[YearEvidence, int, int]]) -> list[int]:
    """The days on which a full year came to be doubted, then not, and so on."""
    figures: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by place of the year's end, by months
    first_said: dict[int, int] = {}
    turns: list[int] = []
    for e, months, year_end in telling:
        if e.end <= start + _DURATION_TOLERANCE or (e.start or 0) >= end - _DURATION_TOLERANCE:
            continue
        place = round((year_end - end) / (_YEAR / 12)) % 12
        figures[place][months] = max(figures[place].get(months, 0), e.facts)
        first_said.setdefault(place, e.known)
        said = {at: (sum(told.values()), -first_said[at]) for at, told in figures.items()}
        doubted = 0 in said and max(said.values()) > said[0]
        if doubted != len(turns) % 2:
            if turns and turns[-1] == e.known:
                turns.pop()
            else:
                turns.append(e.known)
    return turns


def _year_of_end(year_end: int, end: int) -> int:
    """The calendar year in which the financial year around `end` ends, by anniversary of a known one."""
    anniversary = date.fromordinal(year_end)
    day = date.fromordinal(end)
    over = anniversary.day - min(anniversary.day, 28)
    this_year = date(day.year, anniversary.month, anniversary.day - over).toordinal() + over
    if end <= this_year + _INSTANT_TOLERANCE or end >= this_year + 365 - _INSTANT_TOLERANCE:
        return day.year
    return day.year + 1
