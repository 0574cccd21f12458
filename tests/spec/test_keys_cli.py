"""`sankofa keys`."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.live import run, succeed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.rule("CLI-2")
def test_create_prints_a_new_key_alone_on_stdout(home: Path) -> None:
    created = [run(home, "keys", "create", "--tier", tier) for tier in ("sample", "starter", "professional")]
    for one in created:
        assert one.returncode == 0
        assert re.fullmatch(r"[!-~]{32,}\n", one.stdout)
        assert one.stderr == ""
    assert len({one.stdout for one in created}) == 3


@pytest.mark.rule("KEY-4")
def test_only_a_hash_is_stored(home: Path) -> None:
    key = run(home, "keys", "create", "--tier", "starter", "--label", "ours").stdout.strip().encode()
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert key not in stored
    assert key[3:] not in stored
    assert hashlib.blake2b(key, digest_size=32).hexdigest().encode() in stored


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
    headings, line = listed.splitlines()
    assert headings.split() == ["id", "tier", "created", "state", "limits", "last", "use", "label"]
    for part in ("starter", "active", "7/min", "70/month", "a desk"):
        assert part in line


def test_revoke_is_shown_and_may_be_repeated(home: Path) -> None:
    run(home, "keys", "create", "--tier", "starter")
    key_id = run(home, "keys", "list").stdout.splitlines()[1].split()[0]
    first, second = (run(home, "keys", "revoke", key_id) for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout
    assert "revoked" in run(home, "keys", "list").stdout


@pytest.mark.rule("CLI-1")
def test_an_unknown_id_is_an_error_of_one_line(home: Path) -> None:
    home.mkdir()
    refused = run(home, "keys", "revoke", "nothing")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "nothing" in refused.stderr


@pytest.mark.rule("CLI-2")
def test_revoke_takes_the_key_itself(home: Path) -> None:
    first, second = (run(home, "keys", "create", "--tier", "starter").stdout.strip() for _ in range(2))
    revoked = succeed(home, "keys", "revoke", first)
    assert first not in revoked.stdout + revoked.stderr
    listed = {key["id"]: key for key in json.loads(run(home, "keys", "list", "--json").stdout)}
    assert [key["revoked_at"] is not None for key in listed.values()].count(True) == 1
    assert listed[revoked.stdout.split()[1]]["revoked_at"] is not None
    unknown = run(home, "keys", "revoke", second + "x")
    assert unknown.returncode == 1
    assert second not in unknown.stderr, "it may be somebody's key, mistyped"


@pytest.mark.rule("CLI-4")
def test_list_as_json_has_everything_but_the_hash(home: Path) -> None:
    assert json.loads(run(home, "keys", "list", "--json").stdout) == []
    key = run(home, "keys", "create", "--tier", "starter", "--label", 'a "desk"').stdout.strip()
    printed = run(home, "keys", "list", "--json").stdout
    (row,) = json.loads(printed)
    assert (row["tier"], row["label"], row["per_minute"], row["revoked_at"]) == (
        *("starter", 'a "desk"'),
        *(None, None),
    )
    assert key not in printed
    assert hashlib.blake2b(key.encode(), digest_size=32).hexdigest() not in printed


@pytest.mark.rule("CLI-4")
def test_sources_and_editions_are_listed_as_json_too(sample_home: Path) -> None:
    sources = json.loads(run(sample_home, "sources", "--json").stdout)
    assert len(sources) + 1 == len(run(sample_home, "sources").stdout.splitlines())
    assert all(source["id"] and source["license_class"] for source in sources)
    editions = json.loads(run(sample_home, "editions", "--json").stdout)
    assert [(row["current"], row["withdrawn"]) for row in editions] == [(True, False)]
    headings, line = run(sample_home, "editions").stdout.splitlines()
    assert headings.startswith("edition ")
    assert line.split()[0] == editions[0]["edition"]


BAD_OPTIONS = [
    [],
    ["--tier", "gold"],
    ["--tier", "starter", "--per-minute", "0"],
    ["--tier", "starter", "--per-month", "-1"],
    ["--tier", "starter", "--per-minute", "many"],
]


@pytest.mark.rule("CLI-1")
def test_a_bad_option_issues_nothing(home: Path) -> None:
    for options in BAD_OPTIONS:
        refused = run(home, "keys", "create", *options)
        assert refused.returncode == 2
        assert refused.stdout == ""
    assert run(home, "keys", "list", "--json").stdout.split() == ["[]"]


def test_a_store_that_does_not_answer_is_an_error_of_one_line(home: Path) -> None:
    refused = run(home, "keys", "list", keystore="redis://:hidden@127.0.0.1:1/0")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "key store" in refused.stderr
    assert "hidden" not in refused.stderr


def test_keys_move_from_files_to_a_shared_store_with_a_secret_of_its_own(home: Path, redis_url: str) -> None:
    """As docs/how-to/operations.md says: KEYS_SECRET is set first, then copied, then KEYSTORE is set."""
    succeed(home, "keys", "create", "--tier", "starter", "--label", "ours")
    bare = run(home, "keys", "copy", "--to", "redis://127.0.0.1:1/0")
    assert "Warning: SANKOFA_KEYS_SECRET is not set" in bare.stderr
    shared = {"keys_secret": "of the shared store"}
    done = run(home, "keys", "copy", "--to", redis_url, **shared)
    assert (done.stdout, done.stderr) == ("copied 1 records; 0 of them were there already\n", "")
    assert "ours" in run(home, "keys", "list", keystore=redis_url, **shared).stdout
    assert "ours" in run(home, "keys", "list").stdout, "what they were copied from is as it was"
    assert run(home, "keys", "list", keystore=redis_url, keys_secret="another").returncode == 1
