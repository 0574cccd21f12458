"""Editions that a version before parts were shared wrote to PostgreSQL: each a schema of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sankofa.engines.manifest import open_manifest, seal_manifest
from sankofa.model.errors import EditionError
from tests.engines.datastores import Engine, run
from tests.engines.test_postgres_parts import contents, published_world, stored
from tests.engines.test_taken_over import a_figure, said
from tests.live import LiveServer, create_key
from tests.live import run as run_command

_SHORT = "('x' || left(encode(sha256({row}), 'hex'), 15))::bit(60)::bigint"
_ROWS = {
    "directory": "convert_to(concat_ws(chr(31), kind, key, first, blocks), 'UTF8')",
    "block": "int8send(id) || int4send(octet_length(idx)) || idx || rows",
    "file": "int4send(part) || convert_to(name, 'UTF8') || bytes",
}
_TABLES = """
    CREATE SCHEMA "sankofa_e_{edition}";
    SET search_path = "sankofa_e_{edition}";
    CREATE TABLE directory (kind TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL,
                            first BIGINT NOT NULL, blocks BIGINT NOT NULL, PRIMARY KEY (kind, key));
    CREATE TABLE block (id BIGINT PRIMARY KEY, idx BYTEA NOT NULL, rows BYTEA NOT NULL);
    CREATE TABLE file (name TEXT COLLATE "C" NOT NULL, part INTEGER NOT NULL, bytes BYTEA NOT NULL,
                       PRIMARY KEY (name, part));
    CREATE TABLE manifest (json TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS sankofa_shelf.seal (edition TEXT PRIMARY KEY, sha256 TEXT NOT NULL);
"""


def store_as_before(url: str) -> None:
    """Turn every edition into what the version before made of it, and drop the tables of this one."""
    with psycopg.connect(url, autocommit=True) as connection:
        for edition, text, seal in connection.execute(
            "SELECT id, manifest, seal FROM sankofa_editions.edition"
        ).fetchall():
            connection.execute(_TABLES.format(edition=edition).encode())
            manifest = open_manifest(text.encode(), seal, edition)
            _fill(connection, manifest)
            manifest.pop("stored")
            manifest["tables"] = {table: _sum(connection, table) for table in _ROWS}
            content, seal = seal_manifest(manifest)
            connection.execute("INSERT INTO manifest VALUES (%s)", (content.decode(),))
            connection.execute("INSERT INTO sankofa_shelf.seal VALUES (%s, %s)", (edition, seal))
        connection.execute("DROP SCHEMA sankofa_editions CASCADE")


def _fill(connection: psycopg.Connection[Any], manifest: dict[str, Any]) -> None:
    names = [file["name"] for file in manifest["files"]]
    for number, part in enumerate(manifest["stored"]):
        shift = number << 32
        blocks = f"sankofa_editions.block WHERE part = {part['id']}"
        if number >= len(manifest["parts"]):
            name = names[number - len(manifest["parts"])]
            connection.execute(f"INSERT INTO file SELECT '{name}', number, rows FROM {blocks}".encode())
            continue
        connection.execute(f"INSERT INTO block SELECT {shift} + number, idx, rows FROM {blocks}".encode())
        keys = f"sankofa_editions.directory WHERE part = {part['id']}"
        connection.execute(
            f"INSERT INTO directory SELECT kind, key, {shift} + first, blocks FROM {keys}".encode()
        )


def _sum(connection: psycopg.Connection[Any], table: str) -> dict[str, Any]:
    statement = f"SELECT count(*), coalesce(sum({_SHORT.format(row=_ROWS[table])}), 0) FROM {table}"
    ((rows, digest),) = connection.execute(statement.encode()).fetchall()
    return {"rows": rows, "digest": str(digest)}


def schemas(engine: Engine) -> list[str]:
    found = engine.raw("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sankofa_e\\_%' ORDER BY 1")
    return [name.removeprefix("sankofa_e_") for (name,) in found]


@pytest.fixture
def engine(postgres_url: str, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine("postgres", postgres_url, tmp_path)
    yield engine
    engine.store.close()


@pytest.mark.deep
def test_editions_of_the_version_before_are_moved_whole_by_the_next_publish(engine: Engine) -> None:
    world = published_world(engine)
    first = world.published()
    a_figure(world)
    second = world.published()
    edition = first["edition"]

    async def figures() -> list[object]:
        reader = engine.store.open(edition)
        listed = await reader.digests("fundamentals", "", 99)
        found: list[object] = [await reader.blocks("fundamentals", key, 0, 99) for key, _ in listed]
        found += [await reader.file_bytes(file["name"], 0, file["size_bytes"]) for file in first["files"]]
        engine.store.close()
        assert len(found) > 9
        return found

    before = run(figures)
    store_as_before(engine.url)
    assert engine.store.list_editions() == ((second["edition"], edition), second["edition"])
    with pytest.raises(EditionError, match=r"stored by an older version; `sankofa publish`"):
        engine.store.open(edition)
    again = world.published()
    assert said(again) == said(second), "the edition is what it was, under its id"
    assert run(figures) == before
    assert stored(engine) == sorted(contents(first, second)), "what they share is stored once"
    for name in (edition, second["edition"]):
        engine.store.open(name, check_all=True).close()
    assert schemas(engine) == sorted([edition, second["edition"]]), "a server of that version may read them"
    world.published()
    assert schemas(engine) == []
    assert engine.raw("SELECT count(*) FROM sankofa_shelf.seal") == [(0,)]


@pytest.mark.deep
def test_a_damaged_edition_of_the_version_before_stays_refused(engine: Engine) -> None:
    world = published_world(engine)
    first = world.published()["edition"]
    a_figure(world)
    second = world.published()["edition"]
    store_as_before(engine.url)
    engine.raw(f'UPDATE "sankofa_e_{first}".block SET rows = set_byte(rows, 0, 1) WHERE length(rows) > 9')
    world.published()
    engine.store.open(second, check_all=True).close()
    with pytest.raises(EditionError, match="older version"):
        engine.store.open(first)
    engine.store.set_current_and_prune([second], second)
    assert schemas(engine) == [second]
    assert engine.store.list_editions().editions == (second,)


def test_the_upgrade_check_names_the_command_and_the_service_says_so_until_then(
    postgres_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    sample = Path(__file__).parent.parent.parent / "src/sankofa/sample/tenders-ke/ke-releases-1.0.json"
    for command in (("ingest", "sample-tenders-ke", str(sample)), ("publish",)):
        assert run_command(home, *command, datastore=postgres_url).returncode == 0
    key = create_key(home, "starter")
    store_as_before(postgres_url)
    with LiveServer(home, datastore=postgres_url) as server:
        assert server.get("/v1/tenders?country=KE", key).status_code == 503
        assert "stored by an older version" in server.log
        checked = run_command(home, "upgrade-check", "--json", datastore=postgres_url)
        assert checked.returncode == 1
        errors = [found for found in json.loads(checked.stdout) if found["status"] == "error"]
        assert ["sankofa publish" in found["remedy"] for found in errors] == [True]
        assert run_command(home, "publish", datastore=postgres_url).returncode == 0
        assert run_command(home, "upgrade-check", datastore=postgres_url).returncode == 0
    with LiveServer(home, datastore=postgres_url) as server:
        assert server.get("/v1/tenders?country=KE", key).json()["count"] > 0
