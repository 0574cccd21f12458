"""The examples run unchanged and print the expected outputs.

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


@pytest.mark.deep
@pytest.mark.rule("LOCK-2")
def test_the_agent_of_the_exam_passes_in_the_locked_view_and_fails_outside(
    starter_server: LiveServer,
) -> None:
    key = starter_server.key("professional", "--per-minute", "100000")
    exam = runpy.run_path(str(REPOSITORY / "examples" / "as-of-exam" / "agent.py"))
    asked, right = asyncio.run(exam["sit"](key, starter_server.url))
    assert sum(asked.values()) == 500
    assert right == asked
    _, without = asyncio.run(exam["sit"](key, starter_server.url, locked=False))
    assert sum(without.values()) < 250
