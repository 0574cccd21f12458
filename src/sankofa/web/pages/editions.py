"""Editions: what is published, and what one has that an earlier one had not."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from sankofa.edition.format.keys import may_name_a_person
from sankofa.model.errors import Problem, UpgradeRequired
from sankofa.web.languages import label
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_COUNTED: Final = {
    "entity": "Organisations",
    "fundamentals": "Reported figures",
    "macro-series": "Macro values",
    "tender": "Tender releases",
}
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
        "counted": _COUNTED,
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
    """How many rows of each kind a kept edition has; None where it may not be answered from any more."""
    current = visit.service.edition.get()
    if may_name_a_person(edition_id, current.last_person_capture) and edition_id != current.id:
        return None
    try:
        edition = await visit.service.edition.by_id(edition_id)
    except Problem:
        return None
    return dict(edition.manifest["rows"])
