"""Signals: each panel as a chart and a table. Quality: what passes, what fails. Downloads."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from sankofa.derive.signals.contract import panels
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.provenance import SKUS
from sankofa.web.charts.drawing import bar_chart
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_LABELS: Final = ("month", "date", "period_end", "year", "last_seen", "legal_name", "country")
_NOT_SHOWN: Final = ("methodology_ref", "service_id", "observed_at")
_BY_COUNTRY: Final = "procurement-demand"
"""The panel that has an operation of its own, with a country."""
_MOST_BARS: Final = 40
_STATUSES: Final = ("PASS", "FAIL", "UNMEASURED")


@page("/signals")
async def signals(visit: Visit) -> View:
    """The panels, with what each is."""
    context = {"panels": list(panels().values())}
    return View("signals.html", visit.language.text("Signals"), context)


@page("/signals/{signal_key}", "column", "limit", "country")
async def signal(visit: Visit) -> View:
    """One panel: one of its columns as a chart, and its rows."""
    key = visit.parameters["signal_key"]
    panel = panels().get(key)
    if panel is None:
        raise NotFound(f"No signal panel {key}.")
    if key == _BY_COUNTRY:
        country, limit = visit.given("country"), visit.given("limit")
        result = await visit.ask("get_procurement_demand", country=country, limit=limit)
    else:
        result = await visit.ask("get_signal", signal_key=key, limit=visit.given("limit"))
    names = [name for name in panel.row.__struct_fields__ if name not in _NOT_SHOWN]
    measured = _measured(result.rows, names)
    column = visit.given("column", measured[0] if measured else "")
    if column and column not in measured:
        raise InvalidParameter("column", f"expected one of {', '.join(measured)}")
    shown = [row for row in result.rows if column and row[column] is not None][:_MOST_BARS]
    chart = bar_chart(
        "panel",
        f"{key}: {column.replace('_', ' ')}",
        [(_label(row), Decimal(row[column])) for row in reversed(shown)],
        visit.language.short,
        (tuple(names), [tuple(row[name] for name in names) for row in result.rows]),
    )
    context: dict[str, Any] = {
        "panel": panel,
        "columns": names,
        "measured": measured,
        "column": column,
        "rows": result.rows,
        "truncated": result.truncated,
        "by_country": key == _BY_COUNTRY,
    }
    return View("signal.html", key, context, (chart,))


def _measured(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The columns that are measures: numbers, and not a rank of time."""
    found = []
    for name in names:
        values = [row[name] for row in rows if row[name] is not None]
        if name != "year" and values and all(_is_number(value) for value in values):
            found.append(name)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


def _label(row: Row) -> str:
    return next((str(row[name]) for name in _LABELS if row.get(name)), "")


@page("/quality")
async def quality(visit: Visit) -> View:
    """Every measure of every dataset, with what passes at a glance."""
    datasets = []
    for sku in SKUS:
        rows = (await visit.ask("get_quality_metrics", sku=sku)).rows
        counts = {status: sum(row["status"] == status for row in rows) for status in _STATUSES}
        datasets.append({"sku": sku, "rows": rows, "counts": counts})
    return View("quality.html", visit.language.text("Quality"), {"datasets": datasets})


@page("/downloads")
async def downloads(visit: Visit) -> View:
    """The Parquet files, with the lines that read them."""
    files = (await visit.ask("get_export")).rows
    return View("downloads.html", visit.language.text("Downloads"), {"files": files})
