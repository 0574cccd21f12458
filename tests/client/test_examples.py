"""The examples run unchanged and print the expected outputs.

`UPDATE_SNAPSHOTS=1 pytest tests/client/test_examples.py` writes the outputs again.
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import LiveServer
from tests.services import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def in_the_starter(path: Path) -> bool:
    """The starter world, or the sample world to compare buyers: the starter world has only five tenders."""
    return path.stem != "buyer_concentration"


@pytest.mark.parametrize(
    "path", deep_after(1, sorted(EXAMPLES, key=in_the_starter)), ids=lambda path: path.stem
)
def test_an_example_prints_its_recorded_output(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    served = "starter_server" if in_the_starter(path) else "server"
    server: LiveServer = request.getfixturevalue(served)
    tier = "sample" if path.stem == "agent_mcp" else "starter"  # the service should refuse the agent
    key = server.key(tier, "--per-minute", "100000")
    chart = ["chart.svg"] if path.stem == "buyer_concentration" else []
    done = subprocess.run(
        [sys.executable, "-W", "error", path, key, server.url, *chart],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    written = path.with_suffix(".out")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        written.write_text(done.stdout)
    assert done.stdout == written.read_text()
    for name in chart:
        bars = ET.fromstring((tmp_path / name).read_text()).findall("{http://www.w3.org/2000/svg}rect")  # noqa: S314
        assert len(bars) == sum(line.endswith("buyers") for line in done.stdout.splitlines())


def test_each_audience_has_an_example() -> None:
    assert [path.stem for path in EXAMPLES] == ["agent_mcp", "buyer_concentration", "quant_factor_panel"]


EXAM = REPOSITORY / "examples" / "as-of-exam"


@pytest.mark.deep
@pytest.mark.rule("LOCK-2")
def test_the_agent_of_the_exam_passes_in_the_locked_view_and_fails_outside(
    starter_server: LiveServer, tmp_path: Path
) -> None:
    key = starter_server.key("professional", "--per-minute", "100000")
    agent: list[str | Path] = [sys.executable, EXAM / "agent.py", key, "--url", starter_server.url]
    inside = succeeded(*agent, "--answers", tmp_path / "answers.jsonl")
    assert inside[-1].split() == ["all", "500", "of", "500"]
    assert succeeded(sys.executable, EXAM / "score.py", tmp_path / "answers.jsonl") == inside
    without = succeeded(*agent, "--without-the-day")[-1].split()
    assert int(without[1]) < 250


def succeeded(*command: str | Path) -> list[str]:
    """The lines that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_scorer_of_the_exam_accepts_equal_figures_and_nothing_else(tmp_path: Path) -> None:
    questions = [json.loads(line) for line in (EXAM / "questions.jsonl").read_text().splitlines()]
    answers = tmp_path / "answers.jsonl"

    def score(change: Callable[[str], str]) -> list[str]:
        rows = [{"id": one["id"], "answer": change(one["answer"])} for one in questions]
        answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return succeeded(sys.executable, EXAM / "score.py", answers)

    assert score(str)[-1].split() == ["all", "500", "of", "500"]
    assert score(lambda text: f"{Decimal(text):,f}" if text[-1].isdigit() else text.upper()) == score(str)
    assert score(lambda text: text + "1")[-1].split()[1] == "0"
    assert score(lambda _: "not known on that day")[-1].split()[1] == str(
        sum(one["answer"] == "not known on that day" for one in questions)
    )
