"""The published reports of an issuer: the ledger's rows of each fact, from which its vintages are made.

This module alone decides which figures are published, on which day each became known, and the order of two
reports on one day. Facts and derived values both read the ledger through it.

The SEC publishes one filing twice: as companyfacts with the real dates, and in its Financial Statement Data
Sets with month ends and a number of quarters. If the ledger has both, facts with real dates are served.

See contract: PER-7.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import compress
from typing import Any

import msgspec

from sankofa.ledger.capture import FactColumns
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.days import ordinal
from sankofa.model.identifiers import free_location
from sankofa.model.periods import ROUNDED_WITHIN, YEAR, YearEvidence
from sankofa.model.provenance import EXTRACTED, STRUCTURED, STRUCTURED_ROUNDED, source_ref

FactsBySubject = list[tuple[str, FactColumns]]
"""The facts of each subject of an issuer."""
_Reported = tuple[str, str, str, str, int]
"""Document, concept, unit, value, and the length of the period in quarters."""


def real_and_rounded(
    facts_of: FactsBySubject, captures: Mapping[int, CaptureInfo]
) -> tuple[FactsBySubject, FactsBySubject]:
    """Facts with real dates, and facts with rounded dates that no fact with real dates repeats."""
    numbers = {number for _, facts in facts_of for number in set(facts.capture_id)}
    rounding = {number for number in numbers if captures[number].rounds_dates}
    if not rounding:
        return facts_of, []
    if rounding == numbers:
        return [], facts_of
    flags = [[number in rounding for number in facts.capture_id] for _, facts in facts_of]
    real = [
        (subject, _only(facts, [not flag for flag in own]))
        for (subject, facts), own in zip(facts_of, flags, strict=True)
    ]
    rounded = [(subject, _only(facts, own)) for (subject, facts), own in zip(facts_of, flags, strict=True)]
    documents = {document for _, facts in rounded for document in facts.document}
    ends: defaultdict[_Reported, set[int]] = defaultdict(set)
    for _, facts in real:
        for reported, end in _reported(_only(facts, [document in documents for document in facts.document])):
            ends[reported].add(end)
    for number, (subject, facts) in enumerate(rounded):
        alone = [not _is_close(ends.get(reported), end) for reported, end in _reported(facts)]
        rounded[number] = subject, _only(facts, alone)
    return real, rounded


def _only(facts: FactColumns, mask: Sequence[bool]) -> FactColumns:
    columns: list[list[Any]] = [list(compress(column, mask)) for column in facts]
    return FactColumns(*columns)


def _reported(facts: FactColumns) -> Iterator[tuple[_Reported, int]]:
    """The identity of a figure within a filing, and the day on which its period ends."""
    columns = (facts.document, facts.concept, facts.unit, facts.value, facts.period_start, facts.period_end)
    for document, concept, unit, value, start, end in zip(*columns, strict=True):
        last = ordinal(end)
        quarters = round((last - ordinal(start) + 1) / (YEAR / 4)) if start else 0
        # A source that rounds dates leaves `/shares` out of units.
        yield (document, concept, unit.removesuffix("/shares"), value, quarters), last


def _is_close(ends: set[int] | None, day: int) -> bool:
    """Whether a period that ends on one of the days can be rounded to end on this day."""
    if not ends:
        return False
    return any(day + step in ends for step in range(-ROUNDED_WITHIN, ROUNDED_WITHIN + 1))


PUBLISHED_CONFIDENCE = Decimal("0.85")
"""Below this an extracted figure stays in the ledger (contract: FIG-5)."""

_LEAST = Decimal("-Infinity")

Identity = tuple[str, str, str, str]
"""The identity of a fact: concept, unit, period_end, period_start."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """One figure in one document; see `model.vintages.Reported`."""

    value: str | None
    available: int
    evidenced: str
    """The day of publication that the source evidences; empty if there is none."""
    subject: str
    document: str
    location: str
    confidence: str
    capture_id: int
    capture: CaptureInfo

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts by capture last, so that arrival decides only if the sources do not."""
        value = Decimal(self.value) if self.value else _LEAST
        return (
            self.document, value, self.subject, self.location, self.confidence,
            self.capture.source_id, self.capture_id,
        )  # fmt: skip

    recaptured: bool = False
    """Whether an earlier capture has another figure in the same place of the same document."""

    @property
    def method(self) -> str:
        """How the figure was obtained."""
        if self.confidence:
            return EXTRACTED
        return STRUCTURED_ROUNDED if self.capture.rounds_dates else STRUCTURED

    @property
    def source_ref(self) -> str:
        """A figure without a position in its document is listed under its issuer."""
        capture = self.capture
        digest = capture.content_sha256 if self.recaptured else ""
        location = self.location or free_location(self.subject)
        return source_ref(capture.source_id, self.document, location, digest)


Reports = dict[Identity, list[Report]]
_PeriodEvidence = tuple[str, str, str, str]
"""The day a figure became known, the start and end of its period, and the period its template declares."""


class Published:
    """The published facts of an issuer, read once from the ledger."""

    def __init__(
        self, ledger: LedgerReader, captures: Mapping[int, CaptureInfo], subjects: Iterable[str]
    ) -> None:
        self._captures = captures
        self.held = [(subject, ledger.facts(subject)) for subject in subjects]
        """The ledger's facts of each subject, published or not."""
        published = [(subject, _published(facts)) for subject, facts in self.held]
        real, rounded = real_and_rounded(published, captures)
        self._facts = real + rounded
        self._real_periods = self._periods(real)
        self._rounded_periods = self._periods(rounded)

    def _periods(self, facts_of: list[tuple[str, FactColumns]]) -> Counter[_PeriodEvidence]:
        """How many figures of each period became known on each day."""
        counts: Counter[_PeriodEvidence] = Counter()
        for _, facts in facts_of:
            known = facts.available_at if "" not in facts.available_at else self._days_known(facts)
            counts.update(
                zip(known, facts.period_start, facts.period_end, facts.declared_period, strict=True)
            )
        return counts

    def _days_known(self, facts: FactColumns) -> list[str]:
        """The days on which facts became known: the day of capture if the source evidences none."""
        return [
            day or self._captures[capture_id].observed_at[:10]
            for day, capture_id in zip(facts.available_at, facts.capture_id, strict=True)
        ]

    def evidence(self) -> list[YearEvidence]:
        """Evidence of the issuer's financial year, from all of its facts."""
        return [
            YearEvidence(
                ordinal(day),
                ordinal(start) if start else None,
                ordinal(end),
                declared or None,
                facts,
                rounded,
            )
            for counts, rounded in ((self._real_periods, False), (self._rounded_periods, True))
            for (day, start, end, declared), facts in counts.items()
        ]

    def reports(self) -> Reports:
        """The reports of each fact, those that repeat a figure included."""
        reports: Reports = defaultdict(list)
        for subject, facts in self._facts:
            for row in zip(*facts, strict=True):
                concept, unit, end, start, day, document, value, confidence, location, _, capture_id = row
                capture = self._captures[capture_id]
                known = ordinal(day or capture.observed_at[:10])
                report = Report(
                    value or None, known, day, subject, document, location, confidence, capture_id, capture
                )
                reports[concept, unit, end, start].append(report)
        if any("" in facts.available_at for _, facts in self._facts):
            reports = {identity: _first_captures(same_fact) for identity, same_fact in reports.items()}
        if len({number for _, facts in self._facts for number in facts.capture_id}) > 1:
            for same_fact in reports.values():
                if len(same_fact) > 1:
                    _mark_recaptured(same_fact)
        return dict(reports)


def _published(facts: FactColumns) -> FactColumns:
    """Leaves out figures extracted with low confidence."""
    doubted = {
        confidence
        for confidence in set(facts.confidence)
        if confidence and Decimal(confidence) < PUBLISHED_CONFIDENCE
    }
    if not doubted:
        return facts
    published = [confidence not in doubted for confidence in facts.confidence]
    return _only(facts, published)


def _first_captures(reports: list[Report]) -> list[Report]:
    """A document without an evidenced day is known from its first capture; later ones change nothing."""
    if all(report.evidenced for report in reports):
        return reports
    first: dict[tuple[str, str | None], int] = {}
    for report in reports:
        if not report.evidenced:
            figure = report.document, report.value
            first[figure] = min(first.get(figure, report.available), report.available)
    return [
        r if r.evidenced else msgspec.structs.replace(r, available=first[r.document, r.value])
        for r in reports
    ]


def _mark_recaptured(reports: list[Report]) -> None:
    """Marks figures captured several times in the same place of a document; the first stays unmarked."""
    if len({report.document for report in reports}) == len(reports):
        return
    first: dict[tuple[str, ...], int] = {}
    locations = [(r.capture.source_id, r.document, r.location or r.subject) for r in reports]
    for location, report in zip(locations, reports, strict=True):
        first[location] = min(first.get(location, report.capture_id), report.capture_id)
    for number, (location, report) in enumerate(zip(locations, reports, strict=True)):
        if report.capture_id != first[location]:
            reports[number] = msgspec.structs.replace(report, recaptured=True)
