"""The published reports of an issuer: what the ledger holds of each fact, ready to be told into vintages.

One place says which figures are published at all, on which day each became known, and in which order
two of one day stand. Facts and derived values both read the ledger through it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import compress
from typing import Any

import msgspec

from sankofa.ledger.book import CaptureInfo, FactColumns, Ledger
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
_Fact = tuple[str, str, str, str, str, str, str, str, str, str, int]
"""A row of `FactColumns`."""


class Published:
    """What is published of the facts of an issuer, read once from the ledger."""

    def __init__(self, ledger: Ledger, captures: Mapping[int, CaptureInfo], subjects: Iterable[str]) -> None:
        self._captures = captures
        self._facts = [(subject, _published(ledger.facts(subject))) for subject in subjects]

    def evidence(self) -> list[YearEvidence]:
        """What all of it tells of the issuer's financial year."""
        told: set[tuple[str, str, str, str]] = set()
        for _, facts in self._facts:
            known = facts.available_at
            if "" in known:
                known = [
                    day or self._captures[capture_id].observed_at[:10]
                    for day, capture_id in zip(known, facts.capture_id, strict=True)
                ]
            told.update(zip(known, facts.period_start, facts.period_end, facts.declared_period, strict=True))
        return [
            YearEvidence(ordinal(day), ordinal(start) if start else None, ordinal(end), declared or None)
            for day, start, end, declared in told
        ]

    def reports(self, wanted: Callable[[str, str], bool] = lambda start, end: True) -> Reports:
        """The reports of each fact of the periods that are wanted, by start and end.

        Not all that merely repeat a figure are among them: they add nothing to what is known when.
        """
        reports: Reports = {}
        dated = all("" not in facts.available_at for _, facts in self._facts)
        for subject, facts in self._facts:
            periods = list(zip(facts.period_start, facts.period_end, strict=True))
            needed = {period for period in set(periods) if wanted(*period)}
            rows: Iterator[_Fact] = compress(zip(*facts, strict=True), map(needed.__contains__, periods))
            if dated and len(self._facts) == 1:
                rows = _telling(rows)
            self._gather(reports, subject, rows)
        if not dated:
            reports = {identity: _first_captures(told) for identity, told in reports.items()}
        return reports

    def _gather(self, reports: Reports, subject: str, rows: Iterable[_Fact]) -> None:
        captures = self._captures
        for concept, unit, end, start, day, document, value, confidence, location, _, capture_id in rows:
            capture = captures[capture_id]
            report = Report(
                value or None, ordinal(day or capture.observed_at[:10]), day, subject, document, location,
                confidence, capture_id, capture,
            )  # fmt: skip
            identity = (concept, unit, end, start)
            told = reports.get(identity)
            if told is None:
                reports[identity] = [report]
            else:
                told.append(report)


def _telling(rows: Iterable[_Fact]) -> Iterator[_Fact]:
    """Without those that repeat the figure of the day before them: half of a filing are comparatives.

    Takes dated rows of one subject in the order of the ledger: by fact, then by day. Which of several figures
    of one day is the last is told elsewhere, so next to such a day nothing is left out.
    """
    fact: tuple[str, str, str, str] | None = None
    value = day = ""
    several = False
    repeated: _Fact | None = None
    for row in rows:
        if row[:4] != fact:
            fact, several, repeated = row[:4], False, None
            yield row
        elif row[4] == day:
            if repeated is not None:
                yield repeated
            several, repeated = True, None
            yield row
        elif row[6] == value and not several:
            repeated = row
        else:
            several, repeated = False, None
            yield row
        day, value = row[4], row[6]


def _published(facts: FactColumns) -> FactColumns:
    """Without what was extracted with too little confidence."""
    doubted = {said for said in set(facts.confidence) if said and Decimal(said) < PUBLISHED_CONFIDENCE}
    if not doubted:
        return facts
    kept = [said not in doubted for said in facts.confidence]
    columns: list[list[Any]] = [list(compress(column, kept)) for column in facts]
    return FactColumns(*columns)


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
