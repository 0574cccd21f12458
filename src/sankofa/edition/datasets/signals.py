"""The panels of signals-v1, each a dataset of its own: this file knows none of them.

A panel without filters is one list of rows, put together of each issuer's own where it is a panel of issuers.
One with filters has a column for each question that they allow, newest first, so that an answer is a stretch
of a column (see `edition.columns`).
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.signals.contract import ObserveIssuer, Panel, panels, shelf
from sankofa.edition.blocks import Entry
from sankofa.edition.columns import pack_column
from sankofa.edition.issuers import issuer_part
from sankofa.edition.world import Shelved, World, dataset
from sankofa.model.rows import wire

_read = msgspec.msgpack.Decoder(list[tuple[bytes, int]]).decode
_write = msgspec.msgpack.Encoder().encode


def kind_of(key: str) -> str:
    """The kind of the rows of a panel."""
    return f"signal-{key}"


def _rows(panel: Panel, world: World) -> Iterator[Shelved]:
    yield Shelved(shelf(), (Entry(wire.encode(o.row), o.seen_from) for o in panel.observe(world)))


def _issuer_rows(panel: Panel, world: World) -> Iterator[Shelved]:
    parts = (world.issuers.part(kind_of(panel.key), entity.service_id) for entity in world.entities)
    yield Shelved(shelf(), (Entry(row, first) for part in parts if part for row, first in _read(part)))


def _made(observe: ObserveIssuer, issuer: Issuer) -> bytes:
    made = [(wire.encode(o.row), o.seen_from) for o in observe(issuer)]
    return _write(made) if made else b""


def _columns(panel: Panel, world: World) -> Iterator[Shelved]:
    columns: defaultdict[str, list[Entry]] = defaultdict(list)
    for row, day, seen_from in panel.observe(world):
        entry = Entry(wire.encode(row), seen_from, tag=day)
        for name in panel.shelves(row):
            columns[name].append(entry)
    for name in sorted(columns):
        yield Shelved(name, columns[name])


for _panel in panels().values():
    _kind = kind_of(_panel.key)
    if _panel.of_issuer:
        issuer_part(_kind)(partial(_made, _panel.of_issuer))
        dataset(_kind, _panel.row)(partial(_issuer_rows, _panel))
    elif _panel.filters:
        dataset(_kind, _panel.row, pack_column)(partial(_columns, _panel))
    else:
        dataset(_kind, _panel.row)(partial(_rows, _panel))
