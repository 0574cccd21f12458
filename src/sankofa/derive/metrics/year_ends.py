"""On which days an issuer's full years end, as far as was known on a day.

An instant within the tolerance of a year-end is called FY, yet only one on it belongs to that year: opening
balances restated on the first day of the next year (a new accounting standard) are no full year of their own.
"""

from collections import defaultdict
from collections.abc import Iterable

from sankofa.model.days import ordinal
from sankofa.model.periods import IssuerYears, YearEvidence, months_of

ANNIVERSARY_TOLERANCE = 10
"""Days by which the year before may end earlier or later than one year ago: 52/53-week years."""


class YearEnds:
    """The year-ends of one issuer, from everything that evidences them."""

    def __init__(self, evidence: Iterable[YearEvidence]) -> None:
        evidence = list(evidence)
        self.names = IssuerYears(evidence)
        self._ends: dict[int, int] = {}
        """The last days of the full-year durations reported, and when each was first known."""
        self._instants: defaultdict[int, set[int]] = defaultdict(set)
        for known, start, end, _, _ in evidence:
            if start is None:
                self._instants[end].add(known)
            elif months_of(start, end) == 12 and known <= self._ends.get(end, known):
                self._ends[end] = known
        self._ending: dict[int, set[int]] = {}

    def ending(self, day: int) -> set[int]:
        """The days on which an instant was reported that, by what was known then, is that of a year's end."""
        found = self._ending.get(day)
        if found is None:
            reported = self._instants.get(day, ()) if self.names.can_end_a_year(day) else ()
            found = self._ending[day] = {known for known in reported if self._is_end(day, known)}
        return found

    def full(self, start: str, end: str) -> bool:
        """Whether a period is a full year, or the day on which one ends by what was known with any report."""
        day = ordinal(end)
        return months_of(ordinal(start), day) == 12 if start else bool(self.ending(day))

    def _is_end(self, day: int, known: int) -> bool:
        if self.names.name(None, day, known).period_type != "FY":
            return False
        return day in self._ends or not self._astray(day, known)

    def _astray(self, day: int, known: int) -> bool:
        """Whether an instant is near, and not on, a year-end that was known by the day it became known."""
        return any(
            self._ends.get(day + step, known + 1) <= known
            for step in range(-ANNIVERSARY_TOLERANCE, ANNIVERSARY_TOLERANCE + 1)
        )
