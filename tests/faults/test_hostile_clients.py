"""Clients that never read, never finish a request or never leave do not delay the others."""

import selectors
import socket
import statistics
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType

import psutil
import pytest

from tests.depth import deep_after
from tests.faults.conftest import Serve
from tests.faults.load import ISSUER, ask, workers
from tests.live import LiveServer
from tests.patience import PATIENCE, Stopwatch, until
from tests.torture import Trial

BOUND = 0.250

KINDS = {
    "never reads a small answer": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    "never reads a large answer": b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n",
    "never reads a refusal": b"GET /v1/screen HTTP/1.1\r\nHost: x\r\nX-API-Key: guess\r\n\r\n",
    "sends half a header": b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "sends nothing": b"",
}
_PIPELINED = 64 * 1024


class Crowd:
    """`with Crowd(server, kind, count): ...`: every connection sends as much as it can and reads nothing."""

    def __init__(self, server: LiveServer, kind: str, count: int) -> None:
        self._port = server.port
        request = KINDS[kind]
        whole = request.endswith(b"\r\n\r\n")
        self._request = request * (_PIPELINED // len(request)) if whole else request
        self._pipelined = whole
        self._count = count
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.opened = self.cut_off = 0

    def __enter__(self) -> "Crowd":
        self._thread.start()
        until(lambda: self.opened >= self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            links = [self._open(selector) for _ in range(self._count)]
            while not self._over.is_set():
                for chosen, _ in selector.select(0.1):
                    self._go_on(selector, chosen)
            for link in links:
                link.close()

    def _open(self, selector: selectors.DefaultSelector) -> socket.socket:
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.setblocking(False)
        link.connect_ex(("127.0.0.1", self._port))
        selector.register(link, selectors.EVENT_WRITE, None)
        return link

    def _go_on(self, selector: selectors.DefaultSelector, chosen: selectors.SelectorKey) -> None:
        link = chosen.fileobj
        assert isinstance(link, socket.socket)
        try:
            if chosen.data is None:
                self.opened += 1
            if chosen.data is None or self._pipelined:
                sent = link.send(self._request) if self._request else 0
                waits = selectors.EVENT_WRITE if self._pipelined else selectors.EVENT_READ
                selector.modify(link, waits, sent)
            elif not link.recv(4096):
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.cut_off += 1
            selector.unregister(link)


def paying_client(server: LiveServer, key: str, seconds: float = 2.0) -> tuple[float, list[str]]:
    """The median time of an answer, on fresh and on kept connections, and every failure."""
    took: list[float] = []
    failures: list[str] = []
    reused = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(took) < 10:
        fresh = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for link in (fresh, reused):
            with Stopwatch() as watch:
                try:
                    link.request("GET", ISSUER, headers={"X-API-Key": key})
                    answer = link.getresponse()
                    answer.read()
                    if answer.status != 200:
                        failures.append(f"status {answer.status}")
                except (OSError, HTTPException) as failure:
                    failures.append(repr(failure))
                    link.close()
            took.append(watch.seconds)
        fresh.close()
        time.sleep(0.01)
    reused.close()
    return statistics.median(took), failures


IDLE_SECONDS = 8
"""A connection that is silent for somewhat longer is closed (`header_read_timeout`)."""


def descriptors(process: psutil.Process) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


@pytest.mark.parametrize("kind", deep_after(2, [*reversed(KINDS)]))
def test_a_crowd_of_hostile_connections_does_not_delay_a_paying_client(
    serve: Serve, key: str, kind: str, trial: Trial
) -> None:
    live = serve()
    connections = trial.count(1100, 5000)  # docs/how-to/operating.md promises to withstand the latter
    with Crowd(live, kind, connections):
        median, failures = paying_client(live, key, trial.seconds(1, 6))
        assert failures == []
        assert median < BOUND
        live.http.close()  # its connection was idle the longest
        live.http = live.client()
        assert live.get("/health").status_code == 200
        trial.saw("hostile connections", connections)
        trial.measured("median ms of a paying client", median * 1000)
    assert "Traceback" not in live.log
    assert "does not answer" not in live.log  # and the worker was not replaced


@pytest.mark.deep
@pytest.mark.parametrize("kind", deep_after(1, ["sends nothing", "never reads a large answer"]))
def test_with_few_file_descriptors_the_slowest_connections_are_closed_and_the_worker_does_not_spin(
    serve: Serve, key: str, kind: str
) -> None:
    live = serve()
    (worker,) = workers(live)
    few = 400  # the edition and the stores take 160 of them
    worker.rlimit(psutil.RLIMIT_NOFILE, (few, few))
    with Crowd(live, kind, 600) as crowd:
        median, failures = paying_client(live, key)
        assert failures == []  # answering a request opens no file
        assert median < BOUND
        assert descriptors(worker) < few
        until(lambda: crowd.cut_off > 200)
        until(lambda: _rests(worker))  # a spinning worker never rests
    assert "Traceback" not in live.log


def _rests(worker: psutil.Process) -> bool:
    """Whether the process is idle for half of a second."""
    before, began = _busy(worker), time.monotonic()
    time.sleep(1)
    return _busy(worker) - before < 0.5 * (time.monotonic() - began)


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@pytest.mark.deep
@pytest.mark.limit("SANKOFA_CONNECTIONS")
def test_too_many_connections_close_those_that_were_idle_longest(serve: Serve, key: str) -> None:
    live = serve(connections="300")
    with (
        Crowd(live, "sends nothing", 900) as crowd,
        closing(HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as reused,
    ):
        # It starts after them, so it is never the one that was idle the longest.
        end = last_request = time.monotonic()
        end += 3
        while time.monotonic() < end:
            if (
                time.monotonic() - last_request > IDLE_SECONDS
            ):  # silent clients are disconnected after this time
                reused.close()
            assert ask(live, key, reused)[0] == 200  # it is never among the slowest
            last_request = time.monotonic()
            assert ask(live, key)[0] == 200
        until(lambda: crowd.cut_off >= 600)
        assert descriptors(workers(live)[0]) < 300 + 256


@pytest.mark.deep
@pytest.mark.limit("SANKOFA_CONNECTIONS_PER_ADDRESS")
def test_an_address_with_too_many_connections_loses_its_idle_ones(serve: Serve, key: str) -> None:
    live = serve(connections_per_address="200")
    with Crowd(live, "sends half a header", 500) as crowd:
        deadline = time.monotonic() + PATIENCE
        while crowd.cut_off < 300:
            assert time.monotonic() < deadline
            assert ask(live, key)[0] == 200
            time.sleep(0.05)


@pytest.mark.limit("SANKOFA_STALL_SECONDS")
def test_a_client_that_never_reads_its_answer_is_cut_off(serve: Serve) -> None:
    live = serve(stall_seconds="2")
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(("127.0.0.1", live.port))
        link.settimeout(PATIENCE)
        request = KINDS["never reads a large answer"] * 100
        with Stopwatch() as watch, pytest.raises((ConnectionResetError, BrokenPipeError)):
            _send_for_ever(link, request)
        assert watch.elapsed > 1
        assert watch.seconds < 15


def _send_for_ever(link: socket.socket, request: bytes) -> None:
    while True:
        link.sendall(request)


def test_pipelined_requests_of_a_client_that_never_reads_are_bounded(serve: Serve) -> None:
    live = serve()
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        link.connect(("127.0.0.1", live.port))
        link.settimeout(1)
        sent = 0
        with suppress(TimeoutError):
            while True:
                sent += link.send(KINDS["never reads a large answer"] * 1000)
        assert sent < 1_000_000
