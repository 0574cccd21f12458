"""Shared by tests of datastore engines: one interface to both, and small editions."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import psycopg

import sankofa
from sankofa.edition.write.publish import publish
from sankofa.engines.block_file import BlockFileReader, stored_block
from sankofa.engines.checked_file import CheckedFile, FileStates
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_reader import describe_file
from sankofa.engines.ledger_store import Row
from sankofa.ledger.ingest import files_under, ingest
from sankofa.ledger.store import Ledger
from sankofa.replication.stores import editions_folder, open_store
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources
from tests.tampering import part_of

T = TypeVar("T")

SAMPLE = Path(sankofa.__file__).parent / "sample"
SAMPLE_SOURCES = (
    ("sample-lei", "lei"),
    ("sample-filings", "filings"),
    ("sample-companyfacts", "companyfacts"),
)
SMALL_SOURCES = (("sample-lei", "lei"), ("sample-isin", "isin"), ("sample-tenders-ke", "tenders-ke"))
"""For tests that need any edition: most of the time goes into the filings of the sample."""
NOW = datetime(2026, 11, 1, 9, 30, tzinfo=UTC)
BLOCKS = [(number, b"index %d" % number, b"rows %d " % number * 5000) for number in range(1, 8)]
BLOCK_RANGES = [("fundamentals", "A", 1, 5), ("fundamentals", "B", 6, 0), ("entity", "A", 6, 2)]


class Engine:
    def __init__(self, name: str, url: str, home: Path) -> None:
        self.name = name
        self.url = url
        self.home = home
        settings = Settings(home=home, datastore=url)
        self.editions = editions_folder(settings)
        self.store: Datastore = open_store(settings)

    def raw(self, statement: str) -> list[Row]:
        """Go around the product, as any client of the store can."""
        if self.name == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(b"SET search_path = sankofa_ledger")
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.home / "ledger.sqlite", isolation_level=None)) as database:
            return database.execute(statement).fetchall()

    def leftovers(self) -> list[str]:
        """Leftover files of editions that were removed."""
        listed = self.store.list_editions().editions
        expected = {"CURRENT", "PUBLISHED", "editions.note", *listed}
        if self.name == "postgres":
            expected |= {"FOLLOWING", ".look.lock"}
        return sorted({path.name for path in self.editions.iterdir()} - expected)

    def damage(self, edition: str, what: str) -> None:
        """Damage an edition as a careless user or a bad disk would."""
        folder = self.editions / edition
        target = what.partition(" ")[2]
        path = part_of(folder) if target == "part" else folder / target
        if what.startswith("remove"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            return
        path.chmod(0o644)
        content = bytearray(path.read_bytes())
        if what.startswith("shorten"):
            del content[-100:]
        else:
            content[len(content) // 2] ^= 1
        path.write_bytes(content)


def keys_of(path: Path) -> list[tuple[str, str]]:
    """Every (kind, key) in a file of blocks."""
    blocks = block_file(path)
    names = (blocks._name_at(at).decode().partition("\0") for at in blocks._order)
    return [(kind, key) for kind, _, key in names]


def block_file(path: Path) -> BlockFileReader:
    """The block file of an edition, whatever it holds."""
    _, size, digests = describe_file(path)
    return BlockFileReader(CheckedFile(path, size, digests, FileStates()))


def fact_rows(number: int, subject: str = "lei:X") -> list[Row]:
    return [(subject, "s", n, 1, f"told {n}", 1) for n in range(number)]


def shelve(
    store: Datastore, edition: str, blocks: Sequence[tuple[int, bytes, bytes]] = BLOCKS, *, content: str = ""
) -> None:
    """Build a small edition without making it current."""
    writer = store.build()
    writer.write(stored_block(index, rows) for _, index, rows in blocks[:3])
    writer.write(stored_block(index, rows) for _, index, rows in blocks[3:])
    writer.register(BLOCK_RANGES[:2])
    writer.register(BLOCK_RANGES[2:])
    writer.finish(edition, {"format": 1, "content_sha256": content or edition, "rows": {"fundamentals": 1}})


def ingest_sample(engine: Engine, sources: Sequence[tuple[str, str]] = SAMPLE_SOURCES) -> Ledger:
    """Ingest the bundled sample world through the real pipeline; the ledger stays open."""
    ledger = Ledger(engine.store, b"a key of the tests", lambda: NOW)
    registered = load_sources(engine.home)
    for source_id, folder in sources:
        summary = ingest(
            ledger,
            registered[source_id],
            files_under([SAMPLE / folder]),
            rejects_folder=engine.home / "rejects",
            clock=lambda: NOW,
        )
        assert not summary.failures
    return ledger


def publish_sample(engine: Engine, sources: Sequence[tuple[str, str]] = SAMPLE_SOURCES) -> dict[str, Any]:
    with closing(ingest_sample(engine, sources)) as ledger:
        return publish(engine.store, ledger, keep=3)


def run(
    steps: Callable[[], Awaitable[T]], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run the steps in a new event loop; fail if they leave a task behind."""

    async def scene() -> T:
        result = await steps()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(scene())
