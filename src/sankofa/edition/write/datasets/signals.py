"""The panels of signals-v1, each a dataset and a table.

A panel without filters is one list of rows. A panel of issuers is stored with the organisations, by
partition. A panel with filters has a column for each combination, newest first, so an answer is a slice of a
column (`format.macro`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.series import MacroColumn
from sankofa.derive.signals.contract import Observation, Panel, methodology, panels
from sankofa.edition.format.keys import TENDERS, panel_kind
from sankofa.edition.format.macro import pack_series
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Input, KeyRows, Outcome, PreparedRows, dataset, prepare
from sankofa.edition.write.derived_parts import issuer_part, macro_part
from sankofa.edition.write.tables import MacroRows, TableRows, encoded_rows, table
from sankofa.ledger.entities import Entity
from sankofa.model.days import FOREVER
from sankofa.model.provenance import KEYED_CLASSES, TENDER
from sankofa.model.rows import panel_key, wire

_read = msgspec.msgpack.Decoder(tuple[list[tuple[bytes, int, int]], list[str]]).decode
_read_series = msgspec.msgpack.Decoder(tuple[PreparedRows, list[str]]).decode
_write = msgspec.msgpack.Encoder().encode


_READS: Final = (Input.MACRO, Input.ISSUERS)
"""Inputs of panels that are not of issuers, besides tenders and organisations. Panels of tenders read no
macro values."""


def _rows(panel: Panel, context: BuildContext, releases: None) -> Building:
    sources: set[str] = set()
    observed = _observed(panel, panel.observe(context), sources)
    yield KeyRows(panel_key(), (Entry(wire.encode(o.row), o.seen_from) for o in observed))
    return Outcome(sources=sources)


def _issuer_rows(panel: Panel, context: BuildContext, some: Sequence[Entity]) -> Building:
    """The rows of a partition under the id of its first organisation; a change writes only that partition."""
    kind = panel_kind(panel.key)
    sources: set[str] = set()
    entries: list[Entry] = []
    for _, part in context.issuers.parts(kind, some):
        rows, named = _read(part)
        sources.update(named)
        entries += [
            Entry(row, first, until, AS_KNOWN if until < FOREVER else AS_KNOWN | Entry(b"").modes)
            for row, first, until in rows
        ]
    if entries:
        yield KeyRows(some[0].service_id, entries)
    return Outcome(sources=sources)


def _issuer_part(panel: Panel, issuer: Issuer) -> bytes:
    observed = list(panel.observe(issuer))
    sources = {source for o in observed if o.until == FOREVER for source in o.sources}
    rows = [(wire.encode(o.row), o.seen_from, o.until) for o in observed]
    return _write((rows, sorted(sources))) if rows else b""


def _series_rows(panel: Panel, context: BuildContext) -> Building:
    derived = [_read_series(part) for part in context.macro.parts(panel_kind(panel.key))]
    blocks = [block for rows, _ in derived for block in rows.blocks]
    yield KeyRows(panel_key(), PreparedRows(sum(rows.count for rows, _ in derived), blocks, []))
    return Outcome(sources={source for _, named in derived for source in named})


def _series_part(panel: Panel, columns: Sequence[MacroColumn]) -> Iterator[tuple[str, bytes]]:
    if columns[0].country:  # made from an annual table, not published as a series
        return
    sources: set[str] = set()
    observed = chain.from_iterable(
        panel.observe(one, column.captures) for column in columns for one in column.series
    )
    rows = list(_observed(panel, observed, sources))
    if rows:
        kind, entries = panel_kind(panel.key), [Entry(wire.encode(o.row), o.seen_from) for o in rows]
        yield kind, _write((prepare(kind, panel.row, panel_key(), entries), sorted(sources)))
        yield panel.key, encoded_rows(panel.key, [o.row for o in rows])


def _observed(panel: Panel, observed: Iterable[Observation], sources: set[str]) -> Iterator[Observation]:
    """Yields the rows of a panel; collects the sources of the rows in its file."""
    for observation in observed:
        if panel.access != "open" or observation.row.license_class not in KEYED_CLASSES:
            sources |= observation.sources
        yield observation


def _filtered_rows(panel: Panel, context: BuildContext, releases: None) -> Building:
    by_key: defaultdict[str, list[Entry]] = defaultdict(list)
    sources: set[str] = set()
    for row, day, seen_from, *_ in _observed(panel, panel.observe(context), sources):
        entry = Entry(wire.encode(row), seen_from, tag=day)
        for key in panel.keys_of(row):
            by_key[key].append(entry)
    for key in sorted(by_key):
        yield KeyRows(key, by_key[key])
    return Outcome(sources=sources)


class _EachRowOnce(TableRows):
    """A row is stored under each filter combination it matches; the table takes it from the widest."""

    def __init__(self, panel: Panel, context: BuildContext) -> None:
        super().__init__(context)
        self._filters = panel.filters[:1]

    def take(self, key: str, row: Any) -> Iterable[msgspec.Struct]:
        return (row,) if key == panel_key(*(str(getattr(row, name)) for name in self._filters)) else ()


def _table_of(panel: Panel) -> Callable[[BuildContext], TableRows]:
    """How a panel's table gets its rows."""
    if panel.of == "series":
        return partial(MacroRows, panel.key)
    return partial(_EachRowOnce, panel) if panel.filters else TableRows


def _declare(panel: Panel) -> None:
    kind = panel_kind(panel.key)
    reads = _READS[1:] if panel.sku == TENDER else _READS
    if panel.of == "issuer":
        issuer_part(kind)(partial(_issuer_part, panel))
        dataset(kind, panel.row, by_organisation=True)(partial(_issuer_rows, panel))
    elif panel.of == "series":
        macro_part(partial(_series_part, panel))
        dataset(kind, panel.row, reads=(Input.MACRO,))(partial(_series_rows, panel))
    elif panel.filters:
        dataset(kind, panel.row, pack_series, needs=(TENDERS,), reads=reads)(partial(_filtered_rows, panel))
    else:
        dataset(kind, panel.row, needs=(TENDERS,), reads=reads)(partial(_rows, panel))
    table(
        panel.key,
        panel.row,
        panel.sku,
        panel.summary,
        takes_from=kind,
        derived=True,
        rows=_table_of(panel),
        signal_key=panel.key,
        open=panel.access == "open",
        methodology=methodology(panel),
    )


for _panel in panels().values():
    _declare(_panel)
