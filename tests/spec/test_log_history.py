"""The log of editions over time: erasures, backups, and a rewritten past."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from sankofa.client import verify
from tests.live import LiveServer, run, succeed
from tests.nodes.commands import follow
from tests.publisher import answering_posts
from tests.services import MISSING
from tests.spec import market
from tests.spec.market import ENTITIES, TRADER, Desk, package, release
from tests.spec.register import record
from tests.spec.test_edition_log import entries_of as entries_of_bundle

plain_desk = market.plain_desk
TENDERS = "/v1/tenders?country=ZA&limit=500&proof=true"


def entries_of(home: Path) -> list[dict[str, Any]]:
    return [json.loads(entry) for entry in raw_entries(home)]


def raw_entries(home: Path) -> list[bytes]:
    return entries_of_bundle((home / "editions" / "log" / "entries").read_bytes())


def published(desk: Desk, *names: str) -> list[str]:
    """An edition after each release."""
    editions = []
    for name in names:
        desk.ingest("portal-za", f"{name}.json", package(release(name)))
        editions.append(desk.publish())
    return editions


@pytest.mark.rule("LOG-1")
def test_an_erasure_is_logged_and_older_proofs_still_verify(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    desk.records(*ENTITIES[:4], record(TRADER, "Marchbanks Trading", "ZA", "RA991111:42"))
    desk.ingest("portal-za", "good.json", package(release("good")))
    with_person = desk.publish()
    vkey = desk.command("editions", "key").stdout.strip()
    with desk.serve() as caller:
        before = caller.server.get(TENDERS, caller.key).text
        desk.records(ENTITIES[4])  # a sole proprietor, as it turns out
        desk.ingest("portal-za", "bad.json", package(release("bad")))
        bad = desk.publish()
        desk.command("withdraw", "portal-za", "bad.json", "--everywhere", "--reason", "wrong")
        last = desk.publish()
        entries = entries_of(desk.home)
        assert [entry["type"] for entry in entries] == ["edition", "edition", "erasure", "edition", "erasure"]
        assert [entries[2]["editions"], entries[4]["editions"]] == [[with_person], [bad]]
        assert [entry["edition"] for entry in entries[::3]] == [with_person, last]
        seconds = [entries[1]["published_at"][:19], entries[2]["at"][:19], entries[3]["published_at"][:19]]
        assert seconds == sorted(seconds)
        assert verify(before, vkey) == with_person
        ref = f"tenders:{json.dumps(['ZA', 'ocds-test-good', 'good-1', '2025-06-01T10:00:00Z'])}"
        answer = caller.server.http.get(
            "/v1/proof",
            params={"record_ref": ref, "since_size": 1, "edition": last},
            headers={"x-api-key": caller.key},
        )
        assert verify(answer.text, vkey, since=before) == last  # requested before the server has switched
        for edition in (with_person, bad):
            assert caller.server.get(f"{TENDERS}&edition={edition}", caller.key).status_code == 410
    assert desk.command("editions", "verify").returncode == 0


@pytest.mark.rule("LOG-1", "LOG-9")
def test_an_edition_that_was_never_current_has_no_entry(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    published(desk, "a")
    ledger = shutil.copy(desk.home / "ledger.sqlite", tmp_path / "older")
    published(desk, "b", "c")
    for path in desk.home.glob("ledger.sqlite*"):
        path.unlink()
    shutil.copy(ledger, desk.home / "ledger.sqlite")
    desk.ingest("portal-za", "d.json", package(release("d")))
    refused = desk.command("publish")
    assert (refused.returncode, "is kept but not served" in refused.stderr) == (1, True), refused.stderr
    assert len(entries_of(desk.home)) == 3
    verified = desk.command("editions", "verify")
    assert (verified.returncode, verified.stdout.count("signed and whole")) == (0, 5), verified.stdout
    edition = refused.stderr.rpartition("rollback ")[2].partition("`")[0]
    assert desk.command("editions", "rollback", edition).returncode == 0
    assert entries_of(desk.home)[-1]["edition"] == edition
    assert desk.command("editions", "verify").returncode == 0


@pytest.mark.rule("LOG-9")
def test_a_backup_has_the_log_and_the_hooks(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    _, edition = published(desk, "a", "b")
    desk.command("hooks", "add", "https://example.org/hook", "--on", "edition")
    hooks = desk.command("hooks", "list").stdout
    assert "https://example.org/hook" in hooks
    assert desk.command("backup", tmp_path / "backup").returncode == 0
    other = tmp_path / "restored"
    succeed(other, "restore", tmp_path / "backup")
    succeed(other, "publish")
    for name in ("entries", "checkpoint", f"rows/{edition}"):
        paths = [home / "editions" / "log" / name for home in (desk.home, other)]
        assert paths[0].read_bytes() == paths[1].read_bytes(), name
    assert run(other, "hooks", "list").stdout == hooks
    succeed(other, "editions", "verify")


@pytest.mark.rule("LOG-9")
def test_a_rewritten_past_is_refused(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    *_, last = published(desk, "a", "b", "c")
    log = desk.home / "editions" / "log"
    entries, checkpoint = (log / "entries").read_bytes(), log / "checkpoint"
    old = tmp_path / "old-checkpoint"
    old.write_bytes(checkpoint.read_bytes())
    dropped = b"".join(len(one).to_bytes(2) + one for one in raw_entries(desk.home)[1:])
    edited = entries.replace(b'"count":1,', b'"count":7,', 1)
    for rewritten in (dropped, edited):
        assert rewritten != entries
        (log / "entries").write_bytes(rewritten)
        broken = desk.command("editions", "verify")
        assert (broken.returncode, "is not the log that was signed" in broken.stdout) == (1, True)
        refused = desk.command("publish")
        assert (refused.returncode, "put editions/log back" in refused.stderr) == (1, True), refused.stderr
    (log / "entries").write_bytes(dropped)
    checkpoint.unlink()
    assert desk.publish() == last  # the publisher itself signs another past
    broken = desk.command("editions", "verify")
    assert (broken.returncode, "it lacks edition" in broken.stdout) == (1, True), broken.stdout
    vkey = desk.command("editions", "key").stdout.strip()
    with desk.serve() as caller:
        answer = tmp_path / "answer.json"
        answer.write_text(caller.server.get(TENDERS, caller.key).text)
    assert desk.command("verify", answer, "--key", vkey).returncode == 0
    since = desk.command("verify", answer, "--key", vkey, "--since", old)
    assert (since.returncode, "The log had 3 entries before, and has 2 now." in since.stderr) == (1, True)


@pytest.mark.rule("LOG-7")
def test_an_answer_without_a_proof_says_how_to_ask_for_one() -> None:
    with pytest.raises(ValueError, match="has no proof"):
        verify('{"data": []}', "origin+00000000+AAAA")


@pytest.mark.rule("LOG-10")
def test_a_past_edition_is_rebuilt_from_the_ledger(plain_desk: Desk, tmp_path: Path) -> None:
    desk = plain_desk
    desk.records(*ENTITIES[:4], record(TRADER, "Marchbanks Trading", "ZA", "RA991111:42"))
    first, _ = published(desk, "a", "b")
    entry, last = entries_of(desk.home)

    def rebuilt(moment: str) -> tuple[int, str]:
        done = desk.command("editions", "rebuild", moment)
        return done.returncode, done.stdout + done.stderr

    code, output = rebuilt(entry["published_at"])
    assert (code, "tenders: 1 rows, as logged" in output) == (0, True), output
    assert f"edition {first} was rebuilt from the ledger: the same rows and roots" in output
    assert "tenders: 2 rows, as logged" in rebuilt(last["published_at"])[1]
    assert rebuilt("2020-01-01T00:00:00Z")[0] == 1
    assert rebuilt("yesterday")[0] == rebuilt("2199-01-01T00:00:00Z")[0] == 2
    assert not list(desk.home.glob(".rebuilding-*"))
    sources = desk.home / "sources.toml"
    text = sources.read_text()
    sources.write_text(text.replace('license_class = "open-government"', 'license_class = "cc-by"', 1))
    code, output = rebuilt(entry["published_at"])
    assert (code, f"tenders: differs from edition {first} in the log" in output) == (1, True), output
    sources.write_text(text)
    desk.command("withdraw", "portal-za", "b.json", "--reason", "wrong")
    desk.records(ENTITIES[4])
    code, output = rebuilt(last["published_at"])
    assert (code, "left out: 1 withdrawals and 1 natural persons proven since" in output) == (0, True), output
    assert "tenders: 1 rows, logged 2" in output
    assert "except for the rows left out" in output
    folder = tmp_path / "kept"
    desk.succeed("editions", "rebuild", last["published_at"], "--into", folder)
    (manifest,) = (json.loads(path.read_text()) for path in folder.glob("editions/*/manifest.json"))
    assert manifest["rebuilt"] == {
        "edition": last["edition"],
        "published_at": last["published_at"],
        "left_out": {"withdrawals": 1, "persons": 1},
    }
    with LiveServer(folder) as live:
        assert len(live.rows("/v1/tenders?country=ZA", live.key("starter"))) == 1
    full = desk.command("editions", "rebuild", last["published_at"], "--into", folder)
    assert (full.returncode, "is not empty: name a new folder" in full.stderr) == (1, True)


pytest.importorskip("rfc3161_client", reason="rfc3161-client is not installed: make setup EXTRAS=1")
if shutil.which("openssl") is None:
    pytest.skip(f"{MISSING}time stamps (no openssl in PATH)", allow_module_level=True)

_CONFIG = """
[tsa]
default_tsa = own
[own]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
[usage]
extendedKeyUsage = critical,timeStamping
"""


def openssl(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=False)


class Authority:
    """A timestamp authority with its certificates, and what it answers instead of a stamp."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fixed_answer, self.count = folder, b"", 0
        folder.mkdir()
        (folder / "tsa.cnf").write_text(_CONFIG.format(folder=folder))
        (folder / "serial").write_text("01\n")
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")
        root = self.root = folder / "root.pem"
        openssl("req", "-x509", *key, folder / "root.key", "-out", root, "-subj", "/CN=Root", "-days", "9")
        openssl("req", *key, folder / "tsa.key", "-out", folder / "tsa.csr", "-subj", "/CN=Authority")
        signed = openssl(
            *("x509", "-req", "-in", folder / "tsa.csr", "-CA", root, "-CAkey", folder / "root.key"),
            *("-CAcreateserial", "-out", folder / "tsa.pem", "-days", "9"),
            *("-extfile", folder / "tsa.cnf", "-extensions", "usage"),
        )
        assert signed.returncode == 0, signed.stderr

    def reply(self, query: bytes) -> bytes:
        self.count += 1
        (self.folder / "query").write_bytes(query)
        out = self.folder / "reply"
        config, query_file = self.folder / "tsa.cnf", self.folder / "query"
        done = openssl(
            "ts", "-reply", "-config", config, "-section", "own", "-queryfile", query_file, "-out", out
        )
        assert done.returncode == 0, done.stderr
        return out.read_bytes()

    @contextmanager
    def serve(self) -> Iterator[str]:
        with answering_posts(self._answer) as address:
            yield f"{address}/stamp"

    def _answer(self, request: BaseHTTPRequestHandler, query: bytes) -> tuple[int, bytes]:
        assert request.headers["content-type"] == "application/timestamp-query"
        if self.fixed_answer == b"silent":
            time.sleep(20)
        return 200, self.fixed_answer or self.reply(query)


@pytest.mark.rule("LOG-13")
def test_an_authority_stamps_the_checkpoint_and_anybody_can_check_it(plain_desk: Desk, tmp_path: Path):
    desk, authority = plain_desk, Authority(tmp_path / "authority")
    with authority.serve() as address:
        desk.settings["log_timestamp_url"] = address
        desk.ingest("portal-za", "a.json", package(release("a")))
        desk.publish()
        desk.publish()
        assert authority.count == 1, "it is not asked again for the same checkpoint"
    vkey = desk.command("editions", "key").stdout.strip()
    assert desk.command("push", tmp_path / "store").returncode == 0
    node = tmp_path / "node"
    follow(node, f"file://{tmp_path / 'store'}", trusted_keys=vkey)
    answer, stamp, text = tmp_path / "answer.json", tmp_path / "checkpoint.tsr", tmp_path / "text"
    with desk.serve() as caller:
        http = caller.server.http
        served = http.get("/log/checkpoint.tsr")
        assert served.headers["content-type"] == "application/timestamp-reply"
        stamp.write_bytes(served.content)
        answer.write_text(caller.server.get("/v1/tenders?country=ZA&proof=true", caller.key).text)
        text.write_text(http.get("/log/checkpoint").text.partition("\n\n")[0] + "\n")
        url = f"{caller.server.url}/v1/tenders?country=ZA&proof=true"
        ours = ("--key", vkey, "--roots", authority.root)
        fetched = run(node, "verify", url, *ours, "--api-key", caller.key)
    assert (fetched.returncode, "and was stamped at 20" in fetched.stdout) == (0, True), fetched.stderr
    assert (node / "editions" / "log" / "checkpoint.tsr").read_bytes() == stamp.read_bytes()
    theirs = openssl("ts", "-verify", "-data", text, "-in", stamp, "-CAfile", authority.root)
    assert theirs.returncode == 0, theirs.stderr
    assert run(node, "verify", answer, *ours, "--timestamp", stamp).returncode == 0
    # Another authority, a damaged stamp, a missing stamp, and a later checkpoint.
    other = ("--key", vkey, "--roots", Authority(tmp_path / "other").root, "--timestamp", stamp)
    assert "No trusted authority stamped" in run(node, "verify", answer, *other).stderr
    content = stamp.read_bytes()
    (tmp_path / "damaged").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = run(node, "verify", answer, *ours, "--timestamp", tmp_path / "damaged")
    assert (damaged.returncode, "No trusted authority" in damaged.stderr) == (1, True), damaged.stderr
    assert run(node, "verify", answer, *ours).returncode != 0
    desk.settings["log_timestamp_url"] = "http://127.0.0.1:9"
    desk.ingest("portal-za", "b.json", package(release("b")))
    with desk.publish_and_serve() as caller:
        assert caller.server.http.get("/log/checkpoint.tsr").status_code == 404
        answer.write_text(caller.server.get("/v1/tenders?country=ZA&proof=true", caller.key).text)
    assert run(node, "verify", answer, *ours, "--timestamp", stamp).returncode == 1


@pytest.mark.ci
@pytest.mark.rule("LOG-13")
@pytest.mark.parametrize("answer", [b"silent", b"no stamp", b"x" * 20_000])
def test_a_silent_or_wrong_authority_stops_nothing(answer: bytes, plain_desk: Desk, tmp_path: Path):
    desk, authority = plain_desk, Authority(tmp_path / "authority")
    authority.fixed_answer = answer
    with authority.serve() as address:
        desk.settings["log_timestamp_url"] = address
        desk.ingest("portal-za", "a.json", package(release("a")))
        done = desk.command("publish")
    assert done.returncode == 0, done.stderr
    assert "no stamp of" in done.stderr
    assert not (desk.home / "editions" / "log" / "checkpoint.tsr").exists()
