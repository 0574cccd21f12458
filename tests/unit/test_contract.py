"""Every rule of docs/contract.md has a test that names it, and nothing names a rule that does not exist."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.depth import is_marked

REPOSITORY = Path(__file__).parent.parent.parent
CONTRACT = REPOSITORY / "docs" / "contract.md"
CITING = ("src", "tests", "bench", "tools", "clients", "examples", "docs")
SUFFIXES = (".py", ".md", ".toml", ".sql", ".html")

_ROW = re.compile(r"^\| (?P<struck>~~)?(?P<rule>[A-Z]+-[0-9]+)(?:~~)? \| (?P<text>.+) \|$", re.MULTILINE)
_ANY_ROW = re.compile(r"^\| (?!rule \|)[^|]+ \|", re.MULTILINE)
_CITATION = re.compile(r"\bcontract: ([A-Z]+-[0-9]+(?:(?:, | and )[A-Z]+-[0-9]+)*)")
_RULE = re.compile(r"[A-Z]+-[0-9]+")
_ELSEWHERE = re.compile(
    r"(?<!RFC [0-9]{4}, )\bsections? [0-9]|\bdecisions\.md\b|\bthe specification\b", re.IGNORECASE
)


@cache
def rules() -> list[tuple[str, bool]]:
    """The number of every rule, and whether it is in force."""
    text = text_of(CONTRACT)
    return [(row["rule"], row["struck"] is None) for row in _ROW.finditer(text)]


@cache
def in_force() -> frozenset[str]:
    return frozenset(rule for rule, valid in rules() if valid)


class Mark(NamedTuple):
    where: str
    rule: str
    is_skipped: bool
    """Whether `make test` leaves the test out."""


@cache
def marked() -> list[Mark]:
    """Each number that a test names."""
    marks = []
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        if "mark.rule" not in text_of(path):
            continue
        module = ast.parse(text_of(path))
        for statement in module.body:
            for node in _calls(statement):
                if ast.unparse(node.func) == "pytest.mark.rule":
                    where = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
                    assert node.args, where
                    for argument in node.args:
                        assert isinstance(argument, ast.Constant), f"{where}: a number is written out"
                        is_skipped = is_marked(module, statement, "deep", "ci")
                        marks.append(Mark(where, str(argument.value), is_skipped))
    return marks


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls that may name a rule: in decorators, and in assignments at module level."""
    roots = getattr(statement, "decorator_list", None) or [statement] * isinstance(statement, ast.Assign)
    return (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Call))


@cache
def files() -> list[Path]:
    cited = [path for folder in CITING for path in sorted((REPOSITORY / folder).rglob("*"))]
    return [
        *sorted(REPOSITORY.glob("*.md")),
        *(path for path in cited if path.suffix in SUFFIXES and "node_modules" not in path.parts),
    ]


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_every_number_appears_once():
    assert len(rules()) > 200
    assert [rule for rule, times in Counter(rule for rule, _ in rules()).items() if times > 1] == []


def test_every_row_of_a_table_is_a_rule():
    text = text_of(CONTRACT)
    assert [row for row in _ANY_ROW.findall(text) if not _RULE.fullmatch(row.strip("|~ "))] == []


def test_the_numbers_of_a_group_are_in_order():
    last: dict[str, int] = {}
    for rule, _ in rules():
        group, _, number = rule.partition("-")
        assert int(number) > last.get(group, 0), rule
        last[group] = int(number)


def test_every_rule_is_named_by_a_test():
    assert in_force() - {mark.rule for mark in marked()} == set()


def test_every_rule_is_shown_by_a_test_of_the_default_run():
    """Each rule has a test that is not marked `deep` or `ci`."""
    assert in_force() - {mark.rule for mark in marked() if not mark.is_skipped} == set()


def test_no_test_names_an_unknown_rule():
    assert [mark for mark in marked() if mark.rule not in in_force()] == []


def test_comments_cite_only_known_rules():
    for path in files():
        cited = {rule for citation in _CITATION.findall(text_of(path)) for rule in _RULE.findall(citation)}
        assert cited - in_force() == set(), path


def test_nothing_cites_a_document_that_a_reader_does_not_have():
    for path in files():
        if path != Path(__file__):
            assert [match.group() for match in _ELSEWHERE.finditer(text_of(path))] == [], path


TESTS = REPOSITORY / "tests"


@cache
def depths_in(path: Path) -> dict[str, bool]:
    """Each test of a file, and whether it is deep."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    return {
        statement.name: "pytest.mark.deep" in text and is_marked(module, statement, "deep")
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        and statement.name.startswith("test_")
    }


def test_every_folder_keeps_most_of_its_files_in_the_default_run():
    in_default_run: defaultdict[Path, list[bool]] = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        in_default_run[path.parent].append(not all(depths_in(path).values()))
    assert len(in_default_run) > 20
    assert [folder for folder, files in in_default_run.items() if sum(files) * 2 < len(files)] == []


def test_nothing_but_a_decorator_a_file_and_deep_after_makes_a_test_deep():
    """So the depths read from the sources above are the tests that are left out."""
    for path in TESTS.rglob("test_*.py"):
        for line in path.read_text(encoding="utf-8").splitlines() if path != Path(__file__) else ():
            if "pytest.mark.deep" in line:
                assert line in ("@pytest.mark.deep", "pytestmark = pytest.mark.deep"), path


def test_ci_skips_no_suite_for_a_missing_service_and_runs_the_ci_tests():
    lines = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    (setting,) = [n for n, line in enumerate(lines) if line.startswith("export TEST_REQUIRE_SERVICES=1 ")]
    (ci,) = [n for n, line in enumerate(lines) if line.startswith("export CI=true ")]
    assert max(setting, ci) < lines.index("make foreign") < lines.index("make test")
