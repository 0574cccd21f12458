"""The cost of the datastore for one request: a point-in-time read of 50 rows, and of 1,000.

    python bench/datastore.py [postgresql://user@host:port/empty_database]

Measures SQLite in a temporary folder and, where a URL is given, PostgreSQL: the same edition, the same
questions, in turns. In brackets: the blocks alone, by the engine and by the clients of two drivers, on one
connection each (asyncpg where it is installed).
"""

import asyncio
import importlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import uvloop

from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.read.edition_manager import open_edition
from sankofa.engines.datastore import Datastore
from sankofa.engines.factory import open_datastore
from sankofa.engines.postgres_parts import StoredPart, statement, stored_parts
from sankofa.ledger.store import SCHEMA

ISSUERS, ROWS_EACH = 500, 1_500
# As long as a row of fundamentals on the wire, and as compressible.
ROW = (
    b'{"service_id":"%s","record_ref":"%s","line_item":"item_%d","concept":"us-gaap:Revenues","value_reported":%d,'
    b'"currency_reported":"USD","unit":"USD","period_start":"2024-01-01","period_end":"2024-12-31",'
    b'"period_type":"FY","fiscal_year":2024,"available_at":"2025-03-14","vintage":1,"restated":false,'
    b'"superseded_at":null,"superseding_record_ref":null,"extraction_confidence":null,"method":"structured",'
    b'"source_ref":"0001045810-25-%06d#us-gaap/Revenues/USD","license_class":"public-domain",'
    b'"observed_at":"2026-11-01T09:30:00Z"}'
)
ROUNDS, READS = 8, 200
EDITION = "bench"

Read = Callable[[str], Awaitable[object]]


def fill(store: Datastore) -> list[str]:
    rng = random.Random(1)
    writer = store.build()
    number = 1
    keys = [f"DC{issuer:024X}" for issuer in range(ISSUERS)]
    for key in keys:
        rows = (
            Entry(ROW % (key.encode(), rng.randbytes(12).hex().encode(), n, rng.randrange(10**12), n))
            for n in range(ROWS_EACH)
        )
        blocks = [(number + n, *block) for n, block in enumerate(pack(rows))]
        writer.write(blocks)
        writer.register([("fundamentals", key, number, len(blocks))])
        number += len(blocks)
    writer.finish(EDITION, {"format": 1, "content_sha256": "bench"})
    store.set_current_and_prune([EDITION], EDITION)
    return keys


async def of_the_engine(store: Datastore, limit: int) -> Read:
    edition = await asyncio.to_thread(open_edition, store, EDITION)

    async def read(key: str) -> None:
        selection = await edition.select("fundamentals", key, day=739_000, limit=limit)
        assert selection is not None
        assert selection.count == limit

    return read


async def of_the_blocks(store: Datastore, blocks: int) -> Read:
    reader = await asyncio.to_thread(store.open, EDITION)

    async def read(key: str) -> None:
        assert len(await reader.blocks("fundamentals", key, 0, blocks) or ()) == blocks

    return read


def only_part(store: Datastore) -> StoredPart:
    return stored_parts(store.open(EDITION).manifest)[0]


async def of_psycopg(url: str, part: StoredPart, blocks: int) -> Read:
    import psycopg

    connection = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0)
    text = statement("blocks", part.dataset).text.decode()
    for number, name in enumerate(("part", "kind", "key", "skip", "most"), 1):
        text = text.replace(f"${number}", f"%({name})s")
    values = {"part": part.id, "kind": "fundamentals", "skip": 0, "most": blocks}

    async def read(key: str) -> None:
        cursor = await connection.execute(text.encode(), {**values, "key": key}, binary=True)
        assert len(await cursor.fetchall()) == blocks

    return read


async def of_asyncpg(url: str, part: StoredPart, blocks: int) -> Read:
    asyncpg = importlib.import_module("asyncpg")
    connection = await asyncpg.connect(url)
    prepared = await connection.prepare(statement("blocks", part.dataset).text.decode())

    async def read(key: str) -> None:
        assert len(await prepared.fetch(part.id, "fundamentals", key, 0, blocks)) == blocks

    return read


async def measure(read: Read, keys: list[str], callers: int) -> list[float]:
    """Seconds of the whole per read, then seconds of each read."""
    took: list[float] = []

    async def call(own: list[str]) -> None:
        for key in own:
            began = time.perf_counter()
            await read(key)
            took.append(time.perf_counter() - began)

    asked = random.choices(keys, k=READS)
    began = time.perf_counter()
    await asyncio.gather(*(call(asked[caller::callers]) for caller in range(callers)))
    return [(time.perf_counter() - began) / READS, *took]


async def compare(stores: dict[str, Datastore], keys: list[str], url: str | None) -> None:
    print("rows callers  reader       us a read   p50   p99   x SQLite")
    for limit in (50, 1_000):
        readers = {name: await of_the_engine(store, limit) for name, store in stores.items()}
        if url:  # as many blocks as an edition reads at first, without looking into them
            readers["(engine)"] = await of_the_blocks(stores["PostgreSQL"], 2)
            part = await asyncio.to_thread(only_part, stores["PostgreSQL"])
            readers["(psycopg)"] = await of_psycopg(url, part, 2)
            with suppress(ImportError):
                readers["(asyncpg)"] = await of_asyncpg(url, part, 2)
        for callers in (1, 16):
            shares: dict[str, list[float]] = {name: [] for name in readers}
            singles: dict[str, list[float]] = {name: [] for name in readers}
            for turn in range(ROUNDS + 1):
                for name, read in readers.items():
                    if name.startswith("(") and (callers > 1 or limit > 50):
                        continue  # one connection of a driver takes one question at a time
                    share, *each = await measure(read, keys, callers)
                    if turn:  # the first is to warm up
                        shares[name].append(share)
                        singles[name] += each
            for name, times in shares.items():
                if times:
                    mean = statistics.median(times) * 1e6
                    ratio = mean / (statistics.median(shares["SQLite"]) * 1e6)
                    p50, *_, p99 = (q * 1e6 for q in statistics.quantiles(singles[name], n=100)[49:])
                    print(
                        f"{limit:4} {callers:7}  {name:10} {mean:11.0f} {p50:5.0f} {p99:5.0f} {ratio:10.1f}"
                    )
    for store in stores.values():
        store.close()


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as folder:
        stores = {"SQLite": open_datastore("sqlite:", Path(folder), SCHEMA)}
        if url:
            stores["PostgreSQL"] = open_datastore(url, Path(folder), SCHEMA)
        keys: list[str] = []
        for name, store in stores.items():
            began = time.perf_counter()
            keys = fill(store)
            built = time.perf_counter()
            store.open(EDITION).close()
            size = ISSUERS * ROWS_EACH * len(ROW) / 1e6
            checked = time.perf_counter() - built
            print(f"{name}: {size:.0f} MB written in {built - began:.1f} s, checked in {checked:.1f} s")
        uvloop.run(compare(stores, keys, url))


if __name__ == "__main__":
    main()
