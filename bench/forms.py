"""Formats and changes: 10,000 rows as JSON, CSV and Arrow, all pages over unchanged keys, and a panel.

    python -m bench.forms [--rounds 15] [--issuers 4000] [--fresh]

The first two run in one process, without HTTP, to compare the work of writing the same rows. They have no
goal; the ratio to JSON is the cost of a client's `Accept`. The panel is a hundred months of many issuers with
ten metrics, all its pages asked from a server one after the other. The issuers have twenty years each.
"""

import argparse
import asyncio
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

from bench.fundamentals import issue_key
from bench.histories import FLOWS, SECRET, STOCKS, fill
from bench.history import report
from bench.load import Question
from bench.peers.commands import sankofa
from bench.world import CACHE, SANKOFA, environment_of, reported
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

_METRICS = """asset_turnover current_ratio gross_margin liabilities_to_assets net_margin operating_margin
profit_growth return_on_assets return_on_equity revenue_growth""".split()
_INPUTS = """Revenues CostOfRevenue GrossProfit OperatingIncomeLoss ProfitLoss Assets AssetsCurrent
Liabilities LiabilitiesCurrent StockholdersEquity""".split()
_NEXT = re.compile("<http://[^/]+(/[^>]+)>")
_ROWS = 10_000
_KEYS = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.forms")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--issuers", type=int, default=4_000)
    parser.add_argument("--fresh", action="store_true", help="publish the issuers of the panel again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one, two = _editions(Path(folder))
        _written(one, options.rounds)
        _unchanged_pages(one, two)
    _panel(options.issuers, fresh=options.fresh)


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


def _panel(issuers: int, *, fresh: bool) -> None:
    home = CACHE / f"home-panel-{issuers}"
    if fresh or not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / "gate-secret").write_text(SECRET)
        inputs = [one for one in (*FLOWS, *STOCKS) if one.partition(":")[2] in _INPUTS]
        fill(home, range(issuers), only=inputs)
        subprocess.run([SANKOFA, "publish"], env=environment_of(home), check=True, stdout=subprocess.DEVNULL)
        (home / "made").touch()
    headers = {"X-API-Key": issue_key(home, "professional")}
    months = "every=month&from=2014-01-01&to=2022-04-30&limit=10000"
    for form in ("json", "csv", "arrow"):
        with sankofa(home) as server:
            before, began, pages, size, own = server.cpu_seconds(), time.perf_counter(), 0, 0, 0
            path = f"/v1/panel?metrics={','.join(_METRICS)}&{months}&format={form}"
            while path:
                with server.fetch(Question(path), headers) as answer:
                    size += len(answer.read())
                    following = _NEXT.match(answer.getheader("link") or "")
                if answer.status != 200:
                    raise SystemExit(f"{path}: status {answer.status}")
                path, pages = following[1] if following else "", pages + 1
                own = max(own, server.memory()[0])
            took, spent = time.perf_counter() - began, server.cpu_seconds() - before
            print(f"{form}: {pages} pages, {size / 1e6:.0f} MB")
            what = f"a hundred months of {issuers:,} issuers, ten metrics, {form}"
            report(f"{what}, processor time", spent, unit="s", most=5)
            report(f"{what}, time", took, unit="s", most=5)
            report(f"{what}, memory without mapped files", own / 1e6, unit="MB", most=500)


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
