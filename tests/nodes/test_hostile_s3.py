"""S3 in the hands of an attacker: a node that follows serves no forged row, goes on, and says why."""

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import httpx
import pytest

from sankofa.engines import object_cloud
from sankofa.engines.ledger_store import SqliteLedgers
from sankofa.engines.object_store import ObjectError, open_destination, open_source
from sankofa.engines.publication import signers_of
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError
from sankofa.replication.follow import SILENT_SECONDS, Follower, FollowingStore
from tests.depth import deep_after
from tests.faults.conftest import World
from tests.live import LiveServer, free_port, run
from tests.nodes.commands import current, follow
from tests.nodes.conftest import push
from tests.nodes.hostile_s3 import WAYS, HostileS3, Way, altered
from tests.nodes.servers import s3_server
from tests.nodes.test_hostile_stores import served
from tests.patience import until
from tests.services import use_s3
from tests.signing import read_note

STORE = "s3://editions/africa"
ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?period_type=FY&as_of=2024-06-30"
SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
}
"""The server of the tests believes every signature."""
SOME_ATTACKS = [("altered", "file"), ("altered", "note")]
ATTACKS = deep_after(
    len(SOME_ATTACKS),
    sorted(product(WAYS, ("note", "manifest", "file")), key=lambda attack: attack not in SOME_ATTACKS),
)
"""Some ways; with every round each way upon each kind of object."""
FOREIGN = 1_200
"""More names than one page of a listing has."""


class Bucket(NamedTuple):
    s3: HostileS3
    first: Path
    """A node that has the edition before the one that is current there."""
    named: frozenset[str]
    """The digests that the note in the bucket names: of the list and the manifests."""

    def attack(self, way: Way, victim: str) -> None:
        """Alter the note, the manifests and the list, or every other file."""

        def is_victim(path: str) -> bool:
            name = path.rpartition("/")[2]
            if victim == "note":
                return name == "editions.note"
            return "/pool/" in path and (name in self.named) == (victim == "manifest")

        self.s3.way, self.s3.is_victim, self.s3.attacks = way, is_victim, 0


@pytest.fixture(scope="module")
def bucket(world: World, pushed_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    first = tmp_path_factory.mktemp("first") / "node"
    home = Path(shutil.copytree(world.home, first.with_name("home")))
    follow(first, f"file://{pushed_world / 'first'}")
    with s3_server("editions") as url, pytest.MonkeyPatch.context() as patch, HostileS3(url) as s3:
        use_s3(patch, url)
        push(home, STORE)
        note = open_source(STORE).read("editions.note", 1 << 16).decode()
        patch.setenv("AWS_ENDPOINT_URL", s3.url)
        yield Bucket(s3, first, frozenset(re.findall("[0-9a-f]{64}", note)))


@pytest.fixture
def s3(bucket: Bucket) -> Iterator[HostileS3]:
    yield bucket.s3
    bucket.s3.way = None


@pytest.mark.rule("SIGN-2", "SIGN-3", "NODE-4")
@pytest.mark.parametrize(("way", "victim"), ATTACKS)
def test_whatever_the_store_answers_no_forged_row_is_served_and_the_node_says_why(
    way: str, victim: str, s3: HostileS3, bucket: Bucket, world: World, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if way == "dripping":
        monkeypatch.setattr(object_cloud, "SMALL_SECONDS", 0.3)
    node = Path(shutil.copytree(bucket.first, tmp_path / "node"))
    trusted = tuple(signer.verifier for signer in signers_of(world.home))
    honest = read_note(world.home / "editions").editions
    store = FollowingStore(node, SqliteLedgers(node, SCHEMA), 1 << 20, trusted)
    looking = Follower(open_source(STORE), store, 5)
    bucket.attack(WAYS[way], victim)
    failed = False
    with suppress(ObjectError, OperatorError):
        failed = True
        looking.look()
        failed = False
    assert s3.attacks
    shown, usable = served(node, trusted)
    assert usable.items() <= honest.items()
    if failed:
        assert shown == world.editions[0]
        later = datetime.now(UTC) + timedelta(seconds=SILENT_SECONDS + 1)
        assert looking.state.complaint(later)
    else:
        assert (way, shown) == ("redirected", world.editions[0]) or shown == world.editions[1]
    s3.way = None
    looking.look()
    assert looking.state.complaint(datetime.now(UTC) + timedelta(seconds=1)) is None
    assert served(node, trusted) == (world.editions[1], honest)


@pytest.mark.rule("NODE-4", "SIGN-5")
def test_a_running_node_says_what_is_wrong_with_its_store_and_comes_back(
    s3: HostileS3, bucket: Bucket, world: World, tmp_path: Path
) -> None:
    node = Path(shutil.copytree(bucket.first, tmp_path / "node"))
    port = free_port()
    settings: dict[str, Any] = {
        "keystore": f"embedded:{shutil.copytree(world.home, tmp_path / 'home')}/keys",
        "keys_secret": (world.home / "keys-secret").read_text().strip(),
        "editions": STORE,
        "trusted_keys": run(world.home, "editions", "key").stdout.strip(),
        "metrics_port": str(port),
    }
    bucket.attack(altered, "manifest")
    with LiveServer(node, **settings) as live:

        def status() -> str:
            return str(live.get("/v1/status").json().get("following", {}).get("reason"))

        before = live.get(ISSUER, world.key)
        assert (before.status_code, before.json()["edition"]) == (200, world.editions[0])
        until(lambda: "not the list that was signed" in status())
        assert live.get("/v1/status").json()["degraded"] == ["editions"]
        assert "sankofa_following_up 0.0" in httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert "not the list that was signed" in run(node, "doctor", **settings).stdout
        bucket.attack(altered, "note")
        until(lambda: "no trusted key signed it" in status() or "refused" in status())
        assert live.get(ISSUER, world.key).json() == before.json()
        s3.way = None
        until(lambda: live.get(ISSUER, world.key).json()["edition"] == world.editions[1])
        until(lambda: live.get("/v1/status").json()["status"] == "ok")
        assert "Traceback" not in live.log


@pytest.mark.deep
@pytest.mark.rule("NODE-6")
def test_foreign_names_in_the_bucket_stop_no_push_and_lead_nowhere(
    s3: HostileS3, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shutil.copytree(world.home, tmp_path / "home"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(s3.real.base_url))
    below = "/editions/africa/"
    foreign = ["pool/ab/not-a-digest", "pool/%C3%A9%20%22%3C%26"]
    for name in (*foreign, *(f"pool/zz/{number:064}" for number in range(FOREIGN))):
        assert s3.real.put(below + name, content=b"x").status_code == 200
    for trick in ("pool/%2e%2e/%2e%2e/etc/passwd", "pool//ab"):
        assert s3.real.put(below + trick, content=b"x").status_code == 200
        refused = run(home, "push", STORE)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert f'"africa/{unquote(trick)}"' in refused.stderr, "whoever looks after the store can remove it"
        assert s3.real.delete(below + trick, headers=SIGNED).status_code == 204
    assert "nothing changed" in push(home, STORE)
    push(home, STORE, "--keep-unused", "0")
    there = [stored.path for stored in open_destination(STORE).objects("pool/")]
    assert there
    assert all(re.fullmatch("pool/../[0-9a-f]{64}", path) for path in there), "all foreign ones are gone"
    node = tmp_path / "node"
    follow(node, STORE)
    assert current(node) == world.editions[1]
    assert not (tmp_path / "etc").exists()
