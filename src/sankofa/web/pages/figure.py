"""One figure and its vintages, and the list of figures that replaced earlier ones."""

from datetime import date
from decimal import Decimal
from typing import Final

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.web import data
from sankofa.web.charts import Chart, KnownValue, step_chart
from sankofa.web.languages import label
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_IDENTITY: Final = ("period_end", "period_start", "concept", "unit")


@page("/company/{service_id}/figure", "line_item", "period_end", "period_start", "concept", "unit", "as_of")
async def figure(visit: Visit) -> View:
    """The vintages of one figure as steps. The part `figure` is what opens over a company's page."""
    service_id = visit.parameters["service_id"]
    line_item = visit.given("line_item")
    if not line_item:
        raise InvalidParameter("line_item", "required")
    as_of = visit.day()
    every = (await data.vintages(visit, service_id, line_item)).rows
    newest = await _chosen(visit, service_id, line_item, every)
    rows = [row for row in every if all(row[name] == newest[name] for name in _IDENTITY)]
    rows.sort(key=lambda row: row["vintage"])
    rows = rows or [newest]  # the tier holds the others back
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


async def _chosen(visit: Visit, service_id: str, line_item: str, every: list[Row]) -> Row:
    """The figure that the address names: of the latest period known that day. Raises NotFound.

    Where none was known that day, it is the one that became known first: no later filing changes either.
    """
    asked = {name: visit.given(name) for name in _IDENTITY if visit.given(name)}

    def is_asked(row: Row) -> bool:
        return all(row[name] == text for name, text in asked.items())

    day = visit.day().isoformat()
    known = await visit.ask(
        "get_fundamentals", shown=False, service_id=service_id, line_items=line_item, as_of=day
    )
    if rows := [row for row in known.rows if is_asked(row)]:
        return max(rows, key=lambda row: (row["period_end"], row["available_at"]))
    if rows := [row for row in every if is_asked(row)]:
        return min(rows, key=lambda row: (row["available_at"], row["period_end"], row["vintage"]))
    raise NotFound("No such figure is known of this company.")


def vintage_chart(visit: Visit, rows: list[Row], title: str, as_of: date | None = None) -> Chart | None:
    """The vintages of one figure as steps; None if every one was withdrawn."""
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
    provenance = ("source_ref", "license_class", "observed_at")
    columns = ("vintage", "available_at", "value_reported", "unit", *provenance)
    table = [tuple(row[name] for name in columns) for row in rows]
    return step_chart("vintages", title, steps, visit.today, language.short, (columns, table), as_of)


_MOST_SHOWN = 60
_FILTERS = ("country", "service_id", "line_item", "since", "until", "min_change")


@page("/restatements", *_FILTERS, "cursor")
async def restatements(visit: Visit) -> View:
    """A list of restatements, narrowed by country, company, line item, days and size."""
    asked = visit.passed_on(*_FILTERS, "cursor")
    result = await visit.ask("get_restatements", **asked, limit=visit.most_rows(_MOST_SHOWN))
    context = {
        "rows": result.rows,
        "truncated": result.truncated,
        "next_cursor": result.next_cursor,
        "countries": await data.issuer_countries(visit),
        "feed": visit.address("/feeds/restatements.atom", **{name: asked[name] for name in _FILTERS}),
    }
    return View("restatements.html", visit.language.text("Restatements"), context)
