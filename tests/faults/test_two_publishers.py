"""Two `sankofa publish` at once; one is frozen and then killed."""

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sankofa.edition.format.keys import ledger_position
from tests.faults.conftest import CORRECTION, current
from tests.live import COMMAND, PATIENCE, succeed


def _publish(home: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "SANKOFA_HOME": str(home)}
    return subprocess.Popen(
        [COMMAND, "publish"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _ingest(home: Path, number: int) -> None:
    filing = home.parent / f"correction-{number}.csv"
    filing.write_text(CORRECTION.format(value=2000 + number, day=number))
    succeed(home, "ingest", "sample-filings", filing)


def _wait_until_locked(lock: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if lock.exists():
            with lock.open() as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
        time.sleep(0.005)
    raise AssertionError("nobody publishes")


@pytest.mark.ci
@pytest.mark.rule("PUB-3")
def test_a_slow_publisher_never_replaces_a_newer_edition(home: Path) -> None:
    before = current(home)
    _ingest(home, 11)
    slow = _publish(home)
    _wait_until_locked(home / ".publish.lock")
    slow.send_signal(signal.SIGSTOP)
    _ingest(home, 12)
    second = _publish(home)
    assert second.stderr is not None
    assert "another publish is running; waiting for it to end" in second.stderr.readline()
    assert current(home) == before, "neither is done"
    slow.kill()
    slow.communicate()
    output, complaints = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, complaints
    assert current(home) in output
    assert ledger_position(current(home)) == ledger_position(before) + 2
    assert not list((home / "editions").glob(".building-*")), "what the killed one had begun is gone"
