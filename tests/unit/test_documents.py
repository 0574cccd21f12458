"""A stranger finds things: every page, decision and folder is listed where one looks for it."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))
FOLDERS = ("docs", "tests", "examples", "clients", "bench", "deploy", "tools", "requirements")
INDEXED = ("reference", "decisions")  # each has an index of its own

_HEADING = re.compile(r"# (?P<number>[0-9]+)\. (?P<title>.+)")
_STATUS = re.compile(r"Status: (?P<status>accepted|superseded by \[[0-9]+\]\([0-9a-z-]+\.md\))\.")


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_number_a_status_and_a_line_in_the_index(path: Path):
    heading, empty, status, *_ = path.read_text(encoding="utf-8").splitlines()
    head, standing = _HEADING.fullmatch(heading), _STATUS.fullmatch(status)
    assert head is not None, heading
    assert standing is not None, status
    assert empty == ""
    assert int(path.name[:4]) == int(head["number"])
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    assert f"| [{head['number']}]({path.name}) | {head['title']} | {standing['status']} |" in index


def test_every_page_is_in_the_index_of_the_documentation():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in DOCS.glob("*.md") if page.name != "README.md"]
    missing = [name for name in pages if f"]({name})" not in index]
    missing += [folder for folder in INDEXED if f"]({folder}/README.md)" not in index]
    missing += [page.name for page in REPOSITORY.glob("*.md") if f"](../{page.name})" not in index]
    assert missing == []


def test_every_folder_is_in_the_architecture_and_every_one_named_there_is_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Folders\n")[2]
    listed = set(re.findall(r"^\| (`.+`) \|", text.partition("\n## ")[0], re.MULTILINE))
    named = {name for cell in listed for name in re.findall(r"`([a-z/]+)/`", cell)}
    package = REPOSITORY / "src" / "sankofa"
    layers = {path.parent.name for path in package.glob("[a-z]*/*") if path.suffix in (".py", ".toml")}
    assert named == layers | {"src/sankofa", *FOLDERS}
    assert [name for name in FOLDERS if not (REPOSITORY / name).is_dir()] == []
