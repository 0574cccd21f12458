"""Derived values: by service_id, and in the order of their size.

- `metrics`: the values of an issuer, ordered by metric, each seen on the days on which it stands;
- `omitted`: of an issuer, per metric and day, why there is no value;
- `screen`: the sheets of `edition.screening`, which lead to the rows of `metrics`.
"""

from collections.abc import Iterator

from sankofa.derive.metrics.standing import REASONS
from sankofa.edition.blocks import Entry
from sankofa.edition.derivation import derived_issuers
from sankofa.edition.kept import Kept
from sankofa.edition.world import Shelved, World, dataset
from sankofa.model.rows import MetricsRow


@dataset("metrics", MetricsRow, placed=True)
def metrics(world: World) -> Iterator[Shelved]:
    for entity, own in derived_issuers(world, Kept(world.kept and world.kept / "metrics")):
        world.screening.add(entity.service_id, entity.aliases, entity.country, own)
        yield Shelved(entity.service_id, own.entries(), entity.aliases)


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
