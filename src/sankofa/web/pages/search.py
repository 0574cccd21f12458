"""Search: one box over companies, identifiers, series, indicators and tenders."""

from typing import Any

from sankofa.web import data
from sankofa.web.pages.tenders import listed
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_ADDRESSES = {"organisation": "/company/", "series": "/macro/series/", "indicator": "/macro/indicator/"}

_TENDER_WORDS = ("tender", "tenders", "contract", "contracts")


@page("/search", "q", "country")
async def search(visit: Visit) -> View:
    """The hits for the words, by kind."""
    words = visit.given("q").strip()
    context: dict[str, Any] = {"words": words, "found": [], "tenders": [], "truncated": False}
    if words:
        result = await visit.ask("search", q=words, country=visit.given("country"))
        context["found"] = [
            {**row, "address": _address(visit, row), "kind": await _kind(visit, row)} for row in result.rows
        ]
        context["truncated"] = result.truncated
        tenders = await data.search_tenders(visit, _of_tenders(words), visit.given("country"))
        context["tenders"] = [listed(visit, row) for row in tenders]
    return View("search.html", words or visit.language.text("Search"), context)


def _of_tenders(words: str) -> str:
    """The words to look for in tenders: without the word itself, if there are others."""
    others = [word for word in words.split() if word.lower() not in _TENDER_WORDS]
    return " ".join(others) or words


async def _kind(visit: Visit, row: Row) -> str:
    """Companies with figures come before records of a register that has none."""
    if row["type"] != "organisation":
        return str(row["type"])
    return "company" if await data.has_figures(visit, row["id"]) else "organisation"


def _address(visit: Visit, row: Row) -> str:
    return visit.address(_ADDRESSES[row["type"]] + row["id"])
