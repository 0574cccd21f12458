"""The panels of signals-v1, each a dataset of its own: this file knows none of them.

A panel without filters is one list of rows, put together of each issuer's own where it is a panel of issuers.
One with filters has a column for each question that they allow, newest first, so that an answer is a stretch
of a column (see `format.series_blocks`).
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.signals.contract import Observation, ObserveIssuer, Panel, panels
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.build.issuer_parts import issuer_part
from sankofa.edition.format.keys import panel_kind
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.series_blocks import pack_series
from sankofa.model.panel_keys import panel_key
from sankofa.model.provenance import KEYED_CLASSES
from sankofa.model.rows import wire

_read = msgspec.msgpack.Decoder(tuple[list[tuple[bytes, int]], list[str]]).decode
_write = msgspec.msgpack.Encoder().encode


def _rows(panel: Panel, context: BuildContext) -> Iterator[KeyRows]:
    yield KeyRows(panel_key(), (Entry(wire.encode(o.row), o.seen_from) for o in _observed(panel, context)))


def _issuer_rows(panel: Panel, context: BuildContext) -> Iterator[KeyRows]:
    kind = panel_kind(panel.key)

    def entries() -> Iterator[Entry]:
        for entity in context.entities:
            if part := context.issuers.part(kind, entity.service_id):
                rows, sources = _read(part)
                context.sources_of[kind].update(sources)
                yield from (Entry(row, first) for row, first in rows)

    yield KeyRows(panel_key(), entries())


def _made(observe: ObserveIssuer, issuer: Issuer) -> bytes:
    observed = list(observe(issuer))
    sources = {source for o in observed for source in o.sources}
    made = [(wire.encode(o.row), o.seen_from) for o in observed]
    return _write((made, sorted(sources))) if made else b""


def _observed(panel: Panel, context: BuildContext) -> Iterator[Observation]:
    """The rows of a panel; the sources of those that its file has are noted on the way."""
    named = context.sources_of[panel_kind(panel.key)]
    for observation in panel.observe(context):
        if panel.access != "open" or observation.row.license_class not in KEYED_CLASSES:
            named |= observation.sources
        yield observation


def _columns(panel: Panel, context: BuildContext) -> Iterator[KeyRows]:
    columns: defaultdict[str, list[Entry]] = defaultdict(list)
    for row, day, seen_from, _ in _observed(panel, context):
        entry = Entry(wire.encode(row), seen_from, tag=day)
        for name in panel.shelves(row):
            columns[name].append(entry)
    for name in sorted(columns):
        yield KeyRows(name, columns[name])


for _panel in panels().values():
    _kind = panel_kind(_panel.key)
    if _panel.of_issuer:
        issuer_part(_kind)(partial(_made, _panel.of_issuer))
        dataset(_kind, _panel.row)(partial(_issuer_rows, _panel))
    elif _panel.filters:
        dataset(_kind, _panel.row, pack_series)(partial(_columns, _panel))
    else:
        dataset(_kind, _panel.row)(partial(_rows, _panel))
