"""What several pages ask for: search, issuers, statements, series, sources and coverage."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from sankofa.web.visit import Result, Row, Visit

_TENDERS_SHOWN: Final = 10
_MOST_INDICATORS: Final = 40
_PAGES_OF_COUNTRY: Final = {
    "issuers": "/companies",
    "releases": "/tenders",
    "series": "/macro",
    "indicators": "/macro",
}
"""Where what is counted of a country is shown; the first of them that it has is where it leads."""


async def search(visit: Visit, words: str, country: str) -> Result:
    """Organisations, series and indicators by name or identifier."""
    return await visit.ask("search", q=words, country=country)


async def search_tenders(visit: Visit, words: str, country: str) -> list[Row]:
    """The newest releases that have the words, of each country that tenders are held of."""
    found: list[Row] = []
    for code in [country] if country else await tender_countries(visit):
        result = await visit.ask("search_tenders", country=code, query=words)
        found += result.rows[:_TENDERS_SHOWN]
    return sorted(found, key=lambda row: str(row["release_date"]), reverse=True)[:_TENDERS_SHOWN]


async def statement(
    visit: Visit, service_id: str, as_of: str, period_types: Sequence[str], kind: str
) -> tuple[list[Row], bool]:
    """One figure per line item and period; and whether the tier holds some back."""
    rows: list[Row] = []
    truncated = False
    for period_type in period_types:
        result = await visit.ask(
            "get_statement", service_id=service_id, as_of=as_of, period_type=period_type, kind=kind
        )
        rows += result.rows
        truncated = truncated or result.truncated
    return rows, truncated


async def vintages(visit: Visit, service_id: str, line_item: str) -> Result:
    """Every vintage of a line item."""
    return await visit.ask("get_fundamentals", service_id=service_id, vintages="all", line_items=line_item)


async def countries(visit: Visit) -> list[Row]:
    """The countries there is something of, with how much and where to look."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in await coverage(visit):
        if row["country"]:
            counts[row["country"]][row["unit_of_count"]] += row["count"]
    found = []
    for country, units in counts.items():
        unit = next(unit for unit in _PAGES_OF_COUNTRY if unit in units)
        address = visit.address(_PAGES_OF_COUNTRY[unit], country=country)
        found.append({"country": country, "count": units[unit], "unit": unit, "address": address})
    return sorted(found, key=lambda row: (list(_PAGES_OF_COUNTRY).index(row["unit"]), -row["count"]))


async def tender_countries(visit: Visit) -> list[str]:
    """The countries that tenders are held of, those with most releases first."""
    rows = (await visit.ask("get_coverage", shown=False, sku="AF-TENDER")).rows
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["country"]:
            totals[row["country"]] += row["count"]
    return sorted(totals, key=lambda country: -totals[country])


async def catalogue(visit: Visit, words: str, country: str, cursor: str) -> dict[str, Any]:
    """Series and indicators, those that have the words where some are given."""
    result = await visit.ask("list_series", q=words, country=country, cursor=cursor)
    indicators = {row["series"]: row for row in result.rows if not row["vintages"]}
    if not words and not cursor:
        # Indicators come after the series, and there are many: those of one country stand for all.
        some = await visit.ask("get_macro", shown=False, country=country or "ZA", limit=visit.most_rows(2000))
        for row in some.rows:
            indicators.setdefault(
                row["indicator"], {"series": row["indicator"], "name": row["indicator_name"]}
            )
    return {
        "series": [row for row in result.rows if row["vintages"]],
        "indicators": list(indicators.values())[:_MOST_INDICATORS],
        "next_cursor": None if visit.call.grant.sample else result.members.get("next_cursor"),
        "truncated": result.truncated,
    }


async def releases(visit: Visit, series: str, rows: Sequence[Row]) -> list[date]:
    """The days on which a series was released, the first first."""
    result = await visit.ask("get_series_vintages", series=series, limit=visit.most_rows(1000))
    return sorted({date.fromisoformat(row["release_date"]) for row in result.rows})


async def sources(visit: Visit) -> list[Row]:
    """Who publishes what, under which licence."""
    return (await visit.ask("get_sources")).rows


async def coverage(visit: Visit, country: str = "") -> list[Row]:
    """Per dataset and country how much there is."""
    return (await visit.ask("get_coverage", country=country)).rows


async def issuers(visit: Visit) -> dict[str, Any]:
    """Issuers as knowable on the day of the address."""
    result = await visit.ask(
        "list_issuers",
        country=visit.given("country"),
        exchange=visit.given("exchange"),
        as_of=visit.given("as_of"),
        cursor=visit.given("cursor"),
    )
    return {
        "rows": result.rows,
        "next_cursor": result.members.get("next_cursor"),
        "truncated": result.truncated,
    }
