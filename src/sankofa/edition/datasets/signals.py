"""The panels of signals-v1, each a dataset of its own: this file knows none of them.

A panel without filters is one column; one with filters has a column for each question that they allow, newest
first, so that an answer is a stretch of a column (see `edition.columns`).
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from sankofa.derive.signals.contract import Observation, Panel, panels, shelf
from sankofa.edition.blocks import Entry
from sankofa.edition.columns import pack_column
from sankofa.edition.world import Shelved, World, dataset
from sankofa.model.rows import wire


def kind_of(key: str) -> str:
    """The kind of the rows of a panel."""
    return f"signal-{key}"


def _shelves(panel: Panel, world: World) -> Iterator[Shelved]:
    if not panel.filters:
        yield Shelved(shelf(), map(_entry, panel.observe(world)))
        return
    shelves: defaultdict[str, list[Entry]] = defaultdict(list)
    for observation in panel.observe(world):
        entry = _entry(observation)
        for name in panel.shelves(observation.row):
            shelves[name].append(entry)
    for name in sorted(shelves):
        yield Shelved(name, shelves[name])


def _entry(observation: Observation) -> Entry:
    return Entry(wire.encode(observation.row), observation.seen_from, tag=observation.day)


for _panel in panels().values():
    dataset(kind_of(_panel.key), _panel.row, pack_column)(partial(_shelves, _panel))
