"""Names say what a thing is to a reader who is new here, and one name means one thing."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.every import every

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src" / "sankofa"

SHARED_NAMES = {
    "Fact": "model.records has a figure as a document reports it; derive.metrics.lines as it is known today",
    "Issuers": "sources.template gathers what a file says of issuers; edition.write derives their rows",
    "Match": "model.rows is a schema of the API, whose name is public; ledger.matching matches parties",
    "Table": "sources.tables reads a CSV file; edition.write.tables writes a Parquet file",
}
"""Public classes that two packages may both have, and why. A new pair needs a better name, not an entry."""

OLD_WORDS = frozenset({"told", "found", "made"})
"""Past participles that say nothing of what a variable holds."""

WITH_OLD_WORDS = ("edition/write/metric_rows.py", "ledger/reports.py")
"""What still has them. Nothing is added here, and each goes once it is clean."""


_OLD_NAME = re.compile(rf"\b_*(?:{'|'.join(OLD_WORDS)})_*\s*(?:[^\s\w.'\"`;]|in\b|if\b)")
"""Wherever one may be given to something, and seldom in a sentence."""

_CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:\[]", re.MULTILINE)


def test_no_two_public_classes_have_the_same_name() -> None:
    """The client is a package of its own: it mirrors the rows and the errors of the service on purpose."""
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name in _CLASS.findall(path.read_text()):
            places["client" in path.parts, name].append(str(path))
    twice = {name: where for (_, name), where in places.items() if len(where) > 1}
    assert not twice.keys() - SHARED_NAMES.keys(), twice


def test_variables_and_functions_are_not_named_by_the_old_words() -> None:
    old = [
        f"{path}:{node.lineno} {name}"
        for path, node in _nodes(PACKAGE)
        if (name := _old_name(node)) and not str(path).startswith(WITH_OLD_WORDS)
    ]
    assert not old


@every("part", WITH_OLD_WORDS)
def test_the_list_of_what_has_old_words_is_not_longer_than_it_has_to_be(part: str) -> None:
    assert any(_old_name(node) for path, node in _nodes(PACKAGE) if str(path).startswith(part))


@every("folder", ["src"])
def test_no_file_written_by_hand_has_more_than_400_lines(folder: str) -> None:
    sizes = {
        str(path): text.count("\n")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        if "Written by tools/" not in (text := path.read_text("utf-8"))[:400]
    }
    assert not {path: lines for path, lines in sizes.items() if lines > 400}


def _nodes(under: Path) -> Iterator[tuple[Path, Any]]:
    for path in sorted(under.rglob("*.py")) if under.is_dir() else [under]:
        for node in _nodes_of(path):
            yield path.relative_to(PACKAGE), node


@cache
def _nodes_of(path: Path) -> list[Any]:
    """Only those that give something a name."""
    kinds = (ast.ClassDef, ast.Name, ast.Attribute, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef)
    found: list[Any] = []
    text = path.read_text("utf-8")
    if not _OLD_NAME.search(text):
        return found  # parsing every file would take seconds
    nodes: list[ast.AST] = [ast.parse(text)]
    while nodes:  # `ast.walk` takes twice as long
        node = nodes.pop()
        if isinstance(node, kinds):
            found.append(node)
        for value in vars(node).values():
            parts = value if isinstance(value, list) else [value]
            nodes.extend(part for part in parts if isinstance(part, ast.AST))
    return found


def _old_name(node: ast.AST) -> str | None:
    """The name of the variable, parameter, attribute or function that a node defines, if it is an old one."""
    name = None
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        name = node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        name = node.attr
    elif isinstance(node, ast.arg):
        name = node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        name = node.name
    return name if name is not None and name.strip("_") in OLD_WORDS else None
