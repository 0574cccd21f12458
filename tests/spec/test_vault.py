"""The vault stores files as they came, names damaged ones, and can rebuild the ledger."""

import base64
import json
from pathlib import Path

import pytest

from tests.live import succeed
from tests.spec.market import Desk, package, party, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
TABLE = "Country Name,Country Code,Year,Value\nS,ZAF,2019,1\n"
PERSON = "Zebulon Quentin Marchbanks"


def release_naming_a_person() -> str:
    return json.dumps(package(release("one", parties=[party("p", PERSON, "supplier")])))


def objects(desk: Desk) -> list[Path]:
    return sorted(path for path in (desk.home / "vault" / "objects").rglob("*") if path.is_file())


def ingest_some(desk: Desk) -> None:
    desk.ingest("worldbank", "NY.GDP.MKTP.CD.csv", TABLE)
    desk.ingest("worldbank", "NY.GDP.MKTP.CD.csv", TABLE + "S,ZAF,2020,2\n")
    desk.ingest("worldbank", "again.csv", TABLE)
    desk.ingest("portal-za", "za.json", release_naming_a_person())


@pytest.mark.rule("VLT-1", "VLT-3")
def test_the_ledger_is_rebuilt_from_the_vault_alone_with_the_same_edition(desk: Desk) -> None:
    desk.settings["vault_key"] = KEY
    ingest_some(desk)
    desk.command("withdraw", "worldbank", "--capture", "1", "--reason", "a draft")
    desk.ingest("worldbank", "later.csv", "Country Name,Country Code,Year,Value\nK,KEN,2020,9\n")
    edition = desk.publish()
    compared = desk.command("vault", "replay")
    assert (compared.returncode, "equal to the ledger of HOME" in compared.stdout) == (0, True), compared
    target = desk.folder / "rebuilt"
    assert desk.command("vault", "replay", "--into", target).returncode == 0
    published = succeed(target, "publish")
    assert f"published edition {edition}:" in published.stdout
    assert "is not empty" in desk.command("vault", "replay", "--into", target).stderr


@pytest.mark.rule("VLT-3", "VLT-4")
def test_files_that_name_people_are_kept_as_hashes_and_replay_says_so(plain_desk: Desk) -> None:
    desk = plain_desk
    ingest_some(desk)
    assert sorted(path.suffix for path in objects(desk)) == [".rows", ".zst", ".zst"], "the same bytes once"
    journal = (desk.home / "vault" / "journal.jsonl").read_text()
    assert "za.json" not in journal
    replayed = desk.succeed("vault", "replay")
    assert "not rebuilt: portal-za: 1 files" in replayed.stdout


@pytest.mark.rule("VLT-4")
def test_with_a_key_files_that_name_people_are_encrypted_and_removed_in_time(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.settings["vault_key"] = KEY
    desk.ingest("portal-za", f"{PERSON}.json", release_naming_a_person())
    (sealed,) = objects(desk)
    assert (sealed.suffix, sealed.stat().st_mode & 0o777) == (".enc", 0o600)
    for path in desk.home.rglob("*"):
        assert PERSON not in path.name
        assert not path.is_file() or PERSON.encode() not in path.read_bytes(), path
    assert desk.command("vault", "verify").returncode == 0
    desk.settings["vault_key"] = base64.urlsafe_b64encode(bytes(32)).decode()
    wrong = desk.command("vault", "verify")
    assert (wrong.returncode, "another key" in wrong.stderr) == (1, True)
    del desk.settings["vault_key"]
    blind = desk.command("vault", "verify")
    assert (blind.returncode, "SANKOFA_VAULT_KEY is not set" in blind.stdout) == (0, True)
    desk.settings["vault_key"] = "short"
    assert "32 bytes in base64url" in desk.command("vault", "verify").stderr


def test_encrypted_files_are_removed_when_their_time_is_over(plain_desk: Desk) -> None:
    from datetime import UTC, datetime, timedelta

    from sankofa.vault.store import Received, Vault

    vault = Vault(plain_desk.home, b"gate", KEY, 30)
    path = plain_desk.write("a.json", "{}")
    received = Received("2026-01-01T00:00:00Z", "s", "cc0", "a.json", "ab" * 32, 2, "hash")
    vault.keep(path, received, confidential=True)
    day = datetime(2026, 1, 30, tzinfo=UTC)
    assert (vault.drop_expired(day), len(objects(plain_desk))) == (0, 1)
    assert (vault.drop_expired(day + timedelta(days=2)), len(objects(plain_desk))) == (1, 0)
    assert vault.verify().faults == []
    assert vault.held() == {}


@pytest.mark.rule("VLT-2")
def test_every_damaged_byte_is_found_and_its_file_named(plain_desk: Desk) -> None:
    desk = plain_desk
    ingest_some(desk)
    for path in objects(desk):
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole + b"x", whole[:20] + bytes([whole[20] ^ 1]) + whole[21:], b""):
            path.write_bytes(damaged)
            done = desk.command("vault", "verify")
            source = "portal-za" if path.suffix == ".rows" else "worldbank NY.GDP.MKTP.CD.csv"
            assert (done.returncode, source in done.stderr) == (1, True), done
        path.unlink()
        assert "is missing" in desk.command("vault", "verify").stderr
        path.write_bytes(whole)
    assert desk.command("vault", "verify").returncode == 0
    journal = desk.home / "vault" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for altered in (lines[1:], [lines[0].replace(b"worldbank", b"worldbanc"), *lines[1:]], lines[::-1]):
        journal.write_bytes(b"".join(altered))
        done = desk.command("vault", "verify")
        assert (done.returncode, "of the journal" in done.stderr) == (1, True), done
    journal.write_bytes(b"".join(lines)[:-9])
    assert desk.command("vault", "verify").returncode == 0, "a line that a crash cut short is nobody's"
    desk.ingest("worldbank", "NY.GDP.MKTP.CD.csv", TABLE + "S,ZAF,2020,2\nS,ZAF,2021,3\n")
    assert journal.read_bytes().count(b"\n") == len(lines)
    assert desk.command("vault", "verify").returncode == 0


def test_the_vault_can_be_turned_off(plain_desk: Desk) -> None:
    plain_desk.settings["vault"] = "off"
    plain_desk.ingest("worldbank", "NY.GDP.MKTP.CD.csv", TABLE)
    assert not (plain_desk.home / "vault").exists()
    assert "there is no vault" in plain_desk.command("vault", "replay").stderr
    assert (plain_desk.home / "ledger.sqlite").exists()
