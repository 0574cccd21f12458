"""The Prometheus metrics of a service: what the workers count, added up and served by a process of its own.

It answers one scrape at a time and keeps a few connections: one that sends nothing costs no thread.
"""

import asyncio
import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sankofa import __version__
from sankofa import settings as environment
from sankofa.cli.observers import BYTES, SECONDS, Requests, WorkerCounts
from sankofa.cli.process import now
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.limits import limit
from sankofa.operations.service import build_id
from sankofa.replication.following_store import FollowState, read_state
from sankofa.replication.stores import editions_folder, followed_address, open_store
from sankofa.settings import Settings

_LEDGER_SECONDS: Final = 15.0
_REQUEST_SECONDS: Final = limit(
    "time for a request on the metrics port", 5.0, "seconds", "the connection is closed"
)
_MOST_CONNECTIONS: Final = limit(
    "connections to the metrics port", 64, "connections", "the oldest one is closed"
)
_LONGEST_HEAD: Final = limit("request on the metrics port", 16 << 10, "bytes", "the connection is closed")
_HEAD_ENDS: Final = b"\r\n\r\n"
_decode = msgspec.json.Decoder(WorkerCounts).decode


class ServiceCollector(Collector):
    """Reads the files of the workers at each scrape. Counts of a worker that ended stay in the totals."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._ended_path = folder / "ended.json"
        self._ended = WorkerCounts()
        if self._ended_path.exists():  # of the process before this one
            self._ended = _decode(self._ended_path.read_bytes())
        self._ingested: dict[str, Counter[str]] = {}

    async def watch_ledger(self) -> None:
        """Read what was ingested every few seconds."""
        store = open_store(self._settings)
        while True:
            with suppress(OperatorError, StoreUnavailable):  # then the last that was read stands
                self._ingested = await asyncio.to_thread(lambda: _by_source(store.ledgers.captured()))
            await asyncio.sleep(_LEDGER_SECONDS)

    def collect(self) -> Iterator[Metric]:
        running = self._read()
        total = _added_up([self._ended, *running.values()])
        yield from _request_metrics(total)
        yield from _state_metrics(running.values())
        yield from _worker_metrics(running)
        yield from _ingest_metrics(self._ingested)
        if followed_address(self._settings):
            yield from _following_metrics(read_state(editions_folder(self._settings)))
        build = InfoMetricFamily("sankofa_build", "The version that is running.")
        build.add_metric([], {"version": __version__, "build": build_id()})
        yield build

    def _read(self) -> dict[int, WorkerCounts]:
        """The counts of each running worker by its process; those of the others are put by."""
        running: dict[int, WorkerCounts] = {}
        for path in sorted(self._folder.glob("[0-9]*.json")):
            pid = int(path.stem)
            try:
                counts = _decode(path.read_bytes())
            except (OSError, msgspec.DecodeError):
                continue
            if _is_running(pid):
                running[pid] = counts
            else:
                self._ended = _added_up([self._ended, counts])
                self._ended_path.write_bytes(msgspec.json.encode(self._ended))
                path.unlink(missing_ok=True)
        return running


def serve_metrics(folder: Path, listener: socket.socket) -> None:
    """Serve the counts in the folder until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the supervisor ends this process
    collector = ServiceCollector(folder, environment.load())
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    asyncio.run(_serve(collector, registry, listener))


async def _serve(collector: ServiceCollector, registry: CollectorRegistry, listener: socket.socket) -> None:
    connections: dict[asyncio.StreamWriter, None] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(connections) >= _MOST_CONNECTIONS:  # the oldest has had the most time
            connections.pop(oldest := next(iter(connections)))
            oldest.transport.abort()
        connections[writer] = None
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                writer.write(_answered(await reader.readuntil(_HEAD_ENDS), registry))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.transport.abort()
        finally:
            connections.pop(writer, None)
            writer.close()

    server = await asyncio.start_server(answer, sock=listener, limit=_LONGEST_HEAD)
    async with server:
        await collector.watch_ledger()


def _answered(head: bytes, registry: CollectorRegistry) -> bytes:
    """The response to a request; the connection ends with it."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, target = first.partition(" ")
    accept = next((line[7:] for line in lines if line[:7].lower() == "accept:"), "")
    status, kind, body = "404 Not Found", "text/plain; charset=utf-8", b"Metrics are at /metrics.\n"
    if method not in ("GET", "HEAD"):
        status, body = "405 Method Not Allowed", b"GET and HEAD are answered.\n"
    elif target.partition(" ")[0].partition("?")[0] == "/metrics":
        encode, kind = choose_encoder(accept)
        status, body = "200 OK", encode(registry)
    headers = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + (b"" if method == "HEAD" else body)


def _by_source(captured: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    sources: dict[str, Counter[str]] = {}
    for source, counts in captured:
        sources.setdefault(source, Counter()).update(json.loads(counts) | {"captures": 1})
    return sources


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _added_up(parts: Iterable[WorkerCounts]) -> WorkerCounts:
    total = WorkerCounts({}, Counter(), Counter(), Counter())
    for part in parts:
        for operation, by_status in part.requests.items():
            for status, requests in by_status.items():
                cell = total.requests.setdefault(operation, {}).setdefault(status, Requests())
                _add(cell, requests)
        for name in ("refusals", "quota", "over_quota"):
            getattr(total, name).update(getattr(part, name))
    return total


def _add(cell: Requests, more: Requests) -> None:
    cell.count += more.count
    cell.seconds += more.seconds
    cell.bytes += more.bytes
    cell.by_seconds = [a + b for a, b in zip(cell.by_seconds, more.by_seconds, strict=True)]
    cell.by_bytes = [a + b for a, b in zip(cell.by_bytes, more.by_bytes, strict=True)]


def _request_metrics(total: WorkerCounts) -> Iterator[Metric]:
    labels = ["operation"]
    answered = CounterMetricFamily("sankofa_requests", "Requests answered.", labels=[*labels, "status"])
    seconds = HistogramMetricFamily(
        "sankofa_request_duration_seconds", "Time to make an answer.", labels=labels
    )
    sizes = HistogramMetricFamily("sankofa_response_size_bytes", "Bytes of bodies.", labels=labels)
    for operation, by_status in sorted(total.requests.items()):
        everything = Requests()
        for status, requests in sorted(by_status.items()):
            answered.add_metric([operation, str(status)], requests.count)
            _add(everything, requests)
        seconds.add_metric([operation], _buckets(SECONDS, everything.by_seconds), everything.seconds)
        sizes.add_metric([operation], _buckets(BYTES, everything.by_bytes), everything.bytes)
    refused = CounterMetricFamily("sankofa_refusals", "Problems answered with.", labels=["kind"])
    for kind, number in sorted(total.refusals.items()):
        refused.add_metric([kind], number)
    quota = CounterMetricFamily("sankofa_quota_requests", "Requests counted in quotas.", labels=["tier"])
    over = CounterMetricFamily("sankofa_quota_refusals", "Requests beyond a quota.", labels=["tier"])
    for tier, number in sorted(total.quota.items()):
        quota.add_metric([tier], number)
        over.add_metric([tier], total.over_quota.get(tier, 0))
    yield from (answered, seconds, sizes, refused, quota, over)


def _buckets(bounds: tuple[float, ...], counts: list[int]) -> list[tuple[str, float]]:
    ends = [*(f"{bound:g}" if bound < 1 else str(float(bound)) for bound in bounds), "+Inf"]
    return list(zip(ends, map(float, accumulate(counts)), strict=True))


def _state_metrics(workers: Iterable[WorkerCounts]) -> Iterator[Metric]:
    """The worst state of each dependency that any worker sees, and the number of workers on each edition."""
    editions: Counter[tuple[str, str | None]] = Counter()
    up: dict[str, bool] = {}
    latency: dict[str, float] = {}
    for worker in workers:
        if worker.edition is not None:
            editions[worker.edition, worker.built_from] += 1
        for name, (answers, took) in worker.dependencies.items():
            up[name] = up.get(name, True) and answers
            latency[name] = max(latency.get(name, 0.0), took)
    served = GaugeMetricFamily("sankofa_edition_workers", "Workers serving an edition.", labels=["edition"])
    age = GaugeMetricFamily(
        "sankofa_edition_age_seconds", "Since the newest capture of an edition served.", labels=["edition"]
    )
    for (edition, built_from), number in sorted(editions.items()):
        served.add_metric([edition], number)
        if built_from:
            captured = datetime.fromisoformat(built_from)
            age.add_metric([edition], (now() - captured).total_seconds())
    health = GaugeMetricFamily("sankofa_dependency_up", "Whether a store answers.", labels=["dependency"])
    slow = GaugeMetricFamily(
        "sankofa_dependency_latency_seconds", "How soon a store answered last.", labels=["dependency"]
    )
    for name in sorted(up):
        health.add_metric([name], float(up[name]))
        slow.add_metric([name], latency[name])
    yield from (served, age, health, slow)


def _following_metrics(state: FollowState) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "sankofa_following_up", "Whether the place that editions are followed from answers and is trusted."
    )
    up.add_metric([], float(state.complaint(now()) is None))
    refused = CounterMetricFamily(
        "sankofa_following_refusals", "Looks at editions that no trusted key signed, or that go back."
    )
    refused.add_metric([], state.refused)
    yield from (up, refused)


def _worker_metrics(workers: Iterable[int]) -> Iterator[Metric]:
    memory = GaugeMetricFamily("sankofa_worker_memory_bytes", "Resident memory.", labels=["worker"])
    processor = CounterMetricFamily("sankofa_worker_cpu_seconds", "Processor time.", labels=["worker"])
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for number, pid in enumerate(sorted(workers), 1):
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile, or another system than Linux
            continue
        memory.add_metric([str(number)], resident)
        processor.add_metric([str(number)], (int(fields[11]) + int(fields[12])) / tick)
    yield from (memory, processor)


def _ingest_metrics(sources: dict[str, Counter[str]]) -> Iterator[Metric]:
    captures = CounterMetricFamily("sankofa_ingest_captures", "Files with anything new.", labels=["source"])
    rows = CounterMetricFamily(
        "sankofa_ingest_rows", "Rows of those files, by what became of them.", labels=["source", "outcome"]
    )
    for source, counts in sorted(sources.items()):
        for outcome, number in sorted(counts.items()):
            if outcome == "captures":
                captures.add_metric([source], number)
            else:
                rows.add_metric([source, outcome], number)
    yield from (captures, rows)
