"""The service itself: sources, coverage, quality, downloads, status, your key, how to call it; and the
documentation, rendered from the project's files and the code, with search and a reference to try.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any, Final, get_args, get_type_hints
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from msgspec import Meta

from sankofa import __version__
from sankofa.edition.format.keys import last_capture, may_name_a_person
from sankofa.edition.read.edition import Edition
from sankofa.model.days import instant
from sankofa.model.errors import InvalidParameter, NotFound, Problem, StoreUnavailable, UpgradeRequired
from sankofa.model.provenance import SKUS
from sankofa.operations.contract import EDITION, Call, Operation, endpoints
from sankofa.operations.locked import ask_rows, locked
from sankofa.operations.service import build_id
from sankofa.web import data
from sankofa.web.documents import documents, groups, search
from sankofa.web.languages import label
from sankofa.web.pages.home import countries_map
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_LIMIT: Final = re.compile(r'"(\w+)";q=(\d+)')
_LEFT: Final = re.compile(r'"(\w+)";r=(\d+);t=(\d+)')


@page("/sources")
async def sources(visit: Visit) -> View:
    """The publishers, their data and their licences."""
    sources = (await visit.ask("get_sources")).rows
    return View("sources.html", visit.language.text("Sources"), {"sources": sources})


@page("/downloads")
async def downloads(visit: Visit) -> View:
    """The files, open ones first."""
    files = (await visit.ask("get_export")).rows
    files.sort(key=lambda row: row["access"] != "open")
    return View("downloads.html", visit.language.text("Downloads"), {"files": files})


_COVERAGE_SHOWN: Final = 200


@page("/coverage", "country", "page")
async def coverage(visit: Visit) -> View:
    """Rows, first and last date and freshness of each dataset and country."""
    rows = await data.coverage(visit, visit.given("country"))
    every = await data.countries(visit, shown=False)
    number = visit.page_number(1000)
    context = {
        "rows": rows[number * _COVERAGE_SHOWN :][:_COVERAGE_SHOWN],
        "next_page": number + 2 if len(rows) > (number + 1) * _COVERAGE_SHOWN else None,
        "countries": sorted(every, key=visit.language.country),
    }
    charts = () if visit.given("country") or number else (countries_map(visit, every),)
    return View("coverage.html", visit.language.text("Coverage"), context, charts)


@page("/status", needs_key=False, cached=False)
async def status(visit: Visit) -> View:
    """The dependency reads of /v1/status as a page, with its status code."""
    visit.lock = visit.lock or await visit.service.lock_sent([*filter(None, [visit.request.api_key])], [])
    visit.refuse_lock()
    checks = await visit.service.probe()
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
    """The visitor's key: its limits and its usage."""
    grant, usage = visit.call.grant, visit.usage
    state = dict(usage.headers).get(b"ratelimit", b"").decode() if usage else ""
    left = {name: (int(count), int(seconds)) for name, count, seconds in _LEFT.findall(state)}
    windows = []
    for name, most in _LIMIT.findall(usage.policy) if usage else ():
        count, seconds = left.get(name, (0, 0))
        windows.append({"name": name, "limit": int(most), "used": int(most) - count, "seconds": seconds})
    return View("key.html", visit.language.text("Your key"), {"grant": grant, "windows": windows})


@page("/quality")
async def quality(visit: Visit) -> View:
    """Every measure of every dataset, and whether it passes."""
    datasets = {sku: (await visit.ask("get_quality_metrics", sku=sku)).rows for sku in SKUS}
    return View("quality.html", visit.language.text("Quality"), {"datasets": datasets})


_EXAMPLE: Final = "/v1/screen?metric=net_margin"
"""Every edition can answer this."""


@page("/use", "call", needs_key=False)
async def use(visit: Visit) -> View:
    """The lines for a call of the API, with the public sandbox key if there is one."""
    settings = visit.site.settings
    path, query = _read_call(visit.given("call", _EXAMPLE))
    base = settings.base_url + visit.prefix
    context = {
        "call": _address(path, query),
        "json_url": base + _address(path, query),
        "csv_url": base + _address(path, {**query, "format": "csv"}),
        "mcp": f"{settings.public_mcp_url}{visit.prefix}/mcp",
        "key": settings.sandbox_key or "YOUR_KEY",
    }
    return View("use.html", visit.language.text("Use it from"), context)


def _address(path: str, query: dict[str, str]) -> str:
    """Encodes every character that ends a string or starts a command in any of the languages."""
    return quote(path, safe="/:%") + (f"?{urlencode(query)}" if query else "")


def _read_call(call: str) -> tuple[str, dict[str, str]]:
    """The path and the parameters of an API call. Raises InvalidParameter."""
    path, _, text = call.partition("?")
    query = {name: value for name, value in parse_qsl(text) if name != "format"}
    for operation in endpoints():
        if _is_at(operation, path):
            if unknown := query.keys() - operation.query.keys() - {EDITION.name}:
                raise InvalidParameter("call", f"{operation.path} takes no {min(unknown)[:64]}")
            return path, query
    raise InvalidParameter("call", f"expected a path of the API, such as {_EXAMPLE}")


def _is_at(operation: Operation, path: str) -> bool:
    parts, own = path.split("/"), operation.path.split("/")
    same = zip(parts, own, strict=False)
    return len(parts) == len(own) and all(a and (b.startswith("{") or a == b) for a, b in list(same)[1:])


@page("/docs", "q", needs_key=False)
async def contents(visit: Visit) -> View:
    """The contents, or the results of a search."""
    await asyncio.to_thread(documents)  # takes a second, once
    words = visit.given("q").strip()
    try:
        matches = await asyncio.to_thread(search, words)
    except ValueError as failure:
        raise InvalidParameter("q", str(failure)) from None
    context: dict[str, Any] = {"groups": list(groups()), "words": words, "found": matches, "current": ""}
    return View("docs.html", visit.language.text("Documentation"), context)


@page("/docs/api", needs_key=False)
async def reference(visit: Visit) -> View:
    """Every endpoint in a line."""
    await asyncio.to_thread(documents)
    context = {"groups": list(groups()), "endpoints": endpoints(), "current": "api", "words": ""}
    return View("reference.html", visit.language.text("API reference"), context)


@page("/docs/api/{name}", needs_key=False)
async def endpoint(visit: Visit) -> View:
    """One endpoint with its parameters, its rows and a form to try it."""
    await asyncio.to_thread(documents)
    operation = next((one for one in endpoints() if one.name == visit.parameters["name"]), None)
    if operation is None:
        raise NotFound("There is no such endpoint.")
    context: dict[str, Any] = {"groups": list(groups()), "current": "api", "words": ""}
    examples: dict[str, str] = {}
    with suppress(Problem):
        examples = await _examples(visit)
    given = {
        name: examples.get(name) or (one.kind.schema().get("examples") or [""])[0]
        for name, one in operation.parameters.items()
        if one.required or one.in_path or name in _ONE_OF_SEVERAL
    }
    path = operation.path.format_map(given)
    query = {name: given[name] for name in operation.query if name in given}
    context |= {"e": operation, "fields": _fields(operation), "given": given, "call": _address(path, query)}
    return View("endpoint.html", operation.path, context)


_ONE_OF_SEVERAL: Final = ("entity_id", "metrics")
"""Parameters of which an endpoint needs one of several."""


async def _examples(visit: Visit) -> dict[str, str]:
    """Values that the edition answers, by parameter: of its issuer with most figures and of a tender."""
    service = visit.service
    grant = await service.keys.authenticate(visit.site.settings.sandbox_key)
    edition = locked(service.edition.get(), visit.lock)
    call = Call(edition, grant, visit.today, service.cursors, service.edition.for_cursor)
    issuers = await ask_rows(call, "list_issuers", {})
    examples = {"metrics": "net_margin"}
    if issuers:
        issuer = max(issuers, key=lambda row: row["fact_count"])
        examples |= dict.fromkeys(("service_id", "entity_id", "subject"), issuer["service_id"])
        examples |= {"q": issuer["legal_name"] or issuer["service_id"]}
        arguments = {"service_id": issuer["service_id"], "line_items": "revenue", "period_type": "FY"}
        for row in await ask_rows(call, "get_fundamentals", arguments):
            examples |= {"record_ref": row["record_ref"], "period": str(row["fiscal_year"])}
            examples |= {"value": str(row["value_reported"])}
        for row in await ask_rows(call, "get_crosswalk", {"service_id": issuer["service_id"]}):
            examples |= {"id_type": row["id_type"], "id_value": row["id_value"]}
    for row in await ask_rows(call, "search_tenders", {}):
        examples |= {"ocid": row["ocid"]}
    return examples


@page("/problems/{slug}", needs_key=False)
async def problem(visit: Visit) -> View:
    """A problem explained for people; programs get it as text at the same address."""
    slug = visit.parameters["slug"]
    kind = next((kind for kind in Problem.__subclasses__() if kind.slug == slug), None)
    if kind is None:
        raise NotFound("There is no such problem.")
    status, _, text = (kind.__doc__ or "").partition(": ")
    title = visit.language.text(kind.title)
    context = {"status": status, "text": text[:1].upper() + text[1:], "slug": slug}
    return View("explained.html", title, context)


@page("/methodology/{name*}", needs_key=False)
async def method(visit: Visit) -> View:
    """Redirects to the method's page in the documentation."""
    return View("", "", {}, redirect=f"/docs/methodology/{visit.parameters['name']}")


@page("/docs/{name*}", "page", needs_key=False)
async def document(visit: Visit) -> View:
    """One document, or a page of a long one."""
    name = visit.parameters["name"]
    shown = (await asyncio.to_thread(documents)).get(name)
    if shown is None:
        raise NotFound("There is no such document.")
    number = visit.page_number(len(shown.pages))
    context = {"groups": list(groups()), "document": shown, "number": number, "current": name, "words": ""}
    return View("document.html", shown.title, context)


def _fields(operation: Operation) -> list[tuple[str, str]]:
    fields = []
    for name, annotation in get_type_hints(operation.row, include_extras=True).items():
        meta = next((part for part in get_args(annotation) if isinstance(part, Meta)), None)
        fields.append((name, (meta.description or "") if meta else ""))
    return fields


_KINDS: Final = {kinds[0]: words for words, kinds in data.COUNTED.items()}
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
        {
            "id": name,
            "current": name == listed.current,
            "built": last_capture(name).isoformat(),
            "before": before,
            "counts": await _rows_by_kind(visit, name),
        }
        for name, before in zip(listed.editions, [*listed.editions[1:], None], strict=True)
    ]
    context: dict[str, Any] = {
        "editions": rows,
        "counted": data.COUNTED,
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


_IDENTITY: Final = tuple("line_item period_end period_type value_reported unit available_at vintage".split())


_CHANGES_SHOWN: Final = 100


@page("/company/{service_id}/changes", "since", cached=False)
async def company_changes(visit: Visit) -> View:
    """The figures of a company that only one of two editions has."""
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
    """Every vintage of every figure of a company in an edition; none if the edition does not know it."""
    call = msgspec.structs.replace(visit.call, edition=edition)
    try:
        rows = await ask_rows(call, "get_fundamentals", {"service_id": service_id, "vintages": "all"})
    except NotFound:
        return {}
    return {tuple(row[name] for name in (*_IDENTITY, "concept", "period_start")): row for row in rows}


async def _compare(visit: Visit, context: dict[str, Any]) -> None:
    """The number of rows of each kind in both editions, and the rows that differ if the key may see them."""
    since = visit.given("since")
    before, after = await _rows_by_kind(visit, since) or {}, visit.call.edition.manifest["rows"]
    kinds = sorted({*before, *after})
    context["compared"] = {kind: (before.get(kind, 0), after.get(kind, 0)) for kind in kinds}
    try:
        result = await visit.ask("get_changes", **visit.passed_on("since", "dataset", "cursor"))
    except UpgradeRequired:
        context["upgrade"] = True
        return
    context["changes"] = [_described_change(visit, row) for row in result.rows]
    context["next_cursor"] = result.next_cursor


def _described_change(visit: Visit, change: Row) -> dict[str, Any]:
    """A row that differs, in words: subject, measure, date, new value, and the page that shows it."""
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
        "address": _shown_at(visit, row),
    }


def _shown_at(visit: Visit, row: Row) -> str | None:
    if row.get("ocid"):
        return visit.address(f"/tender/{row['country']}/{row['ocid']}")
    if row.get("line_item"):
        return data.figure_address(visit, row)
    paths = {"service_id": "/company/", "series": "/macro/series/", "indicator": "/macro/indicator/"}
    return next((visit.address(path + row[name]) for name, path in paths.items() if row.get(name)), None)


async def _rows_by_kind(visit: Visit, edition_id: str) -> dict[str, int] | None:
    """The number of rows of each kind in a kept edition; None if the edition can no longer answer."""
    current = visit.service.edition.get()
    if may_name_a_person(edition_id, current.last_person_capture) and edition_id != current.id:
        return None
    try:
        edition = await visit.service.edition.by_id(edition_id)
    except Problem:
        return None
    return dict(edition.manifest["rows"])
