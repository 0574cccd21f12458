"""A stranger finds things: every page, decision and folder is listed where one looks for it."""

import re
from pathlib import Path

from tests.every import every

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
DECISIONS = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "README.md")
FOLDERS = ("docs", "tests", "examples", "clients", "bench", "deploy", "tools", "requirements")
INDEXED = ("reference", "decisions")  # each has an index of its own

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


def test_every_folder_is_in_the_architecture_and_every_one_named_there_is_there():
    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8").partition("## Folders\n")[2]
    listed = set(re.findall(r"^\| (`.+`) \|", text.partition("\n## ")[0], re.MULTILINE))
    named = {name for cell in listed for name in re.findall(r"`([a-z/]+)/`", cell)}
    package = REPOSITORY / "src" / "sankofa"
    layers = {path.parent.name for path in package.glob("[a-z]*/*") if path.suffix in (".py", ".toml")}
    assert named == layers | {"src/sankofa", *FOLDERS}
    assert [name for name in FOLDERS if not (REPOSITORY / name).is_dir()] == []
