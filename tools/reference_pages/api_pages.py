"""The pages for callers of the service: its operations and its problems."""

import inspect
from collections.abc import Iterator
from typing import Final

import sankofa.mcp.surface
import sankofa.rest.request
import sankofa.web.responses
import sankofa.web.visit
from sankofa.model.errors import Problem
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.operations.answers import envelope_of, row_schema
from sankofa.operations.catalogue import LICENSED_FILES
from sankofa.operations.contract import Operation, Parameter, operations
from sankofa.rest.openapi import describe
from sankofa.rest.pages import problems
from sankofa.settings import Settings
from tools.reference_pages.markdown import code, default_text, member_row, page, schema_text, table

_SURFACES: Final = {
    sankofa.mcp.surface.__name__: "MCP",
    sankofa.rest.request.__name__: "REST",
    sankofa.web.responses.__name__: "pages",
    sankofa.web.visit.__name__: "pages",
}

_FILE_ACCESS: Final = (
    "It needs a key of a paid tier (402 below it); each request counts. `/v1/export` lists the files."
)


def api_page() -> str:
    parts = [
        "Every path answers GET and HEAD; OPTIONS names the methods. Every path but the open ones needs a key"
        " in `X-API-Key`. `/openapi.json` says the same for machines. MCP is at `/mcp` (POST), with the"
        " same key there or as `Authorization: Bearer`; a tool takes the parameters of its operation.",
        "| operation | tool | answers |\n|---|---|---|\n"
        + "\n".join(
            f"| [{_request_line(o)}](#{o.name}) | {code(o.tool or '')} | {o.summary} |" for o in operations()
        ),
        "## Open paths",
        "They need no key and count against none.",
        table(("path", "answers"), _open_paths()),
        "## Licensed files",
        _licensed_files(),
    ]
    for operation in operations():
        parts += _operation(operation)
    parts += ["## The licence notice", "Every answer carries it in `_license`.", f"> {LICENSE_NOTICE}"]
    return page("Operations", *parts)


def problems_page() -> str:
    rows = []
    for problem in problems():
        sample = _sample(problem)
        members = [code(name) for name in (*sample.members, *sample.headers)]
        where = _SURFACES.get(problem.__module__, "both")
        meaning = (problem.__doc__ or "").removeprefix(f"{problem.status}: ")
        rows.append((problem.status, code(problem.slug), problem.title, meaning, ", ".join(members), where))
    return page(
        "Problems",
        "Errors are `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `instance`,"
        " and `error` (the text of `detail`), `docs`, `request_id`. The path of `type` and `docs` is"
        " `/problems/` and the slug below; the service explains it there. Over MCP, the 400, 402, 404 and"
        " 429 of a tool call are tool errors with the same body as text; everything else is an HTTP answer.",
        table(("status", "slug", "title", "meaning", "adds", "surface"), rows),
    )


def _operation(operation: Operation) -> Iterator[str]:
    yield f"## {operation.name}"
    tool = f", MCP tool {code(operation.tool)}" if operation.tool else ""
    yield f"{_request_line(operation)}{tool}."
    yield "\n\n".join(filter(None, (operation.summary, operation.description)))
    yield f"Errors: {', '.join(map(str, operation.statuses))}."
    yield "### Parameters of " + operation.name
    parameters = [_parameter(operation, p) for p in operation.parameters.values()]
    yield table(("name", "in", "takes", "default", "meaning"), parameters)
    yield "### Envelope of " + operation.name
    members = envelope_of(operation, *({"type": row.__name__} for row in operation.shapes))["properties"]
    yield table(("member", "type", "meaning"), [member_row(name, schema) for name, schema in members.items()])
    yield "### Rows of " + operation.name
    yield "Every field is always present; null where unknown."
    for shape in operation.shapes:
        row, components = row_schema(shape, "#/{name}")
        if operation.also:
            yield f"A `{shape.__name__}`: {row.get('description', '')}"
        yield table(("field", "type", "meaning"), [member_row(n, s) for n, s in row["properties"].items()])
        for name, schema in components.items():
            yield f"A `{name}`: {schema.get('description', '')}"
            yield table(
                ("field", "type", "meaning"), [member_row(n, s) for n, s in schema["properties"].items()]
            )


def _parameter(operation: Operation, parameter: Parameter) -> tuple[str, ...]:
    location = "path" if parameter.in_path else "query" if operation.path else "tool only"
    default = "required" if parameter.required else default_text(parameter.default)
    name = code(parameter.name)
    if tool_name := operation.tool_names.get(parameter.name):
        name += f" (tool: {code(tool_name)})"
    return name, location, schema_text(parameter.kind.schema()), default, parameter.description


def _request_line(operation: Operation) -> str:
    return code(f"GET {operation.path}") if operation.path else "tool only"


def _open_paths() -> Iterator[tuple[str, str]]:
    described = describe(Settings())["paths"]
    for path, methods in described.items():
        if methods["get"].get("security") == []:
            yield code(path), f"{methods['get']['summary']}. {methods['get']['description']}"
    yield code("/problems/{slug}"), "What a problem means, as text ([list](problems.md))."
    yield code("/methodology/metrics-v1/{slug}"), "How a metric is computed, as text ([list](metrics.md))."
    yield code("/methodology/signals-v1/{key}"), "How a signal is computed, as text ([list](signals.md))."
    yield code("/"), "A page for people: what this is, and the first thing to try."


def _licensed_files() -> str:
    """The one path that is neither an operation nor open."""
    path, described = next(
        (path, methods["get"])
        for path, methods in describe(Settings())["paths"].items()
        if path.startswith(LICENSED_FILES)
    )
    rows = [(code(p["name"]), p["description"]) for p in described["parameters"]]
    answers = f"{code(f'GET {path}')}: {described['summary']}. {described['description']} {_FILE_ACCESS}"
    return f"{answers}\n\n{table(('parameter', 'meaning'), rows)}"


def _sample(problem: type[Problem]) -> Problem:
    """An instance made of placeholders, to read what its class adds."""
    signature = inspect.signature(problem)
    placeholders = {
        name: 1 if parameter.annotation is int else "x"
        for name, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    return problem(**placeholders)  # type: ignore[arg-type]  # each class has a signature of its own
