"""The metrics of one issuer: rows on the wire, their days and sizes, and the reasons for missing values.

A row is the encoded bytes of `MetricsRow`, assembled from text because metrics share inputs and the issuer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.metrics.contract import PRIOR, Metric, slugs
from sankofa.derive.metrics.derive import Derived, LaterChange, Stretch, Value
from sankofa.derive.metrics.lines import MEASURES, Figure, Part
from sankofa.edition.format.issuer_pages import UNDATED
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Report
from sankofa.model.days import FOREVER, iso_day
from sankofa.model.provenance import strictest
from sankofa.model.rows import State, wire

METRICS: Final = "metrics"
"""The kind of these rows."""
_CURRENT = Entry(b"").modes | AS_KNOWN
_NUMBERS = {slug: number for number, slug in enumerate(slugs())}
_SOURCE = UNDATED.decode() + '"source_ref":'
_encode = wire.encode
_PLACES = Decimal("0.0001")


class ScreenValue(NamedTuple):
    """A value of a metric on the days [first, until), in the order of the rows."""

    metric: int
    first: int
    until: int
    size: float
    """A float holds ten digits exactly."""
    end: int
    """The last day of its year."""
    current: bool
    """Whether `basis=current` serves it."""


class ScreenData(msgspec.Struct, frozen=True, array_like=True):
    """The screen data of one issuer."""

    values: list[ScreenValue]
    shown: list[tuple[int, int, int]]
    """The states of each metric: its number, the first day and the state, by metric and day."""
    known: list[tuple[int, int, int]]
    """The same for `basis=as_known`."""
    identity_conflicts: int = 0
    """Number of routes that a figure of the same filing contradicts."""
    odd_years: Mapping[str, int] = {}
    """By measure of `lines.MEASURES`, the number of full years."""
    changes: list[tuple[int, int, bytes]] = []
    """Values missing because of a later filing: metric, first day, and the changes as JSON."""

    def stretches(self, *, known: bool = False) -> Iterator["Shown"]:
        """The states with their days, each until the next of its metric; for `basis=as_known` if `known`."""
        states = self.known if known else self.shown
        for (number, first, state), (after, day, _) in zip(states, [*states[1:], (-1, 0, 0)], strict=True):
            yield Shown(number, first, day if after == number else FOREVER, state)


class Shown(NamedTuple):
    """The days [first, until) show one state of a metric."""

    number: int
    first: int
    until: int
    state: int


def metric_rows(entity: Entity, values: Sequence[Value]) -> list[Entry]:
    write = _Writer(entity)
    return [
        Entry(
            write.row(value),
            value.first,
            value.until,
            _CURRENT if value.current else AS_KNOWN,
            _NUMBERS[value.metric.slug],
        )
        for value in values
    ]


def screen_data(derived: Derived) -> ScreenData:
    numbered = ((_NUMBERS[value.metric.slug], value) for value in derived.values)
    return ScreenData(
        [
            ScreenValue(number, value.first, value.until, float(value.value), value.end, value.current)
            for number, value in numbered
        ],
        _states(derived.histories),
        _states(derived.known),
        derived.identity_conflicts,
        derived.odd_years,
        [
            (number, one.first, _encode([_changed(change) for change in one.changes]))
            for number, history in enumerate(derived.histories)
            for one in history
            if one.changes
        ],
    )


def _states(histories: Sequence[Sequence[Stretch]]) -> list[tuple[int, int, int]]:
    return [(number, one.first, one.state) for number, history in enumerate(histories) for one in history]


def _changed(change: LaterChange) -> dict[str, str | None]:
    return {
        "concept": change.concept,
        "period_end": iso_day(change.end),
        "available_at": iso_day(change.day) if change.day else None,
    }


class CoverageSteps(msgspec.Struct, frozen=True, array_like=True):
    """By day, how many issuers of a group have published a full year, and the inputs present."""

    published: list[tuple[int, int]]
    """Day, and the change in the number of issuers that have published."""
    inputs_present: list[tuple[int, int, int]]
    """Metric, day, and the change in the number of these issuers with its inputs."""
    identity_conflicts: int
    odd_years: Mapping[str, int]


def coverage_steps(issuers: Iterable[ScreenData]) -> CoverageSteps:
    """Values with a denominator of zero or less, or revised later, count as having their inputs."""
    conflicts, odd = 0, Counter[str]()
    published: Counter[int] = Counter()
    counts: Counter[tuple[int, int]] = Counter()
    for issuer in issuers:
        conflicts += issuer.identity_conflicts
        odd.update(issuer.odd_years)
        stretches = list(issuer.stretches())
        spans = _merged((one.first, one.until) for one in stretches if one.state != State.NOT_PUBLISHED)
        for first, until in spans:
            published[first] += 1
            published[until] -= 1
        for one in stretches:
            if one.state in (State.INPUT_ABSENT, State.CURRENCY_MIXED):
                continue
            for first, until in spans:
                if one.first < until and first < one.until:
                    counts[one.number, max(first, one.first)] += 1
                    counts[one.number, min(until, one.until)] -= 1
    return CoverageSteps(
        sorted((day, step) for day, step in published.items() if step),
        sorted((*key, step) for key, step in counts.items() if step),
        conflicts,
        odd,
    )


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of stretches of days [first, until)."""
    merged: list[tuple[int, int]] = []
    for first, until in sorted(stretches):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], until)
        else:
            merged.append((first, until))
    return merged


def coverage(issuers: Iterable[CoverageSteps], as_of: int) -> dict[str, Decimal]:
    """Per metric, the share of issuers with a published full year whose inputs are present on a day; and the
    numbers of routes that contradict an identity and of years with odd figures."""
    published = conflicts = 0
    odd = Counter(dict.fromkeys(MEASURES, 0))
    totals = [0] * len(slugs())
    for some in issuers:
        conflicts += some.identity_conflicts
        odd.update(some.odd_years)
        published += sum(step for day, step in some.published if day <= as_of)
        for number, day, step in some.inputs_present:
            totals[number] += step * (day <= as_of)
    counts = {name: Decimal(count) for name, count in odd.items()}
    counts["identity_conflicts"] = Decimal(conflicts)
    if published:
        for slug, count in zip(slugs(), totals, strict=True):
            counts[f"coverage_{slug}"] = (Decimal(count) / published).quantize(_PLACES)
    return counts


_Input = tuple[int, str, frozenset[int], str, tuple[Report, ...]]
"""The day it became public, its source_ref as JSON, its captures, the input as JSON, and its reports."""
_public = itemgetter(0)
_available = attrgetter("available")


class _Writer:
    """Writes the rows of one issuer; the order of the members is that of `MetricsRow`."""

    def __init__(self, entity: Entity) -> None:
        named = (_json(entity.service_id), _json(entity.legal_name), _json(entity.country))
        self._issuer = '"service_id":{},"legal_name":{},"country":{},'.format(*named)
        self._inputs: dict[tuple[str, int], _Input] = {}
        self._captured: dict[frozenset[int], str] = {}
        self._metrics: dict[str, tuple[str, str, str]] = {}

    def row(self, value: Value) -> bytes:
        known = self._inputs
        inputs = [
            known.get((name.removeprefix(PRIOR), id(figure))) or self._input(name, figure)
            for name, figure in zip(value.names, value.figures, strict=True)
        ]
        available, source_ref = max(map(_public, inputs)), inputs[0][1]
        captures = frozenset().union(*[capture_ids for _, _, capture_ids, _, _ in inputs])
        captured = self._captured.get(captures) or self._provenance(captures, inputs)
        named, unit, reference = self._metrics.get(value.metric.slug) or self._metric(value.metric)
        return (
            f"{_SOURCE}{source_ref}{captured}{named}{_json(value.value)}{unit}{iso_day(value.end)}"
            f'","available_at":"{iso_day(available)}{reference}'
            f"{','.join([written for _, _, _, written, _ in inputs])}]}}"
        ).encode()

    def _input(self, name: str, figure: Figure) -> _Input:
        """All parts of a figure, each under its line item."""
        item, end = name.removeprefix(PRIOR), iso_day(figure.end)
        written = ",".join([self._part(item, end, part) for part in figure.parts])
        reports = tuple([part.report for part in figure.parts])
        available = max(map(_available, reports))
        captures = frozenset([report.capture_id for report in reports])
        written_input = available, _json(reports[0].source_ref), captures, written, reports
        self._inputs[item, id(figure)] = written_input
        return written_input

    def _part(self, item: str, end: str, part: Part) -> str:
        concept = _json(part.concept if ":" in part.concept else None)
        return (
            f'{{"line_item":"{item}","concept":{concept},"period_end":"{end}","value":{_json(part.value)},'
            f'"vintage":{part.vintage},"source_ref":{_json(part.report.source_ref)}}}'
        )

    def _provenance(self, captures: frozenset[int], inputs: list[_Input]) -> str:
        """The strictest licence class, the latest capture."""
        sources = [report.capture for _, _, _, _, reports in inputs for report in reports]
        licence = _json(strictest(capture.license_class for capture in sources))
        observed = _json(max(capture.observed_at for capture in sources))
        part = self._captured[captures] = f',"license_class":{licence},"observed_at":{observed},'
        return part

    def _metric(self, metric: Metric) -> tuple[str, str, str]:
        parts = self._metrics[metric.slug] = (
            f'{self._issuer}"metric":{_json(metric.slug)},"value":',
            f',"unit":{_json(metric.unit)},"period_end":"',
            f'","methodology_ref":{_json(metric.methodology_ref)},"inputs":[',
        )
        return parts


def _json(value: str | Decimal | None) -> str:
    return _encode(value).decode()
