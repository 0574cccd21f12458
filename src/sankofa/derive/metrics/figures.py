"""Figures: what filings report of one concept, and what a route makes of several."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from sankofa.ledger.reports import Report


class Fact(msgspec.Struct, frozen=True, gc=False):
    """The figure of one concept for one period, as known on a day."""

    vintage: int
    value: Decimal
    report: Report
    """The first report of the figure."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """One reported figure that another is computed from, or that proves it."""

    concept: str
    value: Decimal
    vintage: int
    report: Report


class Figure(msgspec.Struct, frozen=True, gc=False):
    """The figure of a line item, as known on a day."""

    value: Decimal
    end: int
    """The last day of the period."""
    route: int
    """The number of the route that leads to it."""
    parts: tuple[Part, ...]

    @property
    def reports(self) -> Iterable[Report]:
        return (part.report for part in self.parts)

    def same_as(self, other: "Figure") -> bool:
        """Whether both come by one route from the same vintages of the same figures."""
        if self is other:
            return True
        if (self.route, self.end, len(self.parts)) != (other.route, other.end, len(other.parts)):
            return False
        return all(
            (a.concept, a.vintage, a.value) == (b.concept, b.vintage, b.value)
            for a, b in zip(self.parts, other.parts, strict=True)
        )
