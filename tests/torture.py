"""How much a random test tries, and the record of its tries.

`make test-all` tries a little of everything, `make test` of most things. `make torture` sets TORTURE=1: the
same tests then try as much as docs/explanation/reliability.md reports, and add a line each to the file in
TORTURE_RECORD, from which tools/reliability.py writes that page. A test uses the fixture `trial`.

Comparing with brute force, on random worlds or real files, makes each round expensive. `rounds(few, more,
most)` says how many: few in `make test` and in CI, more if TEST_ALL_ROUNDS=1 is set, as in `make test-all`,
and most in `make torture`. `here=...` lowers the number for `make test` outside CI.

TEST_SEED repeats a run; TORTURE_TRIES sets the count of every test, to look into one of them.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

FULL = os.environ.get("TORTURE") == "1"
ALL_ROUNDS = FULL or os.environ.get("TEST_ALL_ROUNDS") == "1"
IN_CI = os.environ.get("CI") == "true"
_PASSED = pytest.StashKey[bool]()


def rounds(few: int, more: int, most: int | None = None, *, here: int | None = None) -> int:
    """How often a rule is tried on another world; `here` is for a run outside CI."""
    if FULL and most is not None:
        return most
    if ALL_ROUNDS:
        return more
    return few if here is None or IN_CI else here


class Trial:
    """The tries of one test, and their outcomes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seed = int(os.environ.get("TEST_SEED") or random.SystemRandom().randrange(1, 1 << 32))
        self.chance = random.Random(self.seed)
        self.outcomes: Counter[str] = Counter()
        self.figures: dict[str, float] = {}
        self._began = time.monotonic()
        print(f"TEST_SEED={self.seed}")  # noqa: T201 - pytest shows it where the test fails

    def count(self, short: int, full: int) -> int:
        """The number of tries."""
        return int(os.environ.get("TORTURE_TRIES") or (full if FULL else short))

    def seconds(self, short: float, full: float) -> float:
        """The seconds to try for."""
        return float(os.environ.get("TORTURE_SECONDS") or (full if FULL else short))

    def saw(self, outcome: object, times: int = 1) -> None:
        """Count the outcome of a try."""
        self.outcomes[str(outcome)] += times

    def measured(self, what: str, value: float) -> None:
        """Record a figure; the largest of several counts."""
        self.figures[what] = round(max(value, self.figures.get(what, value)), 4)

    def record(self, *, passed: bool) -> None:
        """Add a line to TORTURE_RECORD, if that is set; several processes may."""
        path = os.environ.get("TORTURE_RECORD")
        if not path:
            return
        line = {
            "test": self.name,
            "full": FULL,
            "passed": passed,
            "tries": self.outcomes.total(),
            "outcomes": dict(sorted(self.outcomes.items())),
            "figures": self.figures,
            "seed": self.seed,
            "seconds": round(time.monotonic() - self._began, 1),
            "day": datetime.now(UTC).date().isoformat(),
        }
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("a") as stream:
            stream.write(json.dumps(line) + "\n")


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """Count, random numbers and record of this test."""
    own = Trial(request.node.nodeid)
    yield own
    own.record(passed=request.node.stash.get(_PASSED, False))


def remember_outcome(item: pytest.Item, report: pytest.TestReport) -> None:
    """Called by `pytest_runtest_makereport`: the fixture cannot see whether its test passed."""
    if report.when == "call":
        item.stash[_PASSED] = report.passed
