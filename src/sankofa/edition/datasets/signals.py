"""The panels of signals-v1, each a dataset of its own: this file knows none of them.

A panel without filters is one list of rows. One with filters has a column for each question that they allow,
newest first, so that an answer is a stretch of a column (see `edition.columns`).
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from sankofa.derive.signals.contract import Panel, panels, shelf
from sankofa.edition.blocks import Entry
from sankofa.edition.columns import pack_column
from sankofa.edition.world import Shelved, World, dataset
from sankofa.model.rows import wire


def kind_of(key: str) -> str:
    """The kind of the rows of a panel."""
    return f"signal-{key}"


def _rows(panel: Panel, world: World) -> Iterator[Shelved]:
    yield Shelved(shelf(), (Entry(wire.encode(o.row), o.seen_from) for o in panel.observe(world)))


def _columns(panel: Panel, world: World) -> Iterator[Shelved]:
    columns: defaultdict[str, list[Entry]] = defaultdict(list)
    for row, day, seen_from in panel.observe(world):
        entry = Entry(wire.encode(row), seen_from, tag=day)
        for name in panel.shelves(row):
            columns[name].append(entry)
    for name in sorted(columns):
        yield Shelved(name, columns[name])


for _panel in panels().values():
    if _panel.filters:
        dataset(kind_of(_panel.key), _panel.row, pack_column)(partial(_columns, _panel))
    else:
        dataset(kind_of(_panel.key), _panel.row)(partial(_rows, _panel))
