"""What panels of issuers share: how one is declared, and what a row says of its issuer."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TypedDict

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.full_years import FullYear, year_before
from sankofa.derive.signals.contract import (
    Access,
    Basis,
    Observation,
    ObserveIssuer,
    Origin,
    PanelRow,
    origin,
    panel,
)
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Report


class Named(TypedDict):
    """How a row names an issuer."""

    service_id: str
    legal_name: str | None
    country: str | None


def reporting(basis: Basis) -> Iterator[Entity]:
    """The organisations that any figure is held of, by service_id."""
    subjects = {subject for subject, _ in basis.ledger.fact_subjects()}
    return (entity for entity in basis.entities if not subjects.isdisjoint(entity.subjects))


def issuer_panel(
    key: str, *, access: Access, row: type[PanelRow]
) -> Callable[[ObserveIssuer], ObserveIssuer]:
    """Declare the function below as the panel of this key: of each issuer by itself, one after another."""

    def declare(observe: ObserveIssuer) -> ObserveIssuer:
        @wraps(observe)
        def observe_all(basis: Basis) -> Iterator[Observation]:
            for entity in reporting(basis):
                yield from observe(Issuer(entity, basis.ledger, basis.captures))

        panel(key, access=access, sku="AF-FUND", row=row, of_issuer=observe)(observe_all)
        return observe

    return declare


def named(entity: Entity) -> Named:
    return Named(service_id=entity.service_id, legal_name=entity.legal_name, country=entity.country)


def filed(reports: Iterable[Report]) -> tuple[Origin, frozenset[str]]:
    """The provenance of what is derived from reports of an issuer, and the sources of these."""
    told = list(reports)
    return origin(told[0].source_ref, (report.capture for report in told))


def years_back(years: list[FullYear], year: FullYear) -> Iterator[FullYear]:
    """A year and those before it without a gap, the newest first."""
    earlier: FullYear | None = year
    while earlier is not None and earlier.has_durations:
        yield earlier
        earlier = year_before(years, earlier)
