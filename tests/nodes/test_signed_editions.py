"""Signed editions: which keys a node trusts, and what it says when it refuses an edition."""

import base64
import hashlib
import json
import shutil
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.depth import deep_after
from tests.faults.conftest import publish_another
from tests.live import LiveServer, free_port, run, succeed
from tests.nodes.commands import current, follow, refused, state
from tests.nodes.conftest import push
from tests.patience import until
from tests.tampering import read_note, sign_again

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?period_type=FY&as_of=2024-06-30"
FORGED = 1007


def verifier_key(home: Path, *options: str) -> str:
    done = succeed(home, "editions", "key", *options)
    assert done.stdout.count("\n") == 1
    return done.stdout.strip()


@pytest.fixture
def forger(home: Path, tmp_path: Path) -> Path:
    """A HOME with the same data, a forged figure and its own key."""
    folder = tmp_path / "forger"
    folder.mkdir()
    forger = Path(shutil.copytree(home, folder / "home"))
    (forger / "edition-key").unlink()
    (forger / "editions" / "editions.note").unlink()
    publish_another(forger, FORGED - 1000)
    return forger


@pytest.fixture
def store(request: pytest.FixtureRequest, home: Path, destination: Path) -> Path:
    """A store that the world was pushed to, or the folder of its publisher."""
    return destination if request.param == "pushed" else home / "editions"


both_kinds = pytest.mark.parametrize("store", deep_after(1, ["pushed", "folder"]), indirect=True)


@pytest.mark.rule("SIGN-1")
def test_the_note_and_the_key_follow_the_specification(home: Path) -> None:
    """Computed here from the C2SP specification, without the code that wrote them."""
    printed = verifier_key(home)
    name, key_hash, key = printed.split("+", 2)
    public = base64.b64decode(key)
    assert public[0] == 1
    assert hashlib.sha256(name.encode() + b"\n" + public).digest()[:4].hex() == key_hash
    note = (home / "editions" / "editions.note").read_bytes()
    text, _, signatures = note.rpartition(b"\n\n")
    dash, signer, signature = signatures.decode().removesuffix("\n").split(" ")
    assert (dash, signer) == ("—", name)
    decoded = base64.b64decode(signature)
    assert decoded[:4].hex() == key_hash
    Ed25519PublicKey.from_public_bytes(public[1:]).verify(decoded[4:], text + b"\n")
    publication = json.loads(text.decode().split("\n")[1])
    for edition, digest in publication["editions"].items():
        manifest = (home / "editions" / edition / "manifest.json").read_bytes()
        assert hashlib.sha256(manifest).hexdigest() == digest
    assert stat.S_IMODE((home / "edition-key").stat().st_mode) == 0o600


@pytest.mark.rule("SIGN-1")
def test_a_command_that_reads_creates_no_key(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    done = run(tmp_path / "home", "editions", "key")
    assert done.returncode == 1
    assert "sankofa publish" in done.stderr
    assert not list((tmp_path / "home").iterdir())


@both_kinds
@pytest.mark.rule("SIGN-2")
def test_a_node_refuses_editions_without_a_trusted_signature(
    store: Path, home: Path, forger: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    url = f"file://{store}"
    right, wrong = verifier_key(home), verifier_key(forger)
    done = run(tmp_path / "wrong", "follow", "--once", editions=url, trusted_keys=wrong)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no trusted key signed it" in done.stderr
    assert current(tmp_path / "wrong") is None
    follow(tmp_path / "node", url, trusted_keys=f"{wrong}, {right}")
    assert current(tmp_path / "node") == editions[1]
    broken = run(tmp_path / "node", "follow", "--once", editions=url, trusted_keys="nonsense")
    assert broken.returncode == 1
    assert "SANKOFA_TRUSTED_KEYS: bad verifier key 'nonsense'" in broken.stderr


@pytest.mark.rule("SIGN-2", "SIGN-3", "SIGN-5")
def test_a_forged_edition_is_not_served_and_reported_until_an_honest_push(
    home: Path, forger: Path, destination: Path, key: str, editions: tuple[str, str], tmp_path: Path
) -> None:
    node = tmp_path / "node" / "home"
    node.parent.mkdir()
    port = free_port()
    settings: dict[str, Any] = {
        "keystore": f"embedded:{home}/keys",
        "keys_secret": (home / "keys-secret").read_text().strip(),
        "editions": f"file://{destination}",
        "trusted_keys": verifier_key(home),
        "metrics_port": str(port),
    }
    with LiveServer(node, **settings) as live:
        until(lambda: live.get("/v1/status").json()["edition"] == editions[1])
        honest = live.get(ISSUER, key)
        assert honest.status_code == 200
        done = succeed(forger, "push", str(destination))
        assert "replaced at the destination: no trusted key signed it" in done.stderr
        sign_again(destination, forger, written_at="9999-12-31T23:59:59+00:00", sequence=1 << 60)
        until(lambda: live.get("/v1/status").json()["status"] == "degraded")
        status = live.get("/v1/status")
        assert status.status_code == 200
        assert status.json()["degraded"] == ["editions"]
        assert "no trusted key signed it" in status.json()["following"]["reason"]
        assert live.get(ISSUER, key).json() == honest.json()
        metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert "sankofa_following_up 0.0" in metrics
        counted = [
            line for line in metrics.splitlines() if line.startswith("sankofa_following_refusals_total")
        ]
        assert float(counted[0].split()[1]) > 0
        assert "no trusted key signed it" in run(node, "doctor", **settings).stdout
        third = publish_another(home, 2)
        assert "replaced at the destination" in run(home, "push", str(destination)).stderr
        until(lambda: live.get(ISSUER, key).json()["edition"] == third)
        until(lambda: live.get("/v1/status").json()["status"] == "ok")
        assert str(FORGED) not in live.get(ISSUER, key).text


@both_kinds
@pytest.mark.rule("SIGN-2")
def test_a_node_without_a_configured_key_trusts_the_first_one_it_saw(
    store: Path, forger: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    node, url = tmp_path / "node", f"file://{store}"
    follow(node, url)
    output = run(node, "doctor", editions=url).stdout
    assert "the first key that was seen is trusted" in output
    (store / "editions.note").write_bytes((forger / "editions" / "editions.note").read_bytes())
    assert "no trusted key signed it" in refused(node, url)
    assert current(node) == editions[1]


@both_kinds
@pytest.mark.rule("SIGN-3")
def test_signed_rollbacks_forks_and_future_editions_are_refused(
    store: Path, home: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    node, url = tmp_path / "node", f"file://{store}"
    follow(node, url)
    note = read_note(store)
    as_it_was = {name: getattr(note, name) for name in note.__struct_fields__}
    later = {**as_it_was, "sequence": note.sequence + 5}
    short = f"{editions[1]}\n".encode()
    for changes, listed, reason in (
        ({"current": editions[0], "sequence": note.sequence - 1}, None, "older than one seen before"),
        ({"current": editions[0], "sequence": note.sequence}, None, "another of the same sequence: a fork"),
        ({"written_at": "9999-12-31T23:59:59+00:00"}, None, "later than tomorrow"),
        ({"written_at": "yesterday"}, None, "later than tomorrow"),
        ({"current": editions[0], "withdrawn": (editions[0],)}, None, "as current and as withdrawn"),
        ({}, b"", "leaves out the current edition: a gap"),
        ({}, short, f"leaves out {editions[0]}, which was published before: a gap"),
    ):
        list_changes = {} if listed is None else store_list(store, listed)
        sign_again(store, home, **{**later, **changes, **list_changes})
        assert reason in refused(node, url)
        assert current(node) == editions[1]
    (store / "editions.note").write_bytes((node / "editions" / "editions.note").read_bytes())
    follow(node, url)


def store_list(store: Path, content: bytes) -> dict[str, Any]:
    """Make a store list this as its published editions; returns what the note then says."""
    digest = hashlib.sha256(content).hexdigest()
    path = store / "pool" / digest[:2] / digest if (store / "pool").exists() else store / "PUBLISHED"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return {"published_sha256": digest, "published_size": len(content)}


@both_kinds
@pytest.mark.rule("SIGN-3")
def test_only_the_operator_may_go_back_to_an_older_edition(
    store: Path, home: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    node, url, trusted = tmp_path / "node", f"file://{store}", verifier_key(home)
    follow(node, url, trusted_keys=trusted)
    (home / "editions" / "CURRENT").write_text(f"{editions[0]}\n")
    follow(node, url, trusted_keys=trusted)
    assert current(node) == editions[1]
    succeed(home, "editions", "rollback", editions[0])
    if store != home / "editions":
        push(home, store)
    follow(node, url, trusted_keys=trusted)
    assert current(node) == editions[0]


@both_kinds
@pytest.mark.rule("SIGN-4")
def test_replacing_a_key_leaves_no_node_behind(
    store: Path, home: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    pinned, other, url = tmp_path / "pinned", tmp_path / "other", f"file://{store}"

    def send() -> None:
        if store != home / "editions":
            push(home, store)

    old = verifier_key(home)
    follow(pinned, url, trusted_keys=old)
    follow(other, url)
    new = verifier_key(home, "--rotate")
    assert new != old
    assert new.split("+")[0] == old.split("+")[0], "the name stays"
    assert verifier_key(home) == new
    send()
    assert (store / "editions.note").read_text().count("\n— ") == 2
    follow(pinned, url, trusted_keys=old)
    follow(pinned, url, trusted_keys=new)
    follow(other, url)
    assert verifier_key(home, "--retire") == new
    send()
    signed = [(store / name).read_text().count("\n— ") for name in ("editions.note", "log/checkpoint")]
    assert signed == [1, 1], "of the newest key alone"
    follow(pinned, url, trusted_keys=new)
    follow(other, url)
    stale = run(tmp_path / "stale", "follow", "--once", editions=url, trusted_keys=old)
    assert "no trusted key signed it" in stale.stderr
    succeed(home, "editions", "verify")
    assert current(other) == editions[1]


@pytest.mark.deep
@pytest.mark.rule("SIGN-1")
def test_after_a_lost_key_only_the_operator_can_start_anew(home: Path, editions: tuple[str, str]):
    (home / "edition-key").unlink()
    done = run(home, "publish")
    assert done.returncode == 1
    assert "edition-key" in done.stderr
    assert "backup" in done.stderr
    assert not (home / "edition-key").exists()
    verifier_key(home, "--rotate")
    succeed(home, "editions", "verify")
    assert set(read_note(home / "editions").editions) == set(editions)


@pytest.mark.rule("SIGN-2")
def test_a_single_machine_serves_only_editions_signed_by_its_own_key(
    home: Path, forger: Path, key: str, editions: tuple[str, str]
) -> None:
    """Somebody copied an edition into HOME and made it current by hand."""
    forged = current(forger)
    assert forged
    shutil.copytree(forger / "editions" / forged, home / "editions" / forged)
    (home / "editions" / "CURRENT").write_text(f"{forged}\n")
    with LiveServer(home) as live:
        until(lambda: live.get(ISSUER, key).status_code == 200)
        assert live.get(ISSUER, key).json()["edition"] == editions[1]
        assert live.get(f"{ISSUER}&edition={forged}", key).status_code == 410
        assert run(home, "editions", "verify").returncode == 1
        assert "no trusted key signed it" in run(home, "editions", "rollback", forged).stderr
        (home / "editions" / "editions.note").write_bytes((forger / "editions/editions.note").read_bytes())
        until(lambda: "no trusted key signed it" in live.log)
        assert live.get(ISSUER, key).json()["edition"] == editions[1], "the last good one is served on"
    with LiveServer(home) as live:
        until(lambda: "no trusted key signed it" in live.log)
        assert live.get(ISSUER, key).status_code == 503


@pytest.mark.deep
@pytest.mark.rule("SIGN-1", "SIGN-2")
def test_a_backup_carries_the_key_and_is_itself_signed(
    home: Path, forger: Path, editions: tuple[str, str], tmp_path: Path
) -> None:
    node, url = tmp_path / "node", f"file://{tmp_path}/back/editions"
    follow(node, f"file://{home}/editions")
    succeed(home, "backup", tmp_path / "saved")
    back = tmp_path / "back"
    wrong = run(back, "restore", tmp_path / "saved", trusted_keys=verifier_key(forger))
    assert wrong.returncode == 1
    assert "refused by SANKOFA_TRUSTED_KEYS: no trusted key signed it" in wrong.stderr
    succeed(back, "restore", tmp_path / "saved", trusted_keys=verifier_key(home))
    assert stat.S_IMODE((back / "edition-key").stat().st_mode) == 0o600
    succeed(back, "publish")
    assert verifier_key(back) == verifier_key(home)
    follow(node, url)
    assert current(node) == editions[1]
    assert not state(node)["untrusted"]


@pytest.mark.deep
@pytest.mark.rule("SIGN-4")
def test_a_second_publisher_signs_too_and_nodes_follow_either(home: Path, forger: Path, tmp_path: Path):
    """Here `forger` is the second publisher: another HOME with its own key."""
    store, node = tmp_path / "store", tmp_path / "node"
    first, second = verifier_key(home), verifier_key(forger)
    assert verifier_key(home, "--add", str(forger / "edition-key")) == first
    assert verifier_key(home, "--add", str(forger / "edition-key")) == first, (
        "adding it twice changes nothing"
    )
    push(home, store)
    assert (store / "editions.note").read_text().count("\n— ") == 2
    for trusted in (first, second, f"{first},{second}"):
        follow(node, f"file://{store}", trusted_keys=trusted)
    wrong = tmp_path / "no-key"
    wrong.write_text(f"{first}\n")
    for path in (wrong, tmp_path / "not-there"):
        refusal = run(home, "editions", "key", "--add", path)
        assert refusal.returncode == 1
        assert path.name in refusal.stderr
    assert len((home / "edition-key").read_text().split()) == 2, "a refusal changes nothing"
