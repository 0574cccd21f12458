"""A HOME on a disk that is full, or read-only, or that is somebody else's: a line, and no harm."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.faults.conftest import CORRECTION, current
from tests.live import COMMAND, LiveServer, _environment, run, succeed
from tests.services import missing

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
COMMANDS = {
    "ingest": ("ingest", "sample-filings"),
    "publish": ("publish",),
    "keys": ("keys", "create", "--tier", "starter"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 256 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "none", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        missing("a disk of its own (needs root and mount)")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def filing(folder: Path) -> Path:
    path = folder / "correction.csv"
    path.write_text(CORRECTION.format(value=77, day=9))
    return path


def arguments(name: str, file: Path) -> list[str]:
    return [*COMMANDS[name], *([str(file)] if name == "ingest" else [])]


def files(home: Path) -> set[Path]:
    return set((home / "editions").rglob("*"))


def assert_one_line(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr


def test_a_full_disk_is_a_line_and_the_edition_before_is_served(
    home: Path, key: str, disk: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    there = Path(shutil.copytree(home, disk / "home"))
    file = filing(tmp_path)
    succeed(there, *arguments("ingest", file))
    with LiveServer(there) as live:
        assert live.get(ENTITY, key).status_code == 200
        before = files(there)
        _fill(disk)
        assert_one_line(run(there, "publish"))
        assert files(there) == before, "nothing half built is left"
        assert live.get(ENTITY, key).status_code in (200, 503)
        assert live.get("/health").status_code == 200
        (disk / "filling").unlink()
        assert live.get(ENTITY, key).status_code == 200
        succeed(there, "publish")
        assert current(there) not in editions
        assert "Traceback" not in live.log


@pytest.mark.deep
@pytest.mark.rule("STAT-1")
@pytest.mark.parametrize("reserve", deep_after(1, ["1", "32"]))
def test_while_the_disk_is_full_the_status_is_degraded_exactly_where_requests_fail(
    home: Path, key: str, disk: Path, reserve: str
) -> None:
    there = Path(shutil.copytree(home, disk / "home"))
    with LiveServer(there, usage_reserve=reserve) as live:
        _fill(disk)
        answers = [live.get(path).status_code for path in ("/", "/companies", "/macro")]
        answers.append(live.get(ENTITY, key).status_code)
        failed = 503 in answers
        assert failed == (reserve == "1"), live.log
        time.sleep(0.3)
        status = live.get("/v1/status")
        assert status.status_code == (503 if failed else 200)
        assert status.json()["degraded"] == (["usagestore"] if failed else [])
        told = run(there, "status", usage_reserve=reserve)
        assert told.returncode == (1 if failed else 0), told.stdout
        (disk / "filling").unlink()
        time.sleep(0.3)
        assert live.get("/v1/status").json()["degraded"] == []
        assert live.get("/companies").status_code == 200


def _fill(disk: Path) -> None:
    with (disk / "filling").open("wb", buffering=0) as stream:
        size = 1 << 20
        while size:
            try:
                stream.write(bytes(size))
            except OSError:
                size //= 2


def test_a_disk_that_may_not_be_written_refuses_commands_and_a_server_in_a_line(
    home: Path, disk: Path, tmp_path: Path
) -> None:
    there = Path(shutil.copytree(home, disk / "home"))
    file = filing(tmp_path)
    with LiveServer(there) as live:
        assert live.get(ENTITY, "sankofa-sandbox").status_code == 200
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for name in COMMANDS:
        assert_one_line(run(there, *arguments(name, file)))
    refused = run(there, "serve")
    assert_one_line(refused)
    assert f"HOME ({there}) is read-only for this user" in refused.stderr


@pytest.mark.deep
@pytest.mark.parametrize("name", deep_after(1, [*COMMANDS]))
def test_a_home_that_is_somebody_elses_is_refused_in_a_line(home: Path, tmp_path: Path, name: str) -> None:
    if os.geteuid() or shutil.which("setpriv") is None:
        missing("another owner (needs root and setpriv)")
    for path in (home, *home.rglob("*")):
        os.chown(path, 65534, 65534)
        path.chmod(0o700 if path.is_dir() else 0o600)
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    done = subprocess.run(
        [*powerless, COMMAND, *arguments(name, filing(tmp_path))],
        env=_environment(home, {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert_one_line(done)
    assert "ermission denied" in done.stderr or "unable to open" in done.stderr, done.stderr
