"""Editions in PostgreSQL share what they have in common; a block is compared when it is first read."""

import logging
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.read.edition_manager import EditionManager
from sankofa.engines import postgres_store
from sankofa.engines.datastore import EditionReader
from sankofa.engines.object_store import open_destination
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable
from sankofa.replication.push import push
from tests.engines.datastores import BLOCKS, PLACES, SAMPLE, Engine, allow_changes, run, shelve
from tests.engines.test_taken_over import EVERYTHING, World, a_figure, said

CONTENT = "c" * 64


@pytest.fixture
def engine(postgres_url: str, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine("postgres", postgres_url, tmp_path)
    yield engine
    engine.store.close()


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with an edition that is too large to be compared when it is opened."""
    monkeypatch.setattr(postgres_store, "_CHECKED_AT_OPENING_SECONDS", 0)


def published_world(engine: Engine) -> World:
    world = World(engine)
    for source_id, path in EVERYTHING:
        world.take(source_id, SAMPLE / path)
    return world


def contents(*manifests: dict[str, Any]) -> set[str]:
    """Of parts and files."""
    parts = {part["content"] for manifest in manifests for part in manifest["parts"]}
    return parts | {file["sha256"] for manifest in manifests for file in manifest["files"]}


def stored(engine: Engine) -> list[str]:
    return sorted(content for (content,) in engine.raw("SELECT content FROM sankofa_editions.part"))


def build(engine: Engine, edition: str, content: str = CONTENT) -> None:
    """An edition of one part, which is written unless it can be taken over."""
    writer = engine.store.build()
    if not writer.take_over(content):
        writer.write(BLOCKS, "fundamentals")
        writer.register(PLACES)
        writer.end_part(content)
    part = {"kinds": ["entity", "fundamentals"], "first": "", "content": content}
    writer.finish(edition, {"format": LAYOUT, "content_sha256": edition, "parts": [part]})


def damage_of(reader: EditionReader) -> str:
    return reader.damage or ""


def change(engine: Engine, statement: str) -> None:
    with psycopg.connect(engine.url, autocommit=True) as connection:
        allow_changes(connection)
        connection.execute(statement.encode())


@pytest.mark.deep
def test_a_part_of_two_editions_is_stored_once_and_stays_until_neither_is_kept(engine: Engine) -> None:
    world = published_world(engine)
    first = world.published(world.cache)
    assert stored(engine) == sorted(contents(first))
    a_figure(world)
    second = world.published(world.cache)
    assert stored(engine) == sorted(contents(first, second)), "nothing is there twice"
    new = contents(second) - contents(first)
    assert 0 < len(new) < len(contents(second)) / 2
    assert said(second) == said(world.published()), "without a record what comes out the same is taken over"
    assert stored(engine) == sorted(contents(first, second))
    assert run(lambda: _figures(engine, first)) == run(lambda: _figures(engine, first))
    engine.store.set_current_and_prune([second["edition"]], second["edition"])
    assert stored(engine) == sorted(contents(second))
    rows = "SELECT count(DISTINCT part) FROM sankofa_editions."
    assert engine.raw(f"{rows}block") == [(len(contents(second)),)]
    engine.store.open(second["edition"], check_all=True).close()


async def _figures(engine: Engine, manifest: dict[str, Any]) -> list[tuple[str, bytes]]:
    reader = engine.store.open(manifest["edition"])
    digests = list(await reader.digests("fundamentals", "", 1000))
    engine.store.close()
    assert digests
    return digests


def test_a_part_that_is_not_whole_is_written_anew_and_heals_the_edition(engine: Engine) -> None:
    build(engine, "one")
    engine.store.set_current_and_prune(["one"], "one")
    change(engine, "UPDATE block SET rows = set_byte(rows, 3, 9) WHERE number = 2")
    with pytest.raises(EditionError, match="corrupt"):
        engine.store.open("one", check_all=True)
    build(engine, "one")
    engine.store.open("one", check_all=True).close()
    assert stored(engine) == [CONTENT, CONTENT], "the damaged one is there until something is removed"
    engine.store.set_current_and_prune(["one"], "one")
    assert stored(engine) == [CONTENT]
    engine.store.open("one", check_all=True).close()


def test_what_a_build_takes_over_is_not_removed_under_its_hands(engine: Engine) -> None:
    build(engine, "one")
    build(engine, "other", "d" * 64)
    writer = engine.store.build()
    assert writer.take_over(CONTENT)
    engine.store.set_current_and_prune(["other"], "other")
    assert engine.store.list_editions().editions == ("other",)
    part = {"kinds": ["entity", "fundamentals"], "first": "", "content": CONTENT}
    writer.finish("two", {"format": LAYOUT, "content_sha256": "two", "parts": [part]})
    engine.store.open("two", check_all=True).close()
    assert stored(engine) == [CONTENT, "d" * 64]
    engine.store.set_current_and_prune(["other"], "other")
    assert stored(engine) == ["d" * 64]


def test_a_part_that_is_being_removed_is_not_taken_over(engine: Engine) -> None:
    build(engine, "one")
    with psycopg.connect(engine.url) as removing:
        removing.execute("SELECT id FROM sankofa_editions.part FOR UPDATE")
        writer = engine.store.build()
        assert not writer.take_over(CONTENT)
        writer.abandon()


def test_of_a_removed_edition_no_key_is_said_to_be_missing(engine: Engine) -> None:
    async def read() -> None:
        build(engine, "one")
        reader = engine.store.open("one")
        assert await reader.blocks("fundamentals", "nobody", 0, 1) is None
        build(engine, "two", "d" * 64)
        engine.store.set_current_and_prune(["two"], "two")
        for call in (
            reader.blocks("fundamentals", "A", 0, 1),
            reader.blocks("fundamentals", "nobody", 0, 1),
            reader.pieces("fundamentals", [(1, 0, 5)]),
            reader.digests("fundamentals", "", 9),
        ):
            with pytest.raises(StoreUnavailable, match="unavailable") as failure:
                await call
            assert "no longer kept" in failure.value.cause
        assert reader.damage is None
        engine.store.close()

    run(read)


DAMAGE = {
    "UPDATE block SET rows = set_byte(rows, 100, 0) WHERE number = 1": "corrupt: block",
    "UPDATE block SET idx = 'other' WHERE number = 1": "corrupt: block",
    "UPDATE block SET digest = idx WHERE number = 1": "corrupt: block",
    "DELETE FROM block WHERE number = 1": "incomplete: block",
    "UPDATE directory SET first = 2 WHERE kind = 'fundamentals' AND key = 'A'": "corrupt: directory",
    "UPDATE directory SET blocks = 4 WHERE kind = 'fundamentals' AND key = 'A'": "corrupt: directory",
    "UPDATE directory SET digest = 'x' WHERE kind = 'fundamentals' AND key = 'A'": "corrupt: directory",
}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("statement", DAMAGE)
def test_a_block_is_compared_when_it_is_first_read(engine: Engine, statement: str) -> None:
    async def read() -> None:
        build(engine, "one")
        change(engine, statement)
        reader = engine.store.open("one")
        assert await reader.blocks("entity", "A", 0, 9) == [block[1:] for block in BLOCKS[5:]]
        assert not damage_of(reader)
        with pytest.raises(StoreUnavailable) as failure:
            await reader.blocks("fundamentals", "A", 0, 2)
        assert DAMAGE[statement] in damage_of(reader)
        assert DAMAGE[statement] in failure.value.cause
        engine.store.close()

    run(read)


@pytest.mark.usefixtures("large")
def test_a_piece_and_a_file_are_compared_when_they_are_first_read(engine: Engine) -> None:
    async def read() -> None:
        for harm in ("set_byte(rows, 20000, 0)", "substr(rows, 1, 10)"):
            build(engine, "one")
            reader = engine.store.open("one")
            assert await reader.pieces("fundamentals", [(2, 3, 8)]) == [BLOCKS[1][2][3:8]]
            change(engine, f"UPDATE block SET rows = {harm} WHERE number = 3")
            with pytest.raises(StoreUnavailable):
                await reader.pieces("fundamentals", [(2, 3, 8), (3, 0, 5)])
            assert reader.damage is not None
            engine.store.set_current_and_prune([], "none")
        writer = engine.store.build()
        writer.write(BLOCKS)
        (writer.files / "a.parquet").write_bytes(b"parquet " * 100_000)
        file = {"name": "a.parquet", "size_bytes": 800_000, "sha256": "e" * 64}
        writer.finish("files", {"content_sha256": "files", "files": [file]})
        reader = engine.store.open("files")
        assert await reader.file_bytes("a.parquet", 0, 8) == b"parquet "
        files = "(SELECT id FROM dataset WHERE name = 'file')"
        change(engine, f"UPDATE block SET rows = set_byte(rows, 5, 0) WHERE number = 2 AND dataset = {files}")
        assert await reader.file_bytes("a.parquet", 8, 16) == b"parquet "
        with pytest.raises(StoreUnavailable):
            await reader.file_bytes("a.parquet", 700_000, 700_008)
        assert reader.damage is not None
        engine.store.close()

    run(read)


@pytest.mark.usefixtures("large")
def test_damage_met_by_a_request_is_logged_and_the_edition_before_answers(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    build(engine, "20260101T000000Z-00001-aaaaaaaaaa")
    before, current = "20260101T000000Z-00001-aaaaaaaaaa", "20260102T000000Z-00002-bbbbbbbbbb"
    build(engine, current, "d" * 64)
    engine.store.set_current_and_prune([before, current], current)
    change(engine, "UPDATE block SET rows = set_byte(rows, 3, 0) WHERE part = (SELECT max(id) FROM part)")

    async def serve() -> None:
        manager = EditionManager(engine.store)
        await manager.look()
        assert manager.get().id == current
        await engine.store.ping()
        with pytest.raises(StoreUnavailable):
            await manager.get().blocks("fundamentals", "A", 0, 1)
        with caplog.at_level(logging.ERROR):
            await manager.look()
        assert manager.get().id == before
        assert await manager.get().blocks("fundamentals", "A", 0, 1)
        with pytest.raises(StoreUnavailable) as failure:
            await engine.store.ping()
        assert "corrupt: block" in failure.value.cause, "/v1/status is degraded by the datastore"
        assert f"edition {current} is no longer served: corrupt: block" in caplog.text
        engine.store.close()

    run(serve)


@pytest.mark.deep
def test_what_is_pushed_from_postgresql_is_what_is_pushed_from_files(engine: Engine, tmp_path: Path) -> None:
    places: list[Path] = []
    for name, url in (("files", "sqlite:"), ("postgres", engine.url)):
        home = tmp_path / name
        home.mkdir()
        own = Engine(name, url, home)
        world = published_world(own)
        places.append(tmp_path / f"{name}-pushed")
        for step in (lambda: None, lambda world=world: a_figure(world)):
            step()
            world.published(world.cache)
            _push(own, places[-1])
        own.store.close()
    files, postgres = (
        {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file()}
        for place in places
    )
    assert files.keys() == postgres.keys()
    for path in files.keys() - {"editions.note"}:
        assert files[path].read_bytes() == postgres[path].read_bytes(), path
    assert any(path.startswith("deltas/") for path in files)


def _push(engine: Engine, place: Path) -> None:
    with closing(open_destination(str(place))) as destination:
        push(
            engine.store,
            destination,
            keep_unused=timedelta(days=1),
            progress=lambda name, size: None,
            now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        )


def test_a_later_version_of_the_tables_is_refused(engine: Engine) -> None:
    shelve(engine.store, "one")
    change(engine, "UPDATE version SET number = 99")
    with pytest.raises(OperatorError, match="of version 99, this one knows 1"):
        engine.store.build()
