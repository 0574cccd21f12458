"""The service itself: sources, coverage, downloads, status, and the visitor's key."""

import re
from typing import Final

from sankofa import __version__
from sankofa.model.days import instant
from sankofa.model.errors import StoreUnavailable
from sankofa.operations.service import build_id, probe
from sankofa.web import data
from sankofa.web.pages.home import countries_map
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_NUMBER: Final = re.compile(r'"(\w+)";(?:q|r)=(\d+)')
_RESET: Final = re.compile(r'"(\w+)";r=\d+;t=(\d+)')


@page("/sources")
async def sources(visit: Visit) -> View:
    """The publishers, their data and their licences."""
    sources = (await visit.ask("get_sources")).rows
    return View("sources.html", visit.language.text("Sources"), {"sources": sources})


@page("/downloads")
async def downloads(visit: Visit) -> View:
    """The files, those that need no key first."""
    files = (await visit.ask("get_export")).rows
    files.sort(key=lambda row: row["access"] != "open")
    return View("downloads.html", visit.language.text("Downloads"), {"files": files})


@page("/coverage", "country")
async def coverage(visit: Visit) -> View:
    """Rows, first and last date and freshness of each dataset and country."""
    rows = await data.coverage(visit, visit.given("country"))
    every = await data.countries(visit, shown=False)
    context = {"rows": rows, "countries": sorted(every, key=visit.language.country)}
    charts = () if visit.given("country") else (countries_map(visit, every),)
    return View("coverage.html", visit.language.text("Coverage"), context, charts)


@page("/status", needs_key=False, cached=False)
async def status(visit: Visit) -> View:
    """The dependency reads of /v1/status as a page, with its status code."""
    visit.refuse_lock()
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


@page("/key", cached=False, refused=False)
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
