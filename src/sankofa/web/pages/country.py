"""A country: its economy in small charts, its companies, its tenders, and what there is of it."""

from decimal import Decimal
from typing import Any, Final

from sankofa.model.countries import country as known_country
from sankofa.model.errors import NotFound
from sankofa.web import data
from sankofa.web.charts import Chart, small_line
from sankofa.web.pages.tenders import listed
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

HEADLINES: Final = {
    "NY.GDP.MKTP.CD": "GDP, current US$",
    "NY.GDP.MKTP.KD.ZG": "GDP growth, % a year",
    "FP.CPI.TOTL.ZG": "Inflation of consumer prices, % a year",
    "SP.POP.TOTL": "Population",
    "NY.GDP.PCAP.CD": "GDP per person, current US$",
    "GC.DOD.TOTL.GD.ZS": "Debt of the central government, % of GDP",
    "DT.DOD.DECT.GN.ZS": "External debt, % of GNI",
    "SL.UEM.TOTL.ZS": "Unemployment, % of the labour force",
}
"""The indicators that a country's page begins with, in words."""
_MOST_TENDERS: Final = 5
_MOST_RATES: Final = 4


@page("/country/{country}")
async def country(visit: Visit) -> View:
    """One country, whatever there is of it."""
    code = known_country(visit.parameters["country"])
    if code is None:
        raise NotFound("There is no such country.")
    issuers = await visit.ask("list_issuers", country=code)
    covered = await data.coverage(visit, code)
    charts, headlines = await _economy(visit, code)
    series = await visit.ask("list_series", shown=False, country=code, q="USD")
    tenders: list[Row] = []
    if any(row["sku"] == "AF-TENDER" for row in covered):
        newest = await visit.ask("search_tenders", country=code)
        tenders = [listed(visit, row) for row in newest.rows[:_MOST_TENDERS]]
    context: dict[str, Any] = {
        "country": code,
        "issuers": issuers.rows,
        "headlines": headlines,
        "rates": [
            await _rate(visit, row) for row in [row for row in series.rows if row["vintages"]][:_MOST_RATES]
        ],
        "tenders": tenders,
        "covered": covered,
        "sources": {
            row["source_id"]: row["title"] for row in (await visit.ask("get_sources", shown=False)).rows
        },
    }
    return View("country.html", visit.language.country(code), context, tuple(charts))


async def _rate(visit: Visit, entry: Row) -> dict[str, Any]:
    """A series of exchange rates with its newest value."""
    newest = await visit.ask("get_macro", shown=False, drawn=False, series=entry["series"], limit="1")
    return {**entry, "latest": newest.rows[0] if newest.rows else None}


async def _economy(visit: Visit, code: str) -> tuple[list[Chart], list[dict[str, Any]]]:
    """Annual indicators, the newest years, each as a small chart."""
    charts: list[Chart] = []
    headlines: list[dict[str, Any]] = []
    for indicator, words in HEADLINES.items():
        rows = await data.annual_values(visit, code, indicator, shown=not charts)
        if not rows:
            continue
        points = [(row["year"], Decimal(row["value"])) for row in rows]
        name = visit.language.text(words)
        chart = small_line(indicator, name, points, visit.language.short)
        charts.append(chart)
        headlines.append({"row": rows[-1], "name": name, "chart": chart, "indicator": indicator})
    return charts, headlines
