"""The API description against the running server, by Schemathesis with all checks.

In `make test` every run is the same, so that it fails only for what changed, and has only the cheap phases:
the examples and a few generated questions. Every phase runs where every round does. `make torture` draws at
random, with three seeds on two tiers.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.torture import ALL_ROUNDS, FULL, Trial, rounds

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
PHASES = ("Examples", "Coverage", "Fuzzing") if ALL_ROUNDS else ("Examples", "Fuzzing")


RUNS = [f"{tier}, seed {n}" for tier in ("starter", "sample") for n in (1, 2, 3)] if FULL else ["starter"]


@pytest.mark.ci
@pytest.mark.rule("SPEC-2")
@pytest.mark.parametrize("tried", RUNS)
def test_the_server_follows_its_description(server: LiveServer, tmp_path: Path, trial: Trial, tried: str):
    tier = tried.partition(",")[0]
    key = server.key(tier, "--per-minute", "1000000", "--per-month", "100000000")
    # Loaded from a file: Schemathesis does not test the path from which it loads a description.
    description = tmp_path / "openapi.json"
    description.write_bytes(server.get("/openapi.json").content)

    edition = server.get("/v1/status").json()["edition"]
    phases = ["--phases", ",".join(PHASES).lower()]
    extent = [*phases, "--generation-deterministic", "--max-examples", str(rounds(1, 6, 40))]
    if FULL:
        extent = [*phases, "--seed", str(trial.seed), "--max-examples", str(trial.count(0, 150))]

    words = {"KEY": key, "EDITION": edition, "UNPAID": "402" if tier == "sample" else "404"}
    report = _schemathesis(tmp_path, words, "run", description, "--url", server.url, *extent)

    assert report.returncode == 0, report.stdout + report.stderr
    assert tier == "sample" or "WARNINGS" not in report.stdout, report.stdout
    for phase in PHASES:
        assert f"✅  {phase} (in" in report.stdout, report.stdout
    cases = re.search(r"(\d+) generated", report.stdout)
    assert cases is not None, report.stdout
    trial.saw("cases without a finding", int(cases[1]))


def _schemathesis(
    folder: Path, words: dict[str, str], *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run it in its own folder: it leaves files behind."""
    configuration = folder / CONFIGURATION.name
    text = CONFIGURATION.read_text().replace('"UNPAID"', f'"{words["UNPAID"]}"')
    if words["UNPAID"] == "402":  # it warns about refusals of paid content
        text = text.replace("fail-on = true", "fail-on = false")
    configuration.write_text(text)
    return subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "--config-file", configuration, *arguments],
        cwd=folder,
        env={
            **os.environ,
            **{f"SCHEMATHESIS_{name}": value for name, value in words.items()},
            "PYTHONPATH": str(CONFIGURATION.parents[2]),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=3000,
    )
