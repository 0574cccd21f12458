"""Workers that die, a full disk, and a server that gets a stop signal."""

import resource
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.faults.conftest import Serve
from tests.faults.load import PATIENCE, ask, wait_for_edition, workers
from tests.live import COMMAND, LiveServer, free_port
from tests.patience import until
from tests.services import RedisServer

SANDBOX = "sankofa-sandbox"
STORE_TIMEOUT = 0.9
"""Seconds for which a key store may be silent."""
_ESTABLISHED = "01"


@contextmanager
def no_room(live: LiveServer) -> Iterator[None]:
    """No file of the server can grow beyond 64 KiB; its log and its key store are smaller.

    A worker opens the counters at its start, so it is replaced by one that finds neither counters nor room.
    """
    supervisor, before = psutil.Process(live.pid), workers(live)
    supervisor.rlimit(psutil.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
    for path in live.home.glob("usage*"):
        path.unlink()
    for worker in before:
        worker.kill()
    until(lambda: len(set(workers(live)) - set(before)) == len(before))
    until(lambda: _is_well(live))
    processes = [supervisor, *workers(live)]
    for process in processes:
        process.rlimit(psutil.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
    yield
    for process in processes:
        process.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _is_well(live: LiveServer) -> bool:
    try:
        return live.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def test_a_full_disk_under_the_counters_is_503_and_not_a_crash(serve: Serve, key: str) -> None:
    live = serve()
    keys = [live.key("professional") for _ in range(3)]
    with no_room(live):
        before = workers(live)
        answers = [live.get("/v1/entities/DC46AF1B1AAA424B58D1368176", key) for key in keys]
        refused = [answer for answer in answers if answer.status_code == 503]
        assert refused  # a counter below the limit may still be written
        assert all(answer.headers["Retry-After"] for answer in refused)
        assert all("usage store" in answer.json()["detail"] for answer in refused)
        assert Counter(answer.status_code for answer in answers).keys() <= {200, 503}
        assert live.get("/health").status_code == 200
    assert [ask(live, key)[0] for key in keys] == [200, 200, 200]
    assert workers(live) == before


def test_sigterm_lets_requests_in_progress_finish(home: Path, redis_server: RedisServer) -> None:
    scenes = (_stopped_during_request(home, redis_server) for _ in range(5))
    # On a slow machine the freeze may last so long that the request rightly fails.
    assert next(answers for answers, frozen in scenes if frozen < STORE_TIMEOUT) == [200]


def _stopped_during_request(home: Path, redis: RedisServer) -> tuple[list[int], float]:
    """The answer to a request that waits for its key store during a stop, and how long it took."""
    with LiveServer(home, keystore=redis.url) as live:
        assert ask(live, SANDBOX)[0] == 200
        answers: list[int] = []
        began = time.monotonic()
        redis.freeze()
        requesting = threading.Thread(target=lambda: answers.append(ask(live, SANDBOX)[0]))
        requesting.start()
        until(lambda: _unread(redis.port), every=0.005)
        stopping = threading.Thread(target=live.stop)
        stopping.start()
        time.sleep(0.2)  # the stop may have begun or not; both must work
        redis.thaw()
        frozen = time.monotonic() - began
        requesting.join()
        stopping.join()
    return answers, frozen


def _unread(port: int) -> bool:
    """Whether the process that listens on a port has unread bytes."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        unread = int(queues.partition(":")[2], 16)
        if unread and state == _ESTABLISHED and int(local.partition(":")[2], 16) == port:
            return True
    return False


def test_workers_end_with_a_killed_supervisor_and_free_the_port(serve: Serve) -> None:
    live = serve(workers=2)
    before = workers(live)
    (supervisor,) = {worker.parent() for worker in before}
    assert supervisor is not None
    supervisor.kill()
    _, alive = psutil.wait_procs(before, timeout=PATIENCE)
    assert alive == []
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", live.port))


@pytest.mark.deep
def test_a_frozen_worker_is_replaced_and_its_connections_are_answered(
    serve: Serve, key: str, editions: tuple[str, str]
) -> None:
    live = serve(workers=2)
    wait_for_edition(live, key, editions[1])  # both have begun: a starting worker gets more time
    stopped = workers(live)[0]
    stopped.suspend()
    while stopped.status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    # A connection that the kernel gave to it waits for its successor, and is not refused.
    assert [ask(live, key)[0] for _ in range(20)] == [200] * 20
    psutil.wait_procs([stopped], timeout=PATIENCE)
    assert not stopped.is_running()
    deadline = time.monotonic() + PATIENCE
    while len(workers(live)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [ask(live, key)[0] for _ in range(20)] == [200] * 20


@pytest.mark.deep
def test_a_port_in_use_is_an_error_of_one_line(serve: Serve, home: Path) -> None:
    live = serve()
    second = subprocess.run(
        [COMMAND, "serve", "--port", str(live.port)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1
    assert str(live.port) in second.stderr
    assert live.get("/health").status_code == 200


@pytest.mark.parametrize("setting", ["keystore", "usagestore"])
def test_a_missing_store_does_not_stop_the_start(serve: Serve, setting: str) -> None:
    live = serve(**{setting: f"redis://127.0.0.1:{free_port()}/0"})
    assert ask(live, SANDBOX)[0] == 503
    assert live.get("/v1/status").json()["degraded"] == [setting]
