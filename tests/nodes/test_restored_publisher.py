"""A publisher restored from an older backup continues the log that its readers saw."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sankofa.client import verify
from sankofa.replication.stores import open_store
from sankofa.settings import load
from tests.live import PATIENCE, LiveServer, create_key, run, succeed
from tests.nodes.commands import follow
from tests.services import use_s3
from tests.spec import market
from tests.spec.market import Desk, package, release
from tests.spec.test_witnesses import Witness

plain_desk = market.plain_desk


def publish_release(home: Path, folder: Path, name: str, **settings: str) -> None:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(package(release(name))))
    succeed(home, "ingest", "portal-za", file)
    succeed(home, "publish", **settings)


def restored(home: Path, backup: Path) -> Path:
    succeed(home, "restore", backup)
    return home


def entries(home: Path) -> bytes:
    return (home / "editions" / "log" / "entries").read_bytes()


@pytest.mark.ci
@pytest.mark.rule("LOG-12")
def test_a_restored_publisher_continues_the_published_log(plain_desk: Desk, tmp_path: Path) -> None:
    home, store, node = plain_desk.home, tmp_path / "store", tmp_path / "node"
    publish_release(home, tmp_path, "a")
    unpushed, pushed = tmp_path / "unpushed.backup", tmp_path / "pushed.backup"
    succeed(home, "backup", unpushed)
    succeed(home, "push", store)
    succeed(home, "backup", pushed)
    for name in ("b", "c"):
        publish_release(home, tmp_path, name)
    succeed(home, "push", store)
    published = entries(home)
    key = run(home, "editions", "key").stdout.strip()
    follow(node, f"file://{store}", trusted_keys=key)

    # It knows its destinations: it adopts the log there, or publishes nothing.
    second = restored(tmp_path / "second", pushed)
    checkpoint = store / "log" / "checkpoint"
    checkpoint.rename(tmp_path / "moved")
    checkpoint.mkdir()  # the log cannot be read
    refused = run(second, "publish")
    assert refused.returncode == 1
    assert "HOME was restored from a backup, and the log was pushed there" in refused.stderr
    checkpoint.rmdir()
    (tmp_path / "moved").rename(checkpoint)
    publish_release(second, tmp_path, "d")
    assert entries(second).startswith(published)
    assert len(entries(second)) > len(published)
    succeed(second, "push", store)
    follow(node, f"file://{store}", trusted_keys=key)
    assert entries(node) == entries(second)
    succeed(second, "editions", "verify")

    # It does not know: it has signed another past before it learns of this one, and says so before readers
    # see it.
    third = restored(tmp_path / "third", unpushed)
    publish_release(third, tmp_path, "e")
    there = entries(second)
    refused = run(third, "push", store)
    assert (refused.returncode, "the log there has 4 entries" in refused.stderr) == (1, True), refused.stderr
    assert (store / "log" / "entries").read_bytes() == there
    with LiveServer(second) as server:  # a node without files, only /log/
        done = run(third, "editions", "take-log", server.url)
    assert "copied 3 entries; the log now has 5" in done.stdout, done.stderr
    assert entries(third).startswith(there)
    succeed(third, "push", store)
    follow(node, f"file://{store}", trusted_keys=key)
    succeed(third, "editions", "verify")
    with LiveServer(third) as server:
        answer = server.get("/v1/tenders?country=ZA&proof=true", create_key(third, "starter")).text
    assert verify(answer, key)


@pytest.mark.rule("LOG-12")
def test_a_witness_that_saw_a_longer_log_stops_a_restored_publisher(plain_desk: Desk, tmp_path: Path) -> None:
    home, backup = plain_desk.home, tmp_path / "a.backup"
    publish_release(home, tmp_path, "a")
    succeed(home, "backup", backup)
    witness = Witness(run(home, "editions", "key").stdout.strip())
    with witness.serve() as address:
        publish_release(home, tmp_path, "b", log_witnesses=address)
        second = restored(tmp_path / "second", backup)
        refused = run(second, "publish", log_witnesses=address)
        assert refused.returncode == 1
        assert "saw a log of 2 entries, but the log in HOME has 1" in refused.stderr
        succeed(second, "editions", "take-log", home / "editions")
        publish_release(second, tmp_path, "c", log_witnesses=address)
    assert entries(second).startswith(entries(home))
    witness.check((second / "editions" / "log" / "checkpoint").read_bytes())


@pytest.mark.ci
@pytest.mark.rule("LOG-12")
def test_a_silent_destination_times_out_without_holding_the_lock(
    plain_desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = plain_desk.home
    publish_release(home, tmp_path, "a")
    (home / "pushed-to").write_text("s3://bucket/editions\n")
    store = open_store(load({"SANKOFA_HOME": str(home)}))
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as beside:
        silent.settimeout(PATIENCE)
        use_s3(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with store.exclusive("switch"):
            publishing = beside.submit(run, home, "publish")
            connection, _ = silent.accept()  # it asks while another process holds the lock
        with connection:
            published = publishing.result()
    assert published.returncode == 0, published.stderr
    message = "the log at s3://bucket/editions could not be compared: log/checkpoint: no answer in 5 s"
    assert message in published.stderr
