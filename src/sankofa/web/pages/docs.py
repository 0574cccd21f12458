"""The documentation: rendered from the project's files and the code, with search and a reference to try."""

import asyncio
from typing import Any, get_args, get_type_hints

from msgspec import Meta

from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.operations.contract import Operation, endpoints
from sankofa.web.documents import documents, groups, search
from sankofa.web.view import View, page
from sankofa.web.visit import Visit


@page("/docs", "q", needs_key=False)
async def contents(visit: Visit) -> View:
    """The contents, or what a search of them finds."""
    await asyncio.to_thread(documents)  # read and rendered once, which takes a second
    words = visit.given("q").strip()
    try:
        matches = await asyncio.to_thread(search, words)
    except ValueError as failure:
        raise InvalidParameter("q", str(failure)) from None
    context: dict[str, Any] = {
        "groups": list(groups()),
        "words": words,
        "found": matches,
        "current": "",
    }
    return View("docs.html", visit.language.text("Documentation"), context)


@page("/docs/api", needs_key=False)
async def reference(visit: Visit) -> View:
    """Every endpoint with its parameters, its rows and a form to try it."""
    await asyncio.to_thread(documents)
    context = {
        "groups": list(groups()),
        "endpoints": [_described(operation) for operation in endpoints()],
        "current": "api",
        "words": "",
    }
    return View("reference.html", visit.language.text("API reference"), context)


@page("/problems/{slug}", needs_key=False)
async def problem(visit: Visit) -> View:
    """What a problem means, for people; programs get it as text at the same address."""
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
    """A method is a document for people."""
    return View("", "", {}, redirect=f"/docs/methodology/{visit.parameters['name']}")


@page("/docs/{name*}", needs_key=False)
async def document(visit: Visit) -> View:
    """One document."""
    name = visit.parameters["name"]
    shown = (await asyncio.to_thread(documents)).get(name)
    if shown is None:
        raise NotFound("There is no such document.")
    context = {"groups": list(groups()), "document": shown, "current": name, "words": ""}
    return View("document.html", shown.title, context)


def _described(operation: Operation) -> dict[str, Any]:
    """The entry of an operation in the reference, read from its own declaration."""
    parameters = [
        {
            "name": parameter.name,
            "required": parameter.required or parameter.in_path,
            "in_path": parameter.in_path,
            "description": parameter.description,
            "schema": parameter.kind.schema(),
            "example": (parameter.kind.schema().get("examples") or [""])[0],
        }
        for parameter in operation.parameters.values()
    ]
    return {
        "name": operation.name,
        "path": operation.path,
        "summary": operation.summary,
        "description": operation.description,
        "parameters": parameters,
        "errors": operation.errors,
        "tool": operation.tool,
        "fields": _fields(operation),
        "rows_under": operation.rows_under,
    }


def _fields(operation: Operation) -> list[tuple[str, str]]:
    """The fields of a row with what each means."""
    fields = []
    for name, annotation in get_type_hints(operation.row, include_extras=True).items():
        meta = next((part for part in get_args(annotation) if isinstance(part, Meta)), None)
        fields.append((name, (meta.description or "") if meta else ""))
    return fields
