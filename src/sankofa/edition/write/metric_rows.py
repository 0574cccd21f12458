"""The metrics of one issuer: rows on the wire, their days and sizes, and the reasons for missing values."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.metrics.contract import PRIOR, slugs
from sankofa.derive.metrics.derive import Derived, LaterChange, Stretch, Value
from sankofa.derive.metrics.lines import MEASURES, Figure
from sankofa.edition.format.issuer_pages import UNDATED
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.ledger.entities import Entity
from sankofa.model.days import FOREVER, iso_day
from sankofa.model.provenance import strictest
from sankofa.model.rows import MetricInput, State, wire

METRICS: Final = "metrics"
"""The kind of these rows."""
_CURRENT = Entry(b"").modes | AS_KNOWN
_NUMBERS = {slug: number for number, slug in enumerate(slugs())}
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


class _Row(msgspec.Struct, gc=False):
    """`MetricsRow` in its order, without the members of `UNDATED`."""

    source_ref: str
    license_class: str
    observed_at: str
    service_id: str
    legal_name: str | None
    country: str | None
    metric: str
    value: Decimal
    unit: str
    period_end: str
    available_at: str
    methodology_ref: str
    inputs: list[MetricInput]


def metric_rows(entity: Entity, values: Sequence[Value]) -> list[Entry]:
    identity = entity.service_id, entity.legal_name, entity.country
    known: dict[tuple[str, int], list[MetricInput]] = {}
    entries: list[Entry] = []
    for value in values:
        inputs: list[MetricInput] = []
        for name, figure in zip(value.names, value.figures, strict=True):
            item = name.removeprefix(PRIOR)
            if (own := known.get((item, id(figure)))) is None:
                own = known[item, id(figure)] = _inputs(item, figure)
            inputs += own
        reports = [report for figure in value.figures for report in figure.reports]
        metric = value.metric
        row = _Row(
            reports[0].source_ref,
            strictest(report.capture.license_class for report in reports),
            max(report.capture.observed_at for report in reports),
            *identity,
            metric.slug,
            value.value,
            metric.unit,
            iso_day(value.end),
            iso_day(max(report.available for report in reports)),
            metric.methodology_ref,
            inputs,
        )
        modes = _CURRENT if value.current else AS_KNOWN
        text = UNDATED + _encode(row)[1:]
        entries.append(Entry(text, value.first, value.until, modes, _NUMBERS[metric.slug]))
    return entries


def _inputs(line_item: str, figure: Figure) -> list[MetricInput]:
    """All parts of a figure, each under its line item."""
    return [
        MetricInput(
            line_item=line_item,
            concept=part.concept if ":" in part.concept else None,
            period_end=date.fromordinal(figure.end),
            value=part.value,
            vintage=part.vintage,
            source_ref=part.report.source_ref,
        )
        for part in figure.parts
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
