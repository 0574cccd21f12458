"""Formats and changes: 10,000 rows as JSON, CSV and Arrow, and all pages over unchanged keys.

    python -m bench.forms [--rounds 15]

Runs in one process, without HTTP, to compare the work of writing the same rows. There is no goal; the ratio
to JSON is the cost of a client's `Accept`.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

from bench.history import report
from bench.world import reported
from sankofa.edition.format.keys import LAYOUT
from sankofa.edition.read.changes import FEEDS, ChangePosition, page
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.edition_manager import open_edition
from sankofa.engines.block_file import stored_block
from sankofa.engines.datastore import open_datastore
from sankofa.ledger.store import SCHEMA
from sankofa.model.rows import FundamentalsRow, wire
from sankofa.operations.answers import envelope
from sankofa.operations.contract import Answer, endpoints
from sankofa.rest.formats import ARROW, CSV, negotiated_format

_ROWS = 10_000
_KEYS = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.forms")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        one, two = _editions(Path(folder))
        _written(one, rounds)
        _unchanged_pages(one, two)


def _written(edition: Edition, rounds: int) -> None:
    operation = next(o for o in endpoints() if o.name == "get_fundamentals")
    answer = Answer(Selection([wire.encode(_row(n)) for n in range(_ROWS)], _ROWS, truncated=False))

    def written(form: str) -> Callable[[], bytes]:
        chosen = negotiated_format(form.encode())
        if chosen is None:
            return lambda: envelope(answer, edition, operation)
        return lambda: chosen.body(operation, answer, edition)[1]

    baseline = 0.0
    print(f"{_ROWS:,} rows of fundamentals, median of {rounds}")
    for form in ("application/json", CSV, ARROW):
        write = written(form)
        size = len(write())
        took = statistics.median(_timed(write) for _ in range(rounds))
        baseline = baseline or took
        print(f"{form:<38} {took / baseline:6.1f} x JSON  {size / 1e6:6.2f} MB")
        report(f"{_ROWS:,} rows as {form.partition(';')[0]}", took * 1e3, unit="ms")


def _editions(folder: Path) -> tuple[Edition, Edition]:
    """Two editions of the same small records."""
    store = open_datastore("sqlite:", folder, SCHEMA)
    for edition in ("one", "two"):
        writer = store.build()
        writer.write([stored_block(b"", b"{}")] * _KEYS)
        writer.register([("entity", f"DC{n:024X}", n, 1) for n in range(1, _KEYS + 1)])
        writer.finish(edition, {"format": LAYOUT, "content_sha256": edition, "built_from": ""})
    return open_edition(store, "one"), open_edition(store, "two")


def _unchanged_pages(one: Edition, two: Edition) -> None:
    """Reads only their keys."""
    dataset = FEEDS[1].dataset

    async def read_pages(effort: int) -> int:
        pages = 0
        following: ChangePosition | None = ChangePosition(dataset)
        while following is not None:
            _, following = await page(one, two, following, 100, dataset=dataset, effort=effort)
            pages += 1
        return pages

    began = time.process_time()
    pages = asyncio.run(read_pages(20_000))
    took = time.process_time() - began
    each = took / pages * 1e3
    print(f"{_KEYS:,} keys that did not change: {took:.2f} s in {pages} pages, {each:.0f} ms each")


def _timed(write: Callable[[], bytes]) -> float:
    began = time.process_time()
    write()
    return time.process_time() - began


def _row(number: int) -> FundamentalsRow:
    year, concept = 2004 + number % 20, f"us-gaap:Concept{number % 500}"
    return reported(
        year,
        service_id="DC46AF1B1AAA424B58D1368176",
        record_ref=f"{number:024x}",
        line_item=f"item_{number % 500}",
        concept=concept,
        value_reported=Decimal(number * 1_234_567),
        available_at=date(year + 1, 3, 1),
        source_ref=f"0000000000-{year % 100:02d}-000001#{concept}",
    )


if __name__ == "__main__":
    main()
