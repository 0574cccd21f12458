"""Macro data: the catalogue by subject, a series with its vintages, and an indicator."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from sankofa.model.countries import country_name
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.observations import currency_pair
from sankofa.operations.nearest import refuse_unknown_series
from sankofa.operations.panel import MOST_CELLS
from sankofa.web import data
from sankofa.web.charts import SCALES, Chart, Line, bar_chart, line_chart, small_line
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_MOST_LINES: Final = 10
_MOST_VALUES: Final = 500
_MOST_OF_A_LINE: Final = 200
_MOST_BARS: Final = 48
_SHORT_DATES: Final = {"annual": 4, "monthly": 7, "quarterly": 7}
_COUNTRIES: Final = ("ZA", "NG", "KE", "EG", "GH", "ET", "TZ", "MA", "CI", "SN", "UG", "RW", "DZ", "AO", "ZM")
_MOST_COUNTRIES: Final = 20


@page("/macro/series/{series}", "as_of", "scale")
async def series(visit: Visit) -> View:
    """A series as known on a day, compared with today. The part `series` changes when the day is moved."""
    key = visit.parameters["series"].upper()
    as_of = visit.day()
    then_rows = _one(await _values(visit, key, as_of, shown=True))
    today_rows = then_rows
    if as_of < visit.today:
        # Only the newest values are shown; today's values are then limited to the dates known on that day.
        cut = visit.call.grant.sample or len(then_rows) >= _MOST_VALUES
        span = _span(then_rows) if cut and then_rows else {}
        today_rows = _one(await _values(visit, key, visit.today, shown=True, most=_MOST_VALUES, **span))
    if not today_rows:
        await refuse_unknown_series(visit.call.edition, key)
        raise NotFound(f"No value of {key} is known.")
    unit, unit_today = (then_rows or today_rows)[-1]["unit"], today_rows[-1]["unit"]
    is_rebased = unit != unit_today
    revised = [] if is_rebased else _revisions(then_rows, today_rows)
    charts = [_against(visit, then_rows, today_rows, as_of), _sizes(visit, revised, unit or "")]
    context: dict[str, Any] = {
        "series": key,
        "row": today_rows[0],
        "as_of": as_of,
        "unit": unit,
        "note": (then_rows or today_rows)[-1]["note"],
        "unit_today": unit_today,
        "is_rebased": is_rebased,
        "known": len(then_rows),
        "revised": len(revised),
        "revisions": revised,
        "rows_then": then_rows[-1:],
    }
    if visit.given("part") == "series":
        return View("series.html", "", context, tuple(charts), ("series",))
    releases = await data.releases(visit, key)
    if visit.given("chart") == "matrix":
        return View("series.html", "", context, (await _matrix(visit, key, then_rows, len(releases)),))
    charts.append(await _fan(visit, key, releases))
    context["first"] = min(releases, default=as_of)
    context["stops"] = releases[-_MOST_LINES:]
    name = (await data.series_entry(visit, key)).get("name") or key
    country = today_rows[0]["country"]
    context["name"] = name
    context["prefix"] = prefix = _prefix(visit, key, name, country)
    heading = prefix + visit.language.series(name, country)
    described = visit.language.text("Economic series as first published and as revised.")
    context["dataset"] = await data.dataset(visit, heading, described, [row["date"] for row in today_rows])
    return View("series.html", heading, context, tuple(charts), ("series",))


def _prefix(visit: Visit, key: str, name: str, country: str | None) -> str:
    """The country of a series, unless its name says it."""
    if not country or (country_name(country) or country) in name or currency_pair(key):
        return ""
    return f"{visit.language.country(country)}: "


async def _values(
    visit: Visit, key: str, day: date, *, shown: bool = False, most: int = _MOST_VALUES, **span: Any
) -> list[Row]:
    arguments = {"series": key, "as_of": day.isoformat(), "limit": visit.most_rows(most), **span}
    return (await visit.ask("get_macro", shown=shown, drawn=True, **arguments)).rows


def _span(rows: list[Row]) -> dict[str, Any]:
    return {"from": rows[0]["date"], "to": rows[-1]["date"]}


def _one(rows: list[Row]) -> list[Row]:
    """The first of several columns that share a key, oldest value first."""
    own = ("country", "frequency")
    return [row for row in rows if all(row[name] == rows[0][name] for name in own)][::-1]


def _points(rows: Sequence[Row]) -> list[tuple[date, Decimal]]:
    return [
        (date.fromisoformat(row["date"]), Decimal(row["value"])) for row in rows if row["value"] is not None
    ]


def _revisions(then: list[Row], today: list[Row]) -> list[dict[str, Any]]:
    """The values known on the day that differ today."""
    now = {row["date"]: row for row in today}
    revised = []
    for row in then:
        current = now.get(row["date"])
        if current and None not in (row["value"], current["value"]) and current["value"] != row["value"]:
            revised.append(
                {
                    "date": row["date"],
                    "frequency": row["frequency"],
                    "then": row["value"],
                    "today": current["value"],
                    "size": current["value"] - row["value"],
                    "change": _ratio(row["value"], current["value"]),
                    "vintages": current["vintage"],
                    "available_at": current["available_at"],
                }
            )
    return revised


def _ratio(before: Any, after: Any) -> Decimal | None:
    """The change as a share of the value before, to six digits; None if that is zero."""
    change = (Decimal(after) - Decimal(before)) / abs(Decimal(before)) if before else None
    return None if change is None else round(change, 6)


def _against(visit: Visit, then: list[Row], today: list[Row], as_of: date) -> Chart:
    text, written = visit.language.text, visit.language.day(as_of)
    known = {row["date"]: row for row in then}
    table = [
        (row["date"], known.get(row["date"], {}).get("value"), row["value"], row["vintage"])
        for row in reversed(today)
    ]
    title = text("As known on %(day)s", day=written)
    lines = [Line(text("Today"), "main", _points(today))]
    if as_of < visit.today:
        title = text("As known on %(day)s, and today", day=written)
        lines.append(Line(written, "then", _points(then)))
    return line_chart(
        "series",
        title,
        lines,
        visit.language.short,
        (("date", f"known_{as_of.isoformat()}", "today", "vintage"), table),
        as_of,
        visit.language.unit(_unit(today)),
        visit.chosen("scale", SCALES),
    )


def _unit(rows: Sequence[Row]) -> str:
    return str(rows[-1]["unit"] or "") if rows else ""


def _period(row: dict[str, Any]) -> str:
    """The period of a value, as short as its frequency allows."""
    return str(row["date"])[: _SHORT_DATES.get(row["frequency"], 10)]


def _sizes(visit: Visit, revised: list[dict[str, Any]], unit: str) -> Chart:
    columns = ("date", "then", "today", "size", "change", "vintages", "available_at")
    return bar_chart(
        "revisions",
        visit.language.text("How far each value was revised since"),
        [(_period(row), row["size"]) for row in revised[-_MOST_BARS:]],
        visit.language.short,
        (columns, [tuple(row[name] for name in columns) for row in revised]),
        visit.language.unit(unit),
    )


async def _fan(visit: Visit, key: str, releases: list[date]) -> Chart:
    """The series on several release days, one line each."""
    step = max(1, -(-len(releases) // _MOST_LINES))
    days = releases[::-1][::step][::-1]
    lines, table, unit = [], [], ""
    for day in days:
        rows = _one(await _values(visit, key, day, most=_MOST_OF_A_LINE))
        lines.append(Line(day.isoformat(), "old" if day != days[-1] else "main", _points(rows)))
        table += [(day.isoformat(), row["date"], row["value"]) for row in rows]
        unit = visit.language.unit(_unit(rows)) or unit
    title = visit.language.text(
        "Vintages: the series as it was on %(count)s days of release", count=len(days)
    )
    columns = ("known_on", "date", "value")
    scale = visit.chosen("scale", SCALES)
    return line_chart("fan", title, lines, visit.language.short, (columns, table), unit=unit, scale=scale)


async def _matrix(visit: Visit, key: str, rows: list[Row], releases: int) -> Chart:
    """The vintages side by side, for download: as many of the newest dates as a matrix may have."""
    shown = rows[-max(MOST_CELLS // max(releases, 1), 1) :]
    span = {**_span(shown), "country": shown[0]["country"]} if shown else {}
    result = await visit.ask(
        "get_series_matrix", shown=False, series=key, as_of=visit.day().isoformat(), **span
    )
    columns = ("date", *(name for name in (result.rows or [{}])[0] if name[:1].isdigit()))
    table = [tuple(row[name] for name in columns) for row in result.rows]
    return Chart("matrix", key, 0, 0, "", columns, table)


@page("/macro/indicator/{indicator}", "countries")
async def indicator(visit: Visit) -> View:
    """An annual indicator across countries, as small charts."""
    code = visit.parameters["indicator"].upper()
    named = visit.given("countries")
    countries = [part.strip().upper() for part in named.split(",")] if named else list(_COUNTRIES)
    if len(countries) > _MOST_COUNTRIES:
        raise InvalidParameter("countries", f"at most {_MOST_COUNTRIES}")
    charts, latest, meta = [], [], None
    for country in countries:
        rows = await data.annual_values(visit, country, code, shown=country == countries[0])
        if not rows:
            continue
        meta = meta or rows[0]
        points = [(row["year"], Decimal(row["value"])) for row in rows]
        name = visit.language.country(rows[0]["country"])
        charts.append(small_line(rows[0]["country"], f"{name}, {code}", points, visit.language.brief))
        latest.append({**rows[-1], "name": name})
    if meta is None:
        raise NotFound(f"No indicator {code} is known of these countries.")
    context = {"code": code, "meta": meta, "latest": latest, "shown": charts, "countries": countries}
    title = visit.language.series(meta["indicator_name"] or code)
    return View("indicator.html", title, context, tuple(charts))


_SUBJECTS: Final = {
    "Output and income": ("gdp", "gni", "savings", "value", "capital", "rents"),
    "Prices and money": ("inflation", "prices", "money", "interest", "deflator", "cpi", "credit", "bank"),
    "Trade and payments": ("trade", "exports", "imports", "current", "investment", "remittances", "reserves"),
    "Debt and government": ("debt", "government", "tax", "revenue", "expense", "lending", "development"),
    "People": ("population", "unemployment", "labor", "life", "fertility", "employment", "access", "mobile"),
}
"""The words for each heading, most specific first: a word of the name, or its beginning."""
_OTHERS: Final = "Others"
_FIRST: Final = ("NG", "ZA", "KE", "EG")
_MOST_AT_ONCE: Final = 2000


@page("/macro", "q", "country", "cursor")
async def catalogue(visit: Visit) -> View:
    """The hits of a search, or every series of a country by subject."""
    words, cursor = visit.given("q"), visit.given("cursor")
    countries = sorted(await data.countries(visit, shown=False), key=visit.language.country)
    context: dict[str, Any] = {"countries": countries, "words": words, "rates": [], "subjects": {}}
    context["country"] = visit.given("country").upper()
    if words or cursor:
        result = await visit.ask("list_series", q=words, country=visit.given("country"), cursor=cursor)
        context["subjects"] = {"": _entries(result.rows)}
        context["next_cursor"] = result.next_cursor
        return View("macro.html", visit.language.text("Macro"), context)
    chosen = context["country"] or next((code for code in _FIRST if code in countries), "ZA")
    rows = await _of_country(visit, chosen)
    by_subject = {subject: _entries(some) for subject, some in _by_subject(rows).items()}
    for entry in (entry for some in by_subject.values() for entry in some if "series" not in entry):
        indicator = entry["indicator"]
        if (series := await data.releases_of_indicator(visit, indicator["series"], chosen)) is not None:
            entry["series"] = series
    rates = await visit.ask("list_series", shown=False, q="FX", country=chosen)
    context |= {
        "country": chosen,
        "subjects": by_subject,
        "rates": [row for row in rates.rows if row["vintages"]],
        "next_cursor": None,
    }
    return View("macro.html", visit.language.text("Macro"), context)


async def _of_country(visit: Visit, country: str) -> list[Row]:
    """All series of a country; if the tier cuts the answer, the first ones of each subject."""
    if not visit.call.grant.sample:
        limit = visit.most_rows(_MOST_AT_ONCE)
        return (await visit.ask("list_series", country=country, limit=limit)).rows
    by_key: dict[tuple[str, str], Row] = {}
    for number, word in enumerate([*(word for words in _SUBJECTS.values() for word in words[:4]), ""]):
        result = await visit.ask("list_series", shown=number == 0, country=country, q=word)
        by_key |= {(row["series"], row["frequency"]): row for row in result.rows}
    return [by_key[key] for key in sorted(by_key)]


def _by_subject(rows: Iterable[Row]) -> dict[str, list[Row]]:
    subjects: dict[str, list[Row]] = {subject: [] for subject in (*_SUBJECTS, _OTHERS)}
    for row in rows:
        if not row["series"].startswith("FX."):
            # the heading whose word comes first in the name; World Bank codes do not give one
            name = (row["name"] or row["series"]).lower()
            positions = [(name.find(word), own) for own, words in _SUBJECTS.items() for word in words]
            subjects[min((one for one in positions if one[0] >= 0), default=(0, _OTHERS))[1]].append(row)
    return {subject: some for subject, some in subjects.items() if some}


def _entries(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One entry for a name and a country: its series with vintages, and its annual indicator."""
    entries: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    for row in rows:
        name = row["name"] or row["series"]
        entry = entries.setdefault((name, row["country"], row["frequency"]), {"name": name, "row": row})
        entry["series" if row["vintages"] else "indicator"] = row
        if row["vintages"]:
            entry["row"] = row
    return sorted(entries.values(), key=lambda entry: (entry["name"], str(entry["row"]["country"])))
