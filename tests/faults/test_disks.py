"""A HOME on a disk that is full, read-only or owned by another user: one line, and no harm."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import CORRECTION, current
from tests.live import LiveServer, run, succeed
from tests.services import missing

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
COMMANDS = {
    "ingest": ("ingest", "sample-filings"),
    "publish": ("publish",),
    "keys": ("keys", "create", "--tier", "starter"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
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


def test_a_full_disk_is_reported_in_a_line_and_the_previous_edition_is_served(
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


def _fill(disk: Path) -> None:
    with (disk / "filling").open("wb", buffering=0) as stream:
        size = 1 << 20
        while size:
            try:
                stream.write(bytes(size))
            except OSError:
                size //= 2


def test_commands_and_the_server_report_a_read_only_disk_in_a_line(
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
