"""A backup is restored into a PostgreSQL database that machines share, and the log goes on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sankofa.client import verify
from tests.depth import deep_after
from tests.live import LiveServer, create_key, run, succeed
from tests.services import PostgresServer
from tests.spec.market import SOURCES, package, release

PATH = "/v1/tenders?country=ZA&limit=500&proof=true"


class Machine:
    """A HOME and its settings."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.home = home
        self.settings = settings

    def run(self, *words: str | Path) -> str:
        return succeed(self.home, *words, **self.settings).stdout

    def publish(self, name: str) -> None:
        file = self.home.parent / f"{name}.json"
        file.write_text(json.dumps(package(release(name))))
        self.run("ingest", "portal-za", file)
        self.run("publish")

    def serve(self) -> LiveServer:
        return LiveServer(self.home, **self.settings)  # type: ignore[arg-type]

    @property
    def entries(self) -> bytes:
        return (self.home / "shared" / "editions" / "log" / "entries").read_bytes()


@pytest.fixture
def other_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        yield url


@pytest.mark.ci
@pytest.mark.rule("LOG-12")
@pytest.mark.parametrize("objects_survive", deep_after(1, [False, True]))
def test_a_backup_restored_into_a_shared_database_goes_on_with_the_log(
    objects_survive: bool, postgres_url: str, other_url: str, tmp_path: Path
) -> None:
    own = {"editions": f"{tmp_path}/store"} if objects_survive else {}
    first = Machine(tmp_path / "first", datastore=postgres_url, **own)
    first.home.mkdir()
    (first.home / "sources.toml").write_text(SOURCES)
    first.publish("a")
    first.run("backup", tmp_path / "backup")
    first.publish("b")
    seen, key = first.entries, first.run("editions", "key").strip()
    node = Machine(tmp_path / "node", editions=own.get("editions", postgres_url), trusted_keys=key)
    node.run("follow", "--once")

    second = Machine(tmp_path / "second", datastore=other_url, **own)
    second.run("restore", tmp_path / "backup")
    refused = run(tmp_path / "third", "restore", tmp_path / "backup", **second.settings)
    assert (refused.returncode, "holds a ledger already" in refused.stderr) == (1, True), refused.stderr
    node.settings["editions"] = own.get("editions", other_url)
    if not objects_survive:  # the database is lost with all that was published from it
        with node.serve() as server:
            kept = server.get(PATH, create_key(node.home, "starter")).text
            taken = second.run("editions", "take-log", server.url)
        assert "took over 1 entries; the log has 2 now" in taken
        assert verify(kept, key)
    second.publish("c")
    assert second.entries.startswith(seen)
    assert len(second.entries) > len(seen)
    second.run("editions", "verify")
    node.run("follow", "--once")
    node.run("editions", "verify")
    with node.serve() as server:
        answer = server.get(PATH, create_key(node.home, "starter")).text
    assert (verify(answer, key), json.loads(answer)["count"]) == (json.loads(answer)["edition"], 2)
