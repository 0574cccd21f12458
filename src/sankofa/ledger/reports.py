"""The published reports of an issuer: what the ledger holds of each fact, ready to be told into vintages.

One place says which figures are published at all, on which day each became known, and in which order
two of one day stand. Facts and derived values both read the ledger through it.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache

import msgspec

from sankofa.ledger.book import CaptureInfo, Ledger
from sankofa.model.days import ordinal
from sankofa.model.periods import YearEvidence

PUBLISHED_CONFIDENCE = Decimal("0.85")
"""Below this an extracted figure stays in the ledger (decisions, section 2)."""

_LEAST = Decimal("-Infinity")

Identity = tuple[str, str, str, str]
"""What makes two figures the same fact: concept, unit, period_end, period_start."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """One figure in one document; see `model.knowable.Reported`."""

    value: str | None
    available: int
    evidenced: str
    """The day of publication that the source evidences; empty where it evidences none."""
    subject: str
    document: str
    location: str
    confidence: str
    capture_id: int
    capture: CaptureInfo

    @property
    def order(self) -> tuple[object, ...]:
        """The capture comes last: only what no source says of itself may hang on who came first."""
        value = Decimal(self.value) if self.value else _LEAST
        return (
            self.document, value, self.subject, self.location, self.confidence,
            self.capture.source_id, self.capture_id,
        )  # fmt: skip

    @property
    def source_ref(self) -> str:
        return f"{self.document}#{self.location}" if self.location else self.document


Reports = dict[Identity, list[Report]]


def published_reports(
    ledger: Ledger,
    captures: Mapping[int, CaptureInfo],
    subjects: Iterable[str],
    wanted: Callable[[str, str], bool] = lambda start, end: True,
) -> tuple[Reports, list[YearEvidence]]:
    """The published reports of an issuer by fact, and what they evidence of its financial year.

    Where only some periods are `wanted`, by start and end, the evidence is still that of them all.
    """
    reports: Reports = {}
    evidence: set[tuple[str, int, str, str, str]] = set()
    needed: dict[tuple[str, str], bool] = {}
    undated = False
    for subject in subjects:
        for row in ledger.facts(subject):
            (_, concept, unit, end, start, available_at, document, value, confidence, location, declared,
             capture_id) = row  # fmt: skip
            if confidence and not _published(confidence):
                continue
            evidence.add((available_at, 0 if available_at else capture_id, start, end, declared))
            period = (start, end)
            need = needed.get(period)
            if need is None:
                need = needed[period] = wanted(start, end)
            if not need:
                continue
            capture = captures[capture_id]
            undated = undated or not available_at
            available = ordinal(available_at or capture.observed_at[:10])
            report = Report(
                value or None, available, available_at, subject, document, location, confidence,
                capture_id, capture,
            )  # fmt: skip
            identity = (concept, unit, end, start)
            told = reports.get(identity)
            if told is None:
                reports[identity] = [report]
            else:
                told.append(report)
    if undated:
        reports = {identity: _first_captures(told) for identity, told in reports.items()}
    return reports, [
        YearEvidence(
            ordinal(available_at or captures[capture_id].observed_at[:10]),
            ordinal(start) if start else None,
            ordinal(end),
            declared or None,
        )
        for available_at, capture_id, start, end, declared in evidence
    ]


def _first_captures(reports: list[Report]) -> list[Report]:
    """A document that evidences no day is known from its first capture: a later one moves nothing."""
    if all(report.evidenced for report in reports):
        return reports
    first: dict[tuple[str, str | None], int] = {}
    for report in reports:
        if not report.evidenced:
            told = report.document, report.value
            first[told] = min(first.get(told, report.available), report.available)
    return [
        r if r.evidenced else msgspec.structs.replace(r, available=first[r.document, r.value])
        for r in reports
    ]


@lru_cache(maxsize=4096)
def _published(confidence: str) -> bool:
    return Decimal(confidence) >= PUBLISHED_CONFIDENCE
