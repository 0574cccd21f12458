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
        self._reported: defaultdict[tuple[int | None, int], set[int]] = defaultdict(set)
        for report in evidence:
            start, end = report.start, report.end
            if start is None or months_of(start, end) == 12:
                self._reported[start, end].add(report.known)
        self._full: dict[tuple[int | None, int], set[int]] = {}

    def full(self, start: int | None, end: int) -> set[int]:
        """The days on which a period was reported that, by what was known then, is or ends a full year."""
        period = (start, end)
        days = self._full.get(period)
        if days is None:
            possible = start is not None or self.names.can_end_a_year(end)
            reported = self._reported.get(period, ()) if possible else ()
            days = {known for known in reported if self.names.name_by(start, end, known).period_type == "FY"}
            self._full[period] = days
        return days

    def is_full_year(self, start: str, end: str) -> bool:
        """Whether a period is, or ends, a full year by the name that its rows are served under."""
        first = ordinal(start) if start else None
        return self.names.name(first, ordinal(end), 0).period_type == "FY"

    def full_on(self, start: str, end: str) -> set[int]:
        """The same of a period as the ledger writes it, the start of an instant being empty."""
        return self.full(ordinal(start) if start else None, ordinal(end))
