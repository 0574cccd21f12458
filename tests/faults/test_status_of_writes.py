"""The status shows what a request would meet: a usage store that cannot count is degraded."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import Serve
from tests.faults.load import ask, workers
from tests.live import LiveServer

STATUS_SHARED = 0.3


def degraded(live: LiveServer) -> list[str]:
    time.sleep(STATUS_SHARED)
    answer = live.get("/v1/status")
    body = answer.json()
    assert answer.status_code == (503 if body["degraded"] else 200)
    assert body["status"] == ("degraded" if body["degraded"] else "ok")
    components: list[str] = body["degraded"]
    return components


@pytest.mark.rule("STAT-1")
def test_a_full_disk_degrades_the_usage_store_until_there_is_room(serve: Serve) -> None:
    live = serve()
    assert degraded(live) == []
    with _limit(live, psutil.RLIMIT_FSIZE, lambda _: 65536):
        assert degraded(live) == ["usagestore"]
    assert degraded(live) == []


def test_with_its_reserve_a_full_disk_stops_no_key_not_even_a_new_one(home: Path) -> None:
    with LiveServer(home, usage_reserve="32") as live:
        keys = [live.key("starter") for _ in range(5)]
        assert ask(live, keys[0])[0] == 200
        with _limit(live, psutil.RLIMIT_FSIZE, lambda _: 65536):
            assert [ask(live, key)[0] for key in keys] == [200] * 5
            assert degraded(live) == []


def test_without_a_file_descriptor_the_status_is_a_503_that_names_the_datastore(serve: Serve) -> None:
    live = serve()
    assert degraded(live) == []
    with _limit(live, psutil.RLIMIT_NOFILE, _standard_streams_only):
        time.sleep(STATUS_SHARED)
        answer = live.get("/v1/status")
        assert answer.status_code == 503
        assert "datastore" in answer.json()["degraded"]
        for path in ("/openapi.json", "/health", "/problems/not-found"):
            assert live.get(path).status_code in (200, 503)
    assert degraded(live) == []
    assert "Traceback" not in live.log


def _standard_streams_only(_: psutil.Process) -> int:
    """Open files stay open; the worker may close some, but opens nothing new."""
    return 3


@contextmanager
def _limit(live: LiveServer, what: int, limit: Callable[[psutil.Process], int]) -> Iterator[None]:
    (process,) = workers(live)
    before = process.rlimit(what)
    process.rlimit(what, (limit(process), before[1]))
    yield
    process.rlimit(what, before)
