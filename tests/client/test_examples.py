"""The examples run as they are, and say what is written beside them.

`UPDATE_SNAPSHOTS=1 pytest tests/client/test_examples.py` writes the outputs again.
"""

import asyncio
import os
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import LiveServer
from tests.services import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def in_the_starter(path: Path) -> bool:
    """Buyers are compared in the sample world: the starter world has five tenders."""
    return path.stem != "buyer_concentration"


@pytest.mark.parametrize(
    "path", deep_after(1, sorted(EXAMPLES, key=in_the_starter)), ids=lambda path: path.stem
)
def test_an_example_prints_what_is_written_beside_it(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    served = "starter_server" if in_the_starter(path) else "server"
    server: LiveServer = request.getfixturevalue(served)
    tier = "sample" if path.stem == "agent_mcp" else "starter"  # the agent is to be refused
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


def test_there_is_one_for_each_audience() -> None:
    assert [path.stem for path in EXAMPLES] == ["agent_mcp", "buyer_concentration", "quant_factor_panel"]


@pytest.mark.deep
@pytest.mark.rule("LOCK-2")
def test_the_agent_of_the_exam_knows_everything_inside_the_day_and_fails_without_it(
    starter_server: LiveServer,
) -> None:
    key = starter_server.key("professional", "--per-minute", "100000")
    exam = runpy.run_path(str(REPOSITORY / "examples" / "as-of-exam" / "agent.py"))
    asked, right = asyncio.run(exam["sit"](key, starter_server.url))
    assert sum(asked.values()) == 500
    assert right == asked
    _, without = asyncio.run(exam["sit"](key, starter_server.url, locked=False))
    assert sum(without.values()) < 250
