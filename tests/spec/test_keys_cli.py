import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.live import Copies, LiveServer, run, succeed
from tests.patience import until


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


def test_revoke_is_listed_and_may_be_repeated(home: Path) -> None:
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


def test_keys_can_be_copied_from_files_to_a_shared_store(home: Path, redis_url: str) -> None:
    """As docs/how-to/operations.md says: set KEYS_SECRET, copy, then set KEYSTORE."""
    succeed(home, "keys", "create", "--tier", "starter", "--label", "ours")
    bare = run(home, "keys", "copy", "--to", "redis://127.0.0.1:1/0")
    assert "Warning: SANKOFA_KEYS_SECRET is not set" in bare.stderr
    shared = {"keys_secret": "of the shared store"}
    done = run(home, "keys", "copy", "--to", redis_url, **shared)
    assert (done.stdout, done.stderr) == ("copied 1 records; 0 of them were there already\n", "")
    assert "ours" in run(home, "keys", "list", keystore=redis_url, **shared).stdout
    assert "ours" in run(home, "keys", "list").stdout, "what they were copied from is as it was"
    assert run(home, "keys", "list", keystore=redis_url, keys_secret="another").returncode == 1


class Desk(NamedTuple):
    """A running service and its command line."""

    server: LiveServer

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.server.home, *arguments, **self.server.settings)

    def create(self, *options: str) -> tuple[str, str]:
        """A new key, and its id."""
        before = {row["id"] for row in self.listed()}
        key = self.command("keys", "create", *options).stdout.strip()
        (new,) = [row["id"] for row in self.listed() if row["id"] not in before]
        return key, new

    def listed(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.command("keys", "list", "--json").stdout)
        return rows

    def usage(self, key: str) -> dict[str, Any]:
        (row,) = self.server.rows("/v1/usage", key)
        return row


@pytest.fixture(scope="module")
def desk(copy_sample: Copies) -> Iterator[Desk]:
    with LiveServer(copy_sample()) as server:
        yield Desk(server)


@pytest.mark.rule("KEY-17")
def test_a_key_may_have_a_last_day(desk: Desk) -> None:
    last = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
    key, key_id = desk.create("--tier", "starter", "--expires", last)
    assert desk.usage(key)["expires_at"] == f"{last}T23:59:59Z"
    assert f"active until {last}T23:59:59Z" in desk.command("keys", "list").stdout
    for wrong, code in (("2020-01-01", 1), ("tomorrow", 2), ("2027-02-30", 2)):
        refused = desk.command("keys", "create", "--tier", "starter", "--expires", wrong)
        assert (refused.returncode, refused.stdout) == (code, "")
    assert [row["expires_at"] for row in desk.listed() if row["id"] == key_id] == [f"{last}T23:59:59Z"]


@pytest.mark.rule("KEY-18")
def test_a_rotated_key_is_replaced_by_one_with_the_same_rights_after_an_overlap(desk: Desk) -> None:
    options = ("--tier", "professional", "--label", "a desk", "--per-minute", "999", "--per-month", "5000")
    key, key_id = desk.create(*options)
    host = f"{key_id}.customer.example"
    assert desk.command("domains", "add", host, "--key", key_id).returncode == 0
    used = desk.usage(key)["month_used"]
    rotated = desk.command("keys", "rotate", key_id)
    assert rotated.returncode == 0
    assert re.fullmatch(r"[!-~]{32,}\n", rotated.stdout)
    assert "replaces" in rotated.stderr
    new = rotated.stdout.strip()
    assert desk.usage(key)["expires_at"] is not None
    ours = desk.usage(new)
    assert (ours["tier"], ours["minute_limit"], ours["month_limit"]) == ("professional", 999, 5000)
    assert (ours["month_used"], ours["expires_at"]) == (used + 2, None), "counted together"
    (row,) = [row for row in desk.listed() if row["counted_as"] == key_id]
    assert row["label"] == "a desk"
    until(lambda: desk.server.get("/v1/export", new, host=host).status_code == 200)  # the domain knows it too
    again = desk.command("keys", "rotate", key_id)
    assert (again.returncode, again.stdout) == (1, "")
    assert "rotate that one" in again.stderr


@pytest.mark.rule("KEY-17", "KEY-18")
def test_after_the_overlap_the_old_key_is_refused_with_the_reason(desk: Desk) -> None:
    key, _ = desk.create("--tier", "starter")
    new = desk.command("keys", "rotate", key, "--overlap", "0h").stdout.strip()
    until(lambda: desk.server.get("/v1/export", key).status_code == 401)
    assert "expired at" in desk.server.get("/v1/export", key).json()["detail"]
    assert desk.server.get("/v1/export", new).status_code == 200
    assert "expired" not in desk.server.get("/v1/export", "sk_nobody").text
    assert "  expired " in desk.command("keys", "list").stdout
    for wrong in ("-1d", "7", "1w", "7 d", "d", ""):
        refused = desk.command("keys", "rotate", new, "--overlap", wrong)
        assert (refused.returncode, refused.stdout) == (2, "")


@pytest.mark.rule("KEY-18")
def test_refusing_to_rotate_is_an_error_of_one_line(desk: Desk) -> None:
    key, key_id = desk.create("--tier", "starter")
    desk.command("keys", "revoke", key)
    assert desk.server.get("/v1/export", "sankofa-sandbox").status_code == 200
    for argument in (key_id, "000000000000", "sankofa-sandbox"):
        refused = desk.command("keys", "rotate", argument)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)


@pytest.mark.rule("USE-1")
def test_usage_counts_its_own_request_and_says_when_the_windows_end(desk: Desk) -> None:
    key, _ = desk.create("--tier", "starter", "--per-month", "1000")
    first = desk.usage(key)
    assert (first["tier"], first["month_limit"], first["month_used"]) == ("starter", 1000, 1)
    desk.server.get("/v1/export", key)
    second = desk.server.get("/v1/usage", key)
    (row,) = second.json()["data"]
    assert row["month_used"] == 3
    assert f'"month";r={1000 - 3}' in second.headers["ratelimit"]
    now = datetime.now(UTC)
    assert now < datetime.fromisoformat(row["minute_reset_at"]) + timedelta(minutes=1)
    month = datetime.fromisoformat(row["month_reset_at"])
    assert (month.day, month.hour, month.minute) == (1, 0, 0)
    assert now < month <= now + timedelta(days=32)
    assert second.headers["cache-control"] == "private, no-store"
    assert "etag" not in second.headers
    assert desk.server.get("/v1/usage", key, **{"if-none-match": "*"}).status_code == 200
    assert desk.server.get("/v1/usage").status_code == 401


@pytest.mark.rule("CLI-8")
def test_the_operator_sees_the_usage_and_the_last_day_of_each_key(desk: Desk) -> None:
    key, key_id = desk.create("--tier", "starter", "--label", "a desk", "--per-month", "77")
    assert [row["last_used"] for row in desk.listed() if row["id"] == key_id] == [None]
    assert "never used" in desk.command("keys", "usage", key_id).stdout
    days = {datetime.now(UTC).date().isoformat()}
    for _ in range(3):
        desk.server.get("/v1/export", key)
    days.add(datetime.now(UTC).date().isoformat())
    (row,) = json.loads(desk.command("keys", "usage", key, "--json").stdout)
    assert (row["id"], row["month_used"], row["month_limit"]) == (key_id, 3, 77)
    assert row["last_used"] in days
    assert (row["minute_limit"], row["label"], row["tier"]) == (300, "a desk", "starter")
    everything = desk.command("keys", "usage").stdout
    assert "  3/77  " in everything
    assert key not in everything
    (listed,) = [row for row in desk.listed() if row["id"] == key_id]
    assert listed["last_used"] in days
