"""The screen: issuers by a metric on a day, and on another day beside it."""

from datetime import date
from typing import Any

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.web.view import View, page
from sankofa.web.visit import Result, Visit


@page("/screen", "metric", "country", "as_of", "beside", "order", "limit")
async def screen(visit: Visit) -> View:
    """A ranking, and what of it was different on another day."""
    slug = visit.given("metric", "net_margin")
    as_of = visit.day()
    now = await _ranking(visit, slug, as_of)
    beside = visit.day("beside") if visit.given("beside") else None
    then = await _ranking(visit, slug, beside) if beside else None
    context: dict[str, Any] = {
        "metric": slug,
        "metrics": slugs(),
        "summary": next((m.summary for m in metrics() if m.slug == slug), ""),
        "as_of": as_of,
        "beside": beside,
        "rows": _joined(now, then),
        "omitted": _counts(now),
        "omitted_then": _counts(then) if then else {},
        "unit": now.rows[0]["unit"] if now.rows else "ratio",
        "truncated": now.truncated,
        "left": _left(now, then) if then else [],
    }
    return View("screen.html", visit.language.text("Screen"), context)


async def _ranking(visit: Visit, metric: str, day: date) -> Result:
    return await visit.ask(
        "get_screen",
        metric=metric,
        country=visit.given("country"),
        order=visit.given("order"),
        as_of=day.isoformat(),
        limit=visit.given("limit"),
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
        joined.append({**row, "then": other, "moved": moved})
    return joined


def _left(now: Result, then: Result) -> list[dict[str, Any]]:
    """Issuers that are in the other ranking only."""
    here = {row["service_id"] for row in now.rows}
    return [row for row in then.rows if row["service_id"] not in here]
