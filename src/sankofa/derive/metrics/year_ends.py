"""On which days an issuer's full years end, as far as was known on a day."""

from collections import defaultdict
from collections.abc import Iterable

from sankofa.model.days import ordinal
from sankofa.model.financial_years import YearEvidence, months_of
from sankofa.model.periods import IssuerYears

ANNIVERSARY_TOLERANCE = 10
"""Days by which the year before may end earlier or later than one year ago: 52/53-week years."""


class YearEnds:
    """The year-ends of one issuer, from everything that evidences them."""

    def __init__(self, evidence: Iterable[YearEvidence]) -> None:
        evidence = list(evidence)
        self.names = IssuerYears(evidence)
        self._instants: defaultdict[int, set[int]] = defaultdict(set)
        for told in evidence:
            if told.start is None:
                self._instants[told.end].add(told.known)
        self._ending: dict[int, set[int]] = {}

    def ending(self, day: int) -> set[int]:
        """The days on which an instant was reported that, by what was known then, is that of a year's end."""
        found = self._ending.get(day)
        if found is None:
            reported = self._instants.get(day, ()) if self.names.can_end_a_year(day) else ()
            found = self._ending[day] = {known for known in reported if self.is_full(None, day, known)}
        return found

    def is_full(self, start: int | None, end: int, known: int) -> bool:
        """Whether, by what was known on a day, a period is a full year or the day on which one ends."""
        return self.names.name(start, end, known).period_type == "FY"

    def may_be_full(self, start: str, end: str) -> bool:
        """Whether a period lasts a full year, or is a day on which one ends by what was known with any report."""
        day = ordinal(end)
        return months_of(ordinal(start), day) == 12 if start else bool(self.ending(day))
