"""`sankofa publish` with several processes: one of them is killed, all are, or the command itself."""

import json
import os
import signal
import tempfile
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import IO

import psutil
import pytest

from tests.commands import Running
from tests.live import COMMANDS, _environment, run, succeed
from tests.patience import PATIENCE, until
from tests.spec.test_log_history import entries_of
from tests.world.desk import Desk

TWO = {"publish_processes": "2"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    desk = Desk(tmp_path / "home", date(2024, 1, 1))
    filed = []
    for issuer in range(40):
        for year in range(2013, 2023):
            period = f"{year}-01-01", f"{year}-12-31", f"{year + 1}-03-01"
            filed.append([f"ticker:JSE:T{issuer}", "revenue", str(year), "ZAR", *period, "afs", "p. 4", ""])
    assert desk.filings("filings.csv", filed).failures == []
    return desk.home


def deriving(command: int) -> list[psutil.Process]:
    """The processes that derive issuers for the command."""
    processes = []
    for child in psutil.Process(command).children():
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in child.cmdline()):
                processes.append(child)
    return processes


def begin(home: Path, out: IO[bytes]) -> tuple[Running, list[psutil.Process]]:
    """A publication as soon as two processes derive for it. They are stopped, so that it cannot end."""
    running = COMMANDS.start(["publish"], _environment(home, TWO), out, out)
    until(lambda: len(deriving(running.pid)) == 2, every=0.01)
    workers = deriving(running.pid)
    for worker in workers:
        worker.suspend()
    return running, workers


def assert_nothing_was_published_and_the_next_succeeds(home: Path, workers: list[psutil.Process]) -> None:
    until(lambda: not any(worker.is_running() for worker in workers))
    assert json.loads(run(home, "editions", "--json").stdout) == []
    assert not list((home / "editions").glob("*"))
    succeed(home, "publish", **TWO)
    assert [path.name for path in (home / "derived").iterdir() if path.name.startswith(".")] == []


@pytest.mark.ci
def test_a_process_that_is_killed_ends_the_publication_with_one_line(home: Path) -> None:
    with tempfile.TemporaryFile() as out:
        running, workers = begin(home, out)
        workers[0].kill()
        resume(workers[1:])
        assert running.wait(PATIENCE) == 1
        out.seek(0)
        (line,) = out.read().decode().splitlines()
    assert line.startswith("Error: a process that derives rows was ended by SIGKILL")
    assert "nothing is published" in line
    assert_nothing_was_published_and_the_next_succeeds(home, workers)


def resume(workers: list[psutil.Process]) -> None:
    """Resume the processes that still run. A stopped one may end with the command too."""
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            worker.resume()


@pytest.mark.deep
def test_an_interrupt_of_the_terminal_ends_all_of_them(home: Path) -> None:
    with tempfile.TemporaryFile() as out:
        running, workers = begin(home, out)
        os.killpg(running.pid, signal.SIGINT)
        resume(workers)
        assert running.wait(PATIENCE) == 1
        out.seek(0)
        assert out.read().decode().split() == ["Aborted!"]
    assert_nothing_was_published_and_the_next_succeeds(home, workers)


@pytest.mark.deep
def test_the_processes_do_not_outlive_a_command_that_is_killed(home: Path) -> None:
    with tempfile.TemporaryFile() as out:
        running, workers = begin(home, out)
        os.kill(running.pid, signal.SIGKILL)
        running.wait(PATIENCE)
        resume(workers)
    until(lambda: not any(worker.is_running() for worker in workers))
    succeed(home, "publish", **TWO)


@pytest.mark.parametrize("number", ["0", "many", "65"])
def test_an_invalid_number_of_processes_is_refused(home: Path, number: str) -> None:
    done = run(home, "publish", publish_processes=number)
    assert done.returncode == 1
    assert f"SANKOFA_PUBLISH_PROCESSES: expected auto or a number from 1 to 64, not {number!r}" in done.stderr


@pytest.mark.ci
def test_rows_that_several_processes_hashed_have_the_roots_that_one_process_finds(home: Path) -> None:
    succeed(home, "publish", **TWO)
    (entry,) = entries_of(home)
    done = succeed(home, "editions", "rebuild", entry["published_at"])
    assert "fundamentals: 400 rows, as logged" in done.stdout
    assert "the same rows and roots" in done.stdout
