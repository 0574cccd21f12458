"""The signal panels, each a table: this file knows none of them."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from sankofa.derive.signals.contract import Panel, panels, shelf
from sankofa.derive.signals.methodology import methodology
from sankofa.edition.blocks import Entry
from sankofa.edition.datasets.signals import kind_of
from sankofa.edition.tables import Table, table
from sankofa.edition.world import World


def _once(panel: Panel, world: World, key: str, entry: Entry, row: Any) -> Iterable[object]:
    """A row is shelved under every question it answers: here it is taken from the widest."""
    widest = shelf(str(getattr(row, panel.filters[0]))) if panel.filters else shelf()
    return (row,) if key == widest else ()


for _panel in panels().values():
    table(
        Table(
            _panel.key,
            _panel.row,
            _panel.sku,
            _panel.summary,
            takes_from=kind_of(_panel.key),
            take=partial(_once, _panel),
            signal_key=_panel.key,
            open=_panel.access == "open",
            methodology=methodology(_panel),
        )
    )
