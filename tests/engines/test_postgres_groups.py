"""PostgreSQL as an operator runs it: a standby, roles, a pooler, TLS."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import sankofa
from tests.live import LiveServer, create_key, run, succeed
from tests.patience import until
from tests.server_groups import Primary
from tests.services import REPOSITORY, free_port, missing, required_postgres, started

TENDERS = Path(sankofa.__file__).parent / "sample" / "tenders-ke" / "ke-releases-1.0.json"
PATH = "/v1/tenders?country=KE"


@pytest.fixture(scope="module")
def primary() -> Iterator[Primary]:
    binaries = required_postgres()
    if shutil.which("openssl") is None or not (binaries / "pg_basebackup").exists():
        missing("a standby and TLS (no openssl or no pg_basebackup)")
    with started(Primary(binaries)) as server:
        yield server


@pytest.fixture
def database(primary: Primary) -> Iterator[str]:
    primary.ensure()
    with primary.database() as url:
        yield url


def publish(home: Path, **settings: str) -> None:
    for command in (["ingest", "sample-tenders-ke", str(TENDERS)], ["publish"]):
        succeed(home, *command, **settings)


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.deep
def test_roles_give_each_command_only_the_rights_it_needs(
    primary: Primary, database: str, tmp_path: Path
) -> None:
    def role(name: str) -> str:
        return database.replace("//postgres@", f"//sankofa_{name}@")

    sql = (REPOSITORY / "deploy" / "postgresql" / "roles.sql").read_text()
    ask(database, sql)
    succeed(tmp_path / "home", "ledger", "verify", datastore=role("publish"))
    ask(database, sql)
    home = tmp_path / "home"
    succeed(home, "ingest", "sample-tenders-ke", TENDERS, datastore=role("ingest"))
    assert run(home, "publish", datastore=role("ingest")).returncode == 1
    succeed(home, "publish", datastore=role("publish"))
    key = create_key(home, "starter")
    with LiveServer(home, datastore=role("api")) as server:
        assert server.get(PATH, key).json()["count"] > 0
        assert server.get("/v1/status").status_code == 200
    looked = succeed(home, "doctor", datastore=role("api"))
    assert "this role cannot read it" in looked.stdout
    succeed(tmp_path / "node", "follow", "--once", editions=role("api"))
    edition = (home / "shared" / "editions" / "CURRENT").read_text()
    assert (tmp_path / "node" / "editions" / "CURRENT").read_text() == edition
    for name, statement in (
        ("ingest", "UPDATE sankofa_ledger.capture SET source_id = 'x'"),
        ("ingest", "DELETE FROM sankofa_ledger.fact"),
        ("ingest", "TRUNCATE sankofa_ledger.fact"),
        ("ingest", "ALTER TABLE sankofa_ledger.fact DISABLE TRIGGER ALL"),
        ("ingest", "DROP SCHEMA sankofa_ledger CASCADE"),
        ("api", "SELECT 1 FROM sankofa_ledger.capture"),
        ("api", "UPDATE sankofa_objects.object SET path = 'x'"),
        ("api", "DELETE FROM sankofa_objects.chunk"),
        ("ingest", "DELETE FROM sankofa_objects.object"),
        ("api", "CREATE SCHEMA mine"),
        ("api", "CREATE TEMPORARY TABLE mine (x int)"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(role(name), statement)


@contextmanager
def pooler(primary: Primary, folder: Path) -> Iterator[int]:
    """PgBouncer in transaction mode, with fewer servers than a worker has connections."""
    port = free_port()
    account = primary.account
    settings = f"""
[databases]
* = host=127.0.0.1 port={primary.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
logfile = {folder}/pgbouncer.log
ignore_startup_parameters = extra_float_digits,options
"""
    (folder / "pgbouncer.ini").write_text(settings)
    if account:
        for path in (folder, folder / "pgbouncer.ini"):
            os.chown(path, account.pw_uid, account.pw_gid)
    process = subprocess.Popen(
        [shutil.which("pgbouncer") or "pgbouncer", str(folder / "pgbouncer.ini")],
        user=account.pw_uid if account else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.deep
def test_a_node_follows_through_a_pooler_in_transaction_mode(primary: Primary, database: str, tmp_path: Path):
    if shutil.which("pgbouncer") is None:
        missing("PgBouncer (not in PATH)")
    publish(tmp_path / "home", datastore=database)
    folder = Path(os.path.realpath(primary.home)) / "pooler"
    folder.mkdir()
    with (
        pooler(primary, folder) as port,
        LiveServer(tmp_path / "node", datastore=database.replace(f":{primary.port}/", f":{port}/")) as server,
    ):
        key = create_key(tmp_path / "node", "starter", "--per-minute", "100000")
        until(lambda: server.get(PATH, key).status_code == 200)
        until(lambda: server.get("/v1/status").json()["degraded"] == [])
