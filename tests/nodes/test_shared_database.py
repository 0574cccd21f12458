"""Several machines on one PostgreSQL database: each serves editions from its own files."""

import shutil
from pathlib import Path

import psycopg
import pytest

import sankofa
from tests.live import LiveServer, create_key, run, succeed
from tests.patience import until

SAMPLE = Path(sankofa.__file__).parent / "sample"
PATH = "/v1/tenders?country=KE"
SHARED = {"gate_secret": "gate", "cursor_secret": "cursors"}


class Machines:
    """A publisher, and nodes that know only the address of the database."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.settings = {"datastore": database, **SHARED}
        self.ingested = 0

    def home(self, name: str) -> Path:
        return self.folder / name

    def run(self, name: str, *words: str | Path, **settings: str) -> str:
        done = succeed(self.home(name), *words, **self.settings, **settings)
        return done.stdout

    def refused(self, name: str, *words: str | Path, **settings: str) -> str:
        done = run(self.home(name), *words, **self.settings, **settings)
        assert done.returncode == 1, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    def publish(self, name: str) -> str:
        """Publish one more source in its own edition."""
        source, path = (("sample-tenders-ke", "tenders-ke"), ("sample-lei", "lei"), ("sample-isin", "isin"))[
            self.ingested
        ]
        self.ingested += 1
        self.run(name, "ingest", source, SAMPLE / path)
        self.run(name, "publish")
        return self.current(name)

    def current(self, name: str) -> str:
        return (self.home(name) / "shared" / "editions" / "CURRENT").read_text().strip()

    def serve(self, name: str) -> LiveServer:
        return LiveServer(self.home(name), **self.settings)  # type: ignore[arg-type]


@pytest.fixture
def machines(tmp_path: Path, postgres_url: str) -> Machines:
    return Machines(tmp_path, postgres_url)


def served(server: LiveServer) -> str:
    return str(server.get("/v1/status").json()["edition"])


@pytest.mark.ci
@pytest.mark.rule("NODE-8")
def test_a_new_node_serves_each_edition_that_another_machine_publishes(machines: Machines) -> None:
    first = machines.publish("publisher")
    with machines.serve("publisher") as one, machines.serve("node") as other:
        keys = {
            server: create_key(machines.home(name), "starter")
            for server, name in ((one, "publisher"), (other, "node"))
        }
        assert served(other) == first, "a new node pulls before it answers"
        answers = [server.get(PATH, keys[server]) for server in (one, other)]
        assert answers[0].content == answers[1].content
        assert answers[0].headers["etag"] == answers[1].headers["etag"]
        proofs = [server.get(f"{PATH}&proof=true", keys[server]) for server in (one, other)]
        assert (proofs[1].status_code, proofs[0].content) == (200, proofs[1].content)
        second = machines.publish("publisher")
        for server in (one, other):
            until(lambda s=server: served(s) == second)  # type: ignore[misc]
            until(lambda s=server: s.get("/v1/status").json()["degraded"] == [])  # type: ignore[misc]
        assert machines.run("publisher", "editions", "rollback", first)
        for server in (one, other):
            until(lambda s=server: served(s) == first)  # type: ignore[misc]
    assert first in machines.run("third", "editions"), "a command shows what was published elsewhere"


@pytest.mark.deep
@pytest.mark.rule("NODE-8")
def test_machines_that_publish_share_one_key(machines: Machines) -> None:
    first = machines.publish("one")
    message = machines.refused("two", "publish")
    assert "copy edition-key from the HOME of the machine that published" in message
    key = machines.run("one", "editions", "key").strip()
    assert key in message
    shutil.copyfile(machines.home("one") / "edition-key", machines.home("two") / "edition-key")
    second = machines.publish("two")
    assert machines.run("one", "editions").count("T") >= 2
    assert machines.current("one") == second
    listed = (machines.home("two") / "shared" / "editions" / "PUBLISHED").read_text()
    assert {first, second} <= set(listed.split())
    doctor = machines.run("node", "follow", "--once") and machines.run("node", "doctor")
    assert f"the first key that was seen is trusted: {key}" in doctor
    assert "`sankofa editions key` prints" in doctor
    assert "first key that was seen" not in machines.run("node", "doctor", trusted_keys=key)


@pytest.mark.rule("NODE-3", "NODE-8")
def test_an_altered_object_in_the_database_is_refused(machines: Machines, postgres_url: str) -> None:
    machines.publish("one")
    machines.run("node", "follow", "--once")
    before = machines.current("node")
    machines.publish("one")
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "UPDATE sankofa_objects.chunk SET content = set_byte(content, 9, get_byte(content, 9) # 1) "
            "WHERE object IN (SELECT id FROM sankofa_objects.object WHERE path LIKE 'pool/%')"
        )
    assert machines.refused("node", "follow", "--once")
    assert machines.current("node") == before
