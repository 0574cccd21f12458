"""What several pages ask for: search, issuers, statements, series, sources and coverage."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Final

from sankofa.model.countries import alpha3_of
from sankofa.model.errors import NotFound
from sankofa.web.visit import Result, Row, Visit

_TENDERS_SHOWN: Final = 10


async def search_tenders(visit: Visit, words: str, country: str) -> list[Row]:
    """The newest releases that have the words, of each country that tenders are held of."""
    releases: list[Row] = []
    for code in [country] if country else await tender_countries(visit):
        result = await visit.ask("search_tenders", country=code, query=words)
        releases += result.rows[:_TENDERS_SHOWN]
    return sorted(releases, key=lambda row: str(row["release_date"]), reverse=True)[:_TENDERS_SHOWN]


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


async def countries(visit: Visit, *, shown: bool = True) -> dict[str, dict[str, int]]:
    """What there is of each country: how many of each unit that coverage counts."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for row in await coverage(visit, shown=shown):
        if row["country"]:
            units = counts[row["country"]]
            units[row["unit_of_count"]] = units.get(row["unit_of_count"], 0) + row["count"]
    return counts


async def tender_countries(visit: Visit) -> list[str]:
    """The countries that tenders are held of, those with most releases first."""
    rows = (await visit.ask("get_coverage", shown=False, sku="AF-TENDER")).rows
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["country"]:
            totals[row["country"]] += row["count"]
    return sorted(totals, key=lambda country: -totals[country])


async def series_entry(visit: Visit, series: str) -> Row:
    """What the catalogue says of a series, or of the indicator whose tables it is made of; maybe nothing."""
    family, _, rest = series.partition(":")
    code, _, country = rest.partition(":")
    asked = {"q": code, "country": country} if country else {"q": family}
    result = await visit.ask("list_series", shown=False, **asked)
    return next((row for row in result.rows if row["series"] in (series, code)), {})


async def releases_of_indicator(visit: Visit, indicator: str, country: str) -> Row | None:
    """The series that the tables of an indicator amount to, and on how many days it was released."""
    series = f"WDI:{indicator}:{alpha3_of().get(country, country)}"
    try:
        result = await visit.ask("get_series_vintages", shown=False, series=series)
    except NotFound:
        return None
    return {"series": series, "vintages": len(result.rows)} if result.rows else None


async def releases(visit: Visit, series: str) -> list[date]:
    """The days on which a series was released, the first first."""
    result = await visit.ask("get_series_vintages", series=series, limit=visit.most_rows(1000))
    return sorted({date.fromisoformat(row["release_date"]) for row in result.rows})


async def coverage(visit: Visit, country: str = "", *, shown: bool = True) -> list[Row]:
    """Per dataset and country how much there is."""
    return (await visit.ask("get_coverage", shown=shown, country=country)).rows


async def annual_values(visit: Visit, country: str, indicator: str, *, shown: bool) -> list[Row]:
    """What is known of an annual indicator of a country, the oldest year first."""
    asked = {"country": country, "indicator": indicator, "limit": visit.most_rows(200)}
    result = await visit.ask("get_macro", shown=shown, **asked)
    return [row for row in result.rows if row["value"] is not None][::-1]
