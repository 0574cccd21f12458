"""Figures: what a filing reports of one concept, and what a route makes of several."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_

import msgspec

from sankofa.ledger.reports import Report
from sankofa.model.vintages import steps


class Fact(msgspec.Struct, frozen=True, gc=False):
    """What is reported of one concept for a year in a currency, as it stands today."""

    vintage: int
    first_known: int
    """The day on which any figure of it was known."""
    known_from: int
    """The day from which it stands as it does today."""
    report: Report
    """The first report of the figure of today; of no value where it was withdrawn."""
    reports: Sequence[Report]
    """Every report of it, repetitions included."""

    @property
    def documents(self) -> dict[str, int]:
        """The filings that report the figure of today, and when each was known."""
        standing = self.report
        if len(self.reports) == 1:
            return {standing.document: standing.available}
        first: dict[str, int] = {}
        for report in self.reports:
            if report.value == standing.value and report.available >= standing.available:
                first[report.document] = min(report.available, first.get(report.document, report.available))
        return first

    def is_in(self, document: str) -> bool:
        """Whether a filing reports the figure of today."""
        standing = self.report
        if document == standing.document:
            return True
        if len(self.reports) == 1:
            return False
        value, day = standing.value, standing.available
        for report in self.reports:
            if report.document == document and report.value == value and report.available >= day:
                return True
        return False

    def known_by(self, day: int, end: int) -> "Fact | None":
        """As it was known on a day, of a period that ends on another."""
        if self.vintage == 1 and len(self.reports) == 1:
            return self if self.first_known <= day else None
        reports = [report for report in self.reports if report.available <= day]
        story = steps(reports) if reports and end <= day else ()
        if not story:
            return None
        return Fact(len(story), self.first_known, max(story[-1].available, end), story[-1], reports)


class Part(msgspec.Struct, frozen=True, gc=False):
    """One reported figure that another is made of, or that proves it."""

    concept: str
    value: Decimal
    vintage: int
    report: Report


class Figure(msgspec.Struct, frozen=True, gc=False):
    """The figure of a line item as it stands today."""

    value: Decimal
    end: int
    route: int
    """The number of the route it comes by."""
    first_known: int
    """The day on which all of its parts were known, with whatever figure."""
    stands_from: int
    """The day from which it stood, and stood for its line item, as it does today."""
    parts: tuple[Part, ...]

    @property
    def reports(self) -> Iterable[Report]:
        return (part.report for part in self.parts)


def common_filing(facts: Sequence[Fact]) -> tuple[str, int] | None:
    """The first filing that reports all of these as they stand today, and when it was known."""
    document = facts[0].report.document
    for fact in facts:
        if fact.report.document != document:
            break
    else:
        return document, max([fact.known_from for fact in facts])
    filings = [fact.documents for fact in facts]
    shared = reduce(and_, (documents.keys() for documents in filings))
    if not shared:
        return None
    day, document = min((max(documents[name] for documents in filings), name) for name in shared)
    return document, max(day, *(fact.known_from for fact in facts))


def last_change(facts: Iterable[Fact | None]) -> int:
    """The last day on which any of these was restated or withdrawn; 0 where none ever was."""
    return max((fact.known_from for fact in facts if fact is not None and fact.vintage > 1), default=0)
