"""Clients that never read, never finish a request or never leave do not delay the others."""

import socket
import time
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from tests.depth import deep_after
from tests.faults.conftest import Serve
from tests.faults.hostile import BOUND, KINDS, Crowd, paying_client
from tests.faults.load import PATIENCE, ask, workers
from tests.live import LiveServer
from tests.patience import Stopwatch, until
from tests.torture import Trial

IDLE_SECONDS = 8
"""A connection that is silent for somewhat longer is closed (`header_read_timeout`)."""


def descriptors(process: psutil.Process) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


@pytest.mark.parametrize("kind", deep_after(2, [*reversed(KINDS)]))
def test_a_crowd_of_hostile_connections_does_not_delay_a_paying_client(
    serve: Serve, key: str, kind: str, trial: Trial
) -> None:
    live = serve()
    connections = trial.count(1100, 5000)  # docs/how-to/operating.md promises to bear the latter
    with Crowd(live, kind, connections):
        median, failures = paying_client(live, key, trial.seconds(1, 6))
        assert failures == []
        assert median < BOUND
        live.http.close()  # its connection is the one that stood still the longest
        live.http = live.client()
        assert live.get("/health").status_code == 200
        trial.saw("hostile connections", connections)
        trial.measured("median ms of a paying client", median * 1000)
    assert "Traceback" not in live.log
    assert "does not answer" not in live.log  # nor was the worker replaced


@pytest.mark.deep
@pytest.mark.parametrize("kind", deep_after(1, ["sends nothing", "never reads a large answer"]))
def test_with_few_file_descriptors_the_slowest_make_room_and_the_worker_does_not_spin(
    serve: Serve, key: str, kind: str
) -> None:
    live = serve()
    (worker,) = workers(live)
    few = 400  # of which the edition and the stores take 160
    worker.rlimit(psutil.RLIMIT_NOFILE, (few, few))
    with Crowd(live, kind, 600) as crowd:
        median, failures = paying_client(live, key)
        assert failures == []  # nothing has to be opened to answer a request
        assert median < BOUND
        assert descriptors(worker) < few
        until(lambda: crowd.cut_off > 200)
        until(lambda: _rests(worker))  # one that spins never does
    assert "Traceback" not in live.log


def _rests(worker: psutil.Process) -> bool:
    """Whether it leaves half of a second alone."""
    before, began = _busy(worker), time.monotonic()
    time.sleep(1)
    return _busy(worker) - before < 0.5 * (time.monotonic() - began)


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@pytest.mark.deep
@pytest.mark.limit("SANKOFA_CONNECTIONS")
def test_of_more_connections_than_are_allowed_those_that_stand_still_the_longest_are_closed(
    serve: Serve, key: str
) -> None:
    live = serve(connections="300")
    with (
        Crowd(live, "sends nothing", 900) as crowd,
        closing(HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)) as kept,
    ):
        # Begun after them, it is never the one that stood still the longest.
        end = asked = time.monotonic()
        end += 3
        while time.monotonic() < end:
            if time.monotonic() - asked > IDLE_SECONDS:  # whoever is silent for so long is let go
                kept.close()
            assert ask(live, key, kept)[0] == 200  # it is never among the slowest
            asked = time.monotonic()
            assert ask(live, key)[0] == 200
        until(lambda: crowd.cut_off >= 600)
        assert descriptors(workers(live)[0]) < 300 + 256


@pytest.mark.deep
@pytest.mark.limit("SANKOFA_CONNECTIONS_PER_ADDRESS")
def test_an_address_with_too_many_connections_loses_those_that_stand_still(serve: Serve, key: str) -> None:
    live = serve(connections_per_address="200")
    with Crowd(live, "sends half a header", 500) as crowd:
        deadline = time.monotonic() + PATIENCE
        while crowd.cut_off < 300:
            assert time.monotonic() < deadline
            assert ask(live, key)[0] == 200
            time.sleep(0.05)


@pytest.mark.limit("SANKOFA_STALL_SECONDS")
def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(serve: Serve) -> None:
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


def test_what_a_client_sends_ahead_without_reading_is_bounded(serve: Serve) -> None:
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


def test_a_large_answer_without_a_key_arrives_whole(serve: Serve) -> None:
    """It is sent in parts, as the client reads."""
    live = serve()
    whole = live.get("/openapi.json").content
    assert len(whole) > 128 * 1024
    assert _raw(live, "/openapi.json").partition(b"\r\n\r\n")[2] == whole


def _raw(live: LiveServer, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", live.port), timeout=PATIENCE) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while part := link.recv(4096):
            received += part
        return received
