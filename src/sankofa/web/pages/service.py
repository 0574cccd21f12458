"""The service itself: editions, sources, coverage, status, and the visitor's key."""

import asyncio
import re
from typing import Any, Final

from sankofa import __version__
from sankofa.edition.format.edition_id import may_name_a_person
from sankofa.model.days import instant
from sankofa.model.errors import Problem, StoreUnavailable
from sankofa.operations.build_id import build_id
from sankofa.operations.service import probe
from sankofa.web import data
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_NUMBER: Final = re.compile(r'"(\w+)";(?:q|r)=(\d+)')
_RESET: Final = re.compile(r'"(\w+)";r=\d+;t=(\d+)')
_MOST_CHANGES: Final = 200


@page("/editions", "since", "dataset", "cursor", cached=False)
async def editions(visit: Visit) -> View:
    """What is published, and what changed from one edition to another."""
    listed = await asyncio.to_thread(visit.service.datastore.list_editions)
    current = visit.call.edition
    rows = []
    for name in listed.editions:
        rows.append({"id": name, "current": name == listed.current, "counts": await _counts(visit, name)})
    context: dict[str, Any] = {
        "editions": rows,
        "shown": current.id,
        "since": visit.given("since"),
        "changes": [],
        "next_cursor": None,
        "compared": {},
    }
    if visit.given("since"):
        before = await _counts(visit, visit.given("since")) or {}
        after = current.manifest["rows"]
        context["compared"] = {
            kind: (before.get(kind, 0), after.get(kind, 0)) for kind in sorted({*before, *after})
        }
        result = await visit.ask(
            "get_changes",
            since=visit.given("since"),
            dataset=visit.given("dataset"),
            cursor=visit.given("cursor"),
        )
        context["changes"] = result.rows[:_MOST_CHANGES]
        context["next_cursor"] = result.members.get("next_cursor")
    return View("editions.html", visit.language.text("Editions"), context)


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


@page("/sources")
async def sources(visit: Visit) -> View:
    """Who publishes what, under which licence."""
    return View("sources.html", visit.language.text("Sources"), {"sources": await data.sources(visit)})


@page("/coverage", "country")
async def coverage(visit: Visit) -> View:
    """Of each dataset and country how much there is, from when to when, how fresh."""
    rows = await data.coverage(visit, visit.given("country"))
    return View("coverage.html", visit.language.text("Coverage"), {"rows": rows})


@page("/status", needs_key=False, cached=False)
async def status(visit: Visit) -> View:
    """The dependency reads of /v1/status as a page, with its status code."""
    checks = await probe(visit.service)
    try:
        edition: str | None = visit.service.edition.get().id
    except StoreUnavailable as failure:
        edition = None
        checks["datastore"] = (failure.cause, checks["datastore"][1])
    degraded = any(failure is not None for failure, _ in checks.values())
    context = {
        "checks": checks,
        "degraded": degraded,
        "edition": edition,
        "version": __version__,
        "build": build_id(),
        "time": instant(visit.service.clock()),
    }
    return View("status.html", visit.language.text("Status"), context, status=503 if degraded else 200)


@page("/key", cached=False)
async def key(visit: Visit) -> View:
    """The visitor's key: what it may have, and how much of it is used."""
    grant, usage = visit.call.grant, visit.usage
    limits = {name: int(count) for name, count in _NUMBER.findall(usage.policy)} if usage else {}
    left = {name: int(count) for name, count in _NUMBER.findall(usage.state)} if usage else {}
    resets = {name: int(seconds) for name, seconds in _RESET.findall(usage.state)} if usage else {}
    windows = [
        {"name": name, "limit": limit, "used": limit - left.get(name, 0), "seconds": resets.get(name, 0)}
        for name, limit in limits.items()
    ]
    return View("key.html", visit.language.text("Your key"), {"grant": grant, "windows": windows})
