"""Revisions: how far, and which way, full-year figures moved across their vintages."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from sankofa.derive.issuers import Issuer, item_of
from sankofa.derive.signals.contract import METHOD, Observation, PanelRow, filed, issuer_fields, issuer_panel
from sankofa.ledger.reports import Identity, Report
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.figures import rounded
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.rows import Figure, doc, one_of
from sankofa.model.vintages import Vintage


class FundamentalsRevisionsRow(PanelRow, frozen=True, kw_only=True):
    """A full-year figure that was revised: as first reported, and as it stands today."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_start: Annotated[date | None, doc("First day of the period; null for an instant.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    vintages: Annotated[int, doc("Number of figures reported one after another.", ge=2)]
    first_value: Annotated[Figure, doc("Figure as first reported, with every digit.")]
    latest_value: Annotated[
        Figure | None, doc("Figure as reported last, with every digit; null if withdrawn.")
    ]
    revision_size: Annotated[
        Decimal | None, doc("(latest - first) / |first|; null if first is 0 or latest withdrawn.")
    ]
    direction: Annotated[
        str | None,
        one_of(
            ("up", "down", "none", None),
            "Direction from the first figure to the latest; null if withdrawn.",
        ),
    ]
    first_available_at: Annotated[date, doc("Day on which the first figure became public.")]
    available_at: Annotated[date, doc("Day on which the latest figure became public.")]
    methodology_ref: Annotated[Literal["signals-v1/fundamentals-revisions"], METHOD] = (
        "signals-v1/fundamentals-revisions"
    )


@issuer_panel(
    "fundamentals-revisions",
    access="licensed",
    row=FundamentalsRevisionsRow,
    order=("service_id", "-period_end", "line_item", "concept|line_item", "unit", "period_start"),
)
def fundamentals_revisions(issuer: Issuer) -> Iterator[Observation]:
    """How full-year figures were revised after they were first reported: how often, how far, and which way.

    One row for each fact (issuer, concept, unit and period) that has more than one vintage, whose line item
    is one of ours (see the reference) and whose period is a full year or the day on which one ends.

    - revision_size = (latest - first) / |first|; null if the first figure is 0, and where the latest was
      withdrawn
    - direction = up, down or none, of the latest figure against the first: a figure that was revised and went
      back has three vintages and moved nowhere

    With `basis=as_known` a view of a past day has the row of that day, whatever was revised later. Ordered by
    service_id, period_end descending, line_item, concept, unit and period_start.
    """
    observations = []
    for identity, reports in issuer.reports.items():
        for observation in _observed(issuer, identity, reports):
            concept, unit, _, period_start = identity
            sort_key = (-observation.day, item_of(identity, issuer.reports), concept, unit, period_start)
            observations.append((sort_key, observation))
    observations.sort(key=lambda pair: pair[0])
    yield from (observation for _, observation in observations)


def _observed(issuer: Issuer, identity: Identity, reports: list[Report]) -> Iterator[Observation]:
    _, _, period_end, period_start = identity
    item, end = item_of(identity, issuer.reports), ordinal(period_end)
    if len(reports) == 1 or item not in LINE_ITEMS:
        return
    history = issuer.vintages[identity]
    start = ordinal(period_start) if period_start else None
    if len(history) == 1 or not history:
        return
    if issuer.names.name(start, end, history[0].report.available).period_type != "FY":
        return
    for known in range(2, len(history) + 1):
        first, until = history[known - 1].known_from, FOREVER
        if known < len(history):
            until = history[known].known_from
        if first < until:
            row, sources = _row(issuer, identity, item, history[:known])
            yield Observation(row, end, first, sources, until)


def _row(
    issuer: Issuer, identity: Identity, item: str, history: list[Vintage[Report]]
) -> tuple[FundamentalsRevisionsRow, frozenset[str]]:
    concept, unit, period_end, period_start = identity
    first, latest = history[0].report, history[-1].report
    earliest = Decimal(first.value or 0)
    current = None if latest.value is None else Decimal(latest.value)
    provenance, sources = filed(vintage.report for vintage in history)
    row = FundamentalsRevisionsRow(
        **issuer_fields(issuer.entity),
        period_start=date.fromisoformat(period_start) if period_start else None,
        period_end=date.fromisoformat(period_end),
        line_item=item,
        concept=concept if ":" in concept else None,
        unit=unit or None,
        vintages=len(history),
        first_value=earliest,
        latest_value=current,
        revision_size=_size(earliest, current),
        direction=_direction(earliest, current),
        first_available_at=date.fromordinal(first.available),
        available_at=date.fromordinal(latest.available),
        **provenance,
    )
    return row, sources


def _direction(first: Decimal, latest: Decimal | None) -> str | None:
    if latest is None:
        return None
    return "up" if latest > first else "down" if latest < first else "none"


def _size(first: Decimal, latest: Decimal | None) -> Decimal | None:
    if latest is None or not first:
        return None
    return rounded((Fraction(latest) - Fraction(first)) / abs(Fraction(first)))
