"""Writes the typed methods and rows of `sankofa.client` from the OpenAPI document and the row types.

python tools/client.py            write the modules
python tools/client.py --check    exit 1 and name stale modules

The async client has the methods of the sync client.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from keyword import iskeyword
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Final

import click

from sankofa.edition.format.columns import columns_of
from sankofa.model.rows import Row
from sankofa.operations.answers import row_schema
from sankofa.operations.contract import Operation, endpoints
from sankofa.rest.openapi import describe
from sankofa.settings import Settings

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "sankofa" / "client"
_NOTICE: Final = "Written by tools/client.py (make docs). Change the operation, not this module."
_DATED: Final = {"date": "Day", "date-time": "Instant"}
_KINDS_OF_VALUES: Final = '''\
Day = Annotated[str, "day"]
"""A day, as YYYY-MM-DD. In brackets: what kind of column it is in a frame (`sankofa.client.frames`)."""
Instant = Annotated[str, "instant"]
"""An instant in UTC, as RFC 3339 has it."""
Number = Annotated[int | Decimal, "figure"]
"""A figure with every digit it was given."""
Float = Annotated[int | Decimal, "float"]
"""A number that was never more exact than a float: a score, a confidence."""'''
_LONG: Final = 100
"""Characters of a list of words beyond which it is written once, under a name."""
_PYTHON: Final = {"string": "str", "integer": "int", "number": "Number", "boolean": "bool", "null": "None"}


class Words:
    """The enumerations of parameters, each under a name of its own."""

    def __init__(self) -> None:
        self.literals: dict[str, str] = {}

    def name(self, operation: str, parameter: str, literal: str) -> str:
        for name in (_camel(parameter), _camel(f"{_noun(operation)}_{parameter}")):
            if self.literals.setdefault(name, literal) == literal:
                return name
        raise ValueError(f"{operation}: {parameter} has no name of its own")


def modules() -> dict[str, str]:
    """Every generated module by the name of its file."""
    paths = describe(Settings())["paths"]
    words = Words()
    signatures = {o.name: _signature(o.name, paths[o.path]["get"]["parameters"], words) for o in endpoints()}
    return {"rows.py": _formatted(_rows(words)), "methods.py": _formatted(_methods(signatures))}


def stale(folder: Path = FOLDER) -> list[str]:
    """The modules that are missing or outdated."""
    return [n for n, text in modules().items() if not (p := folder / n).exists() or p.read_text() != text]


def _rows(words: Words) -> str:
    parts = [
        '"""The rows of every endpoint, and the words its parameters take. /docs/api says what a field means.'
        f'\n\n{_NOTICE}\n"""',
        "from decimal import Decimal\nfrom typing import Annotated, Any, Literal, TypedDict",
        _KINDS_OF_VALUES,
    ]
    written: dict[str, str] = {}
    for operation in endpoints():
        for shape in operation.shapes:
            _write_row(shape, written)
    rows = "\n\n".join(written.values())
    fields = Counter(re.findall(r"^    (\w+): (Literal\[.*?\])$", rows, re.MULTILINE))
    often = {_camel(name): one for (name, one), n in fields.items() if n > 1 and len(one) > _LONG}
    literals = words.literals | often
    parts.append("\n".join(f"{name} = {literal}" for name, literal in sorted(literals.items())))
    for name in sorted(literals, key=len):
        rows = rows.replace(literals[name], name)
    parts.append(rows)
    for operation in endpoints():
        if operation.also:
            union = " | ".join(shape.__name__ for shape in operation.shapes)
            parts.append(f"{_rows_of(operation)} = {union}")
    return "\n\n".join(parts)


def _write_row(shape: type, written: dict[str, str]) -> None:
    """Write a row class after the classes it extends or refers to, once, with only its own fields."""
    if shape.__name__ in written:
        return
    base = shape.__bases__[0]
    inherited: dict[str, Any] = {}
    if issubclass(base, Row):
        _write_row(base, written)
        inherited = row_schema(base, "{name}")[0]["properties"]
    schema, components = row_schema(shape, "{name}")
    types = {column.name: column.type for column in columns_of(shape)}
    for name, component in components.items():
        written.setdefault(name, "\n".join(_typed_dict(name, "TypedDict", component, {})))
    if any(map(iskeyword, schema["properties"])):
        written[shape.__name__] = "\n".join(_functional(shape.__name__, schema, types))
        return
    own = {name: one for name, one in schema["properties"].items() if inherited.get(name) != one}
    extended = base.__name__ if inherited else "TypedDict"
    lines = _typed_dict(shape.__name__, extended, {**schema, "properties": own}, types)
    written[shape.__name__] = "\n".join(lines)


def _functional(name: str, schema: dict[str, Any], types: dict[str, type]) -> Iterator[str]:
    """A row with a field that no class can have, such as `from`."""
    yield f"{name} = TypedDict({name!r}, {{"
    for field, one in schema["properties"].items():
        yield f"    {field!r}: {_type_of(one, types.get(field))},"
    yield f'}})\n"""{schema.get("description", name)}"""'


def _typed_dict(name: str, base: str, schema: dict[str, Any], types: dict[str, type]) -> Iterator[str]:
    yield f"class {name}({base}):"
    yield f'    """{schema.get("description", name)}"""\n'
    for field, one in schema["properties"].items():
        never = one.get("type") == "null"  # a day that no source evidences
        written = 'Annotated[None, "day"]' if never else _type_of(one, types.get(field))
        yield f"    {field}: {written}"


def _type_of(schema: dict[str, Any], column: type | None = None) -> str:
    """The type of a field; `column` is what a frame has of it."""
    if "$ref" in schema:
        return str(schema["$ref"])
    if "anyOf" in schema:
        form = {"format": schema["format"]} if "format" in schema else {}
        return " | ".join(dict.fromkeys(_type_of(form | part, column) for part in schema["anyOf"]))
    if "enum" in schema:
        return _literal(schema["enum"])
    kind = schema.get("type", "object")
    kinds = kind if isinstance(kind, list) else [kind]
    return " | ".join(_scalar(schema, one, column) for one in kinds)


def _literal(words: Iterable[str | None]) -> str:
    return f"Literal[{', '.join(map(repr, words))}]"


def _scalar(schema: dict[str, Any], kind: str, column: type | None) -> str:
    if kind == "array":
        return f"list[{_type_of(schema['items'])}]"
    if kind == "object":
        return "dict[str, Any]"
    if kind == "string" and schema.get("format") in _DATED:
        return _DATED[schema["format"]]
    return "Float" if kind == "number" and column is float else _PYTHON[kind]


def _signature(operation: str, parameters: list[dict[str, Any]], words: Words) -> list[tuple[str, str, str]]:
    """(argument, type, default) of each parameter; no default where it is required."""
    return [
        (
            "from_" if p["name"] == "from" else p["name"],
            _python_type(operation, p, words)
            + ("" if p["required"] or "default" in p["schema"] else " | None"),
            "" if p["required"] else repr(p["schema"].get("default")),
        )
        for p in parameters
        if p["name"] != "format"  # which the client chooses by `Accept`
    ]


def _python_type(operation: str, parameter: dict[str, Any], words: Words) -> str:
    schema = parameter["schema"]
    if "enum" in schema:
        return f"rows.{words.name(operation, parameter['name'], _literal(schema['enum']))}"
    if "anyOf" in schema:
        return "date | int | str"
    if schema.get("format") == "date":
        return "date | str"
    if schema["type"] == "array":
        return "Sequence[str]"
    if schema["type"] == "number":
        return "Decimal | float"
    return _PYTHON[schema["type"]]


def _methods(signatures: dict[str, list[tuple[str, str, str]]]) -> str:
    head = (
        f'"""The clients: one method per endpoint, declared by its signature.\n\n{_NOTICE}\n"""\n\n'
        '# mypy: disable-error-code="empty-body"\n\n'
        "from collections.abc import Sequence\n"
        "from datetime import date\nfrom decimal import Decimal\n\n"
        "from sankofa.client import rows\nfrom sankofa.client.answers import Answer\n"
        "from sankofa.client.session import AsyncSession, Session, asks, awaited, paged, row_by_row"
    )
    about = (
        "Asks the service with a key.\n\n    `all` fetches every page and returns them as one answer.\n    "
    )
    body = [f'class Client(Session):\n    """{about}"""']
    body += [_method(operation, signatures[operation.name]) for operation in endpoints()]
    listed = [o.name for o in endpoints() if _has_pages(signatures[o.name])]
    body.append("\n".join(f"    iter_{_noun(name)} = row_by_row({name})" for name in listed))
    return f"{head}\n\n\n" + "\n\n".join(body) + "\n\n\n" + _async_client(signatures)


def _method(operation: Operation, signature: list[tuple[str, str, str]]) -> str:
    name, has_pages = operation.name, _has_pages(signature)
    parameters = [*signature, ("all", "bool", "False")] if has_pages else signature
    # a summary may run on into the next line
    between = "\n\n" if operation.summary.endswith(".") else "\n"
    doc = f"{operation.summary}{between}{operation.description}".strip()
    options = [repr(one) for one in (operation.path, *operation.members)]
    options += [] if operation.rows_under == "data" else [f"rows_under={operation.rows_under!r}"]
    return indent(
        f"@asks({', '.join(options)})\n"
        f"def {name}(self, {_arguments(parameters)}) -> Answer[rows.{_rows_of(operation)}]:\n"
        f"{_docstring(doc)}",
        "    ",
    )


def _async_client(signatures: dict[str, list[tuple[str, str, str]]]) -> str:
    lines = ['class AsyncClient(AsyncSession):\n    """Asks the service with a key; awaited."""\n']
    lines.append("    _ask = AsyncSession._request")
    for name, signature in signatures.items():
        lines.append(f"    {name} = awaited(Client.{name})")
        if _has_pages(signature):
            lines.append(f"    iter_{_noun(name)} = paged(Client.iter_{_noun(name)})")
    return "\n".join(lines)


def _has_pages(signature: list[tuple[str, str, str]]) -> bool:
    return any(argument == "cursor" for argument, *_ in signature)


def _docstring(text: str) -> str:
    wrapped = "\n\n".join(fill(" ".join(part.split()), 100) for part in text.split("\n\n"))
    return indent(f'"""{wrapped}\n"""' if "\n" in wrapped else f'"""{wrapped}"""', "    ")


def _arguments(signature: list[tuple[str, str, str]]) -> str:
    needed = [f"{name}: {kind}" for name, kind, default in signature if not default]
    optional = [f"{name}: {kind} = {default}" for name, kind, default in signature if default]
    return ", ".join((*needed, "*", *optional) if optional else needed)


def _rows_of(operation: Operation) -> str:
    """The type of its rows: a row type, or a union of several."""
    return f"{_camel(_noun(operation.name))}Row" if operation.also else operation.row.__name__


def _noun(operation: str) -> str:
    return operation.partition("_")[2] or operation


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _formatted(text: str) -> str:
    """The source formatted by `ruff format`, with sorted imports."""
    ruff = Path(sys.executable).with_name("ruff")
    of_text = "--quiet", "--stdin-filename", str(FOLDER / "x.py"), "-"
    for command in (("check", "--select", "I,F401", "--fix"), ("format",)):
        done = subprocess.run(  # noqa: S603  # our own ruff on our own text
            [ruff, *command, *of_text], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ValueError(f"ruff {command[0]}: {done.stderr}")
        text = done.stdout
    return text


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when modules are stale.")
def main(check: bool) -> None:
    outdated = stale()
    if check:
        if outdated:
            raise click.ClickException(f"sankofa.client is stale ({', '.join(outdated)}): run `make docs`")
        return
    due = modules()
    for name in outdated:
        (FOLDER / name).write_text(due[name])
        click.echo(f"wrote src/sankofa/client/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
