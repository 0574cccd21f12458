"""Parquet: reported facts to files on disk, with one process per core.

    python -m bench.export [--rows 3000000] [--processes 2]

The export is what a build does with its issuers, new or reused: their columns, here 2,000 rows each, go
through the product's own writer, one part of the table per process. Two more figures compare it: with making
these columns from rows first, as a build does for changed issuers; and with writing existing columns in large
chunks, without our code around it.
"""

import argparse
import gc
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from itertools import chain, count, islice
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow.parquet as pq

from bench.history import report
from bench.world import reported
from sankofa.edition.format.columns import encode_columns, in_force
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.parquet import TableWriter
from sankofa.edition.write.parquet_file import ParquetColumns
from sankofa.edition.write.tables import tables
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.model.line_items import line_item
from sankofa.model.rows import FundamentalsRow

_TARGET = 1_000_000
_AN_ISSUER = 2_000
_ISSUERS = 68
_TOGETHER = 17


Spent = tuple[float, int, int]
"""Seconds of processor time, bytes written, peak memory."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.export")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    share = options.rows // options.processes
    with tempfile.TemporaryDirectory() as folder:
        for name, work in (
            ("columns of issuers to Parquet", _from_issuers),
            ("rows to columns to Parquet", _from_rows),
            ("Arrow alone", _from_columns),
        ):
            begin = multiprocessing.Barrier(options.processes + 1)
            done: Queue[Spent] = multiprocessing.Queue()
            workers = [
                multiprocessing.Process(target=work, args=(Path(folder), number, share, begin, done))
                for number in range(options.processes)
            ]
            for worker in workers:
                worker.start()
            begin.wait()
            began = time.perf_counter()
            results = [done.get() for _ in workers]
            took = time.perf_counter() - began
            for worker in workers:
                worker.join()
            rate = share * options.processes / took
            cpu = sum(spent for spent, _, _ in results) / (share * options.processes) * 1e6
            size = sum(size for _, size, _ in results) / 1e6
            memory = max(memory for _, _, memory in results) / 1024
            print(
                f"{name}: {share * options.processes:,} rows in {took:.1f} s = {rate:,.0f} rows/s "
                f"({cpu:.2f} us of processor per row), {size:,.0f} MB, peak {memory:,.0f} MiB per process"
            )
            report(name, rate, unit="rows/s", least=_TARGET if work is _from_issuers else None)


def _from_issuers(folder: Path, number: int, rows: int, begin: Barrier, done: "Queue[Spent]") -> None:
    records = RecordFile(None)
    issuers = _issuers(number)
    records.fill((one[0].service_id, b"", pack_record({"columns": _columns(one)})) for one in issuers)
    names = [issuer[0].service_id for issuer in issuers]
    _written(
        folder / f"issuers-{number}",
        rows,
        lambda: (records.read(name, "columns") for name in names),
        begin,
        done,
    )


def _from_rows(folder: Path, number: int, rows: int, begin: Barrier, done: "Queue[Spent]") -> None:
    issuers = _issuers(number)
    _written(folder / f"rows-{number}", rows, lambda: map(_columns, issuers), begin, done)


def _written(
    folder: Path, rows: int, columns: Callable[[], Iterable[bytes]], begin: Barrier, done: "Queue[Spent]"
) -> None:
    """Write the columns of issuers repeatedly, as `write.parquet` does: some thousand rows together."""
    table = next(one for one in tables() if one.name == "af-fund-fundamentals")
    gc.disable()  # as a build does
    folder.mkdir()
    begin.wait()
    began = time.process_time()
    with ThreadPoolExecutor(1) as encoder:
        writer = TableWriter(folder, table, encoder, rows_in_a_file=10_000_000, owed=lambda _: "nobody")
        source = chain.from_iterable(columns() for _ in count())
        for _ in range(0, rows, _TOGETHER * _AN_ISSUER):
            writer.add_columns(in_force(islice(source, _TOGETHER)))
        writer.flush()
        files = writer.finish()
    spent = time.process_time() - began
    assert sum(file["row_count"] for file in files) >= rows
    done.put((spent, sum(file["size_bytes"] for file in files), _peak()))


def _from_columns(folder: Path, number: int, rows: int, begin: Barrier, done: "Queue[Spent]") -> None:
    columns = ParquetColumns(FundamentalsRow)
    group = columns.table([row for issuer in _issuers(number) for row in issuer])
    path = folder / f"columns-{number}.parquet"
    begin.wait()
    began = time.process_time()
    with pq.ParquetWriter(path, columns.schema, compression="zstd", write_page_index=True) as writer:
        for at in range(0, rows, group.num_rows):
            writer.write_table(group.slice(0, rows - at))
    done.put((time.process_time() - began, path.stat().st_size, _peak()))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _columns(rows: list[FundamentalsRow]) -> bytes:
    (columns,) = encode_columns(FundamentalsRow, rows, [Entry(b"")] * len(rows), {})
    return columns


def _issuers(seed: int) -> list[list[FundamentalsRow]]:
    """Rows as varied as those of the SEC: 2,000 per issuer, 300 concepts, a document for every twenty."""
    chance = random.Random(seed)
    concepts = [f"us-gaap:Concept{n}" for n in range(300)]
    return [
        [
            _fact(chance, f"DC{seed:04X}{issuer:020X}", number, chance.choice(concepts))
            for number in range(_AN_ISSUER)
        ]
        for issuer in range(_ISSUERS)
    ]


def _fact(chance: random.Random, service_id: str, number: int, concept: str) -> FundamentalsRow:
    year = 2010 + number % 14
    return reported(
        year,
        service_id=service_id,
        record_ref=f"{chance.getrandbits(96):024x}",
        line_item=line_item(concept),
        concept=concept,
        value_reported=Decimal(chance.randrange(10**10)),
        available_at=date(year + 1, 3, 1 + number % 28),
        source_ref=f"{number // 20:010d}-{year % 100}-000001#{concept} USD {year}",
    )


if __name__ == "__main__":
    main()
