"""Buyers and suppliers named in public tenders, as organisations."""

from typing import Final

from sankofa.web import data
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_ROLES: Final = ("buyer", "supplier", "tenderer", "procuringEntity")


@page("/parties", "country", "role", "cursor", "limit")
async def parties(visit: Visit) -> View:
    """Those with most releases first; who is no organisation is not among them."""
    asked = visit.passed_on("country", "role", "cursor") | {"limit": visit.limit()}
    result = await visit.ask("get_resolved_parties", **asked)
    context = {
        "rows": result.rows,
        "countries": await data.tender_countries(visit),
        "roles": _ROLES,
        "truncated": result.truncated,
        "next_cursor": result.next_cursor,
    }
    return View("parties.html", visit.language.text("Buyers and suppliers"), context)
