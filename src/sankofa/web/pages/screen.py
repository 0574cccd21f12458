"""The screen: issuers by a metric on a day, and on another day beside it."""

from datetime import date
from functools import partial
from typing import Any, Final

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.web import data
from sankofa.web.bars import NamedBar, named_bars
from sankofa.web.charts import Chart
from sankofa.web.languages import label, metric_value
from sankofa.web.view import View, page
from sankofa.web.visit import Result, Row, Visit

_MOST_BARS: Final = 25


@page("/screen", "metric", "country", "as_of", "beside", "order", "limit")
async def screen(visit: Visit) -> View:
    """A ranking, and what of it was different on another day."""
    slug = visit.given("metric", "net_margin")
    as_of = visit.day()
    now = await _ranking(visit, slug, as_of)
    beside = visit.day("beside") if visit.given("beside") else None
    then = await _ranking(visit, slug, beside) if beside else None
    rows = _joined(now, then)
    context: dict[str, Any] = {
        "metric": slug,
        "countries": await data.issuer_countries(visit),
        "changed": _changed(rows),
        "metrics": slugs(),
        "summary": next((m.summary for m in metrics() if m.slug == slug), ""),
        "as_of": as_of,
        "beside": beside,
        "rows": rows,
        "omitted": _counts(now),
        "omitted_then": _counts(then) if then else {},
        "unit": now.rows[0]["unit"] if now.rows else "ratio",
        "truncated": now.truncated,
        "left": _left(now, then) if then else [],
    }
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
    """The ranking with that of the other day at each issuer."""
    before = {row["service_id"]: row for row in then.rows} if then else {}
    joined = []
    for row in now.rows:
        other = before.get(row["service_id"])
        moved = other["rank"] - row["rank"] if other else None
        joined.append({**row, "then": other, "moved": moved, "why": _why(row, other)})
    return joined


def _why(now: Row, then: Row | None) -> str:
    """Why an issuer's own value is another: restated, or of a newer year; empty if it is the same."""
    if then is None or now["value"] == then["value"]:
        return ""
    return "restated" if now["period_end"] == then["period_end"] else "newer"


def _changed(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many have another rank, and how many values differ for which reason."""
    return {
        "moved": sum(bool(row["moved"]) for row in rows),
        "restated": sum(row["why"] == "restated" for row in rows),
        "newer": sum(row["why"] == "newer" for row in rows),
    }


def _ranking_chart(visit: Visit, slug: str, rows: list[dict[str, Any]]) -> Chart:
    """The ranking as bars, with what each row of the table has."""
    columns = ("rank", "service_id", "legal_name", "country", "value", "period_end", "available_at")
    bars = [
        NamedBar(row["legal_name"] or row["service_id"], row["value"], _address(visit, row)) for row in rows
    ]
    return named_bars(
        "ranking",
        f"{label(visit.language, slug)}, {visit.language.day(visit.day())}",
        bars[:_MOST_BARS],
        partial(metric_value, visit.language, slug),
        (columns, [tuple(row[name] for name in columns) for row in rows]),
    )


def _address(visit: Visit, row: Row) -> str:
    return visit.address(f"/company/{row['service_id']}", as_of=visit.given("as_of"))


def _left(now: Result, then: Result) -> list[dict[str, Any]]:
    """Issuers that are in the other ranking only."""
    here = {row["service_id"] for row in now.rows}
    return [row for row in then.rows if row["service_id"] not in here]
