"""The longest time that each operation blocks the event loop, and so every other request.

    python -m bench.loop [--rounds 5] [--fresh] [FILE]

The application runs in this process over the sample world and one large issuer: FILE (SEC companyfacts; by
default NVIDIA's, of 26,903 facts, if the folder of real inputs is beside the project, else a generated one).
`loop` is the processor time of the longest callback. `beat` is the longest delay of a heartbeat by the clock,
which includes threads that hold the interpreter. Both are medians of the rounds.
"""

import argparse
import asyncio
import gc
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.history import report
from bench.world import CACHE, ROOT, SANKOFA, SCALES, SOURCE, environment_of, files
from sankofa.mcp.surface import McpSurface
from sankofa.model.identifiers import cik, service_id
from sankofa.operations.service import Service
from sankofa.rest.app import RestApp
from sankofa.rest.pages import open_pages
from sankofa.settings import Settings
from sankofa.web.app import WebApp
from sankofa.web.responses import PageCache
from sankofa.web.view import pages

_TARGET_MS = 50.0
_NVIDIA = ROOT.parent / "shared" / "data" / "fundamentals" / "companyfacts" / "CIK0001045810.json"
_MANY_WORDS = " ".join("abcdefghij"[n % 10] + "a" for n in range(60))
_BEAT = 0.001
Application = Callable[..., Awaitable[None]]


class Question(NamedTuple):
    """A request, and its name in the report."""

    name: str
    path: str
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes | None = None


class _Holds:
    """The longest callback of the loop by processor time, and the latest heartbeat by the clock."""

    def __init__(self) -> None:
        self.cpu = self.beat = 0.0

    def watch(self) -> None:
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.Handle) -> Any:
            began = time.thread_time()
            try:
                return run(handle)
            finally:
                self.cpu = max(self.cpu, time.thread_time() - began)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]

    async def pulse(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_BEAT)
            self.beat = max(self.beat, time.perf_counter() - began - _BEAT)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("file", nargs="?", type=Path)
    options = parser.parse_args()
    source = options.file or (_NVIDIA if _NVIDIA.exists() else None)
    home, issuer = _home(source, fresh=options.fresh)
    key = subprocess.run(
        [SANKOFA, "keys", "create", "--tier", "professional", "--per-minute", "1000000"],
        env=environment_of(home), check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    worst = asyncio.run(_measure(home, issuer, key, options.rounds))
    if not report("longest hold of the event loop, processor time", worst, unit="ms", most=_TARGET_MS):
        sys.exit(1)


def _home(source: Path | None, *, fresh: bool) -> tuple[Path, str]:
    home = CACHE / "home-loop"
    stamp = home / "made"
    if fresh or not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        environment = environment_of(home)
        home.mkdir(parents=True)
        documents = [source] if source else files(SCALES["small"])
        for command in (["sample"], ["ingest", SOURCE, *map(str, documents)], ["publish"]):
            subprocess.run([SANKOFA, *command], env=environment, check=True, stdout=subprocess.DEVNULL)
        number = json.loads(source.read_bytes())["cik"] if source else SCALES["small"].shapes[-1].first_cik
        stamp.write_text(service_id(cik(str(number))))
    return home, stamp.read_text()


def questions(issuer: str, editions: tuple[str, ...]) -> list[Question]:
    every = f"/v1/fundamentals/{issuer}?vintages=all"
    oldest = f"/v1/changes?since={editions[-1]}&limit=10000"
    listed = [Question(f"fundamentals {name or 'plain'}", every, {"accept-encoding": name})
             for name in ("", "gzip", "br", "zstd")]  # fmt: skip
    listed += [
        Question("fundamentals latest, gzip", f"/v1/fundamentals/{issuer}", {"accept-encoding": "gzip"}),
        Question("fundamentals csv, gzip", every, {"accept": "text/csv", "accept-encoding": "gzip"}),
        Question("fundamentals arrow", every, {"accept": "application/vnd.apache.arrow.stream"}),
        Question("shared facts", f"/v1/shared/facts?entity_id={issuer}&limit=10000"),
        Question("macro series, proven", "/v1/macro?series=FX.EUR.ZAR&limit=10000&proof=true"),
        Question(
            "shared facts, a measure", f"/v1/shared/facts?entity_id={issuer}&measure=assets&limit=10000"
        ),
        Question("changes, everything", "/v1/changes?dataset=fundamentals&limit=10000"),
        Question("changes since", oldest),
        Question("metrics", f"/v1/metrics/{issuer}?limit=10000"),
        Question("screen", "/v1/screen?metric=revenue_growth&limit=10000"),
        Question("macro by as_of", "/v1/macro?as_of=2026-01-01&limit=10000", {"accept-encoding": "br"}),
        Question("macro csv", "/v1/macro?as_of=2026-01-01&limit=10000", {"accept": "text/csv"}),
        Question("macro of no day", "/v1/macro?as_of=1900-01-01&limit=10000"),
        Question("tenders", "/v1/tenders?country=ZA&limit=10000", {"accept-encoding": "gzip"}),
        Question("tender parties", "/v1/tender-parties?limit=10000", {"accept-encoding": "gzip"}),
        Question("signals", "/v1/signals/macro-momentum?limit=10000", {"accept-encoding": "br"}),
        Question("signals csv", "/v1/signals/macro-momentum?limit=10000", {"accept": "text/csv"}),
        Question("search, a name", "/v1/search?q=kgalagadi%20retail&limit=10000"),
        Question("search, a slip", "/v1/search?q=kgalagody%20retial&limit=10000"),
        Question("search, many words", f"/v1/search?q={_MANY_WORDS[:180].replace(' ', '%20')}&limit=10000"),
        Question("issuers", "/v1/issuers?limit=10000"),
        Question(
            "panel",
            "/v1/panel?metrics=revenue_growth,net_margin&from=2015-01-01&to=2023-04-30&limit=10000",
        ),
        Question(
            "issuers of a day, gzip", "/v1/issuers?as_of=2020-06-30&limit=10000", {"accept-encoding": "gzip"}
        ),
        Question("statement", f"/v1/statements/{issuer}"),
        Question("statement, one kind", f"/v1/statements/{issuer}?kind=income&period_type=Q1"),
        Question("statement, wide", f"/v1/statements/{issuer}?shape=wide"),
        Question("statement, wide, csv", f"/v1/statements/{issuer}?shape=wide", {"accept": "text/csv"}),
        Question("series", "/v1/series?limit=10000"),
        Question("series by words", "/v1/series?q=population&limit=10000"),
        Question("vintages of a series", "/v1/series/FX.EUR.ZAR/vintages?limit=10000"),
        Question("revisions of a series", "/v1/series/FX.EUR.ZAR/revisions"),
        Question("tenders, filtered", "/v1/tenders?closing_from=2000-01-01&min_value=1&status=x&limit=10000"),
        Question("matrix of a series", "/v1/series/FX.EUR.ZAR/matrix?from=2026-01-01"),
        Question("matrix of a line item", f"/v1/fundamentals/{issuer}/matrix?line_item=assets"),
        Question("contract", "/v1/contracts/ocds-999sza-00134"),
        Question("proof of a row", f"/v1/proof?record_ref=entities:{issuer}"),
        Question("red flags", "/v1/flags?limit=10000"),
        Question("red flags of a process", "/v1/flags?ocid=ocds-999sza-00134"),
        Question("restatements", "/v1/restatements?limit=10000"),
        Question("check of a claim", f"/v1/check?subject={issuer}&measure=assets&period=2020&value=1bn"),
        Question("restatements, none so large", "/v1/restatements?min_change=999999&limit=10000"),
        Question("sources", "/v1/sources"),
        Question("coverage", "/v1/coverage?limit=10000"),
        Question("usage", "/v1/usage"),
        Question("cross rates", "/v1/cross-rates?base=GBP&quote=ZAR&limit=10000"),
        Question("crosswalk", "/v1/crosswalk?id_type=ticker&id_value=NYSE:GFI"),
        Question("crosswalk of one", f"/v1/crosswalk/{issuer}"),
        Question("entity", f"/v1/entities/{issuer}"),
        Question("entity on a day", f"/v1/entities/{issuer}?as_of=2020-06-30"),
        Question("history of an entity", f"/v1/entities/{issuer}/history"),
        Question("export", "/v1/export"),
        Question("quality", "/v1/quality-metrics/AF-FUND"),
        Question("procurement demand", "/v1/signals/procurement-demand?limit=10000"),
        Question("openapi", "/openapi.json", {"accept-encoding": "br"}),
    ]
    listed += [
        Question(f"page {path}", address, {"accept": "text/html"})
        for path, address in page_addresses(issuer).items()
    ]
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "fundamentals, all": ("get_fundamentals", {"service_id": issuer, "vintages": "all"}),
        "fundamentals, 100 line items": (
            "get_fundamentals",
            {"service_id": issuer, "vintages": "all", "line_items": ["assets"] + ["b"] * 99},
        ),
        "fundamentals, 95,000 line items": (
            "get_fundamentals", {"service_id": issuer, "line_items": [f"a{n}" for n in range(95_000)]},
        ),
        "fundamentals, 9,000 line items": (
            "get_fundamentals", {"service_id": issuer, "line_items": [f"a{n}" for n in range(9_000)]},
        ),
        "search, many words": ("search_entities", {"query": _MANY_WORDS[:180]}),
        "search, one letter": ("search_entities", {"query": "a", "limit": 100}),
        "search tenders, many words": ("search_tenders", {"query": _MANY_WORDS[:180]}),
        "search tenders, a common word": ("search_tenders", {"query": "supply", "limit": 10_000}),
    }  # fmt: skip
    for name, (tool, arguments) in calls.items():
        listed.append(Question(f"mcp {name}", "/mcp", body=_call(tool, arguments)))
    nested = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":%b}}}'
    listed.append(Question("mcp 1 MB of lists", "/mcp", body=nested % (b"[" * 500_000 + b"]" * 500_000)))
    listed.append(Question("mcp 1 MB of objects", "/mcp", body=nested % (b"[" + b"{}," * 340_000 + b"0]")))
    listed.append(Question("mcp 1 MB of numbers", "/mcp", body=nested % (b"[" + b"1," * 500_000 + b"0]")))
    keys = b",".join(b'"%d":1' % n for n in range(90_000))
    listed.append(Question("mcp 1 MB of keys", "/mcp", body=nested % (b"{%b}" % keys)))
    return listed


def page_addresses(issuer: str) -> dict[str, str]:
    """The largest question of every page by its route; the plain address of a page without parameters."""
    words = "/docs?q=the%20of%20and%20to%20in%20is%20a%20for"
    largest = {
        "/search": "/search?q=supply%20of%20goods",
        "/companies": "/companies?as_of=2024-06-30",
        "/company/{service_id}": f"/company/{issuer}?period=quarter&as_of=2024-06-30",
        "/company/{service_id}/figure": f"/company/{issuer}/figure?line_item=assets",
        "/company/{service_id}/changes": f"/company/{issuer}/changes",
        "/country/{country}": "/country/ZA",
        "/macro": "/macro?q=gdp",
        "/macro/series/{series}": "/macro/series/FX.EUR.ZAR?as_of=2024-06-30",
        "/macro/indicator/{indicator}": "/macro/indicator/NY.GDP.MKTP.CD",
        "/tenders": "/tenders?country=ZA&limit=10000",
        "/tender/{country}/{ocid*}": "/tender/KE/none",
        "/parties": "/parties?country=KE",
        "/buyer/{country}/{name*}": "/buyer/KE/none",
        "/supplier/{country}/{name*}": "/supplier/KE/none",
        "/problems/{slug}": "/problems/not-found",
        "/methodology/{name*}": "/methodology/metrics-v1/net_margin",
        "/screen": "/screen?metric=net_margin&as_of=2024-12-31&beside=2023-12-31",
        "/signals/{signal_key}": "/signals/macro-momentum?limit=10000",
        "/docs": words,
        "/docs/api/{name}": "/docs/api/get_fundamentals",
        "/docs/{name*}": "/docs/contract",
    }
    return {path: largest.get(path, path) for path in pages()}


def _call(tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


async def _measure(home: Path, issuer: str, key: str, rounds: int) -> float:
    service = Service(Settings(home=home))
    agents = McpSurface(service)
    api, web = RestApp(service, open_pages(service), mounted={"/mcp": agents}), WebApp(service)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (web if web.answers(scope) else api)(scope, receive, send)

    holds = _Holds()
    holds.watch()
    worst = 0.0
    await service.start()
    gc.collect()
    gc.freeze()  # as the application does once it has started
    pulse = asyncio.create_task(holds.pulse())
    print(f"{'':36}{'status':>8}{'kB':>10}{'loop ms':>10}{'beat ms':>10}")
    for question in questions(issuer, service.datastore.list_editions().editions):
        cpu, beats = [], []
        status = size = 0
        for _ in range(rounds):
            holds.cpu = holds.beat = 0.0
            web._cache = PageCache()  # each round writes the page
            status, size = await ask(app, question, key)
            await asyncio.sleep(2 * _BEAT)
            cpu.append(holds.cpu * 1000)
            beats.append(holds.beat * 1000)
        print(
            f"{question.name:36}{status:8}{size / 1000:10,.0f}{median(cpu):10.1f}{median(beats):10.1f}",
            flush=True,
        )
        worst = max(worst, median(cpu))
    pulse.cancel()
    await service.stop()
    return worst


async def ask(app: Application, question: Question, key: str) -> tuple[int, int]:
    """Call the application as the server would: the status, and the size of the body."""
    path, _, query = question.path.partition("?")
    headers = {"host": "localhost", "x-api-key": key, **question.headers}
    if question.body is not None:
        headers |= {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2025-11-25",
        }
    scope: dict[str, Any] = {
        "type": "http", "method": "GET" if question.body is None else "POST", "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "http_version": "1.1", "scheme": "http",
        "root_path": "", "server": ("localhost", 80), "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    pending = [{"type": "http.request", "body": question.body or b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if pending:
            return pending.pop()
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], sum(len(message.get("body", b"")) for message in sent[1:])


if __name__ == "__main__":
    main()
