"""The tests themselves are run in forked processes: nothing that fails in one of them goes unseen."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONFTEST = """
import pytest
from tests.forks import run_forked

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    return run_forked(session) or None

@pytest.fixture(scope="session")
def bad_end():
    yield
    raise RuntimeError("the end of the session")
"""
FILES = {
    "test_passes": "def test_it(tmp_path): tmp_path.joinpath('own').write_text('x')\n",
    "test_fails": "def test_it():\n    print('what it said')\n    assert 1 + 1 == 3\n",
    "test_errs": "def test_it(absent): pass\ndef test_then(): pass\n",
    "test_dies": "import os\ndef test_it(): os._exit(0)\ndef test_never(): pass\n",
    "test_ends_badly": "def test_it(bad_end): pass\n",
}


def run(folder: Path, *names: str, processes: int = 2) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in names:
        (folder / f"{name}.py").write_text(FILES[name])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={folder}", folder],
        cwd=REPOSITORY,
        env={**os.environ, "TEST_PROCESSES": str(processes), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def counts(text: str) -> dict[str, int]:
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)\b", text)}


def test_each_outcome_of_each_file_is_told_once_with_what_was_printed(tmp_path: Path) -> None:
    code, text = run(tmp_path, "test_passes", "test_fails", "test_errs")
    assert (code, counts(text)) == (1, {"failed": 1, "passed": 2, "error": 1}), text
    assert "what it said" in text
    assert "fixture 'absent' not found" in text


@pytest.mark.parametrize(
    ("name", "said"), [("test_dies", "died"), ("test_ends_badly", "the end of the session")]
)
def test_a_process_that_dies_or_cannot_end_its_fixtures_is_a_failure(
    tmp_path: Path, name: str, said: str
) -> None:
    code, text = run(tmp_path, "test_passes", name)
    assert (code, counts(text)["failed"]) == (1, 1), text
    assert said in text
