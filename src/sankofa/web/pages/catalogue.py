"""The catalogue of macro data: series and indicators by subject, exchange rates, and a search."""

from collections.abc import Iterable
from typing import Any, Final

from sankofa.web import data
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_SUBJECTS: Final = {
    "Output and income": ("gdp", "gni", "savings", "value", "capital", "rents"),
    "Prices and money": ("inflation", "prices", "money", "interest", "deflator", "cpi", "credit", "bank"),
    "Trade and payments": ("trade", "exports", "imports", "current", "investment", "remittances", "reserves"),
    "Debt and government": ("debt", "government", "tax", "revenue", "expense", "lending", "development"),
    "People": ("population", "unemployment", "labor", "life", "fertility", "employment", "access", "mobile"),
}
"""The words searched for under each heading, most specific first: a word of the name, or its beginning."""
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
        context["truncated"] = result.truncated
        context["next_cursor"] = result.next_cursor
        return View("macro.html", visit.language.text("Macro"), context)
    chosen = context["country"] or next((code for code in _FIRST if code in countries), "ZA")
    rows, truncated = await _of_country(visit, chosen)
    by_subject = {subject: _entries(some) for subject, some in _by_subject(rows).items()}
    for entry in (entry for some in by_subject.values() for entry in some if "series" not in entry):
        indicator = entry["indicator"]
        if (series := await data.releases_of_indicator(visit, indicator["series"], chosen)) is not None:
            entry["series"] = series
    rates = await visit.ask("list_series", shown=False, q="FX", limit=visit.most_rows(_MOST_AT_ONCE))
    context |= {
        "country": chosen,
        "subjects": by_subject,
        "rates": [row for row in rates.rows if row["vintages"]],
        "truncated": truncated,
        "next_cursor": None,
    }
    return View("macro.html", visit.language.text("Macro"), context)


async def _of_country(visit: Visit, country: str) -> tuple[list[Row], bool]:
    """Everything of a country; where the tier shows a part of an answer, that part of each subject."""
    if not visit.call.grant.sample:
        result = await visit.ask("list_series", country=country, limit=visit.most_rows(_MOST_AT_ONCE))
        return result.rows, result.truncated
    by_key: dict[tuple[str, str], Row] = {}
    truncated = False
    for number, word in enumerate(word for words in _SUBJECTS.values() for word in words[:4]):
        result = await visit.ask("list_series", shown=number == 0, country=country, q=word)
        by_key |= {(row["series"], row["frequency"]): row for row in result.rows}
        truncated = truncated or result.truncated
    rest = await visit.ask("list_series", shown=False, country=country)
    by_key |= {(row["series"], row["frequency"]): row for row in rest.rows}
    return [by_key[key] for key in sorted(by_key)], truncated or rest.truncated


def _by_subject(rows: Iterable[Row]) -> dict[str, list[Row]]:
    subjects: dict[str, list[Row]] = {subject: [] for subject in (*_SUBJECTS, _OTHERS)}
    for row in rows:
        if not row["series"].startswith("FX."):
            subjects[_subject(row)].append(row)
    return {subject: some for subject, some in subjects.items() if some}


def _subject(row: Row) -> str:
    """The heading whose word comes first in a name; the codes of the World Bank are of no help here."""
    name = (row["name"] or row["series"]).lower()
    places = [
        (name.find(word), subject) for subject, words in _SUBJECTS.items() for word in words if word in name
    ]
    return min(places)[1] if places else _OTHERS


def _entries(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One entry for a name and a country: its series with vintages, and its annual indicator."""
    entries: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    for row in rows:
        name = row["name"] or row["series"]
        frequency = row["frequency"]
        entry = entries.setdefault((name, row["country"], frequency), {"name": name, "row": row})
        entry["series" if row["vintages"] else "indicator"] = row
        if row["vintages"]:
            entry["row"] = row
    return sorted(entries.values(), key=lambda entry: (entry["name"], str(entry["row"]["country"])))
