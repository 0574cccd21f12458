"""The first page: search, what is there, and one figure that was not always what it is."""

from collections.abc import Mapping
from typing import Any, Final

from sankofa.web import data
from sankofa.web.charts.chart import Chart
from sankofa.web.charts.tile_map import TILES, Tile, tile_map
from sankofa.web.labels import label
from sankofa.web.revised import revised_figure
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_UNITS: Final = ("issuers", "releases", "series", "indicators")


@page("/")
async def home(visit: Visit) -> View:
    """Search, counts, freshness, a restated figure, and how to ask from a program."""
    manifest = visit.call.edition.manifest
    rows = manifest["rows"]
    example = await revised_figure(visit)
    countries = await data.countries(visit, shown=False)
    visit.calls.clear()
    charts = (countries_map(visit, countries),) + ((example.chart,) if example else ())
    context: dict[str, Any] = {
        "counts": (
            ("Organisations", rows.get("entity", 0)),
            ("Reported figures", rows.get("fundamentals", 0)),
            ("Macro values", rows.get("macro-series", 0) + rows.get("macro-annual", 0)),
            ("Tender releases", rows.get("tender", 0)),
        ),
        "built_from": manifest["built_from"],
        "example": example,
        "countries": countries,
        "elsewhere": sorted(countries.keys() - TILES.keys()),
        "mcp_url": visit.site.settings.public_mcp_url,
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
        language.text("What there is of each country"),
        tiles,
        (("code", "country", *_UNITS), table),
    )
