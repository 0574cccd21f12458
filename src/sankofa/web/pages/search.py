"""Search: one box over companies, identifiers, series, indicators and tenders."""

from typing import Any

from sankofa.web import data
from sankofa.web.pages.tenders import listed
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_ADDRESSES = {"organisation": "/company/", "series": "/macro/series/", "indicator": "/macro/indicator/"}


@page("/search", "q", "country")
async def search(visit: Visit) -> View:
    """The hits for the words, by kind."""
    words = visit.given("q").strip()
    context: dict[str, Any] = {"words": words, "found": [], "tenders": [], "truncated": False}
    if words:
        result = await visit.ask("search", q=words, country=visit.given("country"))
        context["found"] = [{**row, "address": _address(visit, row)} for row in result.rows]
        context["truncated"] = result.truncated
        tenders = await data.search_tenders(visit, words, visit.given("country"))
        context["tenders"] = [listed(visit, row) for row in tenders]
    return View("search.html", words or visit.language.text("Search"), context)


def _address(visit: Visit, row: Row) -> str:
    return visit.address(_ADDRESSES[row["type"]] + row["id"])
