"""A request reads top to bottom: few calls, and few moves between packages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import Copies

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("answer_cache_bytes", "most_calls", "most_moves"),
    [
        pytest.param("33554432", 29, 11, id="asked before"),
        pytest.param("1", 82, 29, id="not asked before"),
    ],
)
def test_a_warm_request_makes_few_calls_and_changes_package_rarely(
    copy_sample: Copies, answer_cache_bytes: str, most_calls: int, most_moves: int
) -> None:
    environment = {"PATH": os.environ["PATH"], "SANKOFA_ANSWER_CACHE_BYTES": answer_cache_bytes}
    done = subprocess.run(
        [sys.executable, "-m", "tools.call_path", str(copy_sample())],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counted = re.fullmatch(r"(\d+) calls, (\d+) moves between packages", done.stdout.splitlines()[-1])
    assert counted is not None, done.stdout
    calls, moves = map(int, counted.groups())
    assert 20 < calls <= most_calls, done.stdout
    assert 5 < moves <= most_moves, done.stdout
