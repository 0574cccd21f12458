"""Commands killed at random leave the stores whole, and running them again completes the work."""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.faults.conftest import CORRECTION, current
from tests.live import COMMANDS, _environment, create_key, succeed
from tests.torture import Trial

PATIENCE = 60.0


class Kills:
    """Kills a command at random moments, as often as asked.

    If a command had already ended, it is tried again within the time that it really takes.
    """

    def __init__(self, trial: Trial, count: int, seconds: float) -> None:
        self._trial, self._count, self._seconds = trial, count, seconds
        self._done = 0

    def __iter__(self) -> Iterator[int]:
        tried = 0
        while self._done < self._count:
            assert tried < self._count * 20, "it always ends before"
            yield tried
            tried += 1

    def kill(self, home: Path, arguments: Sequence[str]) -> bool:
        """Run the command and kill it with all its children; False if it had already ended."""
        after = self._trial.chance.uniform(0.001, self._seconds)
        began = time.monotonic()
        with tempfile.TemporaryFile() as stream:
            running = COMMANDS.start(arguments, _environment(home, {}), stream, stream)
            with suppress(subprocess.TimeoutExpired):
                running.wait(after)
                self._seconds = max(0.9 * (time.monotonic() - began), 0.002)
                return False
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            if running.wait(PATIENCE) >= 0:
                return False
        self._done += 1
        self._seconds *= 1.02
        return True


def duration(home: Path, arguments: Sequence[str]) -> float:
    began = time.monotonic()
    succeed(home, *arguments)
    return time.monotonic() - began


def dump(ledger: Path) -> dict[str, int]:
    """The number of rows in each table of a ledger."""
    with closing(sqlite3.connect(ledger)) as database:
        names = [n for (n,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {n: database.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for n in names}


@pytest.fixture
def filing(tmp_path: Path) -> Path:
    path = tmp_path / "correction-9.csv"
    path.write_text(CORRECTION.format(value=99, day=9))
    return path


@pytest.mark.rule("ING-4")
def test_a_killed_ingest_is_all_or_nothing_and_the_next_one_completes_it(
    home: Path, filing: Path, tmp_path: Path, trial: Trial
) -> None:
    command = ("ingest", "sample-filings", str(filing))
    before = dump(home / "ledger.sqlite")
    whole = Path(shutil.copytree(home, tmp_path / "whole"))
    seconds = duration(whole, command)
    after = dump(whole / "ledger.sqlite")
    assert after != before
    kills = Kills(trial, trial.count(4, 100), seconds)
    for _ in kills:
        copy = Path(shutil.copytree(home, tmp_path / "copy"))
        ended = not kills.kill(copy, command)
        rows = dump(copy / "ledger.sqlite")
        assert rows in (before, after)
        succeed(copy, "ledger", "verify")
        trial.saw("ended before" if ended else "all of it" if rows == after else "nothing of it")
        succeed(copy, *command)
        assert dump(copy / "ledger.sqlite") == after
        shutil.rmtree(copy)


@pytest.mark.ci
def test_a_killed_publish_leaves_a_whole_edition_current(
    home: Path, editions: tuple[str, str], filing: Path, tmp_path: Path, trial: Trial
) -> None:
    succeed(home, "ingest", "sample-filings", str(filing))
    seconds = duration(Path(shutil.copytree(home, tmp_path / "whole")), ("publish",))
    third = current(tmp_path / "whole")
    kills = Kills(trial, trial.count(2, 100), seconds)
    for _ in kills:
        copy = Path(shutil.copytree(home, tmp_path / "copy"))
        ended = not kills.kill(copy, ("publish",))
        edition = current(copy)
        assert edition in (editions[1], third)
        succeed(copy, "editions", "rollback", edition)
        trial.saw(
            "ended before" if ended else "the edition before" if edition != third else "the new edition"
        )
        succeed(copy, "publish")
        assert current(copy) == third
        assert not list((copy / "editions").glob(".building-*"))
        shutil.rmtree(copy)


def test_a_killed_key_command_loses_no_key_and_revives_none(home: Path, trial: Trial) -> None:
    revoked = create_key(home, "starter")
    succeed(home, "keys", "revoke", revoked)
    seconds = duration(home, ("keys", "create", "--tier", "starter"))
    kills = Kills(trial, trial.count(4, 100), seconds)
    for number in kills:
        others = _keys(home)
        key = create_key(home, "starter")
        issued = _keys(home)
        (victim,) = set(issued) - set(others)
        revoking = number % 2 == 1
        command = ("keys", "revoke", key) if revoking else ("keys", "create", "--tier", "starter")
        ended = not kills.kill(home, command)
        keys = _keys(home)
        assert len(set(keys) - set(issued)) <= (not revoking)
        allowed = (issued, {**issued, victim: "revoked"}) if revoking else (issued,)
        assert {name: keys[name] for name in issued} in allowed
        trial.saw("ended before" if ended else "done" if keys != issued else "nothing of it")
        succeed(home, "keys", "revoke", key)
        assert _keys(home)[victim] == "revoked"


def _keys(home: Path) -> dict[str, str]:
    """The id of each key and whether it is revoked, oldest first."""
    listed = succeed(home, "keys", "list")
    assert "damaged" not in listed.stderr
    words = [line.split() for line in listed.stdout.splitlines()]
    return {line[0]: line[3] for line in words}
