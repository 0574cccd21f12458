"""The signal panels, each a table: this file knows none of them."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from sankofa.derive.signals.contract import Panel, panels
from sankofa.derive.signals.methodology import methodology
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.tables import Table, table
from sankofa.edition.format.keys import panel_kind
from sankofa.edition.format.row_blocks import Entry
from sankofa.model.panel_keys import panel_key


def _once(panel: Panel, context: BuildContext, key: str, entry: Entry, row: Any) -> Iterable[object]:
    """A row is shelved under every question it answers: here it is taken from the widest."""
    widest = panel_key(str(getattr(row, panel.filters[0]))) if panel.filters else panel_key()
    return (row,) if key == widest else ()


for _panel in panels().values():
    table(
        Table(
            _panel.key,
            _panel.row,
            _panel.sku,
            _panel.summary,
            takes_from=panel_kind(_panel.key),
            take=partial(_once, _panel),
            signal_key=_panel.key,
            open=_panel.access == "open",
            methodology=methodology(_panel),
        )
    )
