"""One figure and its vintages: what it was, from which day on, and who said so."""

from datetime import date
from decimal import Decimal

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.web import data
from sankofa.web.charts.chart import Chart
from sankofa.web.charts.drawing import KnownValue, step_chart
from sankofa.web.labels import label
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit


@page("/company/{service_id}/figure", "line_item", "period_end", "period_start", "concept", "unit", "as_of")
async def figure(visit: Visit) -> View:
    """The vintages of one figure as steps. The part `figure` is what opens over a company's page."""
    service_id = visit.parameters["service_id"]
    line_item = visit.given("line_item")
    if not line_item:
        raise InvalidParameter("line_item", "required")
    as_of = visit.day()
    result = await data.vintages(visit, service_id, line_item)
    asked = {name: visit.given(name) or None for name in ("period_end", "period_start", "concept", "unit")}
    rows = [row for row in result.rows if all(v is None or row[k] == v for k, v in asked.items())]
    if not rows:
        raise NotFound("No such figure is known of this company.")
    newest = max(rows, key=lambda row: (row["period_end"], row["available_at"]))
    same = ("period_end", "period_start", "concept", "unit")
    rows = [row for row in rows if all(row[name] == newest[name] for name in same)]
    rows.sort(key=lambda row: row["vintage"])
    entity = (await visit.ask("get_entity", service_id=service_id, shown=False)).first
    name = entity["legal_name"] or service_id
    known = [row for row in rows if row["available_at"] <= as_of.isoformat()]
    title = f"{label(visit.language, line_item)} {newest['period_end']}"
    chart = vintage_chart(visit, rows, visit.language.text("The figure from the day it became known"), as_of)
    context = {
        "name": name,
        "service_id": service_id,
        "line_item": line_item,
        "rows": rows,
        "newest": newest,
        "as_of": as_of,
        "then": known[-1] if known else None,
    }
    return View("figure.html", f"{title} · {name}", context, (chart,) if chart else (), ("figure",))


def vintage_chart(visit: Visit, rows: list[Row], title: str, as_of: date | None = None) -> Chart | None:
    """The vintages of one figure as steps; None where every one was withdrawn."""
    language = visit.language
    steps = [
        KnownValue(
            date.fromisoformat(row["available_at"]),
            Decimal(row["value_reported"]),
            f"{row['available_at']}: {language.figure(row['value_reported'])}",
        )
        for row in rows
        if row["value_reported"] is not None
    ]
    if not steps:
        return None
    columns = (
        "vintage",
        "available_at",
        "value_reported",
        "unit",
        "source_ref",
        "license_class",
        "observed_at",
    )
    table = [tuple(row[name] for name in columns) for row in rows]
    return step_chart("vintages", title, steps, visit.today, language.short, (columns, table), as_of)
