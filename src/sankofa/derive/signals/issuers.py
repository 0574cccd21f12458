"""Shared parts of the issuer panels: their declaration, and the issuer columns of a row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import wraps
from typing import TypedDict

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.full_years import FullYear
from sankofa.derive.metrics.lines import Figure
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


class IssuerFields(TypedDict):
    """The fields by which a row names its issuer."""

    service_id: str
    legal_name: str | None
    country: str | None


class YearFields(IssuerFields, Origin):
    """The fields shared by rows about a full year of an issuer."""

    period_end: date
    available_at: date


def reporting(basis: Basis) -> Iterator[Entity]:
    """The organisations with at least one reported figure, by service_id."""
    subjects = {subject for subject, _ in basis.ledger.fact_subjects()}
    return (entity for entity in basis.entities if not subjects.isdisjoint(entity.subjects))


def issuer_panel(
    key: str, *, access: Access, row: type[PanelRow], order: tuple[str, ...]
) -> Callable[[ObserveIssuer], ObserveIssuer]:
    """Declares the function below as a panel that is computed issuer by issuer."""

    def declare(observe: ObserveIssuer) -> ObserveIssuer:
        @wraps(observe)
        def observe_all(basis: Basis) -> Iterator[Observation]:
            for entity in reporting(basis):
                yield from observe(Issuer(entity, basis.ledger, basis.captures))

        panel(key, access=access, sku="AF-FUND", row=row, order=order, of_issuer=observe)(observe_all)
        return observe

    return declare


def issuer_fields(entity: Entity) -> IssuerFields:
    return IssuerFields(service_id=entity.service_id, legal_name=entity.legal_name, country=entity.country)


def filed(reports: Iterable[Report]) -> tuple[Origin, frozenset[str]]:
    """The provenance of what is derived from reports of an issuer, and the sources of these."""
    inputs = list(reports)
    return origin(inputs[0].source_ref, (report.capture for report in inputs))


def year_fields(
    issuer: Issuer, year: FullYear, figures: Sequence[Figure]
) -> tuple[YearFields, frozenset[str]]:
    """The fields of a row that is derived from figures of a full year, and its sources."""
    reports = [report for figure in figures for report in figure.reports]
    provenance, sources = filed(reports)
    fields = YearFields(
        **issuer_fields(issuer.entity),
        period_end=date.fromordinal(year.end),
        available_at=date.fromordinal(max(report.available for report in reports)),
        **provenance,
    )
    return fields, sources
