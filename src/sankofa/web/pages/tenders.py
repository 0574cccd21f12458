"""Public tenders, newest first; one process with its releases; the buyers and suppliers they name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from sankofa.model.errors import NotFound
from sankofa.web import data
from sankofa.web.data import named_parties
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_PAGES_WALKED: Final = 4
_WALKED_AT_ONCE: Final = 200
_MOST_CHANGES: Final = 40
_LONGEST_HEADING: Final = 140
_LONGEST_BELOW: Final = 220
_WORDS: Final = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,}+\s++[^\W\d_]{2}")
"""Two words in a row: a title without them is a reference number."""
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
    """The differences of a release from the one before."""

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
        "search_tenders", shown=True, **asked, cursor=visit.given("cursor"), limit=visit.limit()
    )
    context = {
        "rows": [listed(visit, row) for row in result.rows],
        "next_cursor": result.next_cursor,
        "country": country.upper(),
        "countries": countries,
        "withheld": sum(row["withheld_parties"] for row in result.rows),
    }
    return View("tenders.html", visit.language.text("Tenders"), context)


def listed(visit: Visit, row: Row) -> dict[str, Any]:
    """A release as a list shows it: what is bought comes first where the title is a reference number."""
    title, description = row["title"] or row["ocid"], _description(row)
    heading, below = title, description
    if description and not _WORDS.search(title):
        heading, below = description, title
    return {
        **row,
        "address": process_address(visit, row),
        "heading": _short(heading, _LONGEST_HEADING),
        "below": _short(below, _LONGEST_BELOW) if below and below != heading else "",
    }


def _description(row: Row) -> str:
    tender = (row.get("release") or {}).get("tender") or {}
    return " ".join(str(tender.get("description") or "").split())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + "\N{HORIZONTAL ELLIPSIS}"


def process_address(visit: Visit, row: Row) -> str:
    """The page of the process that a release belongs to."""
    return visit.address(f"/tender/{row['country']}/{row['ocid']}")


@page("/tender/{country}/{ocid*}")
async def tender(visit: Visit) -> View:
    """One process: its releases, and what each changed."""
    ocid, country = visit.parameters["ocid"], visit.parameters["country"]
    releases, more = await _releases(visit, country, ocid)
    if not releases:
        raise NotFound("No release of this process was found.")
    releases.sort(key=lambda row: (row["release_date"], row["release_id"]))
    steps = []
    before: Row | None = None
    for row in releases:
        steps.append({"row": row, "changes": [] if before is None else _changes(before, row)})
        before = row
    latest = releases[-1]
    shown = listed(visit, latest)
    context = {
        "ocid": ocid,
        "steps": steps[::-1],
        "latest": latest,
        "parties": await named_parties(visit, [row["release"] for row in releases]),
        "withheld": max(row["withheld_parties"] for row in releases),
        "more": more,
    }
    context |= {"heading": shown["heading"], "description": _description(latest), "of_title": latest["title"]}
    return View("tender.html", shown["heading"], context)


async def _releases(visit: Visit, country: str, ocid: str) -> tuple[list[Row], bool]:
    """The releases of a process, the newest first; and whether there are more than a page has room for."""
    releases: list[Row] = []
    cursor: str | None = None
    for number in range(_PAGES_WALKED):
        result = await visit.ask(
            "search_tenders",
            shown=number == 0,
            country=country,
            ocid=ocid,
            cursor=cursor,
            limit=visit.most_rows(_WALKED_AT_ONCE),
        )
        releases += result.rows
        cursor = result.next_cursor
        if cursor is None:
            break
    return releases, cursor is not None


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
