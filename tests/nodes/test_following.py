"""Nodes that follow a store: what they pull, when they switch, what they report."""

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.depth import deep_after
from tests.faults.conftest import publish_another
from tests.live import LiveServer, run
from tests.nodes.commands import current, follow, largest, pool_object, refused, state
from tests.nodes.conftest import push
from tests.nodes.servers import CuttingServer, StaticServer
from tests.patience import until
from tests.tampering import read_note, sign_again

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?period_type=FY&as_of=2022-01-01"


def push_by_a_newer_version(destination: Path, home: Path) -> None:
    """Give the current edition a layout that this version cannot read."""
    note = read_note(destination)
    manifest = json.loads(pool_object(destination, note.editions[note.current]).read_text())
    content = json.dumps(manifest | {"format": 99}).encode()
    digest = hashlib.sha256(content).hexdigest()
    target = pool_object(destination, digest)
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)
    sign_again(destination, home, editions={**note.editions, note.current: digest})


@pytest.mark.rule("NODE-1", "NODE-2", "NODE-4", "STAT-5")
def test_a_node_serves_each_newer_edition_and_survives_the_loss_of_its_store(
    home: Path, destination: Path, key: str, editions: tuple[str, str], tmp_path: Path
) -> None:
    node = tmp_path / "node" / "home"
    settings: dict[str, Any] = {
        "keystore": f"embedded:{home}/keys",
        "keys_secret": (home / "keys-secret").read_text().strip(),
    }
    node.parent.mkdir()
    with StaticServer(destination, tmp_path / "nginx") as origin, LiveServer(home) as publisher:
        with LiveServer(node, editions=origin.url, editions_poll_seconds="1", **settings) as live:
            until(lambda: live.get("/v1/status").json()["edition"] == editions[1])
            here, there = live.get(ISSUER, key), publisher.get(ISSUER, key)
            assert here.json()["data"] == there.json()["data"]
            assert here.headers["etag"] == there.headers["etag"]
            until(lambda: live.get(f"{ISSUER}&edition={editions[0]}", key).status_code == 200)

            third = publish_another(home, 2)
            push(home, destination)
            until(lambda: live.get(ISSUER, key).json()["edition"] == third)
            until(lambda: state(node)["failure"] == "" and state(node)["pulled_files"] > 0)
            assert live.get(f"{ISSUER}&edition={editions[1]}", key).status_code == 200
            origin.stop()
            until(lambda: state(node)["failure"])
            assert live.get(ISSUER, key).json()["edition"] == third
        aged(node, minutes=10)
        with LiveServer(node, editions=origin.url, **settings) as live:
            until(lambda: live.get(ISSUER, key).status_code == 200)
            status = live.get("/v1/status")
            assert status.status_code == 200, "it answers, and a balancer may go on asking it"
            assert status.json()["status"] == "degraded"
            assert status.json()["degraded"] == ["editions"]
            assert status.json()["following"]["age_seconds"] > 500
            assert run(node, "status", editions=origin.url, **settings).returncode == 1
            origin.start()
            until(lambda: live.get("/v1/status").json()["status"] == "ok")


def aged(node: Path, minutes: int) -> None:
    """Pretend that the store has been silent for so long."""
    before = datetime.now(UTC) - timedelta(minutes=minutes)
    file = node / "editions" / "FOLLOWING"
    file.write_text(json.dumps(state(node) | {"answered_at": before.isoformat()}))


@pytest.mark.rule("NODE-3")
@pytest.mark.parametrize("file", deep_after(2, ["parts", "manifest.json", "checksums", "files"]))
def test_damage_in_the_followed_folder_never_becomes_current(
    file: str, home: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    node = tmp_path / "node"
    url = f"file://{home}/editions"
    older = read_note(home / "editions")
    newer = dict(older.editions)
    sign_again(home / "editions", home, current=editions[0], editions={editions[0]: newer.pop(editions[0])})
    follow(node, url)
    assert current(node) == editions[0]
    sign_again(home / "editions", home, current=editions[1], editions=older.editions)
    target = home / "editions" / editions[1] / file
    if target.is_dir():  # the largest file that the node does not have yet
        had = {path.read_bytes() for path in (home / "editions" / editions[0] / file).iterdir()}
        new = [path for path in target.iterdir() if path.read_bytes() not in had]
        target = max(new, key=lambda path: path.stat().st_size)
    content = target.read_bytes()
    target.chmod(0o600)
    for damaged in (content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1])):
        target.write_bytes(damaged)
        refused(node, url)
        assert current(node) == editions[0]
    target.write_bytes(content)
    follow(node, url)
    assert current(node) == editions[1]


@pytest.mark.rule("NODE-2")
def test_a_node_pulls_only_the_new_part_of_a_changed_file(
    pushed_first: Path, destination: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    node = tmp_path / "node"
    follow(node, f"file://{pushed_first}")
    changed = {path.name: path.stat().st_size for path in (destination / "pool").rglob("*") if path.is_file()}
    for path in (pushed_first / "pool").rglob("*"):
        changed.pop(path.name, None)
    follow(node, f"file://{destination}")
    assert current(node) == editions[1]
    assert 0 < state(node)["pulled_bytes"] < sum(changed.values()) / 2
    folder = node / "editions" / editions[1]
    for path in (folder / "parts").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    linked = {path.stat().st_nlink for path in (node / "editions" / "pool").iterdir()}
    assert min(linked) > 1, "what is not needed any more is removed"


@pytest.mark.deep
@pytest.mark.rule("NODE-3")
@pytest.mark.parametrize("damage", ["a delta", "what it is applied to", "another's delta"])
def test_a_file_is_pulled_whole_if_its_delta_does_not_fit(
    damage: str, pushed_first: Path, destination: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    node = tmp_path / "node"
    follow(node, f"file://{pushed_first}")
    deltas = sorted((destination / "deltas").glob("*/*"), key=lambda path: path.stat().st_size)
    target, base = deltas[-1].parent.name, deltas[-1].name
    if damage == "a delta":
        deltas[-1].write_bytes(b"x")
    elif damage == "what it is applied to":
        (node / "editions" / "pool" / base).unlink()
        (node / "editions" / "pool" / base).write_bytes(b"x" * 100)
    else:
        deltas[-1].write_bytes(deltas[0].read_bytes())
    follow(node, f"file://{destination}")
    assert current(node) == editions[1]
    pool = node / "editions" / "pool"
    assert (pool / target).read_bytes() == pool_object(destination, target).read_bytes()
    assert not list(pool.glob("*.partial"))


@pytest.mark.rule("NODE-3")
@pytest.mark.parametrize("damage", deep_after(2, ["one byte", "cut short", "gone", "longer"]))
def test_damage_at_the_store_never_becomes_current(
    damage: str, pushed_first: Path, destination: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    node = tmp_path / "node"
    follow(node, f"file://{pushed_first}")
    assert current(node) == editions[0]
    shutil.rmtree(destination / "deltas")
    before = {path.name for path in (pushed_first / "pool").rglob("*")}
    new = [path for path in (destination / "pool").rglob("*") if path.is_file() and path.name not in before]
    target = max(new, key=lambda path: path.stat().st_size)
    content = target.read_bytes()
    middle = len(content) // 2
    if damage == "gone":
        target.unlink()
    else:
        changed = {
            "one byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "cut short": content[:middle],
            "longer": content + b"x",
        }
        target.write_bytes(changed[damage])
    message = refused(node, f"file://{destination}")
    assert target.name in message
    assert current(node) == editions[0]
    target.write_bytes(content)
    follow(node, f"file://{destination}")
    assert current(node) == editions[1]
    assert not list((node / "editions" / "pool").glob("*.partial"))


@pytest.mark.deep
@pytest.mark.rule("NODE-3")
def test_an_interrupted_pull_resumes(destination: Path, tmp_path: Path) -> None:
    big = largest(destination)
    size = big.stat().st_size
    with CuttingServer(destination, big.name, most=size // 4 + 1, times=2) as server:
        follow(tmp_path / "node", server.url)
        starts = [start for path, start in server.requests if path.endswith(big.name)]
    assert len(starts) == 3
    assert starts[0] == 0
    assert starts[1] > 0
    assert starts[2] > starts[1]
    assert (tmp_path / "node" / "editions" / "pool" / big.name).stat().st_size == size


@pytest.mark.rule("NODE-3")
def test_unexpected_answers_of_the_store_change_nothing(
    destination: Path, home: Path, tmp_path: Path
) -> None:
    node = tmp_path / "node"
    follow(node, f"file://{destination}")
    served = current(node)
    note = (destination / "editions.note").read_bytes()
    others = (b"", b"<html>", b"{}", note[:-2], b"[" * 5000, note.replace(b"editions/v1", b"editions/v2"))
    for other in others:
        (destination / "editions.note").write_bytes(other)
        message = refused(node, f"file://{destination}")
        assert "editions.note" in message
        assert current(node) == served
    sign_again_as_before(destination, note, home)
    assert "older than one seen before" in refused(node, f"file://{destination}")


def sign_again_as_before(destination: Path, note: bytes, home: Path) -> None:
    (destination / "editions.note").write_bytes(note)
    sign_again(destination, home, sequence=1)


@pytest.mark.rule("NODE-5")
def test_an_edition_of_a_newer_layout_is_refused_and_the_current_one_stays(
    pushed_first: Path, destination: Path, home: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    """A node of the old version while the new version is rolled out."""
    node = tmp_path / "node"
    url = f"file://{destination}"
    follow(node, f"file://{pushed_first}")
    push_by_a_newer_version(destination, home)
    message = refused(node, url)
    assert "has layout 99, and this version reads layout" in message
    assert current(node) == editions[0]
    assert "layout 99" in run(node, "doctor", editions=url).stdout
    fresh = tmp_path / "fresh"
    refused(fresh, url)
    assert current(fresh) == editions[0], "one that is started anew takes the newest that it can read"


@pytest.mark.deep
@pytest.mark.rule("NODE-3")
def test_damaged_files_of_the_node_are_pulled_again(
    destination: Path, key: str, home: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    node = tmp_path / "node" / "home"
    node.parent.mkdir()
    follow(node, f"file://{destination}")
    parts = node / "editions" / editions[1] / "parts"
    blocks = max(parts.iterdir(), key=lambda path: path.stat().st_size)
    blocks.chmod(0o600)
    with blocks.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    with LiveServer(node, editions=f"file://{destination}", editions_poll_seconds="1") as live:
        until(lambda: live.get("/v1/status").json()["edition"] == editions[1])
        until(lambda: live.get("/v1/status").status_code == 200)
    assert not list((node / "editions").glob(".damaged-*"))


def test_a_following_home_refuses_data_of_its_own(destination: Path, home: Path, tmp_path: Path) -> None:
    url = f"file://{destination}"
    for command in (["publish"], ["push", str(tmp_path / "there")], ["editions", "rollback", "x"]):
        done = run(home, *command, editions=url)
        assert done.returncode == 1
        assert "follows editions" in done.stderr
    both = run(home, "editions", editions=url, datastore=f"sqlite:{tmp_path}")
    assert "unset DATASTORE" in both.stderr
    assert "nothing to follow" in run(tmp_path / "node", "follow", "--once").stderr
    assert "expected a folder" in run(home, "push", "https://there.example/editions").stderr
    wrong = run(tmp_path / "node", "follow", "--once", editions="gopher://x/y").stderr
    assert wrong.startswith("Error: SANKOFA_EDITIONS: expected https://host/path, ")
    settings = run(home, "settings", editions="https://user:word@there.example/editions").stdout
    assert "word" not in settings
    assert os.environ.get("SANKOFA_EDITIONS") is None


def test_an_empty_node_says_to_pull_first(tmp_path: Path) -> None:
    with LiveServer(tmp_path / "node", editions=f"file://{tmp_path / 'nowhere'}") as node:
        answer = node.get(ISSUER, "sankofa-sandbox")
        assert answer.status_code == 503
        assert answer.json()["detail"] == "The current edition has not been pulled yet; retry."
        until(lambda: "no edition is pulled yet" in node.log)
        assert "edition None" not in node.log
    output = run(tmp_path / "node", "doctor", editions=f"file://{tmp_path / 'nowhere'}").stdout
    assert "none is pulled yet; see `following`" in output
    assert "sankofa publish" not in output
