"""The Prometheus metrics of a service: a separate process adds up the workers' counts and serves them.

Each second a worker writes its counts to a file, under their Prometheus names:
`sankofa_requests_total{operation="get_screen",status="200"}`. The totals are the sums of these files.
"""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sankofa import __version__
from sankofa.cli.process import now
from sankofa.engines.private_files import is_alive, replace_file
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.limits import limit
from sankofa.operations.service import ObservedRequest, Service, build_id
from sankofa.replication.follow import read_state
from sankofa.replication.stores import editions_folder, followed_address, open_store
from sankofa.settings import Settings, load

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BYTES: Final = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216)
_WRITE_SECONDS: Final = 1.0
_PROBE_EVERY: Final = 10  # writes
_LEDGER_SECONDS: Final = 15.0
_REQUEST_SECONDS: Final = limit(
    "time for a request on the metrics port", 5.0, "seconds", "the connection is closed"
)


class MetricType(NamedTuple):
    """A metric: its type, the names of its labels, and what it counts."""

    kind: str
    labels: tuple[str, ...]
    help: str


METRICS: Final = {
    "sankofa_requests_total": MetricType("counter", ("operation", "status"), "Requests answered."),
    "sankofa_request_duration_seconds": MetricType("histogram", ("operation",), "Time to make an answer."),
    "sankofa_response_size_bytes": MetricType("histogram", ("operation",), "Bytes of bodies."),
    "sankofa_refusals_total": MetricType("counter", ("kind",), "Problems answered with."),
    "sankofa_quota_requests_total": MetricType("counter", ("tier",), "Requests counted in quotas."),
    "sankofa_quota_refusals_total": MetricType("counter", ("tier",), "Requests beyond a quota."),
    "sankofa_edition_workers": MetricType("gauge", ("edition",), "Workers serving an edition."),
    "sankofa_edition_age_seconds": MetricType("gauge", ("edition",), "Time since its newest capture."),
    "sankofa_dependency_up": MetricType("gauge", ("dependency",), "Whether every worker gets an answer."),
    "sankofa_dependency_latency_seconds": MetricType("gauge", ("dependency",), "Time of its last answer."),
    "sankofa_following_up": MetricType(
        "gauge", (), "Whether the address that editions are followed from answers and is trusted."
    ),
    "sankofa_following_refusals_total": MetricType(
        "counter", (), "Editions refused because no trusted key signed them, or because they are older."
    ),
    "sankofa_worker_memory_bytes": MetricType("gauge", ("worker",), "Resident memory."),
    "sankofa_worker_cpu_seconds_total": MetricType("counter", ("worker",), "Processor time."),
    "sankofa_ingest_captures_total": MetricType("counter", ("source",), "Ingested files with new rows."),
    "sankofa_ingest_rows_total": MetricType(
        "counter", ("source", "outcome"), "Rows of those files by outcome."
    ),
    "sankofa_build_info": MetricType("gauge", ("version", "build"), "The version that is running."),
}
_HISTOGRAMS: Final = {"sankofa_request_duration_seconds": _SECONDS, "sankofa_response_size_bytes": _BYTES}

Samples = dict[str, float]
"""Values by the name that Prometheus reads."""


def sample(metric: str, *labels: str, suffix: str = "", bound: str = "") -> str:
    """The name of a sample. Labels need no escaping: all of them are ours."""
    pairs = [f'{n}="{text}"' for n, text in zip(METRICS[metric].labels, labels, strict=True)]
    pairs += [f'le="{bound}"'] if bound else []
    return f"{metric}{suffix}{{{','.join(pairs)}}}" if pairs else metric + suffix


class WorkerState(msgspec.Struct):
    counted: Samples = {}
    edition: str | None = None
    built_from: str | None = None
    dependencies: dict[str, tuple[bool, float]] = {}
    """Whether each dependency answers, and within how many seconds."""


class RequestCounter:
    """An observer of the service of one worker."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, ...], int] = defaultdict(int)
        """By metric and labels."""
        self._spread: dict[tuple[str, str], list[float]] = {}
        """By histogram and operation: a count for each bound, a count above all bounds, and the sum."""

    def __call__(self, request: ObservedRequest) -> None:
        counts, operation = self._counts, request.operation
        counts["sankofa_requests_total", operation, str(request.status)] += 1
        self._add("sankofa_request_duration_seconds", operation, request.seconds)
        self._add("sankofa_response_size_bytes", operation, request.size)
        if request.grant is not None:
            counts["sankofa_quota_requests_total", request.grant.tier] += 1
        if request.problem:
            counts["sankofa_refusals_total", request.problem] += 1
            if request.status == 429 and request.grant is not None:
                counts["sankofa_quota_refusals_total", request.grant.tier] += 1

    def _add(self, histogram: str, operation: str, value: float) -> None:
        bounds = _HISTOGRAMS[histogram]
        if (spread := self._spread.get((histogram, operation))) is None:
            spread = self._spread[histogram, operation] = [0] * (len(bounds) + 2)
        spread[bisect_left(bounds, value)] += 1
        spread[-1] += value

    def samples(self) -> Samples:
        samples: Samples = {sample(*key): count for key, count in self._counts.items()}
        for (name, operation), (*spread, total) in self._spread.items():
            bounds = [*(f"{b:g}" if b < 1 else str(float(b)) for b in _HISTOGRAMS[name]), "+Inf"]
            for bound, count in zip(bounds, accumulate(spread), strict=True):
                samples[sample(name, operation, suffix="_bucket", bound=bound)] = count
            samples[sample(name, operation, suffix="_count")] = sum(spread)
            samples[sample(name, operation, suffix="_sum")] = total
        return samples


async def write_counts(counter: RequestCounter, service: Service, folder: Path) -> None:
    """Write the counts each second while the worker runs; check the dependencies from time to time."""
    path = folder / f"{os.getpid()}-{time.time_ns()}.json"
    state, writes = WorkerState(), 0
    while True:
        if writes % _PROBE_EVERY == 0:
            checks = await service.probe()
            state.dependencies = {name: (not why, took / 1000) for name, (why, took) in checks.items()}
        writes += 1
        state.edition = state.built_from = None
        with suppress(StoreUnavailable):
            current = service.edition.get()
            state.edition, state.built_from = current.id, current.manifest.get("built_from")
        state.counted = counter.samples()
        with suppress(OSError):  # requests go on when the disk is full
            await asyncio.to_thread(replace_file, path, msgspec.json.encode(state), durable=False)
        await asyncio.sleep(_WRITE_SECONDS)


class ServiceMetrics:
    """Reads the files of the workers at each scrape. The file of a worker that ended stays: it is counted."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._ingested: Samples = {}

    def watch_ledger(self) -> None:
        """Read what was ingested every few seconds."""
        store = open_store(self._settings)
        while True:
            with suppress(OperatorError, StoreUnavailable):  # then the last counts remain
                self._ingested = ingest_samples(store.ledgers.captured())
            time.sleep(_LEDGER_SECONDS)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        states: list[tuple[str, WorkerState]] = []
        for path in sorted(self._folder.glob("[0-9]*.json")):
            with suppress(OSError, msgspec.DecodeError):
                worker = msgspec.json.decode(path.read_bytes(), type=WorkerState)
                states.append((path.stem.partition("-")[0], worker))
        running = {int(process): worker for process, worker in states if is_alive(process)}
        samples = _added_up(*(worker.counted for _, worker in states))
        samples |= state_samples(running.values()) | _process_samples(running) | self._ingested
        if followed_address(self._settings):
            state = read_state(editions_folder(self._settings))
            samples[sample("sankofa_following_up")] = int(state.complaint(now()) is None)
            samples[sample("sankofa_following_refusals_total")] = state.refused
        samples[sample("sankofa_build_info", __version__, build_id())] = 1
        return "".join(_lines(samples)).encode()


def serve_metrics(folder: Path, listener: socket.socket) -> None:
    """Serve the counts in the folder until told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal: the supervisor ends this process
    metrics = ServiceMetrics(folder, load())
    threading.Thread(target=metrics.watch_ledger, daemon=True).start()
    with metrics_server(metrics, listener) as server:
        server.serve_forever()


def metrics_server(metrics: ServiceMetrics, listener: socket.socket) -> "ThreadingHTTPServer":
    """The server of /metrics on a socket that is already listening."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # only this process needs it

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            status, body = 404, b"Metrics are at /metrics.\n"
            if self.path.partition("?")[0] == "/metrics":
                status, body = 200, metrics.text()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that the standard library looks for

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes every few seconds are not worth logging."""

    server = ThreadingHTTPServer(listener.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    return server


def _added_up(*parts: Samples) -> Samples:
    total: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        for name, value in part.items():
            total[name] += value
    return dict(total)


def _lines(samples: Samples) -> Iterator[str]:
    by_metric: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in samples.items():
        metric = name.partition("{")[0]
        if metric not in METRICS:  # a part of a histogram
            metric = metric.rpartition("_")[0]
        by_metric[metric].append(f"{name} {float(value)!r}\n")
    for metric, (kind, _, explanation) in METRICS.items():
        yield f"# HELP {metric} {explanation}\n# TYPE {metric} {kind}\n"
        yield from by_metric[metric]


def state_samples(workers: Iterable[WorkerState]) -> Samples:
    """The worst state of each dependency that any worker sees, and the number of workers on each edition."""
    samples: Samples = {}
    for worker in workers:
        if worker.edition is not None:
            name = sample("sankofa_edition_workers", worker.edition)
            samples[name] = samples.get(name, 0) + 1
            if worker.built_from:
                age = now() - datetime.fromisoformat(worker.built_from)
                samples[sample("sankofa_edition_age_seconds", worker.edition)] = age.total_seconds()
        for dependency, (answers, took) in worker.dependencies.items():
            up = sample("sankofa_dependency_up", dependency)
            slow = sample("sankofa_dependency_latency_seconds", dependency)
            samples[up] = min(samples.get(up, 1), int(answers))
            samples[slow] = max(samples.get(slow, 0.0), took)
    return samples


def _process_samples(workers: Iterable[int]) -> Samples:
    samples: Samples = {}
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for number, pid in enumerate(sorted(workers), 1):
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile, or another system than Linux
            continue
        samples[sample("sankofa_worker_memory_bytes", str(number))] = resident
        used = (int(fields[11]) + int(fields[12])) / tick
        samples[sample("sankofa_worker_cpu_seconds_total", str(number))] = used
    return samples


def ingest_samples(captured: Iterable[tuple[str, str]]) -> Samples:
    """The captures and rows of each source, from the source and the counts of each capture."""
    parts: list[Samples] = []
    for source, counts in captured:
        rows = {
            sample("sankofa_ingest_rows_total", source, kind): n for kind, n in json.loads(counts).items()
        }
        parts.append({**rows, sample("sankofa_ingest_captures_total", source): 1})
    return _added_up(*parts)
