"""Reported facts of each issuer, every vintage, by service_id.

Order: period_end descending, period_type, line_item, vintage, then concept, unit and period_start.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import msgspec

from sankofa.edition.blocks import Entry
from sankofa.edition.world import Shelved, World, dataset
from sankofa.ledger.entities import Entity
from sankofa.model.days import ordinal
from sankofa.model.knowable import Vintage, sights, vintages
from sankofa.model.line_items import line_item
from sankofa.model.periods import PERIOD_TYPES, IssuerYears, YearEvidence
from sankofa.model.places import currency
from sankofa.model.rows import FundamentalsRow, wire

PUBLISHED_CONFIDENCE = Decimal("0.85")
"""Below this an extracted figure stays in the ledger (decisions, section 2)."""

_TAGS = {name: tag for tag, name in enumerate(PERIOD_TYPES)}


class Report(NamedTuple):
    """One figure in one document; see `model.knowable.Reported`."""

    value: str | None
    available: int
    order: tuple[object, ...]
    evidenced: str
    """The day of publication that the source evidences; empty where it evidences none."""
    subject: str
    document: str
    location: str
    confidence: float | None
    capture_id: int


Identity = tuple[str, str, str, str]  # concept, unit, period_end, period_start


@dataset("fundamentals", FundamentalsRow)
def fundamentals(world: World) -> Iterator[Shelved]:
    for entity in world.entities:
        yield Shelved(entity.service_id, _entries(world, entity), entity.aliases)


def _entries(world: World, entity: Entity) -> list[Entry]:
    reports, evidence = _reports(world, entity)
    years = IssuerYears(evidence)
    placed: list[tuple[tuple[object, ...], Entry]] = []
    for (concept, unit, period_end, period_start), reported in reports.items():
        end = ordinal(period_end)
        start = ordinal(period_start) if period_start else None
        item, own_concept = (line_item(concept), concept) if ":" in concept else (concept, None)
        for vintage in vintages(reported, end):
            report = vintage.report
            period = years.name(start, end, report.available)
            capture = world.captures[report.capture_id]
            identity = (concept, unit, period_end, period_start)
            row = FundamentalsRow(
                service_id=entity.service_id,
                record_ref=_record_ref(identity, report),
                line_item=item,
                concept=own_concept,
                value_reported=None if report.value is None else Decimal(report.value),
                currency_reported=_money(unit),
                unit=unit or None,
                period_start=_day(start) if start else None,
                period_end=_day(end),
                period_type=period.period_type,
                fiscal_year=period.fiscal_year,
                available_at=_day(report.available),
                vintage=vintage.number,
                restated=vintage.number > 1,
                superseded_at=None,
                superseding_record_ref=None,
                extraction_confidence=report.confidence,
                method="structured" if report.confidence is None else "extracted",
                source_ref=f"{report.document}#{report.location}" if report.location else report.document,
                license_class=capture.license_class,
                observed_at=capture.observed_at,
            )
            place = (-end, period.period_type, item, vintage.number, concept, unit, period_start)
            placed += [(place, entry) for entry in _seen(row, vintage, identity, _TAGS[period.period_type])]
    placed.sort(key=lambda pair: pair[0])
    return [entry for _, entry in placed]


def _reports(world: World, entity: Entity) -> tuple[dict[Identity, list[Report]], list[YearEvidence]]:
    """The published reports of an issuer by fact, and what they evidence of its financial year."""
    reports: defaultdict[Identity, list[Report]] = defaultdict(list)
    evidence: set[YearEvidence] = set()
    for subject in entity.subjects:
        for row in world.ledger.facts(subject):
            (_, concept, unit, period_end, period_start, available_at, document, value, confidence, location,
             declared, capture_id) = row  # fmt: skip
            if confidence and Decimal(confidence) < PUBLISHED_CONFIDENCE:
                continue
            capture = world.captures[capture_id]
            available = ordinal(available_at or capture.observed_at[:10])
            # The capture comes last: only what no source says of itself may hang on who came first.
            order = (
                document, Decimal(value) if value else Decimal("-Infinity"), subject, location, confidence,
                capture.source_id, capture_id,
            )  # fmt: skip
            trust = float(confidence) if confidence else None
            reports[concept, unit, period_end, period_start].append(
                Report(
                    value or None,
                    available,
                    order,
                    available_at,
                    subject,
                    document,
                    location,
                    trust,
                    capture_id,
                )
            )
            start = ordinal(period_start) if period_start else None
            evidence.add(YearEvidence(available, start, ordinal(period_end), declared or None))
    return {identity: _first_captures(told) for identity, told in reports.items()}, list(evidence)


def _first_captures(reports: list[Report]) -> list[Report]:
    """A document that evidences no day is known from its first capture: a later one moves nothing."""
    if all(report.evidenced for report in reports):
        return reports
    first: dict[tuple[str, str | None], int] = {}
    for report in reports:
        if not report.evidenced:
            told = report.document, report.value
            first[told] = min(first.get(told, report.available), report.available)
    return [r if r.evidenced else r._replace(available=first[r.document, r.value]) for r in reports]


def _seen(row: FundamentalsRow, vintage: Vintage[Report], identity: Identity, tag: int) -> Iterator[Entry]:
    """The row as each stretch of days shows it: its successor is told only from the day it was known."""
    for sight in sights(vintage):
        shown = row
        if sight.tells_successor and vintage.successor is not None:
            shown = msgspec.structs.replace(
                row,
                superseded_at=_day(vintage.successor.available),
                superseding_record_ref=_record_ref(identity, vintage.successor),
            )
        yield Entry(wire.encode(shown), sight.first, sight.until, sight.modes, tag)


def _record_ref(identity: Identity, report: Report) -> str:
    """Names a vintage by what it is, so that it is the same in every edition and on every machine."""
    text = "\x1f".join((report.subject, *identity, report.evidenced, report.document, report.value or ""))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@lru_cache(maxsize=65536)
def _day(day: int) -> date:
    return date.fromordinal(day)


@lru_cache(maxsize=4096)
def _money(unit: str) -> str | None:
    return currency(unit)
