"""Names are clear to a new reader, and one name means one thing."""

import ast
import re
from collections import defaultdict
from pathlib import Path

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

OLD_WORDS = frozenset("told found made said wanted walk piece pieces".split())
"""Words that say nothing of what a variable holds."""

_OLD_NAME = re.compile(rf"\b_*(?:{'|'.join(OLD_WORDS)})_*\s*(?:[^\s\w.'\"`;]|in\b|if\b)")
"""Wherever one may be given to something, and seldom in a sentence."""

_CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:\[]", re.MULTILINE)


def test_no_two_public_classes_have_the_same_name() -> None:
    """The client is a separate package: it mirrors rows and errors of the service on purpose."""
    paths = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name in _CLASS.findall(path.read_text()):
            paths["client" in path.parts, name].append(str(path))
    twice = {name: where for (_, name), where in paths.items() if len(where) > 1}
    assert not twice.keys() - SHARED_NAMES.keys(), twice


def test_variables_and_functions_are_not_named_by_the_old_words() -> None:
    old = {path.relative_to(PACKAGE).as_posix(): _old_names(path) for path in PACKAGE.rglob("*.py")}
    assert not {path: names for path, names in old.items() if names}


@every("folder", ["src"])
def test_no_file_written_by_hand_has_more_than_600_lines(folder: str) -> None:
    sizes = {
        str(path): text.count("\n")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        if "Written by tools/" not in (text := path.read_text("utf-8"))[:400]
    }
    assert not {path: lines for path, lines in sizes.items() if lines > 600}


def _old_names(path: Path) -> list[str]:
    """The variables, parameters, attributes and functions of a file that have an old name."""
    text = path.read_text("utf-8")
    nodes = ast.walk(ast.parse(text)) if _OLD_NAME.search(text) else ()  # parsing every file takes seconds
    defining = [
        node
        for node in nodes
        if isinstance(node, ast.arg | ast.FunctionDef | ast.AsyncFunctionDef)
        or isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    names = [getattr(node, field, "") for node in defining for field in ("id", "attr", "arg", "name")]
    return [name for name in names if name.strip("_") in OLD_WORDS]
