"""Public tenders: the newest first, and each process with its releases in time."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.web import data
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_PAGES_WALKED: Final = 12
_WALKED_AT_ONCE: Final = 200
_MOST_CHANGES: Final = 40
_LONGEST_QUERY: Final = 200
_WORD: Final = re.compile(r"\w+")
_COMPARED: Final = (
    "title",
    "status",
    "category",
    "procurement_method",
    "value_amount",
    "value_currency",
    "buyer_name",
    "award_count",
    "withheld_parties",
)


class FieldChange(msgspec.Struct, frozen=True):
    """What a release says differently from the one before."""

    path: str
    before: object
    after: object


@page("/tenders", "country", "from", "q", "cursor", "limit")
async def tenders(visit: Visit) -> View:
    """One page of releases, newest first; the next is reached by its cursor."""
    countries = await data.tender_countries(visit)
    country = visit.given("country", countries[0] if countries else "ZA")
    asked: dict[str, Any] = {"country": country, "from": visit.given("from"), "query": visit.given("q")}
    result = await visit.ask(
        "search_tenders", shown=True, **asked, cursor=visit.given("cursor"), limit=visit.given("limit")
    )
    context = {
        "rows": [{**row, "address": process_address(visit, row)} for row in result.rows],
        "next_cursor": result.members.get("next_cursor"),
        "country": country.upper(),
        "countries": countries,
        "withheld": sum(row["withheld_parties"] for row in result.rows),
    }
    return View("tenders.html", visit.language.text("Tenders"), context)


def process_address(visit: Visit, row: Row) -> str:
    """The page of the process that a release belongs to; words of its title lead to its other releases."""
    return visit.address(f"/tender/{row['country']}/{row['ocid']}", q=_words(row["title"] or "") or None)


def _words(title: str) -> str:
    """As many words of a title as a search takes."""
    words = ""
    for word in _WORD.findall(title):
        if len(words) + len(word) + 1 > _LONGEST_QUERY:
            break
        words = f"{words} {word}".strip()
    return words


@page("/tender/{country}/{ocid*}", "q")
async def tender(visit: Visit) -> View:
    """One process: its releases, and what each changed."""
    ocid, country = visit.parameters["ocid"], visit.parameters["country"]
    releases = await _releases(visit, country, ocid)
    if not releases:
        raise NotFound("No release of this process was found.")
    releases.sort(key=lambda row: (row["release_date"], row["release_id"]))
    steps = []
    before: Row | None = None
    for row in releases:
        steps.append({"row": row, "changes": [] if before is None else _changes(before, row)})
        before = row
    latest = releases[-1]
    context = {
        "ocid": ocid,
        "steps": steps[::-1],
        "latest": latest,
        "parties": _parties(latest),
        "withheld": max(row["withheld_parties"] for row in releases),
    }
    return View("tender.html", latest["title"] or ocid, context)


async def _releases(visit: Visit, country: str, ocid: str) -> list[Row]:
    """The releases of a process among those that have the words, walked page by page."""
    found: list[Row] = []
    cursor: str | None = None
    if len(visit.given("q")) > _LONGEST_QUERY:
        raise InvalidParameter("q", f"at most {_LONGEST_QUERY} characters")
    for number in range(_PAGES_WALKED):
        result = await visit.ask(
            "search_tenders",
            shown=number == 0,
            country=country,
            query=visit.given("q"),
            cursor=cursor,
            limit=visit.most_rows(_WALKED_AT_ONCE),
        )
        found += [row for row in result.rows if row["ocid"] == ocid]
        cursor = result.members.get("next_cursor")
        if cursor is None:
            break
    return found


def _parties(row: Row) -> list[dict[str, Any]]:
    """The parties of a release that are organisations, with their roles."""
    return [
        {"name": party["name"], "roles": party.get("roles") or [], "id": party.get("id")}
        for party in row["release"].get("parties") or []
        if party.get("name")
    ]


def _changes(before: Row, after: Row) -> list[FieldChange]:
    changes = [
        FieldChange(name, before[name], after[name]) for name in _COMPARED if before[name] != after[name]
    ]
    old, new = dict(_leaves(before["release"], "")), dict(_leaves(after["release"], ""))
    for path in sorted(old.keys() | new.keys()):
        if path.split(".")[0] not in ("id", "date", "tag") and old.get(path) != new.get(path):
            changes.append(FieldChange(path, old.get(path), new.get(path)))
    return changes[:_MOST_CHANGES]


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The values in a document, each under its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value
