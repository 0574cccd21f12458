"""Rows of a ledger in PostgreSQL that somebody altered past the product: nothing of them is published."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.live import LiveServer, run
from tests.services import PostgresServer
from tests.spec.test_status import ENTITY, SANDBOX
from tests.worlds import publish_without_rates

ALTERATIONS = {
    "another figure": "UPDATE fact SET value = value || '0' WHERE capture_id = 12",
    "a figure that is no number": "UPDATE fact SET value = 'many' WHERE capture_id = 12",
    "broken JSON": "UPDATE release SET body = left(body, 20)",
    "JSON of another form": "UPDATE release SET body = '[[[]]]'",
    "an empty text": "UPDATE capture SET counts = '' WHERE capture_id = 12",
    "another digest": "UPDATE capture SET content_sha256 = repeat('0', 64) WHERE capture_id = 12",
    "NULL": "ALTER TABLE release ALTER body DROP NOT NULL; UPDATE release SET body = NULL",
    "a number for a text": "ALTER TABLE release ALTER COLUMN country TYPE integer USING 7",
    "bytes for a text": "ALTER TABLE release ALTER COLUMN body TYPE bytea USING '\\xff'::bytea",
    "no rows": "TRUNCATE fact",
    "a column more": "ALTER TABLE fact ADD COLUMN more text",
    "a column less": "ALTER TABLE release DROP COLUMN parties",
}


@contextmanager
def altered(server: PostgresServer, url: str, statement: str) -> Iterator[str]:
    """A copy of a database in which somebody with every right ran a statement."""
    name = f"{url.rpartition('/')[2]}_altered"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {url.rpartition('/')[2]}")
    copy = server.url_of(name)
    try:
        with psycopg.connect(copy, autocommit=True) as connection:
            connection.execute(b"SET search_path = sankofa_ledger")
            for table in ("capture", "fact", "release"):
                connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL".encode())
            connection.execute(statement.encode())
        yield copy
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.deep
def test_an_altered_row_is_named_and_nothing_is_published(
    tmp_path: Path, postgres_server: PostgresServer, postgres_url: str
) -> None:
    home = tmp_path / "home"
    publish_without_rates(home, datastore=postgres_url)
    edition = run(home, "editions", datastore=postgres_url).stdout
    for name, statement in ALTERATIONS.items():
        own = Path(shutil.copytree(home, tmp_path / name))
        with altered(postgres_server, postgres_url, statement) as url:
            refused = run(own, "publish", datastore=url)
            assert refused.returncode == 1, (name, refused.stdout)
            assert refused.stderr.count("\n") == 1, (name, refused.stderr)
            assert "the ledger is damaged: capture " in refused.stderr, (name, refused.stderr)
            assert run(own, "editions", datastore=url).stdout == edition, name
    with (
        altered(postgres_server, postgres_url, ALTERATIONS["broken JSON"]) as url,
        LiveServer(home, datastore=url) as live,
    ):
        assert run(home, "publish", datastore=url).returncode == 1
        assert live.get(ENTITY, SANDBOX).status_code == 200
        assert live.get("/v1/status").json()["status"] == "ok"
