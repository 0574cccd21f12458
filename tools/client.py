"""Writes the typed methods and rows of `sankofa.client` from the OpenAPI document and the row types.

python tools/client.py            write the modules
python tools/client.py --check    exit 1, naming them, when modules are stale

The methods of the client that is awaited are those of the one that waits.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Final

import click
from msgspec import Raw

from sankofa.edition.format.columns import columns_of
from sankofa.model.rows import Row
from sankofa.operations.answers import row_schema
from sankofa.operations.contract import Operation, endpoints
from sankofa.rest.openapi import describe
from sankofa.settings import Settings

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "sankofa" / "client"
_NOTICE: Final = "Written by tools/client.py (make docs). Change the operation, not this module."
_PYTHON: Final = {"string": "str", "integer": "int", "boolean": "bool"}
_KINDS: Final = {date: "day", int: "whole", bool: "truth", float: "float", Decimal: "figure", Raw: "nested"}


class Words:
    """The enumerations of parameters, each under a name of its own."""

    def __init__(self) -> None:
        self.named: dict[str, tuple[str, ...]] = {}

    def name(self, operation: str, parameter: str, words: tuple[str, ...]) -> str:
        for name in (_camel(parameter), _camel(f"{_noun(operation)}_{parameter}")):
            if self.named.setdefault(name, words) == words:
                return name
        raise ValueError(f"{operation}: {parameter} has no name of its own")


def modules() -> dict[str, str]:
    """Every generated module by the name of its file."""
    paths = describe(Settings())["paths"]
    asked = {
        operation.name: [
            p for p in paths[operation.path]["get"]["parameters"] if p["name"] != "format"
        ]  # which the client chooses by `Accept`
        for operation in endpoints()
    }
    words = Words()
    signatures = {o.name: _signature(o.name, asked[o.name], words) for o in endpoints()}
    texts = {
        "rows.py": _rows(words),
        "methods.py": _methods(signatures),
    }
    return {name: _formatted(text) for name, text in texts.items()}


def stale(folder: Path = FOLDER) -> list[str]:
    """The modules that are missing or outdated."""
    return [n for n, text in modules().items() if not (p := folder / n).exists() or p.read_text() != text]


def _rows(words: Words) -> str:
    shapes = {shape.__name__: shape for operation in endpoints() for shape in operation.shapes}
    table = [
        fill(f"{name} {' '.join(_columns(shape))}", 108, subsequent_indent="    ", break_long_words=False)
        for name, shape in sorted(shapes.items())
    ]
    return "\n\n".join(
        [
            '"""The columns of each endpoint and the words of its parameters. /docs/api explains each field.'
            f'\n\n{_NOTICE}\n"""',
            "from typing import Final, Literal",
            "\n".join(f"{name} = {_literal(taken)}" for name, taken in sorted(words.named.items())),
            '_EVERY_ROW: Final = "source_ref license_class observed_at:instant"',
            '_TABLE: Final = """\\\n' + "\n".join(table) + '\n"""',
            '"""The shapes of rows and their columns, each with its kind if that is not text (`frames`)."""',
            "_SHAPES: Final = (line.split() for line in _TABLE.replace('\\n    ', ' ').splitlines())",
            "COLUMNS: Final = {name: (*_EVERY_ROW.split(), *own) for name, *own in _SHAPES}",
        ]
    )


def _columns(shape: type[Row]) -> Iterator[str]:
    """The columns of a row besides those of every row, each with its kind."""
    schema = row_schema(shape, "{name}")[0]["properties"]
    for column in columns_of(shape):
        if column.name not in Row.__struct_fields__:
            field = schema[column.name]
            never = field.get("type") == "null"  # a day that no source evidences
            text = "instant" if field.get("format") == "date-time" else "day" if never else ""
            kind = _KINDS.get(column.type, text)
            yield f"{column.name}:{kind}" if kind else column.name


def _literal(words: Iterable[str | None]) -> str:
    return f"Literal[{', '.join(map(repr, words))}]"


def _signature(operation: str, parameters: list[dict[str, Any]], words: Words) -> list[tuple[str, str, str]]:
    """(argument, type, default) of each parameter; no default where it is required."""
    return [
        (
            _argument(p["name"]),
            _taken(operation, p, words) + ("" if p["required"] or "default" in p["schema"] else " | None"),
            "" if p["required"] else repr(p["schema"].get("default")),
        )
        for p in parameters
    ]


def _taken(operation: str, parameter: dict[str, Any], words: Words) -> str:
    schema = parameter["schema"]
    if "enum" in schema:
        return f"rows.{words.name(operation, parameter['name'], tuple(schema['enum']))}"
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
    taken = [*signature, ("all", "bool", "False")] if has_pages else signature
    # a summary may run on into the next line
    between = "\n\n" if operation.summary.endswith(".") else "\n"
    doc = f"{operation.summary}{between}{operation.description}".strip()
    shapes = tuple(shape.__name__ for shape in operation.shapes)
    told = [repr(one) for one in (operation.path, shapes, *operation.members)]
    told += [] if operation.rows_under == "data" else [f"rows_under={operation.rows_under!r}"]
    return indent(
        f"@asks({', '.join(told)})\ndef {name}(self, {_arguments(taken)}) -> Answer:\n{_docstring(doc)}",
        "    ",
    )


def _async_client(signatures: dict[str, list[tuple[str, str, str]]]) -> str:
    lines = ['class AsyncClient(AsyncSession):\n    """Asks the service with a key; awaited."""\n']
    lines.append("    _ask = AsyncSession._asked")
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


def _noun(operation: str) -> str:
    return operation.partition("_")[2] or operation


def _argument(parameter: str) -> str:
    return "from_" if parameter == "from" else parameter


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _formatted(text: str) -> str:
    """The source formatted by `ruff format`, with sorted imports."""
    ruff = Path(sys.executable).with_name("ruff")
    for command in (
        [
            "check",
            "--select",
            "I,F401,UP028",
            "--fix",
            "--unsafe-fixes",
            "--quiet",
            "--stdin-filename",
            "src/sankofa/client/x.py",
            "-",
        ],
        ["format", "--quiet", "--stdin-filename", "src/sankofa/client/x.py", "-"],
    ):
        done = subprocess.run(  # noqa: S603  # our own ruff on our own text
            [ruff, *command], input=text, capture_output=True, text=True, check=False, cwd=FOLDER.parents[2]
        )
        if done.returncode:
            raise ValueError(f"ruff {command[0]}: {done.stderr}")
        text = done.stdout
    return text


@click.command(help=__doc__)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when modules are stale.")
def main(check: bool) -> None:
    found = stale()
    if check:
        if found:
            raise click.ClickException(f"sankofa.client is stale ({', '.join(found)}): run `make docs`")
        return
    due = modules()
    for name in found:
        (FOLDER / name).write_text(due[name])
        click.echo(f"wrote src/sankofa/client/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
