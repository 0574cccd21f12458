"""`sankofa backup` and `sankofa restore`."""

import json
import random
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from sankofa.cli.backup import ArchiveReader, new_archive
from tests.live import LiveServer, create_key, run, succeed

ISSUER = "/v1/screen?metric=net_margin"


@pytest.fixture(scope="module")
def saved(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A HOME with a key of its own, its backup, and the key."""
    folder = tmp_path_factory.mktemp("saved")
    home = Path(shutil.copytree(small_home, folder / "home"))
    key = create_key(home, "starter", "--label", "a customer")
    file = folder / "backup"
    succeed(home, "backup", file)
    return home, file, key


def edition(home: Path, **settings: str) -> str:
    listed = succeed(home, "editions", **settings)
    return next(line.split()[0] for line in listed.stdout.splitlines() if line.endswith("current"))


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def key_list(home: Path, **stores: str) -> list[dict[str, Any]]:
    """The records of the keys. The day of last use is counted with the usage, which is not backed up."""
    rows: list[dict[str, Any]] = json.loads(run(home, "keys", "list", "--json", **stores).stdout)
    return [{name: value for name, value in row.items() if name != "last_used"} for row in rows]


def test_a_restored_home_publishes_the_same_edition_and_serves_the_same_keys(
    saved: tuple[Path, Path, str], tmp_path: Path
) -> None:
    home, file, key = saved
    other = tmp_path / "elsewhere"
    succeed(other, "restore", file)
    succeed(other, "publish")
    assert edition(other) == edition(home)
    assert key_list(other) == key_list(home)
    for name in ("gate-secret", "keys-secret"):
        assert (other / name).read_bytes() == (home / name).read_bytes()
    assert run(other, "ledger", "verify").stdout == run(home, "ledger", "verify").stdout
    with LiveServer(other) as server:
        assert server.get(ISSUER, key).json()["edition"] == edition(home)
        assert server.get(ISSUER, "sk_another").status_code == 401


@pytest.mark.rule("CLI-10")
@pytest.mark.parametrize(
    "name",
    [
        *("vault//{outside}/000000", "vault/{outside}/000000", "vault/../../{relative}/000000"),
        *("vault/objects/../../../{relative}/000000", "secrets/../escaped-secret", "secrets/..", "elsewhere"),
        *("secrets/ledger.sqlite", "vault/.read-1/000000", "ledger/fact", "ledger/../000000.jsonl"),
    ],
)
def test_a_crafted_backup_writes_nothing_outside_home(
    saved: tuple[Path, Path, str], tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    crafted = tmp_path / "crafted"
    with new_archive(crafted) as archive:
        for member, content in ArchiveReader(saved[1]).members():
            archive.add(member, content)
        archive.add(name.format(outside=outside, relative=outside.name), b"written")
        archive.finish("2024-01-01T00:00:00Z", "0")
    before = everything_in(tmp_path)
    refused = run(tmp_path / "home", "restore", crafted)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
    assert "nothing was restored" in refused.stderr
    assert everything_in(tmp_path) == before


@pytest.mark.rule("CLI-10")
def test_a_backup_is_restored_into_a_home_that_is_a_link(saved: tuple[Path, Path, str], tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    succeed(tmp_path / "home", "restore", saved[1])
    assert (tmp_path / "real" / "gate-secret").exists()


def test_only_the_owner_can_read_the_backup_and_it_holds_no_key(saved: tuple[Path, Path, str]) -> None:
    _, file, key = saved
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key.encode() not in file.read_bytes()


def test_an_existing_file_is_not_overwritten(saved: tuple[Path, Path, str]) -> None:
    home, file, _ = saved
    before = file.read_bytes()
    refused = run(home, "backup", file)
    assert refused.returncode == 1
    assert "already exists" in refused.stderr
    assert file.read_bytes() == before


def test_restore_refuses_a_home_that_is_not_empty(saved: tuple[Path, Path, str], tmp_path: Path) -> None:
    _, file, _ = saved
    home = tmp_path / "home"
    home.mkdir()
    (home / "sources.toml").write_text("")
    refused = run(home, "restore", file)
    assert refused.returncode == 1
    assert "is not empty: sources.toml is in it" in refused.stderr
    assert everything_in(home) == ["sources.toml"]


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "another", "absent"])
def test_a_damaged_backup_is_an_error_of_one_line_and_leaves_nothing(
    saved: tuple[Path, Path, str], tmp_path: Path, damage: str
) -> None:
    content = bytearray(saved[1].read_bytes())
    bad = tmp_path / "bad"
    if damage == "flipped":
        content[random.Random(7).randrange(len(content))] ^= 0x10
    elif damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "longer":
        content += b"\0"
    elif damage == "another":
        content = bytearray(b"PK\3\4 something else")
    if damage != "absent":
        bad.write_bytes(content)
    refused = run(tmp_path / "home", "restore", bad)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Error: {bad}: ")
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "home").exists()


def test_a_backup_during_an_ingest_is_consistent(saved: tuple[Path, Path, str], tmp_path: Path) -> None:
    """A writer in the middle of its transaction neither blocks the backup nor enters it."""
    home = Path(shutil.copytree(saved[0], tmp_path / "home"))
    with sqlite3.connect(home / "ledger.sqlite", isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO withheld VALUES ('half a file', 'sample-lei', 1)")
        succeed(home, "backup", tmp_path / "backup")
        writer.execute("ROLLBACK")
    writer.close()
    succeed(tmp_path / "other", "restore", tmp_path / "backup")
    verified = run(tmp_path / "other", "ledger", "verify")
    assert verified.stdout == run(home, "ledger", "verify").stdout


def test_a_damaged_ledger_is_not_backed_up(saved: tuple[Path, Path, str], tmp_path: Path):
    home = Path(shutil.copytree(saved[0], tmp_path / "home"))
    with sqlite3.connect(home / "ledger.sqlite") as database:
        database.execute("DROP TRIGGER fact_refuses_update")
        database.execute("UPDATE fact SET told = told || ' '")
    database.close()
    refused = run(home, "backup", tmp_path / "backup")
    assert refused.returncode == 1
    assert "the ledger is damaged" in refused.stderr
    assert everything_in(tmp_path) == [p for p in everything_in(tmp_path) if p.startswith("home")]


def test_an_empty_home_is_not_backed_up(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    refused = run(tmp_path / "home", "backup", tmp_path / "backup")
    assert refused.returncode == 1
    assert "there is no ledger in HOME" in refused.stderr
    assert everything_in(tmp_path) == ["home"]


def test_a_missing_gate_secret_beside_a_ledger_is_named_and_not_replaced(
    saved: tuple[Path, Path, str], tmp_path: Path
) -> None:
    home = Path(shutil.copytree(saved[0], tmp_path / "home"))
    (home / "gate-secret").unlink()
    for command in (["publish"], ["backup", str(tmp_path / "backup")], ["ledger", "verify"]):
        refused = run(home, *command)
        assert refused.returncode == 1, command
        assert "gate-secret in HOME: missing beside a ledger" in refused.stderr
    assert not (home / "gate-secret").exists()
