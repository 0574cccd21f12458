"""Writes docs/reference from the registries of the code, so that it cannot say anything else.

python tools/reference.py            write the pages
python tools/reference.py --check    exit 1, naming them, when pages are stale
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import click
import msgspec

import sankofa.mcp.refusals
import sankofa.rest.request
import sankofa.sources
import sankofa.web.keys
import sankofa.web.request
from sankofa.access.tiers import TIERS, grant
from sankofa.cli.main import main as command_line
from sankofa.derive.metrics.contract import metrics
from sankofa.derive.signals.contract import panels
from sankofa.derive.signals.methodology import columns_of, common_rules
from sankofa.edition.build.tables import Table, tables
from sankofa.model.errors import Problem
from sankofa.model.provenance import LICENSE_CLASSES, LICENSE_NOTICE, SKUS
from sankofa.model.routes import table, written
from sankofa.operations.contract import Operation, Parameter, operations
from sankofa.operations.schemas import envelope_of, row_schema
from sankofa.rest.openapi import describe
from sankofa.rest.pages import problems
from sankofa.settings import PREFIX, Settings
from sankofa.sources.base import adapters
from sankofa.sources.registry import Source, load_sources

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
_NOTICE: Final = "<!-- Written by tools/reference.py (make docs). Change the code, not this page. -->"
_SURFACES: Final = {
    sankofa.mcp.refusals.__name__: "MCP",
    sankofa.rest.request.__name__: "REST",
    sankofa.web.keys.__name__: "pages",
    sankofa.web.request.__name__: "pages",
}


def settings_page() -> str:
    rows = []
    for f in fields(Settings):
        default = "(empty)" if f.default == "" else _code(str(f.default))
        kind = "whole number above 0" if isinstance(f.default, int) else "text"
        kind = "path" if isinstance(f.default, Path) else kind
        kind = ", ".join(map(_code, f.metadata["choices"])) or kind
        masked = "yes" if f.metadata["secret"] else ""
        rows.append((_code(PREFIX + f.name.upper()), kind, default, masked, f.metadata["help"]))
    tiers = []
    for tier in TIERS:
        caps = grant(Settings(), "", tier, None, None)
        numbers = (caps.row_cap, caps.default_rows, caps.per_minute, caps.per_month)
        tiers.append((_code(tier), *(f"{number:,}" for number in numbers)))
    return _page(
        "Settings",
        "Environment variables, read when a command starts. `sankofa settings` prints each with its value and"
        " where that came from; those marked as masked are shown without their secret part.",
        _table(("variable", "takes", "default", "masked", "meaning"), rows),
        "## Tiers",
        "What each tier gets with the defaults above. A key may have its own limits per minute and per month"
        " (`sankofa keys create`).",
        ""
        if _any_parameter("limit")
        else "No operation takes `limit` at present, so the two numbers of rows apply"
        " to the sample tier only.",
        _table(("tier", "most rows", "rows without `limit`", "per UTC minute", "per UTC month"), tiers),
    )


def commands_page() -> str:
    parts = [
        "The command `sankofa`. An error is one line on stderr and exit code 1; a wrong option or argument is"
        " exit code 2."
    ]
    for path, command in _commands("sankofa", command_line):
        parts += [f"## `{path}`", inspect.cleandoc(command.help or "")]
        parts += [f"```text\n{' '.join((path, *_usage(command)))}\n```"]
        options = [p for p in command.params if isinstance(p, click.Option)]
        rows = [(_code(", ".join(o.opts)), _takes(o), _default(o), o.help or "") for o in options]
        parts += [_table(("option", "takes", "default", "meaning"), rows)] if rows else []
    return _page("Command line", *parts)


def api_page() -> str:
    parts = [
        "Every path answers GET and HEAD; OPTIONS names the methods. Every path but the open ones needs a key"
        " in `X-API-Key`. `/openapi.json` says the same for machines. MCP is at `/mcp` (POST), with the"
        " same key there or as `Authorization: Bearer`; a tool takes the parameters of its operation.",
        "| operation | tool | answers |\n|---|---|---|\n"
        + "\n".join(
            f"| [{_asked(o)}](#{o.name}) | {_code(o.tool or '')} | {o.summary} |" for o in operations()
        ),
        "## Open paths",
        "They need no key and count against none.",
        _table(("path", "answers"), _open_paths()),
    ]
    for operation in operations():
        parts += _operation(operation)
    parts += ["## The licence notice", "Every answer carries it in `_license`.", f"> {LICENSE_NOTICE}"]
    return _page("Operations", *parts)


def problems_page() -> str:
    rows = []
    for problem in problems():
        members = [_code(name) for name in (*_sample(problem).members(), *_headers(problem))]
        where = _SURFACES.get(problem.__module__, "both")
        meaning = (problem.__doc__ or "").removeprefix(f"{problem.status}: ")
        rows.append((problem.status, _code(problem.slug), problem.title, meaning, ", ".join(members), where))
    return _page(
        "Problems",
        "Errors are `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, `instance`,"
        " and `error` (the text of `detail`), `docs`, `request_id`. The path of `type` and `docs` is"
        " `/problems/` and the slug below; the service explains it there. Over MCP, the 400, 402, 404 and"
        " 429 of a tool call are tool errors with the same body as text; everything else is an HTTP answer.",
        "" if _any_error(402) else "No operation answers 402 at present.",
        _table(("status", "slug", "title", "meaning", "adds", "surface"), rows),
    )


def sources_page() -> str:
    kept = [
        (_code(field.name), _code(_type_name(field.type)), "yes" if field.required else _shown(field.default))
        for field in msgspec.structs.fields(Source)
        if field.name != "id"
    ]
    built_in = [
        (_code(s.id), s.title, _code(s.adapter), s.sku or "", s.licence, _code(s.license_class), s.publisher)
        for s in load_sources(FOLDER).values()
    ]
    parts = [
        "## Adapters",
        "An adapter reads one publisher's format. Every file may be plain, `.gz` or `.zip`, unless said"
        " otherwise.",
    ]
    for adapter in adapters().values():
        parts += [f"### `{adapter.name}`", _docstring_of(adapter.summary)]
    parts += [
        "## Registered sources",
        "These ship with the package. `HOME/sources.toml` adds more and overrides these by id.",
        _table(("id", "title", "adapter", "sku", "licence", "license_class", "publisher"), built_in),
        "## A source entry",
        "A table `[sources.<id>]`. An unknown name is an error. A source without"
        " `commercial_redistribution = true` can be registered but not ingested. `sku` may be left out only"
        " where the adapter reads identifiers and nothing else.",
        _table(("name", "type", "required, or default"), kept),
        "## Licence classes",
        ", ".join(map(_code, LICENSE_CLASSES)) + ".",
        "## Datasets (sku)",
        ", ".join(map(_code, SKUS)) + ".",
    ]
    return _page("Sources", *parts)


def line_items_page() -> str:
    told = table()
    parts = [
        "A concept is served under the one line item it is exact for. Every other concept is served under"
        " its own name in snake_case, with its taxonomy before it where it would read as one of these items.",
        "A metric has a line item by the first of its routes that a filing allows, after the item under its"
        " own name. What a route adds or takes away is of one filing, currency and period. The routes are in"
        " `sankofa/model/routes.toml`: one line adds one ([how](../adding-a-metric.md#adding-a-route)).",
        "[Totals and their members](#totals-and-their-members) · [Equations](#equations) ·"
        " [Identities](#identities)",
    ]
    parts.append(
        _table(
            ("line item", "concepts served under it", "routes"),
            [
                (_code(item), _lines(r.single for r in ways[1:] if r.served), f"[{len(ways) - 1}](#{item})")
                for item, ways in told.routes.items()
            ],
        )
    )
    for item, ways in told.routes.items():
        rows = [
            (
                str(route.number),
                _code(route.text),
                "served" if route.served else "",
                route.since,
                route.why + (f" {route.provisos[0].upper()}{route.provisos[1:]}." if route.provisos else ""),
            )
            for route in ways[1:]
        ]
        parts.append(f"## {item}")
        parts.append(_table(("", "route", "", "since", "why it is exact"), rows) if rows else "No concept.")
    parts += [
        "## Totals and their members",
        "From `sankofa/model/breakdowns.toml`. One closes where the members that a filing reports add up to"
        " its total to the last digit: a member that is not reported is then nothing. A sum stands in the"
        " place of what is within it; up to two members that notes repeat may be left out, or added though"
        " they could be within another.",
    ]
    for name, one in told.breakdowns.items():
        kinds: dict[str, list[str]] = {}
        for concept, (sign, kind) in one.members.items():
            kinds.setdefault(kind or "other", []).append(_code(concept if sign > 0 else f"-{concept}"))
        totals = " or ".join(_code(written(total)) for total in one.totals)
        members = [(kind, " ".join(concepts)) for kind, concepts in kinds.items()]
        parts += [f"### {name}", f"Total: {totals}.", _table(("kind", "members"), members)]
    parts += ["## Equations", "One of them has to hold for a route that names the table; `$` is its value."]
    for name, equations in told.confirmations.items():
        parts += [f"### {name} (equations)", "<br>".join(_code(written(e) + " = 0") for e in equations)]
    parts += [
        "## Identities",
        "What must hold in a filing. Where the first route of an item in doubt does not satisfy one and"
        " another does, the first is passed over; where everything is reported and nothing satisfies it, the"
        " items that it refuses have no figure there. `identity_conflicts` of `/v1/quality-metrics` counts"
        " the routes passed over.",
    ]
    identities = [
        (
            i.name,
            _code(written(i.items)),
            " ".join(_code(written([term])) for term in i.optional),
            ", ".join(i.doubted),
            ", ".join(i.refused),
        )
        for i in told.identities
    ]
    parts.append(
        _table(("", "adds up to nothing", "with, where reported", "in doubt", "refused"), identities)
    )
    return _page("Line items", *parts)


def metrics_page() -> str:
    rows = [
        (_code(m.slug), m.unit, m.summary, "<br>".join(map(_code, m.explanation.split("\n"))))
        for m in metrics()
    ]
    return _page(
        "Metrics",
        "The set metrics-v1. Each is one small function in `sankofa/derive/metrics/formulas/`; the service"
        " explains it, without a key, at `/methodology/` and the `methodology_ref` of its rows: formula,"
        " inputs, unit, and when there is no value.",
        "Inputs are the full-year figures of the issuer, the latest vintage of each, all in one currency;"
        " `prior_` means the year that ended one year earlier, within 10 days, by the same route. A"
        " [line item](line-items.md) is had by the first of the routes listed there that the filing allows."
        " An absent input or a denominator of zero or less gives no value."
        " Values are exact, rounded half-even to 10 significant digits.",
        _table(("metric", "unit", "is", "formula"), rows),
    )


def signals_page() -> str:
    rows = [(f"[{p.key}](#{p.key})", p.access, p.sku, p.summary) for p in panels().values()]
    parts = [_table(("panel", "file", "dataset", "tells"), rows), common_rules()]
    for panel in panels().values():
        columns = [(_code(name), meaning) for name, meaning in columns_of(panel)]
        parts += [f"## {panel.key}", panel.summary, panel.explanation, _table(("column", "meaning"), columns)]
    return _page(
        "Signals",
        "Panels of signals-v1, at `/v1/signals/` and the key. The service explains each at"
        " `/methodology/signals-v1/` and its key, without an API key.",
        *parts,
    )


def dictionary_page() -> str:
    """Every Parquet file, column by column."""
    files = [(f"[{one.name}](#{one.name})", one.sku or "", _order(one), one.summary) for one in tables()]
    parts = [_table(("file", "dataset", "sorted by", "holds"), files)]
    for one in tables():
        schema, _ = row_schema(one.row, "#/{name}")
        columns = [_member(name, member) for name, member in schema["properties"].items()]
        parts += [f"## {one.name}", one.summary, _table(("column", "type", "meaning"), columns)]
    return _page(
        "Data dictionary",
        "The files of an edition, as `/v1/export` lists them. The same columns, under the same names, are the"
        " fields of the endpoint that serves them; `null` is what was not published.",
        *parts,
    )


def _order(one: Table) -> str:
    return ", ".join(
        f"{_code(name.removeprefix('-'))} descending" if name.startswith("-") else _code(name)
        for name in one.sorted_by
    )


PAGES: Final[dict[str, Callable[[], str]]] = {
    "api.md": api_page,
    "problems.md": problems_page,
    "commands.md": commands_page,
    "settings.md": settings_page,
    "sources.md": sources_page,
    "line-items.md": line_items_page,
    "metrics.md": metrics_page,
    "signals.md": signals_page,
    "data-dictionary.md": dictionary_page,
}


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    written = {name: write() for name, write in PAGES.items()}
    links = [f"- [{text.splitlines()[1].removeprefix('# ')}]({name})" for name, text in written.items()]
    index = _page("Reference", "Generated from the code by `make docs`.", "\n".join(links))
    return {"README.md": index, **written}


def stale(folder: Path = FOLDER) -> list[str]:
    """The pages that are missing, not as the code has it, or no longer written."""
    due = pages()
    there = {path.name for path in folder.glob("*.md")}
    differ = {n for n in due if n not in there or (folder / n).read_text(encoding="utf-8") != due[n]}
    return sorted(differ | (there - due.keys()))


def _operation(operation: Operation) -> Iterator[str]:
    errors = ", ".join(map(str, operation.errors))
    yield f"## {operation.name}"
    tool = f", MCP tool {_code(operation.tool)}" if operation.tool else ""
    yield f"{_asked(operation)}{tool}."
    yield "\n\n".join(filter(None, (operation.summary, operation.description)))
    yield f"Errors of its own: {errors}."
    yield "### Parameters of " + operation.name
    taken = [_parameter(operation, p) for p in operation.parameters.values()]
    yield _table(("name", "in", "takes", "default", "meaning"), taken)
    yield "### Envelope of " + operation.name
    members = envelope_of(operation, *({"type": row.__name__} for row in operation.shapes))["properties"]
    yield _table(("member", "type", "meaning"), [_member(name, schema) for name, schema in members.items()])
    yield "### Rows of " + operation.name
    yield "Every field is always present; null where unknown."
    for shape in operation.shapes:
        row, components = row_schema(shape, "#/{name}")
        if operation.also:
            yield f"A `{shape.__name__}`: {row.get('description', '')}"
        yield _table(("field", "type", "meaning"), [_member(n, s) for n, s in row["properties"].items()])
        for name, schema in components.items():
            yield f"A `{name}`: {schema.get('description', '')}"
            yield _table(
                ("field", "type", "meaning"), [_member(n, s) for n, s in schema["properties"].items()]
            )


def _parameter(operation: Operation, parameter: Parameter) -> tuple[str, ...]:
    schema = parameter.kind.schema()
    place = "path" if parameter.in_path else "query"
    default = "required" if parameter.required else _shown(parameter.default)
    name = _code(parameter.name)
    tool_name = operation.tool_names.get(parameter.name)
    if tool_name:
        name += f" (tool: {_code(tool_name)})"
    return (
        name,
        "tool only" if parameter.tool_only or not operation.path else place,
        _schema_text(schema),
        default,
        parameter.description,
    )


def _asked(operation: Operation) -> str:
    return _code(f"GET {operation.path}") if operation.path else "tool only"


def _any_error(status: int) -> bool:
    return any(status in operation.errors for operation in operations())


def _any_parameter(name: str) -> bool:
    return any(name in operation.parameters for operation in operations())


def _open_paths() -> Iterator[tuple[str, str]]:
    described = describe(Settings())["paths"]
    for path, methods in described.items():
        if methods["get"].get("security") == []:
            yield _code(path), f"{methods['get']['summary']}. {methods['get']['description']}"
    yield _code("/problems/{slug}"), "What a problem means, as text ([list](problems.md))."
    yield _code("/methodology/metrics-v1/{slug}"), "How a metric is computed, as text ([list](metrics.md))."
    yield _code("/methodology/signals-v1/{key}"), "How a signal is computed, as text ([list](signals.md))."
    yield _code("/"), "A page for people: what this is, and the first thing to try."


def _member(name: str, schema: dict[str, Any]) -> tuple[str, str, str]:
    return _code(name), _schema_text(schema), schema.get("description", "")


def _schema_text(schema: dict[str, Any]) -> str:
    """What a JSON schema says, in a few words."""
    if "$ref" in schema:
        return _code(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_schema_text(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(_code, schema["enum"]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_schema_text(schema['items'])}"
    words = [schema.get("format", kind) if kind == "string" else kind]
    words += [f"matching {_code(schema['pattern'])}"] if "pattern" in schema else []
    words += [f"at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    words += [f"at least {schema['minimum']}"] if "minimum" in schema else []
    words += [f"at most {schema['maximum']}"] if "maximum" in schema else []
    return ", ".join(words)


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, groups of commands before what is in them."""
    if not isinstance(command, click.Group) or command.invoke_without_command or path == "sankofa":
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            if (inner := command.get_command(context, name)) is not None:
                yield from _commands(f"{path} {name}", inner)


def _usage(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    yield from command.collect_usage_pieces(context)


def _takes(option: click.Option) -> str:
    if option.is_flag:
        return "nothing"
    if isinstance(option.type, click.Choice):
        return ", ".join(map(_code, option.type.choices))
    if isinstance(option.type, click.IntRange):
        bounds = [f"at least {option.type.min}"] if option.type.min is not None else []
        bounds += [f"at most {option.type.max}"] if option.type.max is not None else []
        return ", ".join(("a whole number", *bounds))
    return "text"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    return "" if option.is_flag else _shown(option.to_info_dict()["default"])


def _sample(problem: type[Problem]) -> Problem:
    """An instance made of placeholders, to be asked what its class adds."""
    signature = inspect.signature(problem)
    given = {
        name: 1 if parameter.annotation is int else "x"
        for name, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    return problem(**given)  # type: ignore[arg-type]  # each class has a signature of its own


def _headers(problem: type[Problem]) -> list[str]:
    return [name for name, _ in _sample(problem).headers()]


def _docstring_of(summary: str) -> str:
    """All that an adapter says of itself; its registry keeps the first line."""
    for module in pkgutil.iter_modules(sankofa.sources.__path__):
        for function in vars(importlib.import_module(f"sankofa.sources.{module.name}")).values():
            text = inspect.getdoc(function) if inspect.isfunction(function) else None
            if text and text.splitlines()[0] == summary:
                return text
    return summary


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _shown(default: object) -> str:
    unset = default is None or default in ("", msgspec.NODEFAULT) or "UNSET" in str(default)
    return "" if unset else _code(str(default))


def _lines(texts: Iterable[str]) -> str:
    return "<br>".join(map(_code, texts))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(header), "|".join("---" for _ in header)]
    for row in rows:
        lines.append(" | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row))
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines)


def _page(title: str, *parts: str) -> str:
    return "\n\n".join((f"{_NOTICE}\n# {title}", *filter(None, parts))) + "\n"


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when pages are stale.")
def main(check: bool) -> None:
    if check:
        if found := stale():
            raise click.ClickException(f"docs/reference is stale ({', '.join(found)}): run `make docs`")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    due = pages()
    for name in stale():
        path = FOLDER / name
        if name in due:
            path.write_text(due[name], encoding="utf-8")
        else:
            path.unlink()
        click.echo(f"{'wrote' if name in due else 'removed'} docs/reference/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
