"""The home page, with coverage on a map and one figure that was later revised; the search; a country; and two
to six companies or countries compared year by year.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Final

import msgspec

from sankofa.model.countries import alpha3_of, country_in
from sankofa.model.countries import country as known_country
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.text import code_words
from sankofa.web import data
from sankofa.web.charts import (
    SCALES,
    TILES,
    Chart,
    KnownValue,
    Line,
    Tile,
    line_chart,
    rescaled,
    small_line,
    step_chart,
    tile_map,
)
from sankofa.web.languages import label
from sankofa.web.pages.tenders import listed, spends
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_UNITS: Final = ("issuers", "releases", "series", "indicators")


@page("/")
async def home(visit: Visit) -> View:
    """Search, counts, freshness, a restated figure, and how to call the API."""
    manifest = visit.call.edition.manifest
    rows = manifest["rows"]
    example = await revised_figure(visit)
    countries = await data.countries(visit, shown=False)
    visit.calls.clear()
    charts = (countries_map(visit, countries), *([example["chart"]] if example else ()))
    counts = [(words, sum(rows.get(kind, 0) for kind in kinds)) for words, kinds in data.COUNTED.items()]
    context: dict[str, Any] = {
        "counts": [] if visit.lock else counts,
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
    """The countries with data. Darker: more kinds of data."""
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
        "countries", language.text("Coverage of each country"), tiles, (("code", "country", *_UNITS), table)
    )


_ECONOMIES: Final = ("NGA", "GHA", "KEN", "ZMB", "EGY")
"""Economies whose GDP was rebased, best known first; the first one in the edition is shown."""
_GDP: Final = "WDI:NY.GDP.MKTP.CD:"
_MOST_RELEASES: Final = 40
_WIDTH: Final = 580


async def large_award(visit: Visit) -> dict[str, Any] | None:
    """The largest award to a named supplier among a country's newest releases, or None."""
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
    """The most revised year of a series, with its value on each release day."""
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
    name = (await data.series_entry(visit, series)).get("name") or series
    what = f"{language.series(name)}, {year['date'][:4]}"
    table = ("known_from", "value"), [(step.day.isoformat(), step.value) for step in steps]
    title = f"{whose}: {what}"
    return {
        "title": title,
        "first": steps[0],
        "last": steps[-1],
        "change": Decimal(steps[-1].value) / Decimal(steps[0].value) - 1,
        "unit": "" if (year["unit"] or "") in name else language.unit(year["unit"]),
        "address": visit.address(f"/macro/series/{series}", as_of=first),
        "api_path": f"/v1/macro?series={series}&as_of={first}",
        "client_call": f'get_macro(\n        series="{series}",\n        as_of="{first}"',
        "chart": step_chart("vintages", title, steps, visit.today, language.short, table, width=_WIDTH),
    }


async def _values(visit: Visit, series: str, day: date, of: str | None = None) -> Any:
    arguments = {"series": series, "as_of": day.isoformat(), "from": of, "to": of}
    return await visit.ask("get_macro", shown=False, drawn=False, **arguments)


_ADDRESSES = {"organisation": "/company/", "series": "/macro/series/", "indicator": "/macro/indicator/"}

_TENDER_WORDS = ("tender", "tenders", "contract", "contracts")
"""Not searched in tenders, unless there are no other words."""


@page("/search", "q", "country")
async def search(visit: Visit) -> View:
    """The hits for the words, by kind, and the page of a country that they name."""
    words = visit.given("q").strip()
    context: dict[str, Any] = {"words": words, "found": [], "tenders": []}
    if words:
        named = _country_called(visit, words)
        context["place"] = named if named and await data.coverage(visit, named, shown=False) else None
        result = await visit.ask("search", q=words, country=visit.given("country"))
        context["found"] = hits = [
            row | {"address": await _address(visit, row), "kind": await _kind(visit, row)}
            for row in result.rows
        ]
        context["kinds"] = sorted(dict.fromkeys(row["kind"] for row in hits), key="organisation".__eq__)
        others = [word for word in words.split() if word.lower() not in _TENDER_WORDS]
        tenders = await data.search_tenders(visit, " ".join(others) or words, visit.given("country"))
        context["tenders"] = [listed(visit, row) for row in tenders]
    return View("search.html", words or visit.language.text("Search"), context)


async def _address(visit: Visit, row: Row) -> str:
    """The page of a hit. An indicator of one country is a series there, if it has release days."""
    if row["type"] == "indicator" and row["country"]:
        return await _indicator_address(visit, row["id"], row["country"])
    return visit.address(_ADDRESSES[row["type"]] + row["id"])


async def _indicator_address(visit: Visit, indicator: str, country: str) -> str:
    series = await data.releases_of_indicator(visit, indicator, country)
    kind, key = ("series", series["series"]) if series else ("indicator", indicator)
    return visit.address(_ADDRESSES[kind] + key)


async def _kind(visit: Visit, row: Row) -> str:
    """Distinguishes companies with figures from register records without."""
    if row["type"] != "organisation":
        return str(row["type"])
    return "company" if await data.has_figures(visit, row["id"]) else "organisation"


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
"""The first indicators on a country's page, in words."""
_MOST_TENDERS: Final = 5
_MOST_RATES: Final = 4


@page("/country/{country}")
async def country(visit: Visit) -> View:
    """All data about one country."""
    code = known_country(visit.parameters["country"])
    if code is None:
        raise NotFound("There is no such country.")
    issuers = await visit.ask("list_issuers", country=code)
    covered = await data.coverage(visit, code)
    charts, headlines = await _headlines(visit, code)
    series = await visit.ask("list_series", shown=False, country=code, q="USD")
    rates = [row for row in series.rows if row["vintages"]][:_MOST_RATES]
    for rate in rates:
        newest = await visit.ask("get_macro", shown=False, series=rate["series"], limit="1")
        rate["latest"] = newest.rows[0] if newest.rows else None
    tenders: list[Row] = []
    if any(row["sku"] == "AF-TENDER" for row in covered):
        tenders = (await visit.ask("search_tenders", country=code)).rows[:_MOST_TENDERS]
    sources = (await visit.ask("get_sources", shown=False)).rows
    context: dict[str, Any] = {
        "country": code,
        "issuers": issuers.rows,
        "headlines": headlines,
        "rates": rates,
        "tenders": [listed(visit, row) for row in tenders],
        "covered": covered,
        "sources": {row["source_id"]: row["title"] for row in sources},
    }
    return View("country.html", visit.language.country(code), context, tuple(charts))


async def _headlines(visit: Visit, code: str) -> tuple[list[Chart], list[dict[str, Any]]]:
    """The newest years of annual indicators, each as a small chart."""
    charts: list[Chart] = []
    headlines: list[dict[str, Any]] = []
    for indicator, words in HEADLINES.items():
        rows = await data.annual_values(visit, code, indicator, shown=not charts)
        if not rows:
            continue
        points = [(row["year"], Decimal(row["value"])) for row in rows]
        name = visit.language.text(words)
        chart = small_line(indicator, name, points, visit.language.brief)
        charts.append(chart)
        address = await _indicator_address(visit, indicator, code)
        headlines.append({"row": rows[-1], "name": name, "chart": chart, "address": address})
    return charts, headlines


FIELDS: Final = ("a", "b", "c", "d", "e", "f")
"""The parameters that name what is compared."""
_MOST_CANDIDATES: Final = 5


class Subject(msgspec.Struct, frozen=True):
    """A company or country with its values by year, oldest first."""

    name: str
    address: str
    unit: str
    years: list[tuple[int, Decimal]]


@page("/compare", "measure", *FIELDS, "as_of", "scale")
async def compare(visit: Visit) -> View:
    """Small charts with the same axes, all lines in one chart, and every value in one table."""
    measure = visit.chosen("measure", (*LINE_ITEMS, *HEADLINES))
    scale, as_of = visit.chosen("scale", SCALES), visit.day()
    read = _country if measure in HEADLINES else _company
    names = [name for name in (visit.given(field).strip() for field in FIELDS) if name]
    read_subjects = [await read(visit, name, measure, as_of) for name in names]
    subjects = [subject for subject in read_subjects if subject]
    unknown = [name for name, subject in zip(names, read_subjects, strict=True) if not subject]
    indicators = {code: visit.language.text(words) for code, words in HEADLINES.items()}
    title = indicators.get(measure) or label(visit.language, measure)
    units = sorted({subject.unit for subject in subjects})
    years = sorted({year for subject in subjects for year, _ in subject.years}, reverse=True)
    table = [(year, [dict(subject.years).get(year) for subject in subjects]) for year in years]
    charts = _compared_charts(visit, subjects, title, scale, units, table)
    example = [] if names else (await visit.ask("list_issuers", shown=False)).rows
    example.sort(key=lambda row: row["fact_count"], reverse=True)
    context: dict[str, Any] = {
        "example": example[:2],
        "measure": measure,
        "measure_name": title,
        "items": LINE_ITEMS,
        "indicators": indicators,
        "fields": FIELDS,
        "scale": scale,
        "as_of": as_of,
        "subjects": subjects,
        "unknown": unknown,
        "units": units,
        "table": table,
    }
    return View("compare.html", visit.language.text("Compare"), context, tuple(charts))


async def _company(visit: Visit, name: str, line_item: str, as_of: date) -> Subject | None:
    """A company by its service_id, an identifier or its name: the best match that reports figures."""
    service_id, known_as = name.upper(), name
    try:
        rows = await data.full_years(visit, service_id, line_item, as_of, shown=True)
        entity = (await visit.ask("get_entity", shown=False, service_id=service_id)).first
        known_as = entity["legal_name"] or service_id
    except (InvalidParameter, NotFound):
        hit = await _best_hit(visit, name)
        if hit is None:
            return None
        service_id, known_as = hit["id"], hit["name"] or hit["id"]
        rows = await data.full_years(visit, service_id, line_item, as_of, shown=True)
    unit = str(rows[-1]["unit"] or "") if rows else ""
    by_year = {
        int(row["period_end"][:4]): Decimal(row["value_reported"]) for row in rows if row["unit"] == unit
    }
    address = visit.address(f"/company/{service_id}", as_of=visit.given("as_of"))
    return Subject(known_as, address, unit, sorted(by_year.items()))


async def _best_hit(visit: Visit, name: str) -> Row | None:
    try:
        hits = (await visit.ask("search", shown=False, drawn=False, q=name, type="organisation")).rows
    except InvalidParameter:
        return None
    for hit in hits[:_MOST_CANDIDATES]:
        if await data.has_figures(visit, hit["id"]):
            return hit
    return None


async def _country(visit: Visit, name: str, indicator: str, as_of: date) -> Subject | None:
    """A country by its code or its name in the visitor's language, with the values known on the day."""
    code = known_country(name) or _country_called(visit, name)
    if code is None:
        return None
    if as_of < visit.today:
        arguments: dict[str, Any] = {"series": f"WDI:{indicator}:{alpha3_of()[code]}"}
        arguments |= {"as_of": as_of.isoformat(), "limit": visit.most_rows(200)}
        rows = []
        with suppress(NotFound):
            rows = (await visit.ask("get_macro", **arguments)).rows[::-1]
        years = [(int(row["date"][:4]), Decimal(row["value"])) for row in rows if row["value"] is not None]
    else:
        rows = await data.annual_values(visit, code, indicator, shown=True)
        years = [(row["year"], Decimal(row["value"])) for row in rows]
    unit = visit.language.text(str(rows[-1]["unit"] or "")) if rows else ""
    return Subject(visit.language.country(code), visit.address(f"/country/{code}"), unit, years)


def _country_called(visit: Visit, name: str) -> str | None:
    """The country that words name in English, maybe beside others, or in the visitor's language, alone."""
    names = {visit.language.country(code).casefold(): code for code in alpha3_of()}
    return country_in(code_words(name))[0] or names.get(name.casefold())


def _compared_charts(
    visit: Visit,
    subjects: list[Subject],
    title: str,
    scale: str,
    units: list[str],
    years: list[tuple[int, list[Decimal | None]]],
) -> list[Chart]:
    """All lines in one chart if they share a unit or are indexed, and a small chart for each."""
    lines = [
        Line(subject.name, f"c{number}", [(date(year, 12, 31), value) for year, value in subject.years])
        for number, subject in enumerate(subjects, 1)
    ]
    if not subjects:
        return []
    is_one = len(units) == 1 or scale == "index"
    columns = ("year", *(subject.name for subject in subjects))
    table = columns, [(year, *values) for year, values in reversed(years)]
    write = visit.language.short
    charts = []
    if is_one:
        charts = [line_chart("compare", title, lines, write, table, None, units[0], scale, named=True)]
    drawn = [(one, [(day.year, Decimal(v)) for day, v in one.points]) for one in rescaled(lines, scale)]
    every = [point for _, points in drawn for point in points]
    for one, points in drawn:
        if points:
            beside = every if is_one else ()
            name = f"{one.label}: {title}"
            charts.append(small_line(one.kind, name, points, visit.language.brief, beside, scale))
    return charts
