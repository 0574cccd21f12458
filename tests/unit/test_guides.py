"""The guides stay true: each is followed in a copy of the repository, and its checks pass there.

A fenced block is a file if its info string ends with a path (`python page src/...`), a change if its language
is `diff`, and the checks if it says `sh check`.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.depth import deep_after

REPOSITORY = Path(__file__).parent.parent.parent
COPIED = "bench docs examples src tests tools Makefile pyproject.toml CHANGELOG.md README.md".split()
GUIDES = ["source", "metric", "column", "panel", "endpoint", "page"]
MOST_FILES_OF_A_METRIC = 4

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OURS = ("PYTEST_", "SANKOFA_", "TEST_")  # a test in the copy must not use the servers of this run
_CHANGED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


class Guide(NamedTuple):
    """The steps of a guide: files by path, changes of files, and commands."""

    files: dict[str, str]
    changes: list[str]
    checks: list[str]


def read(name: str) -> Guide:
    (page,) = (REPOSITORY / "docs" / "how-to").glob(f"adding-a*-{name}.md")
    guide = Guide({}, [], [])
    for info, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        language, *rest = info.split()
        if language == "diff":
            guide.changes.append(text)
        elif rest == ["check"]:
            guide.checks.extend(text.splitlines())
        elif len(rest) == 2:
            guide.files[rest[1]] = text
    assert guide.checks, f"{page.name} promises no check"
    return guide


@pytest.mark.ci
@pytest.mark.parametrize("name", deep_after(1, GUIDES))
def test_a_guide_can_be_followed_literally(name: str, tmp_path: Path) -> None:
    guide = read(name)
    copy = tmp_path / "copy"
    for part in COPIED:
        source, target = REPOSITORY / part, copy / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy2(source, target)
    (copy / ".venv").symlink_to(REPOSITORY / ".venv")
    for path, text in guide.files.items():
        assert not (copy / path).exists(), path
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(text, encoding="utf-8")
    for change in guide.changes:
        run(copy, "git", "apply", "--recount", "--unidiff-zero", "-", standard_input=change)
    for command in guide.checks:
        words = shlex.split(command)
        run(copy, *([words[0], "-o", ".venv/.dev", *words[1:]] if words[0] == "make" else words))


def test_adding_a_metric_touches_at_most_four_files() -> None:
    guide = read("metric")
    touched = {*guide.files, *(path for change in guide.changes for path in _CHANGED.findall(change))}
    assert len(touched | {"CHANGELOG.md"}) <= MOST_FILES_OF_A_METRIC


def run(copy: Path, *command: str, standard_input: str = "") -> None:
    """A command in the copy, with the package of the copy before the installed one."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        "PYTHONPATH": str(copy / "src"),
        "GIT_CEILING_DIRECTORIES": str(copy.parent),
    }
    done = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        input=standard_input,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
