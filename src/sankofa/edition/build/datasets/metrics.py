"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: of an issuer, per metric and day, why there is no value;
- `screen`: the index of `format.screen_index`, which leads to the rows of `metrics`.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import derive
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Building, Built, KeyRows, Outcome, PreparedKeyRows, dataset
from sankofa.edition.build.issuer_parts import issuer_part
from sankofa.edition.build.metric_rows import METRICS, Standings, metric_rows, standings
from sankofa.edition.build.prepared_rows import PreparedRows, prepare
from sankofa.edition.build.row_ranges import RowRanges
from sankofa.edition.build.screen_index import ScreenIndex
from sankofa.edition.format.row_blocks import Entry, row_ends
from sankofa.ledger.entities import Entity
from sankofa.model.metric_states import REASONS, State
from sankofa.model.rows import MetricsRow

_read = msgspec.msgpack.Decoder(tuple[PreparedRows, Standings]).decode
_write = msgspec.msgpack.Encoder().encode


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
            entries = [
                Entry(REASONS[State(one.state)].encode(), one.first, one.until, tag=one.number)
                for one in _read(part)[1].stretches()
                if one.state != State.STANDS
            ]
            if entries:
                yield KeyRows(entity.service_id, entries, entity.aliases)


@dataset("screen", None, needs=(METRICS,))
def screen(context: BuildContext, metrics: Built[Mapping[str, int]]) -> Building:
    """Of every issuer; `metrics` has the address of the first block of each."""
    index, ranges = ScreenIndex(), RowRanges()
    for entity in context.entities:
        if part := context.issuers.part(METRICS, entity.service_id):
            rows, standings = _read(part)
            index.add(entity.country, standings)
            for number, block in enumerate(rows.blocks, metrics.result.get(entity.service_id, 0)):
                ranges.add(number, row_ends(block))
    for key, page in index.pages(ranges):
        yield KeyRows(key, [Entry(page)])
    return Outcome(manifest_extras={"screen_years": index.years()})
