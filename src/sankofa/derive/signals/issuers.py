"""Issuers: organisations with reported figures; and what a row says of one."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple, TypedDict

from sankofa.derive.metrics.full_years import FullYear, full_years, year_before
from sankofa.derive.metrics.year_ends import YearEnds, may_be_of_a_full_year
from sankofa.derive.signals.contract import Basis, Origin, origin
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Published, Report, Reports
from sankofa.model.periods import YearEvidence


class Reported(NamedTuple):
    """What an issuer published of full years and year-ends."""

    entity: Entity
    reports: Reports
    evidence: list[YearEvidence]

    def years(self) -> list[FullYear]:
        """Its full years, oldest first, with the figures each holds today."""
        return full_years(self.reports, YearEnds(self.evidence))


class Named(TypedDict):
    """How a row names an issuer."""

    service_id: str
    legal_name: str | None
    country: str | None


def reporting(basis: Basis) -> Iterator[Entity]:
    """The organisations that any figure is held of, by service_id."""
    subjects = {subject for subject, _ in basis.ledger.fact_subjects()}
    return (entity for entity in basis.entities if not subjects.isdisjoint(entity.subjects))


def reported(basis: Basis) -> Iterator[Reported]:
    """Every issuer with what it published."""
    for entity in reporting(basis):
        published = Published(basis.ledger, basis.captures, entity.subjects)
        yield Reported(entity, published.reports(may_be_of_a_full_year), published.evidence())


def named(entity: Entity) -> Named:
    return Named(service_id=entity.service_id, legal_name=entity.legal_name, country=entity.country)


def filed(entity: Entity, end: int, reports: Iterable[Report]) -> Origin:
    """The provenance of what is derived from reports of an issuer, for the year that ends on a day."""
    place = f"{entity.service_id} {date.fromordinal(end)}"
    return origin("AF-FUND", place, (report.capture for report in reports))


def years_back(years: list[FullYear], year: FullYear) -> Iterator[FullYear]:
    """A year and those before it without a gap, the newest first."""
    earlier: FullYear | None = year
    while earlier is not None and earlier.has_durations:
        yield earlier
        earlier = year_before(years, earlier)
