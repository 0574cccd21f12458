"""The files that a push sends to a folder and to S3."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.live import run, succeed
from tests.nodes.commands import current, follow, largest, pool_object, refused
from tests.nodes.conftest import push
from tests.nodes.servers import StaticServer, s3_server
from tests.services import use_s3
from tests.tampering import read_note


@pytest.mark.rule("NODE-6")
def test_a_push_sends_missing_files_and_removes_unused_ones(
    home: Path, destination: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    assert "nothing to send" in push(home, destination)
    largest(destination).unlink()
    assert ": 1 files and" in push(home, destination), "one that went missing is sent again"
    before = len(list((destination / "pool").rglob("*")))
    shutil.rmtree(home / "editions" / editions[0])  # like a publisher that keeps fewer editions
    push(home, destination, "--keep-unused", "60")
    assert len(list((destination / "pool").rglob("*"))) >= before, "a node may be pulling it"
    push(home, destination, "--keep-unused", "0")
    node = tmp_path / "node"
    follow(node, f"file://{destination}")
    note = read_note(destination)
    needed = {note.published_sha256, *note.editions.values()}
    for seal in note.editions.values():
        manifest = json.loads(pool_object(destination, seal).read_text())
        needed |= {manifest["checksums_sha256"], *(part["sha256"] for part in manifest["parts"])}
        needed |= {file["sha256"] for file in manifest["files"]}
    rows = (home / "editions" / "log" / "rows" / edition for edition in note.editions)
    needed |= {hashlib.sha256(path.read_bytes()).hexdigest() for path in rows}
    assert {path.name for path in (destination / "pool").rglob("*") if path.is_file()} == needed
    assert {path.name for path in (destination / "deltas").iterdir()} <= needed


@pytest.mark.rule("NODE-6")
def test_damaged_files_are_not_pushed_or_referenced(
    home: Path, pushed_first: Path, tmp_path: Path, editions: tuple[str, str]
) -> None:
    """Deltas are computed after the files were compared with their digests."""
    there = Path(shutil.copytree(pushed_first, tmp_path / "there"))
    pointer = (there / "editions.note").read_bytes()
    before = {path.name for path in (home / "editions" / editions[0] / "files").iterdir()}
    new = [p for p in (home / "editions" / editions[1] / "files").iterdir() if p.name in before]
    damaged = max((p for p in new if p.stat().st_nlink == 1), key=lambda path: path.stat().st_size)
    whole = damaged.read_bytes()
    damaged.chmod(0o600)
    damaged.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    refusal = run(home, "push", str(there))
    assert refusal.returncode == 1
    assert damaged.name in refusal.stderr, refusal.stderr
    assert (there / "editions.note").read_bytes() == pointer
    assert not (there / "deltas").exists()
    damaged.write_bytes(whole)
    push(home, there)
    assert (there / "deltas").exists()
    follow(tmp_path / "node", f"file://{there}")
    assert current(tmp_path / "node") == editions[1]


@pytest.mark.deep
def test_open_parquet_files_are_read_from_the_destination_by_name(destination: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    with StaticServer(destination, tmp_path / "nginx") as origin:
        import httpx

        listed = httpx.get(f"{origin.url}/open/index.json").json()
        assert listed["files"]
        for file in listed["files"]:
            assert file["license"] == "CC-BY-4.0"
            content = httpx.get(f"{origin.url}/open/{file['path']}").content
            (tmp_path / "file.parquet").write_bytes(content)
            assert pyarrow.parquet.read_table(tmp_path / "file.parquet").num_rows == file["row_count"]


@pytest.mark.ci
@pytest.mark.rule("NODE-6")
def test_editions_travel_through_s3(
    home: Path, tmp_path: Path, editions: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server("editions") as url:
        use_s3(monkeypatch, url)
        node = tmp_path / "node"
        assert "files and" in push(home, "s3://editions/africa")
        assert "nothing to send" in push(home, "s3://editions/africa")
        follow(node, "s3://editions/africa")
        assert current(node) == editions[1]
        assert (node / "editions" / "log" / "rows" / editions[1]).exists()
        shutil.rmtree(home / "editions" / editions[1])
        succeed(home, "editions", "rollback", editions[0])
        assert " files removed" in push(home, "s3://editions/africa", "--keep-unused", "0")
        follow(node, "s3://editions/africa")
        assert current(node) == editions[0]
        empty = tmp_path / "other"
        assert "it has no signed edition yet" in refused(empty, "s3://editions/elsewhere")
        assert current(empty) is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused(node, "s3://editions/africa")
    assert current(node) == editions[0]
