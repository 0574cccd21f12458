"""The tools of Go's checksum database (`golang.org/x/mod/sumdb`) read the log of editions."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.live import LiveServer
from tests.services import REPOSITORY, missing
from tests.spec.market import Desk, package, release

_PACKAGES = Path("/usr/share/gocode")
"""Debian's folder for sources of Go packages (golang-golang-x-mod-dev)."""
_ERASURES = 600
Reader = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def read_log(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Run the command on a folder and older checkpoints; returns its output and the reason for a refusal."""
    if shutil.which("go") is None or not (_PACKAGES / "src/golang.org/x/mod/sumdb/tlog").is_dir():
        missing("Go with golang.org/x/mod (Debian: golang-go, golang-golang-x-mod-dev)")
    folder = tmp_path_factory.mktemp("go")
    command = folder / "read_log"
    own = {"GO111MODULE": "off", "GOPATH": str(_PACKAGES), "GOFLAGS": "", "GOCACHE": str(folder / "cache")}
    subprocess.run(
        ["go", "build", "-o", command, "read_log.go"],
        cwd=REPOSITORY / "tests",
        env={**os.environ, **own},
        check=True,
    )

    def read(vkey: str, log: Path, *older: Path) -> tuple[str, str]:
        done = subprocess.run([command, vkey, log, *older], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (not done.stderr) == bool(done.stdout), done
        return done.stdout.strip(), done.stderr.strip()

    return read


class Published(NamedTuple):
    vkey: str
    log: Path
    """A copy of /log/ as served after four editions."""
    older: list[Path]
    """The checkpoints after the first, the second and the third."""
    other: Desk
    """A copy of HOME, with its key, from when it had one edition."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    desk = Desk(tmp_path_factory.mktemp("published"))
    other = Desk(tmp_path_factory.mktemp("other"))
    older = []
    for number in range(4):
        desk.ingest("portal-za", f"{number}.json", package(release(f"A{number}")))
        desk.publish()
        older.append(desk.folder / f"checkpoint-{number}")
        shutil.copy(desk.home / "editions" / "log" / "checkpoint", older[-1])
        if not number:
            shutil.rmtree(other.home)
            shutil.copytree(desk.home, other.home)
    vkey = desk.command("editions", "key").stdout.strip()
    return Published(vkey, served_log(desk, 4), older[:-1], other)


def served_log(desk: Desk, size: int) -> Path:
    """The files that a client gets from /log/ of a log of this size."""
    folder = desk.folder / f"log-{size}"
    with LiveServer(desk.home) as server:
        _copy(server.http, "checkpoint", folder)
        for level in range(8):
            if not (count := size >> 8 * level):
                break
            for kind in (level,) if level else (level, "entries"):
                for first in range(0, count, 256):
                    width = "" if count - first >= 256 else f".p/{count - first}"
                    _copy(server.http, f"tile/{kind}/{first // 256:03}{width}", folder)
    return folder


def _copy(client: httpx.Client, path: str, folder: Path) -> None:
    answer = client.get(f"/log/{path}")
    assert answer.status_code == 200, path
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(answer.content)


@pytest.mark.rule("LOG-1")
def test_go_reads_the_log_and_that_it_only_grew(published: Published, read_log: Reader) -> None:
    assert read_log(published.vkey, published.log, *published.older) == ("4 entries, 4 checkpoints", "")


@pytest.mark.rule("LOG-1")
def test_go_refuses_a_rewritten_past_even_if_the_publisher_signed_it(
    published: Published, read_log: Reader
) -> None:
    """This log is long, so tiles of every level are read."""
    desk, older, vkey = published.other, published.older, published.vkey
    assert read_log(vkey, served_log(desk, 1), *older)[1] == "the log had 3 entries and has 1"
    for number in range(3):  # the same key, another history
        desk.ingest("portal-za", f"{number}.json", package(release(f"B{number}")))
        desk.publish()
    log = served_log(desk, 4)
    assert read_log(vkey, log) == ("4 entries, 1 checkpoints", "")
    assert read_log(vkey, log, older[0]) == ("4 entries, 2 checkpoints", "")  # it had only grown until then
    for checkpoint in older[1:]:
        assert read_log(vkey, log, checkpoint)[1].startswith("from ")
    _append(desk.home / "editions" / "log", _ERASURES)
    desk.publish()
    long = served_log(desk, 4 + _ERASURES)
    assert (long / "tile/1/000.p/2").exists()
    assert read_log(vkey, long, older[0], log / "checkpoint")[0] == f"{4 + _ERASURES} entries, 3 checkpoints"
    assert read_log(vkey, long, older[1])[1].startswith("from 2 to 604 entries: ")


def _append(log: Path, count: int) -> None:
    """Entries that the next `publish` signs."""
    with (log / "entries").open("ab") as entries:
        for number in range(count):
            entry = json.dumps({"type": "erasure", "at": "2026-01-01T00:00:00Z", "editions": [str(number)]})
            entries.write(len(entry).to_bytes(2) + entry.encode())
    (log / "checkpoint").unlink()
