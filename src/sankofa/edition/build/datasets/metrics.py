"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: of an issuer, per metric and day, why there is no value;
- `screen`: the index of `format.screen_index`, which leads to the rows of `metrics`.
"""

from collections.abc import Generator, Iterator

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import derive
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Building, Built, KeyRows, Outcome, PreparedKeyRows, dataset
from sankofa.edition.build.issuer_parts import issuer_part
from sankofa.edition.build.metric_rows import METRICS, Standings, metric_rows, standings
from sankofa.edition.build.prepared_rows import PreparedRows, prepare
from sankofa.edition.build.screen_index import ScreenIndex
from sankofa.edition.format.row_blocks import Entry
from sankofa.model.metric_states import REASONS
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


@dataset(METRICS, MetricsRow, ranged=True)
def metrics(context: BuildContext) -> Generator[PreparedKeyRows, None, Outcome]:
    """Returns what screens list of every issuer."""
    index = ScreenIndex()
    for entity in context.entities:
        if part := context.issuers.part(METRICS, entity.service_id):
            rows, standings = _read(part)
            index.add(entity.service_id, entity.aliases, entity.country, standings)
            yield PreparedKeyRows(entity.service_id, rows, entity.aliases)
    return Outcome(index)


@dataset("omitted", None, needs=(METRICS,))
def omitted(context: BuildContext, metrics: Built[ScreenIndex]) -> Iterator[KeyRows]:
    for service_id, aliases, stretches in metrics.result.omitted():
        entries = [
            Entry(REASONS[state].encode(), first, until, tag=number)
            for number, (first, until, state) in stretches
        ]
        if entries:
            yield KeyRows(service_id, entries, aliases)


@dataset("screen", None, needs=(METRICS,))
def screen(context: BuildContext, metrics: Built[ScreenIndex]) -> Building:
    for key, page in metrics.result.pages(metrics.ranges):
        yield KeyRows(key, [Entry(page)])
    return Outcome(manifest_extras={"screen_years": metrics.result.years()})
