"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: of an issuer, per metric and day, why there is no value;
- `screen`: the sheets of `edition.screening`, which lead to the rows of `metrics`.
"""

from collections.abc import Iterator

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import derive
from sankofa.derive.metrics.standing import REASONS
from sankofa.edition.blocks import Entry
from sankofa.edition.issuers import issuer_part
from sankofa.edition.metric_rows import METRICS, Standings, metric_rows, standings
from sankofa.edition.ready import Ready, ready
from sankofa.edition.world import ReadyShelved, Shelved, World, dataset
from sankofa.model.rows import MetricsRow

_read = msgspec.msgpack.Decoder(tuple[Ready, Standings]).decode
_write = msgspec.msgpack.Encoder().encode


@issuer_part(METRICS)
def _made(issuer: Issuer) -> bytes:
    derived = derive(issuer.years)
    if not any(derived.histories):
        return b""
    entries = metric_rows(issuer.entity, derived.values)
    return _write((ready(METRICS, MetricsRow, issuer.entity.service_id, entries), standings(derived)))


@dataset(METRICS, MetricsRow, placed=True)
def metrics(world: World) -> Iterator[ReadyShelved]:
    for entity in world.entities:
        if made := world.issuers.part(METRICS, entity.service_id):
            rows, own = _read(made)
            world.screening.add(entity.service_id, entity.aliases, entity.country, own)
            yield ReadyShelved(entity.service_id, rows, entity.aliases)


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
    for key, sheet in world.screening.sheets(world.places[METRICS]):
        yield Shelved(key, [Entry(sheet)])
