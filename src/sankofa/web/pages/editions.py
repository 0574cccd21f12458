"""Editions: what is published, and what one has that an earlier one had not."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from sankofa.edition.format.keys import may_name_a_person
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import NotFound, Problem, UpgradeRequired
from sankofa.operations.locked import ask_rows
from sankofa.web.languages import label
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

COUNTED: Final = {
    "Organisations": ("entity",),
    "Reported figures": ("fundamentals",),
    "Macro values": ("macro-series", "macro-annual"),
    "Tender releases": ("tender",),
}
"""The rows that the first page and this one count together, by the datasets they are in."""
_KINDS: Final = {kinds[0]: words for words, kinds in COUNTED.items()}
_NAMES: Final = ("legal_name", "title", "series", "indicator", "name", "ocid", "service_id")
_WHAT: Final = ("line_item", "id_type", "country", "metric")
_WHEN: Final = ("period_end", "date", "year", "release_date")
_VALUES: Final = ("value_reported", "value", "id_value", "status")


@page("/editions", "since", "dataset", "cursor", cached=False)
async def editions(visit: Visit) -> View:
    """The published editions, and the changes between two of them."""
    visit.refuse_lock()
    listed = await asyncio.to_thread(visit.service.datastore.list_editions)
    current = visit.call.edition
    rows = [
        {"id": name, "current": name == listed.current, "built": _built(name), "before": before}
        | {"counts": await _counts(visit, name)}
        for name, before in zip(listed.editions, [*listed.editions[1:], None], strict=True)
    ]
    context: dict[str, Any] = {
        "editions": rows,
        "counted": COUNTED,
        "kinds": _KINDS,
        "shown": current.id,
        "since": visit.given("since"),
        "changes": [],
        "next_cursor": None,
        "compared": {},
        "upgrade": False,
    }
    if visit.given("since"):
        await _compare(visit, context)
    return View("editions.html", visit.language.text("Editions"), context)


_SHOWN: Final = (
    "line_item",
    "period_end",
    "period_type",
    "value_reported",
    "unit",
    "available_at",
    "vintage",
)


_CHANGES_SHOWN: Final = 100


@page("/company/{service_id}/changes", "since", cached=False)
async def company_changes(visit: Visit) -> View:
    """The figures of a company that an edition has and an earlier one had not, or the other way round."""
    visit.refuse_lock()
    service_id, since = visit.parameters["service_id"], visit.given("since")
    name = (await visit.ask("get_entity", shown=False, service_id=service_id)).first["legal_name"]
    listed = await asyncio.to_thread(visit.service.datastore.list_editions)
    context: dict[str, Any] = {
        "service_id": service_id,
        "name": name or service_id,
        "editions": [one for one in listed.editions if one != visit.call.edition.id],
        "shown": visit.call.edition.id,
        "since": since,
        "changes": [],
        "most": _CHANGES_SHOWN,
        "upgrade": visit.call.grant.sample,
    }
    if since and not visit.call.grant.sample:
        before = await _figures(visit, service_id, await visit.call.edition_to_compare(since))
        after = await _figures(visit, service_id, visit.call.edition)
        changes = [("added", after[key]) for key in after.keys() - before.keys()]
        changes += [("removed", before[key]) for key in before.keys() - after.keys()]
        changes.sort(key=lambda change: (change[1]["available_at"], change[1]["period_end"]), reverse=True)
        context["changes"] = changes
        visit.note_filings(row for _, row in changes[:_CHANGES_SHOWN])
    return View("company_changes.html", context["name"], context)


async def _figures(visit: Visit, service_id: str, edition: Edition) -> dict[tuple[Any, ...], Row]:
    """Every vintage of every figure of a company in an edition; none where it does not know the company."""
    call = msgspec.structs.replace(visit.call, edition=edition)
    try:
        rows = await ask_rows(call, "get_fundamentals", {"service_id": service_id, "vintages": "all"})
    except NotFound:
        return {}
    return {tuple(row[name] for name in (*_SHOWN, "concept", "period_start")): row for row in rows}


async def _compare(visit: Visit, context: dict[str, Any]) -> None:
    """How many rows of each kind there are in both, and the rows that differ, where the key may see them."""
    since = visit.given("since")
    before, after = await _counts(visit, since) or {}, visit.call.edition.manifest["rows"]
    kinds = sorted({*before, *after})
    context["compared"] = {kind: (before.get(kind, 0), after.get(kind, 0)) for kind in kinds}
    try:
        result = await visit.ask(
            "get_changes", since=since, dataset=visit.given("dataset"), cursor=visit.given("cursor")
        )
    except UpgradeRequired:
        context["upgrade"] = True
        return
    context["changes"] = [_described(visit, row) for row in result.rows]
    context["next_cursor"] = result.next_cursor


def _described(visit: Visit, change: Row) -> dict[str, Any]:
    """A row that differs, in words: whose, what, of when, what it says now, and where it is shown."""
    row = change["row"] or {}
    what = next((label(visit.language, row[name]) for name in _WHAT if row.get(name)), "")
    return {
        "dataset": change["dataset"],
        "change": change["change"],
        "key": " | ".join(change["key"]),
        "name": next((str(row[name]) for name in _NAMES if row.get(name)), change["key"][0]),
        "what": what,
        "when": next((str(row[name])[:10] for name in _WHEN if row.get(name)), ""),
        "value": next((row[name] for name in _VALUES if row.get(name) is not None), None),
        "address": _address(visit, row),
    }


def _address(visit: Visit, row: Row) -> str | None:
    if row.get("ocid"):
        return visit.address(f"/tender/{row['country']}/{row['ocid']}")
    if row.get("line_item"):
        figure = {name: row[name] for name in ("line_item", "period_end", "period_start", "concept", "unit")}
        return visit.address(f"/company/{row['service_id']}/figure", **figure)
    for name, path in (
        ("service_id", "/company/"),
        ("series", "/macro/series/"),
        ("indicator", "/macro/indicator/"),
    ):
        if row.get(name):
            return visit.address(path + row[name])
    return None


def _built(edition_id: str) -> str:
    """The instant of the last capture in an edition, which its id begins with."""
    moment = datetime.strptime(edition_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return moment.isoformat()


async def _counts(visit: Visit, edition_id: str) -> dict[str, int] | None:
    """How many rows of each kind a kept edition has; None if it may not be answered from any more."""
    current = visit.service.edition.get()
    if may_name_a_person(edition_id, current.last_person_capture) and edition_id != current.id:
        return None
    try:
        edition = await visit.service.edition.by_id(edition_id)
    except Problem:
        return None
    return dict(edition.manifest["rows"])
