"""Parquet: reported facts from rows in memory to files on disk, on as many processes as there are cores.

    python -m bench.export [--rows 30000000] [--processes 2]

The rows are those a build has at hand (each was read back from the bytes it serves), so this is what it
adds to a build to publish them; it goes through the product's own writer, one part of the table per process.
Beside it, how fast the same columns are written where nothing has to be turned into columns.
"""

import argparse
import gc
import multiprocessing
import random
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.world import reported
from sankofa.edition.arrow import Columns
from sankofa.edition.parquet import TableWriter
from sankofa.edition.tables import tables
from sankofa.model.line_items import line_item
from sankofa.model.rows import FundamentalsRow

_TARGET = 1_000_000
_POOL = 131_072


Spent = tuple[float, int, int]
"""Seconds of processor, bytes written, peak of memory."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.export")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    share = options.rows // options.processes
    with tempfile.TemporaryDirectory() as folder:
        for name, work in (("rows to Parquet", _from_rows), ("columns to Parquet", _from_columns)):
            begin = multiprocessing.Barrier(options.processes + 1)
            done = multiprocessing.Queue()
            workers = [
                multiprocessing.Process(target=work, args=(Path(folder), number, share, begin, done))
                for number in range(options.processes)
            ]
            for worker in workers:
                worker.start()
            begin.wait()
            began = time.perf_counter()
            told = [done.get() for _ in workers]
            took = time.perf_counter() - began
            for worker in workers:
                worker.join()
            rate = share * options.processes / took
            cpu = sum(spent for spent, _, _ in told) / (share * options.processes) * 1e6
            size = sum(size for _, size, _ in told) / 1e6
            memory = max(memory for _, _, memory in told) / 1024
            print(
                f"{name}: {share * options.processes:,} rows in {took:.1f} s = {rate:,.0f} rows/s "
                f"(target {_TARGET:,}: {rate / _TARGET:.2f}), {cpu:.2f} us of processor per row, "
                f"{size:,.0f} MB, peak {memory:,.0f} MiB per process"
            )


def _from_rows(folder: Path, number: int, rows: int, begin: Barrier, done: "Queue[Spent]") -> None:
    table = next(one for one in tables() if one.name == "af-fund-fundamentals")
    pool = _facts(number)
    gc.disable()  # as a build does
    place = folder / f"rows-{number}"
    place.mkdir()
    begin.wait()
    began = time.process_time()
    with ThreadPoolExecutor(1) as encoder:
        writer = TableWriter(place, table, encoder, rows_in_a_file=10_000_000)
        for at in range(0, rows, _POOL):
            for row in pool[: rows - at]:
                writer.add(row)
        writer.flush()
        files = writer.finish("bench", "nobody")
    spent = time.process_time() - began
    assert sum(file["row_count"] for file in files) == rows
    done.put((spent, sum(file["size_bytes"] for file in files), _peak()))


def _from_columns(folder: Path, number: int, rows: int, begin: Barrier, done: "Queue[Spent]") -> None:
    columns = Columns(FundamentalsRow)
    group = pa.Table.from_batches([columns.batch(_facts(number))])
    path = folder / f"columns-{number}.parquet"
    begin.wait()
    began = time.process_time()
    with pq.ParquetWriter(path, columns.schema, compression="zstd", write_page_index=True) as writer:
        for at in range(0, rows, _POOL):
            writer.write_table(group.slice(0, rows - at))
    done.put((time.process_time() - began, path.stat().st_size, _peak()))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _facts(seed: int) -> list[FundamentalsRow]:
    """Rows as varied as those of the SEC: 500 to an issuer, 300 concepts, a document for every twenty."""
    chance = random.Random(seed)
    concepts = [f"us-gaap:Concept{n}" for n in range(300)]
    rows = []
    for number in range(_POOL):
        year = 2010 + number % 14
        concept = chance.choice(concepts)
        rows.append(
            reported(
                year,
                service_id=f"DC{seed:04X}{number // 500:020X}",
                record_ref=f"{chance.getrandbits(96):024x}",
                line_item=line_item(concept),
                concept=concept,
                value_reported=Decimal(chance.randrange(10**10)),
                available_at=date(year + 1, 3, 1 + number % 28),
                source_ref=f"{number // 20:010d}-{year % 100}-000001#{concept} USD {year}",
            )
        )
    return rows


if __name__ == "__main__":
    main()
