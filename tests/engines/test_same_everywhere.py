"""The sample world on every engine: the same edition, blocks, keys and files."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sankofa.engines.datastore import EditionReader
from tests.edition_parts import parts_of
from tests.engines.datastores import SAMPLE_SOURCES, Engine, keys_of, publish_sample, run
from tests.services import PostgresServer

pytestmark = pytest.mark.deep

SOURCES = (*SAMPLE_SOURCES, ("sample-tenders-za", "tenders-za"), ("sample-worldbank", "worldbank"))


class Published(NamedTuple):
    """Where the sample was published, and what of it."""

    name: str
    url: str
    home: Path
    manifest: dict[str, Any]

    @property
    def edition(self) -> str:
        return str(self.manifest["edition"])

    def open(self) -> Engine:
        return Engine(self.name, self.url, self.home)


def _publish(name: str, url: str, home: Path) -> Published:
    home.mkdir()
    engine = Engine(name, url, home)
    try:
        return Published(name, url, home, publish_sample(engine, SOURCES))
    finally:
        engine.store.close()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return _publish("sqlite", "sqlite:", tmp_path_factory.mktemp("reference") / "home")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Published]:
    home = tmp_path_factory.mktemp("published") / "a home #1? 100%"
    if request.param == "sqlite":
        yield _publish("sqlite", "sqlite:", home)
        return
    server: PostgresServer = request.getfixturevalue("postgres_process")
    server.ensure()
    with server.database() as url:
        yield _publish("postgres", url, home)


@pytest.mark.rule("PUB-4")
def test_the_same_ledger_gives_the_same_edition(published: Published, reference: Published) -> None:
    assert published.manifest == reference.manifest
    engine = published.open()
    assert engine.store.list_editions() == ((reference.edition,), reference.edition)
    engine.store.close()


@pytest.mark.rule("PUB-4")
def test_every_key_has_the_same_blocks(published: Published, reference: Published) -> None:
    parts = parts_of(reference.home / "editions" / reference.edition)
    keys = [key for part in parts for key in keys_of(part)]
    assert len(keys) > 20

    async def compare() -> None:
        one, other = reference.open(), published.open()
        theirs, ours = one.store.open(reference.edition), other.store.open(reference.edition)
        for kind, key in keys:
            assert await ours.blocks(kind, key, 0, 99) == await theirs.blocks(kind, key, 0, 99)
        await other.store.ping()
        ours.close()
        theirs.close()
        one.store.close()
        other.store.close()

    run(compare)


def test_every_key_is_listed(published: Published, reference: Published) -> None:
    kinds = ("entity", "fundamentals", "crosswalk", "metrics", "word")
    parts = parts_of(reference.home / "editions" / reference.edition)
    keys = [key for part in parts for key in keys_of(part)]

    async def compare() -> None:
        engine = published.open()
        reader = engine.store.open(reference.edition)
        for kind in kinds:
            found = await reader.digests(kind, "", 10_000)
            assert [key for key, _ in found] == sorted(key for same, key in keys if same == kind)
        reader.close()
        engine.store.close()

    run(compare)


def test_every_file_has_the_same_bytes(published: Published, reference: Published) -> None:
    files = reference.manifest["files"]
    assert len(files) > 20

    async def compare() -> None:
        one, other = reference.open(), published.open()
        theirs, ours = one.store.open(reference.edition), other.store.open(reference.edition)
        for file in files:
            found = await content(ours, file)
            assert hashlib.sha256(found).hexdigest() == file["sha256"]
            assert found == await content(theirs, file)
        ours.close()
        theirs.close()
        one.store.close()
        other.store.close()

    run(compare)


async def content(reader: EditionReader, file: dict[str, Any]) -> bytes:
    return await reader.file_bytes(file["name"], 0, file["size_bytes"])
