"""The home page, with coverage on a map and one figure that was later revised, and the search."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Final

from sankofa.model.errors import NotFound, Problem
from sankofa.web import data
from sankofa.web.charts import TILES, Chart, KnownValue, Tile, step_chart, tile_map
from sankofa.web.languages import label
from sankofa.web.pages.tenders import listed, spends
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_UNITS: Final = ("issuers", "releases", "series", "indicators")


@page("/")
async def home(visit: Visit) -> View:
    """Search, counts, freshness, a restated figure, and how to ask from a program."""
    manifest = visit.call.edition.manifest
    rows = manifest["rows"]
    example = await revised_figure(visit)
    countries = await data.countries(visit, shown=False)
    visit.calls.clear()
    charts = (countries_map(visit, countries),) + ((example["chart"],) if example else ())
    context: dict[str, Any] = {
        "counts": ()
        if visit.lock
        else tuple(
            (words, sum(rows.get(kind, 0) for kind in kinds)) for words, kinds in data.COUNTED.items()
        ),
        "built_from": manifest["built_from"],
        "example": example,
        "award": await large_award(visit),
        "countries": countries,
        "elsewhere": sorted(countries.keys() - TILES.keys()),
        "mcp_url": visit.site.settings.public_mcp_url + visit.prefix,
        "pinned": None if visit.lock else visit.call.edition.id,
    }
    return View("home.html", visit.language.text("What was known when"), context, charts)


def countries_map(visit: Visit, countries: Mapping[str, Mapping[str, int]]) -> Chart:
    """The countries there is something of: the darker, the more kinds of data."""
    language = visit.language
    tiles, table = {}, []
    for country, units in sorted(countries.items()):
        counts = ", ".join(
            f"{language.figure(units[unit])} {label(language, unit)}" for unit in _UNITS if unit in units
        )
        level = 1 + 2 * ("issuers" in units) + ("releases" in units)
        address = visit.address(f"/country/{country}")
        tiles[country] = Tile(level, f"{language.country(country)}: {counts}", address)
        table.append((country, language.country(country), *(units.get(unit, 0) for unit in _UNITS)))
    return tile_map(
        "countries",
        language.text("Coverage of each country"),
        tiles,
        (("code", "country", *_UNITS), table),
    )


_ECONOMIES: Final = ("NGA", "GHA", "KEN", "ZMB", "EGY")
"""Economies that were counted anew, the most told of first; the first that the edition holds is shown."""
_GDP: Final = "WDI:NY.GDP.MKTP.CD:"
_MOST_RELEASES: Final = 40
_WIDTH: Final = 580


async def large_award(visit: Visit) -> dict[str, Any] | None:
    """The largest award to a named supplier among the newest releases of a country; None without one."""
    for country in await data.tender_countries(visit):
        releases = (await visit.ask("search_tenders", shown=False, country=country)).rows
        awards = [(award, row) for row in releases for award in spends(row, "buyer", set()) if award.partner]
        if awards:
            award, row = max(awards, key=lambda pair: pair[0].amount)
            return {"award": award, "row": listed(visit, row)}
    return None


async def revised_figure(visit: Visit) -> dict[str, Any] | None:
    """The figure to show; None if the edition has none, or the key may not see it."""
    with suppress(Problem):
        for economy in _ECONOMIES:
            if (figure := await _economy(visit, _GDP + economy)) is not None:
                return figure
    return None


async def _economy(visit: Visit, series: str) -> dict[str, Any] | None:
    """The year of a series that was revised furthest, as it was on each day of release."""
    try:
        days = (await data.releases(visit, series))[-_MOST_RELEASES:]
    except NotFound:
        return None
    today = {row["date"]: row for row in (await _values(visit, series, visit.today)).rows if row["value"]}
    first_known = [row for row in (await _values(visit, series, days[0])).rows if row["value"]]
    known_twice = [row for row in first_known if row["date"] in today]
    if not known_twice:
        return None
    year = max(known_twice, key=lambda row: abs(today[row["date"]]["value"] / row["value"] - 1))
    language, steps = visit.language, list[KnownValue]()
    for day in days:
        known = (await _values(visit, series, day, year["date"])).rows
        if known and known[0]["value"] and (not steps or known[0]["value"] != steps[-1].value):
            since, value = known[0]["available_at"], Decimal(known[0]["value"])
            written = f"{language.day(since)}: {language.figure(value)}"
            steps.append(KnownValue(date.fromisoformat(since), value, written))
    if len(steps) < 2:
        return None
    first = steps[0].day.isoformat()
    whose = language.country(year["country"])
    name = language.series((await data.series_entry(visit, series)).get("name") or series)
    what = f"{name}, {year['date'][:4]}"
    table = ("known_from", "value"), [(step.day.isoformat(), step.value) for step in steps]
    title = f"{whose}: {what}"
    return {
        "title": title,
        "first": steps[0],
        "last": steps[-1],
        "change": Decimal(steps[-1].value) / Decimal(steps[0].value) - 1,
        "unit": "" if (year["unit"] or "") in what else year["unit"],
        "address": visit.address(f"/macro/series/{series}", as_of=first),
        "api_path": f"/v1/macro?series={series}&as_of={first}",
        "client_call": f'get_macro(\n        series="{series}",\n        as_of="{first}"',
        "chart": step_chart("vintages", title, steps, visit.today, language.short, table, width=_WIDTH),
    }


async def _values(visit: Visit, series: str, day: date, of: str | None = None) -> Any:
    asked = {"series": series, "as_of": day.isoformat(), "from": of, "to": of}
    return await visit.ask("get_macro", shown=False, drawn=False, **asked)


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
