"""Derived values: each signal panel as a chart and a table, and the screen of issuers by a metric."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.derive.signals.contract import panels
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.web import data
from sankofa.web.charts import Chart, NamedBar, Table, bar_chart, named_bars, shortened
from sankofa.web.languages import label, measure, metric_value
from sankofa.web.view import View, page
from sankofa.web.visit import Result, Row, Visit

_TIMES: Final = ("month", "quarter", "date")
_NAMES: Final = (
    *("legal_name", "metric", "line_item", "category", "series", "country"),
    *("month", "quarter", "date", "period_end"),
)
NOT_SHOWN: Final = tuple("methodology_ref service_id observed_at license_class period_start concept".split())
_LAST: Final = ("source_ref",)
_DAYS: Final = frozenset(
    {"period_end", "available_at", "first_available_at", "date", "known_at", "closed_at"}
)
_FIRST_CHOSEN: Final = ("revision_size", "momentum_3p", "momentum_1p", "value", "tender_count")
"""The columns to show first."""
_BY_COUNTRY: Final = "procurement-demand"
"""The panel with a separate operation that takes a country."""
_MOST_BARS: Final = 25
_MOST_LISTED: Final = 75
_LONGEST: Final = 18
"""Most characters of a name or label beside a bar, where two of them and a year fit."""


@page("/signals")
async def signals(visit: Visit) -> View:
    """The panels with their descriptions."""
    context = {"panels": list(panels().values())}
    return View("signals.html", visit.language.text("Signals"), context)


@page("/signals/{signal_key}", "column", "limit", "country")
async def signal(visit: Visit) -> View:
    """One panel: one of its columns as a chart, and its rows."""
    key = visit.parameters["signal_key"]
    panel = panels().get(key)
    if panel is None:
        raise NotFound(f"No signal panel {key}.")
    by_country = key == _BY_COUNTRY
    name = "get_procurement_demand" if by_country else "get_signal"
    arguments = visit.passed_on("country") if by_country else {"signal_key": key}
    result = await visit.ask(name, **arguments, limit=visit.limit())
    names = [name for name in panel.row.__struct_fields__ if name not in (*NOT_SHOWN, *_LAST)]
    names += _LAST
    measured = _measured(result.rows, names)
    first = next((name for name in (*_FIRST_CHOSEN, *measured) if name in measured), "")
    column = visit.given("column", first)
    if column and column not in measured:
        raise InvalidParameter("column", f"expected one of {', '.join(measured)}")
    shown = [row for row in result.rows if column and row[column] is not None][:_MOST_BARS]
    title = f"{label(visit.language, key)}: {label(visit.language, column)}"
    table = tuple(names), [tuple(row[name] for name in names) for row in result.rows]
    chart = _chart(visit, title, shown, column, table)
    context: dict[str, Any] = {
        "panel": panel,
        "columns": names,
        "measured": measured,
        "column": column,
        "rows": result.rows[: len(result.rows) if visit.given("limit") else _MOST_LISTED],
        "count": len(result.rows),
        "countries": await data.tender_countries(visit) if by_country else (),
        "measure": partial(measure, visit.language),
        "days": _DAYS,
    }
    described = visit.language.text(panel.summary)
    context["dataset"] = await data.dataset(visit, label(visit.language, key), described)
    return View("signal.html", label(visit.language, key), context, (chart,))


def _measured(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The columns that are measures: numbers other than years."""
    kinds = {name: {type(row[name]) for row in rows if row[name] is not None} for name in names}
    return [name for name, own in kinds.items() if name != "year" and own and own <= {int, Decimal, float}]


def _chart(visit: Visit, title: str, rows: Sequence[Row], column: str, table: Table) -> Chart:
    """Vertical bars along time if every row has a different time; else a named bar for each row."""
    time = next((name for name in _TIMES if rows and name in rows[0]), None)
    if time is not None and len({row[time] for row in rows}) == len(rows):
        bars = [(str(row[time]), Decimal(row[column])) for row in reversed(rows)]
        return bar_chart("panel", title, bars, partial(measure, visit.language, column), table)
    named = [NamedBar(_name(visit, row), Decimal(row[column]), _address(visit, row)) for row in rows]
    return named_bars("panel", title, named, partial(measure, visit.language, column), table)


def _name(visit: Visit, row: Row) -> str:
    """The fields that identify a row: organisation, subject and period."""
    parts: list[str] = []
    for name in _NAMES:
        value = row.get(name)
        if value and not (name == "country" and parts):
            named = name in ("metric", "line_item")
            parts.append(_briefly(name, label(visit.language, value) if named else str(value)))
    return " · ".join(parts[:3])


def _briefly(name: str, value: str) -> str:
    """Shortens a year's last day to the year, and a long name to its beginning. Keys are not shortened."""
    if name == "period_end":
        return value[:4]
    return value if name == "series" else shortened(value, _LONGEST)


def _address(visit: Visit, row: Row) -> str | None:
    if row.get("service_id"):
        return visit.address(f"/company/{row['service_id']}")
    return visit.address(f"/macro/series/{row['series']}") if row.get("series") else None


@page("/screen", "metric", "country", "as_of", "beside", "order", "limit")
async def screen(visit: Visit) -> View:
    """A ranking, compared with that of another day."""
    slug = visit.given("metric", "net_margin")
    as_of = visit.day()
    now = await _ranking(visit, slug, as_of)
    beside = visit.day("beside") if visit.given("beside") else None
    then = await _ranking(visit, slug, beside) if beside else None
    rows = _joined(now, then)
    context: dict[str, Any] = {
        "metric": slug,
        "countries": await data.issuer_countries(visit),
        "metrics": slugs(),
        "summary": next((m.summary for m in metrics() if m.slug == slug), ""),
        "as_of": as_of,
        "beside": beside,
        "rows": rows,
        "omitted": _counts(now),
        "omitted_then": _counts(then) if then else {},
        "unit": now.rows[0]["unit"] if now.rows else "ratio",
    }
    here = {row["service_id"] for row in rows}
    context["left"] = [row for row in then.rows if row["service_id"] not in here] if then else []
    charts = (_ranking_chart(visit, slug, rows),) if rows else ()
    return View("screen.html", visit.language.text("Screen"), context, charts)


async def _ranking(visit: Visit, metric: str, day: date) -> Result:
    return await visit.ask(
        "get_screen",
        metric=metric,
        country=visit.given("country"),
        order=visit.given("order"),
        as_of=day.isoformat(),
        limit=visit.limit(),
    )


def _counts(result: Result) -> dict[str, int]:
    return {reason: count for reason, count in result.members["omitted"].items() if count}


def _joined(now: Result, then: Result | None) -> list[dict[str, Any]]:
    """The ranking, with each issuer's rank on the other day."""
    before = {row["service_id"]: row for row in then.rows} if then else {}
    joined = []
    for row in now.rows:
        other = before.get(row["service_id"])
        moved = other["rank"] - row["rank"] if other else None
        joined.append({**row, "then": other, "moved": moved, "why": _why(row, other)})
    return joined


def _why(now: Row, then: Row | None) -> str:
    """Why an issuer's value differs: restated, or a newer year; empty if it is the same."""
    if then is None or now["value"] == then["value"]:
        return ""
    return "restated" if now["period_end"] == then["period_end"] else "newer"


def _ranking_chart(visit: Visit, slug: str, rows: list[dict[str, Any]]) -> Chart:
    columns = ("rank", "service_id", "legal_name", "country", "value", "period_end", "available_at")
    bars = []
    for row in rows[:_MOST_BARS]:
        address = visit.address(f"/company/{row['service_id']}", as_of=visit.given("as_of"))
        bars.append(NamedBar(row["legal_name"] or row["service_id"], row["value"], address))
    return named_bars(
        "ranking",
        f"{label(visit.language, slug)}, {visit.language.day(visit.day())}",
        bars,
        partial(metric_value, visit.language, slug),
        (columns, [tuple(row[name] for name in columns) for row in rows]),
    )
