"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: for an issuer, metric and day, why there is no value, and which later figures are the cause;
- `screen`, `screen-ranges`: the index of `format.screen_index`, which leads to the rows of `metrics`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import derive
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.screen_index import SCREEN, SCREEN_RANGES
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Built, KeyRows, Outcome, PreparedKeyRows, dataset
from sankofa.edition.write.issuer_parts import issuer_part
from sankofa.edition.write.metric_rows import METRICS, Standings, metric_rows, standings
from sankofa.edition.write.prepared_rows import PreparedRows, prepare
from sankofa.edition.write.screen_index import ScreenIndex
from sankofa.ledger.entities import Entity
from sankofa.model.rows import REASONS, MetricsRow, State

_read = msgspec.msgpack.Decoder(tuple[PreparedRows, Standings]).decode
_write = msgspec.msgpack.Encoder().encode
_OMITTED_ROW = b'{"metric":"%b","reason":"%b","changes":%b}'


@issuer_part(METRICS)
def _part(issuer: Issuer) -> bytes:
    derived = derive(issuer.years)
    if not any(derived.histories):
        return b""
    entries = metric_rows(issuer.entity, derived.values)
    return _write((prepare(METRICS, MetricsRow, issuer.entity.service_id, entries), standings(derived)))


@dataset(METRICS, MetricsRow, by_organisation=True, ranged=True)
def metrics(context: BuildContext, some: Sequence[Entity]) -> Iterator[PreparedKeyRows]:
    for entity in some:
        if part := context.issuers.part(METRICS, entity.service_id):
            rows, _ = _read(part)
            yield PreparedKeyRows(entity.service_id, rows, entity.aliases)


@dataset("omitted", None, by_organisation=True)
def omitted(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity in some:
        if part := context.issuers.part(METRICS, entity.service_id):
            listed = _read(part)[1]
            changes = {(number, first): changed for number, first, changed in listed.changes}
            entries = [
                Entry(
                    _OMITTED_ROW
                    % (
                        slugs()[one.number].encode(),
                        REASONS[State(one.state)].encode(),
                        changes.get((one.number, one.first), b"[]"),
                    ),
                    one.first,
                    one.until,
                    tag=one.number,
                )
                for one in listed.stretches()
                if one.state != State.STANDS
            ]
            if entries:
                yield KeyRows(entity.service_id, entries, entity.aliases)


@dataset(SCREEN, None, needs=(METRICS,), partitioned=True, of_organisations=True)
def screen(context: BuildContext, metrics: Built[Mapping[str, int]]) -> Building:
    """Of every issuer; `metrics` has the address of the first block of each. Returns the index."""
    index = ScreenIndex()
    for segment in context.summaries.screens():
        index.add(segment, metrics.result)
    yield from _pages(index, ranges=False)
    return Outcome(index, manifest_extras={"screen_years": index.years})


@dataset(SCREEN_RANGES, None, needs=(SCREEN,), partitioned=True, of_organisations=True)
def screen_ranges(context: BuildContext, screens: Built[ScreenIndex]) -> Iterator[KeyRows]:
    yield from _pages(screens.result, ranges=True)


def _pages(index: ScreenIndex, *, ranges: bool) -> Iterator[KeyRows]:
    """By metric: those of one of which nothing changed are not made."""

    @lru_cache(maxsize=1)
    def pages(metric: int) -> dict[str, bytes]:
        return index.pages(metric, ranges=ranges)

    def entries(metric: int, key: str) -> Iterator[Entry]:
        yield Entry(pages(metric)[key])

    for metric, keys in index.metrics():
        inputs = index.inputs(metric, ranges=ranges)
        for key in keys:
            yield KeyRows(key, entries(metric, key), inputs=inputs)
