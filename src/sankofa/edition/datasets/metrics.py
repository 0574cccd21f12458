"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: of an issuer, per metric and day, why there is no value;
- `screen`: the sheets of `edition.screening`, which lead to the rows of `metrics`.
"""

from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from sankofa.derive.metrics.contract import PRIOR, slugs
from sankofa.derive.metrics.derive import Derived, Value, derive
from sankofa.derive.metrics.full_years import full_years
from sankofa.derive.metrics.standing import REASONS
from sankofa.derive.metrics.year_ends import YearEnds
from sankofa.edition.blocks import Entry
from sankofa.edition.screening import undated
from sankofa.edition.world import Shelved, World, dataset
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Published
from sankofa.model.provenance import strictest
from sankofa.model.rows import MetricInput, MetricsRow, wire

_NO_DAY = date(1, 1, 1)  # see `edition.screening.AS_OF`
_TAGS = {slug: tag for tag, slug in enumerate(slugs())}


@dataset("metrics", MetricsRow, placed=True)
def metrics(world: World) -> Iterator[Shelved]:
    for entity in world.entities:
        derived = derived_of(world, entity)
        if any(derived.histories):
            world.screening.add(entity.service_id, entity.aliases, entity.country, derived)
            entries = [_entry(world, entity, value) for value in derived.values]
            yield Shelved(entity.service_id, entries, entity.aliases)


@dataset("omitted", None)
def omitted(world: World) -> Iterator[Shelved]:
    for service_id, aliases, stretches in world.screening.omitted():
        entries = [
            Entry(REASONS[state].encode(), first, until, tag=number)
            for number, (first, until, state) in stretches
        ]
        if entries:
            yield Shelved(service_id, entries, aliases)


@dataset("screen", None)
def screen(world: World) -> Iterator[Shelved]:
    world.remarks["screen_years"] = world.screening.years()
    for key, sheet in world.screening.sheets(world.places["metrics"]):
        yield Shelved(key, [Entry(sheet)])


def derived_of(world: World, entity: Entity) -> Derived:
    """Everything derived of one issuer."""
    published = Published(world.ledger, world.captures, entity.subjects)
    ends = YearEnds(published.evidence())
    return derive(full_years(published.reports(ends.full), ends))


def _entry(world: World, entity: Entity, value: Value) -> Entry:
    reports = [figure.report for figure in value.figures]
    newest = max(reports, key=lambda report: report.available)
    row = MetricsRow(
        service_id=entity.service_id,
        legal_name=entity.legal_name,
        country=entity.country,
        metric=value.metric.slug,
        value=value.value,
        unit=value.metric.unit,
        period_end=_day(value.end),
        as_of=_NO_DAY,
        available_at=_day(newest.available),
        methodology_ref=value.metric.methodology_ref,
        inputs=[
            MetricInput(name.removeprefix(PRIOR), _day(f.end), f.value, f.vintage, f.report.source_ref)
            for name, f in zip(value.names, value.figures, strict=True)
        ],
        source_ref=newest.source_ref,
        license_class=strictest(r.capture.license_class for r in reports),
        observed_at=max(r.capture.observed_at for r in reports),
    )
    tag = _TAGS[value.metric.slug]
    return Entry(undated(wire.encode(row)), value.first, value.until, tag=tag)


@lru_cache(maxsize=65536)
def _day(day: int) -> date:
    return date.fromordinal(day)
