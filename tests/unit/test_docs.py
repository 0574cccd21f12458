"""The documentation is true: it names existing things, its links work, its examples run."""

import asyncio
import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import click
import pytest

from sankofa.access.tiers import grant
from sankofa.cli.main import main as command_line
from sankofa.derive.signals import contract as signals_contract
from sankofa.derive.signals.contract import methodology
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.write.context import BuildContext
from sankofa.ledger.store import Ledger
from sankofa.mcp.tools import Tool, tools
from sankofa.operations import contract
from sankofa.operations.contract import Call, operations
from sankofa.operations.service import Service
from sankofa.replication.stores import open_store
from sankofa.rest.openapi import describe
from sankofa.settings import OF_THE_CLIENT, PREFIX, Settings
from sankofa.sources.templates import FILINGS, SERIES
from tests.depth import deep_after
from tests.every import every
from tests.live import LiveServer
from tests.world.signals_desk import observations

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
PAGES = [
    *sorted(REPOSITORY.glob("*.md")),
    *sorted(
        path
        for folder in ("docs", "src", "tests", "bench", "clients", "examples", "tools")
        for path in (REPOSITORY / folder).rglob("*.md")
        if "node_modules" not in path.parts
    ),
]
RIFTLINE = "DC8342E4A6CD9A7F25CAC383F4"

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language and the word after it. A path may follow (tests/unit/test_guides.py)."""

    language: str
    mark: str
    text: str


def blocks(page: Path) -> list[Block]:
    fenced = []
    for info, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        words: list[str] = [*str(info).split(), "", ""]
        language, mark = words[:2]
        fenced.append(Block(language, mark, text))
    return fenced


def block(page: str, mark: str) -> str:
    (text,) = [b.text for b in blocks(DOCS / page) if b.mark == mark]
    return text


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes from the headings of a page."""
    names = (re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in _HEADING.findall(prose(page)))
    return set(names)


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def subcommand(group: click.Group, name: str) -> click.Command:
    command = group.get_command(click.Context(group), name)
    assert command is not None, name
    return command


@every("path", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_relative_link_leads_to_a_file_and_a_heading(path: Path):
    for target in _LINK.findall(prose(path)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        assert REPOSITORY in linked.parents, target
        assert not anchor or anchor in anchors(linked), target


def test_every_tool_is_named_in_the_contract_and_each_extension_in_the_tutorial():
    (rule,) = [
        line for line in (DOCS / "contract.md").read_text().splitlines() if line.startswith("| MCP-1 |")
    ]
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    core = {"search_entities", "get_entity", "get_fundamentals", "search_tenders", "get_macro"}
    core |= {"get_resolved_parties", "get_quality_metrics"}
    assert set(re.findall(r"[a-z]+_[a-z_]+", rule)) == tools().keys()
    assert [name for name in tools().keys() - core if f"`{name}`" not in tutorial] == []


def test_every_make_target_named_in_the_documentation_exists():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)
        assert set(names) <= targets, path.name


def test_every_command_in_a_shell_block_is_one_that_the_command_line_knows():
    count = 0
    for path in PAGES:
        for b in blocks(path):
            for words in re.findall(r"\bsankofa ([a-z][^\n)|\"]*)", b.text) if b.language == "sh" else ():
                assert_exists(words.split())
                count += 1
    assert count > 10


def assert_exists(words: list[str]) -> None:
    command: click.Command = command_line
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = subcommand(command, words.pop(0))
    assert command is not command_line, words
    existing = {option for parameter in command.params for option in parameter.opts}
    for word in words:
        assert not word.startswith("--") or word in existing, (command.name, word)


def test_every_setting_named_in_the_documentation_exists():
    existing = {PREFIX + field.name.upper() for field in fields(Settings)} | OF_THE_CLIENT
    for path in PAGES:
        names = set(re.findall(r"\bSANKOFA_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
        assert names <= existing, path.name


@pytest.mark.skipif(not shutil.which("curl"), reason="the tour asks with curl")
@pytest.mark.parametrize(
    ("path", "mark", "world"),
    deep_after(
        1,
        [
            pytest.param("docs/tutorial.md", "tour", "sample", marks=pytest.mark.ci),
            ("docs/tutorial.md", "start", "starter"),
            ("README.md", "start", "starter"),
        ],
    ),
)
def test_a_page_shows_the_answers_that_its_commands_give(
    path: str, mark: str, world: str, tmp_path: Path, request: pytest.FixtureRequest
):
    published: Path = request.getfixturevalue(f"{world}_home")
    fresh = shutil.ignore_patterns("keys*", "usage*")  # left by others who served it
    home = Path(shutil.copytree(published, tmp_path / "home", ignore=fresh))
    with LiveServer(home) as server:
        steps = list(steps_with_output(REPOSITORY / path, mark, server.url))
        script = "\n".join(f"{text}\necho; echo '--- end {n}'" for n, (text, _) in enumerate(steps))
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "SANKOFA_HOME": str(home), "PATH": programs},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
    outputs = re.split(r"\n--- end \d+\n", done.stdout)
    assert len(outputs) == len(steps) + 1, done.stderr
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for (_, want), got in zip(steps, outputs, strict=False):
        want = want.replace("http://127.0.0.1:8000", server.url)
        assert doctest.OutputChecker().check_output(want, got, flags), f"{got}\n{done.stderr}"


def steps_with_output(path: Path, mark: str, url: str) -> Iterator[tuple[str, str]]:
    """Each step with this mark, and the output shown after it."""
    page_blocks = blocks(path)
    for step, output in pairwise(page_blocks):
        if step.mark != mark:
            continue
        assert output.language in ("text", "json"), step.text
        text = step.text.replace("http://127.0.0.1:8000", url)
        yield (f"python - <<'EOF'\n{text}\nEOF" if step.language == "python" else text), output.text


def load(name: str, text: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@every("template", [FILINGS, SERIES])
def test_the_template_of_the_guide_has_the_columns_of_the_adapter(template):
    name, required, optional, _ = template
    text = (DOCS / "how-to" / "adding-a-source.md").read_text(encoding="utf-8")
    section = text.partition(f"## The {name} template\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| (yes|no) \|", section, re.MULTILINE))
    assert documented == dict.fromkeys(required, "yes") | dict.fromkeys(optional, "no")


def test_the_panel_of_the_guide_has_rows_and_explains_itself(tmp_path: Path, sample_home: Path):
    settings = Settings(home=Path(shutil.copytree(sample_home, tmp_path / "home")))
    load("example_panel", block("how-to/adding-a-panel.md", "panel"), tmp_path)
    example = signals_contract._PANELS.pop("issuer-history")
    ledger = Ledger(open_store(settings), settings.gate_key(), lambda: datetime.now(UTC))
    rows = [observation.row for observation in observations(example, BuildContext(ledger))]
    ledger.close()
    assert len(rows) >= 15, "twelve issuers and three registrants"
    assert {field for row in rows for field in row.__struct_fields__} == set(example.row.__struct_fields__)
    assert "| full_years | How many are held. |" in methodology(example)
    del sys.modules["example_panel"]


@pytest.fixture
def example_operation(tmp_path: Path) -> Iterator[contract.Operation]:
    operations()
    load("example_operation", block("how-to/adding-an-endpoint.md", "operation"), tmp_path)
    (key,) = [k for k, o in contract._OPERATIONS.items() if o.name == "get_full_years"]
    yield contract._OPERATIONS[key]
    del contract._OPERATIONS[key], sys.modules["example_operation"]
    operations.cache_clear()


def test_the_operation_of_the_guide_is_an_endpoint_a_description_and_a_tool(
    example_operation: contract.Operation, tmp_path: Path, sample_home: Path
):
    settings = Settings(home=Path(shutil.copytree(sample_home, tmp_path / "home")))
    store = open_store(settings)
    edition = open_edition(store, store.list_editions().current or "")
    service = Service(settings)
    granted = grant(settings, "", "sample", None, None)
    call = Call(edition, granted, date(2026, 1, 1), service.cursors, service.edition.for_cursor)
    query: dict[str, Any] = {"as_of": "2023-12-31", "limit": "3"}
    arguments = example_operation.read(query, call.today, {"service_id": RIFTLINE})

    async def perform() -> contract.Answer:
        return await example_operation.perform(call, **arguments)

    answer = asyncio.run(perform())
    edition.close()
    assert answer.selection.count == 3
    assert b'"period_type":"FY"' in answer.selection.rows
    assert example_operation.path in describe(settings, [example_operation])["paths"]
    assert Tool(example_operation, "get_full_years").described()["title"] == "Get full years"


DECISIONS = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md")
FOLDERS = ("docs", "tests", "examples", "clients", "bench", "deploy", "tools", "requirements")
INDEXED = ("reference", "decisions")  # each has its own index

_REFERENCE = re.compile(r"docs/decisions/([\w-]*)")
_NUMBERED = re.compile(r"\bdecisions? [0-9]+\b", re.IGNORECASE)
_HALF_A_PAGE = 350


def test_there_are_at_most_25_decisions_and_the_index_lists_each_by_its_title():
    assert len(DECISIONS) <= 25
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    titles = {path: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in DECISIONS}
    assert [path.name for path, title in titles.items() if f"- [{title}]({path.name})" not in index] == []


@every("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_half_a_page(path: Path):
    assert len(path.read_text(encoding="utf-8").split()) <= _HALF_A_PAGE


def test_every_reference_to_a_decision_names_a_record_and_none_a_number():
    records = {path.stem for path in DECISIONS} | {"README", ""}
    unresolved = []
    for folder in ("src", "tests", "docs", "tools", "bench", "deploy"):
        for path in (REPOSITORY / folder).rglob("*"):
            if (
                path.suffix in (".py", ".md", ".toml", ".sql")
                and path != Path(__file__)
                and "node_modules" not in path.parts
            ):
                text = path.read_text(encoding="utf-8")
                unresolved += [f"{path}: {name}" for name in _REFERENCE.findall(text) if name not in records]
                unresolved += [f"{path}: {number}" for number in _NUMBERED.findall(text)]
    assert unresolved == []


def test_every_page_is_in_the_index_of_the_documentation():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in DOCS.glob("*.md") if page.name != "README.md"]
    missing = [name for name in pages if f"]({name})" not in index]
    missing += [folder for folder in INDEXED if f"]({folder}/README.md)" not in index]
    missing += [page.name for page in REPOSITORY.glob("*.md") if f"](../{page.name})" not in index]
    assert missing == []


def test_the_architecture_lists_exactly_the_existing_folders():
    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8").partition("## Folders\n")[2]
    listed = set(re.findall(r"^\| (`.+`) \|", text.partition("\n## ")[0], re.MULTILINE))
    folders = {name for cell in listed for name in re.findall(r"`([a-z/]+)/`", cell)}
    package = REPOSITORY / "src" / "sankofa"
    layers = {path.parent.name for path in package.glob("[a-z]*/*") if path.suffix in (".py", ".toml")}
    assert folders == layers | {"src/sankofa", *FOLDERS}
    assert [name for name in FOLDERS if not (REPOSITORY / name).is_dir()] == []
