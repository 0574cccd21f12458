"""Issuers: organisations with reported figures.

Everything derived for a single issuer starts here, and each part is computed once.
"""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property

from sankofa.derive.metrics.full_years import IssuerYearList, YearEnds, full_years
from sankofa.derive.metrics.lines import concepts_used
from sankofa.derive.splits import FigureVintage, split_ratios
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo, FactColumns, Facts
from sankofa.ledger.reports import Published, Report, Reports
from sankofa.ledger.spells import Placed, places
from sankofa.model import sessions
from sankofa.model.periods import IssuerYears


class Issuer:
    """One issuer; its figures are read from the ledger when they are first asked for."""

    def __init__(self, entity: Entity, ledger: Facts, captures: Mapping[int, CaptureInfo]) -> None:
        self.entity = entity
        self._ledger = ledger
        self.captures = captures

    @cached_property
    def reports(self) -> Reports:
        """The reports of each fact; complete for the concepts that line items are computed from."""
        return self._published.reports(whole=concepts_used())

    def facts(self, subject: str) -> FactColumns:
        """The ledger's facts of one of its subjects."""
        return self._ledger.facts(subject)

    @property
    def held(self) -> list[FactColumns]:
        """The ledger's facts of each of its subjects, published or not."""
        return [facts for _, facts in self._published.held]

    def instant(self, report: Report) -> str | None:
        """When a register accepted its document. Null where only the day is known, and where the instant is
        after that day: the register contradicts itself."""
        instant = self._accepted.get(report.document)
        return instant if instant and report.evidenced and instant[:10] <= report.evidenced else None

    def tradable_from(self, day: date, instant: str | None) -> date | None:
        """The first session of the exchange that it was listed on, after something became public."""
        number = max(bisect_right(self._places, day.isoformat(), key=lambda one: one.day) - 1, 0)
        listed = self._places[number].exchanges if self._places else ()
        return sessions.tradable_from(listed[0], day, instant) if listed else None

    @cached_property
    def split_ratios(self) -> dict[FigureVintage, Decimal]:
        """The ratio of the split for which a vintage of a figure was restated."""
        return split_ratios(self.reports)

    @cached_property
    def _accepted(self) -> dict[str, str]:
        held = (self._ledger.acceptances(subject) for subject in self.entity.subjects)
        return {document: instant for one in held for document, instant in one.items()}

    @cached_property
    def _places(self) -> list[Placed]:
        return places(self.entity, self.captures)

    @property
    def names(self) -> IssuerYears:
        """Gives each period its period_type and fiscal year."""
        return self._ends.names

    @cached_property
    def years(self) -> IssuerYearList:
        """Its full years."""
        ends, published = self._ends, self._published
        first_days = {
            (start, end): day
            for (start, end), day in published.first_days().items()
            if day in ends.full_on(start, end) and ends.is_full_year(start, end)
        }
        return full_years(self.reports, ends, first_days)

    @cached_property
    def _published(self) -> Published:
        return Published(self._ledger, self.captures, self.entity.subjects)

    @cached_property
    def _ends(self) -> YearEnds:
        return YearEnds(self._published.evidence())
