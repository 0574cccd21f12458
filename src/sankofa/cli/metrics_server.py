"""The Prometheus metrics of a service: what the workers count, added up and served by the supervisor."""

import json
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sankofa import __version__
from sankofa.cli.clock import now
from sankofa.cli.metrics import BYTES, SECONDS, Requests, WorkerCounts
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.operations.build_id import build_id
from sankofa.replication.stores import open_store
from sankofa.settings import Settings

_LEDGER_SECONDS: Final = 15.0
_decode = msgspec.json.Decoder(WorkerCounts).decode


class ServiceCollector(Collector):
    """Reads the files of the workers at each scrape. Counts of a worker that ended are kept."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._ended: list[WorkerCounts] = []
        self._ingested: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()

    def watch_ledger(self) -> None:
        """Read what was ingested every few seconds, in this thread, for as long as the process runs."""
        store = open_store(self._settings)
        while True:
            with suppress(OperatorError, StoreUnavailable):  # then the last that was read stands
                self._ingested = _by_source(store.captured())
            time.sleep(_LEDGER_SECONDS)

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            running = self._read()
            total = _added_up([*self._ended, *running.values()])
        yield from _request_metrics(total)
        yield from _state_metrics(running.values())
        yield from _worker_metrics(running)
        yield from _ingest_metrics(self._ingested)
        build = InfoMetricFamily("sankofa_build", "The version that is running.")
        build.add_metric([], {"version": __version__, "build": build_id()})
        yield build

    def _read(self) -> dict[int, WorkerCounts]:
        """The counts of each running worker by its process; those of the others are put by."""
        running: dict[int, WorkerCounts] = {}
        for path in sorted(self._folder.glob("*.json")):
            pid = int(path.stem)
            try:
                counts = _decode(path.read_bytes())
            except (OSError, msgspec.DecodeError):
                continue
            if _is_running(pid):
                running[pid] = counts
            else:
                self._ended.append(counts)
                path.unlink(missing_ok=True)
        return running


def serve_metrics(settings: Settings) -> tuple[Path, int]:
    """Serve them from a thread; the folder that the workers write to, and the descriptor of the socket."""
    folder = Path(tempfile.mkdtemp(prefix="sankofa-metrics-"))
    collector = ServiceCollector(settings, folder)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, _ = start_http_server(int(settings.metrics_port), settings.metrics_host, registry)
    except OSError as failure:
        shutil.rmtree(folder, ignore_errors=True)
        address = f"{settings.metrics_host}:{settings.metrics_port}"
        raise OperatorError(f"cannot serve metrics on {address}: {failure.strerror}") from failure
    threading.Thread(target=collector.watch_ledger, name="watch-ledger", daemon=True).start()
    return folder, server.socket.fileno()


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
    """Of dependencies the worst that any worker sees; of editions how many workers serve each."""
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
