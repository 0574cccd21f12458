"""Restatements: the figures that replaced earlier ones, newest first."""

from sankofa.web import data
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_FILTERS = ("country", "service_id", "line_item", "since", "until", "min_change")


@page("/restatements", *_FILTERS, "cursor")
async def restatements(visit: Visit) -> View:
    """A list of restatements, narrowed by country, company, line item, days and size."""
    asked = visit.passed_on(*_FILTERS, "cursor")
    result = await visit.ask("get_restatements", **asked)
    context = {
        "rows": result.rows,
        "truncated": result.truncated,
        "next_cursor": result.next_cursor,
        "countries": await data.issuer_countries(visit),
        "feed": visit.address("/feeds/restatements.atom", **{name: asked[name] for name in _FILTERS}),
    }
    return View("restatements.html", visit.language.text("Restatements"), context)
