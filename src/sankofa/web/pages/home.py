"""The first page: search, what is there, and one figure that was not always what it is."""

from typing import Any, Final

from sankofa.model.errors import Problem
from sankofa.web import data
from sankofa.web.charts.chart import Chart
from sankofa.web.pages.figure import vintage_chart
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_REVISIONS: Final = "fundamentals-revisions"
_TELLING: Final = ("revenue", "profit", "assets", "operating_profit", "equity", "liabilities")


@page("/")
async def home(visit: Visit) -> View:
    """Search, counts, freshness, a restated figure, and how to ask from a program."""
    manifest = visit.call.edition.manifest
    rows = manifest["rows"]
    example, chart = await _restated(visit)
    visit.calls.clear()
    context: dict[str, Any] = {
        "counts": (
            ("Organisations", rows.get("entity", 0)),
            ("Reported figures", rows.get("fundamentals", 0)),
            ("Macro values", rows.get("macro-series", 0) + rows.get("macro-annual", 0)),
            ("Tender releases", rows.get("tender", 0)),
        ),
        "built_from": manifest["built_from"],
        "example": example,
        "countries": await data.countries(visit),
        "mcp_url": visit.site.settings.public_mcp_url,
    }
    return View("home.html", visit.language.text("What was known when"), context, (chart,) if chart else ())


async def _restated(visit: Visit) -> tuple[Row | None, Chart | None]:
    """A figure that was restated, as its vintages: the one with most of them that most people know."""
    try:
        revisions = (await visit.ask("get_signal", signal_key=_REVISIONS)).rows
        moved = [row for row in revisions if row["revision_size"]]
        if not moved:
            return None, None
        best = max(
            moved,
            key=lambda row: (
                row["line_item"] in _TELLING,
                row["vintages"],
                min(abs(row["revision_size"]), 1),
                row["service_id"],
            ),
        )
        vintages = await data.vintages(visit, best["service_id"], best["line_item"])
    except Problem:
        return None, None
    same = ("period_end", "period_start", "concept", "unit")
    rows = [row for row in vintages.rows if all(row[name] == best[name] for name in same)]
    rows.sort(key=lambda row: row["vintage"])
    return best, vintage_chart(visit, rows, _title(visit, best)) if rows else None


def _title(visit: Visit, row: Row) -> str:
    return visit.language.text(
        "%(item)s of %(name)s for the year to %(day)s, from the day each figure became known",
        item=row["line_item"].replace("_", " "),
        name=row["legal_name"],
        day=row["period_end"],
    )
