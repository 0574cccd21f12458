"""`sankofa keys`: decisions, command line."""

import hashlib
import re
from pathlib import Path

import pytest

from tests.live import run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_create_prints_a_new_key_alone_on_stdout(home: Path) -> None:
    created = [run(home, "keys", "create", "--tier", tier) for tier in ("sample", "starter", "professional")]
    for one in created:
        assert one.returncode == 0
        assert re.fullmatch(r"[!-~]{32,}\n", one.stdout)
        assert one.stderr == ""
    assert len({one.stdout for one in created}) == 3


def test_only_a_hash_is_stored(home: Path) -> None:
    key = run(home, "keys", "create", "--tier", "starter", "--label", "ours").stdout.strip().encode()
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert key not in stored
    assert key[3:] not in stored
    assert hashlib.blake2b(key, digest_size=32).hexdigest().encode() in stored


def test_the_key_store_is_readable_by_its_owner_only(home: Path) -> None:
    run(home, "keys", "create", "--tier", "starter")
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.rglob("*") if path.is_file())


def test_list_shows_what_is_issued_and_never_a_key(home: Path) -> None:
    key = run(
        home,
        "keys",
        "create",
        "--tier",
        "starter",
        "--label",
        "a desk",
        "--per-minute",
        "7",
        "--per-month",
        "70",
    ).stdout.strip()
    listed = run(home, "keys", "list").stdout
    assert key not in listed
    (line,) = listed.splitlines()
    for part in ("starter", "active", "7/min", "70/month", "a desk"):
        assert part in line


def test_revoke_is_shown_and_may_be_repeated(home: Path) -> None:
    run(home, "keys", "create", "--tier", "starter")
    key_id = run(home, "keys", "list").stdout.split()[0]
    first, second = (run(home, "keys", "revoke", key_id) for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout
    assert "revoked" in run(home, "keys", "list").stdout


def test_an_unknown_id_is_an_error_of_one_line(home: Path) -> None:
    refused = run(home, "keys", "revoke", "nothing")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "nothing" in refused.stderr


BAD_OPTIONS = [
    [],
    ["--tier", "gold"],
    ["--tier", "starter", "--per-minute", "0"],
    ["--tier", "starter", "--per-month", "-1"],
    ["--tier", "starter", "--per-minute", "many"],
]


def test_a_bad_option_issues_nothing(home: Path) -> None:
    for options in BAD_OPTIONS:
        refused = run(home, "keys", "create", *options)
        assert refused.returncode != 0
        assert refused.stdout == ""
    assert run(home, "keys", "list").stdout == ""


def test_a_store_that_does_not_answer_is_an_error_of_one_line(home: Path) -> None:
    refused = run(home, "keys", "list", keystore="redis://:hidden@127.0.0.1:1/0")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "key store" in refused.stderr
    assert "hidden" not in refused.stderr
