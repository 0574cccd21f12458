"""Liveness and status; a read counts as failed after 1 s (contract: STAT-1)."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from sankofa.operations.service import build_id
from tests.depth import deep_after
from tests.live import Copies, LiveServer, run, succeed
from tests.patience import PATIENCE, Stopwatch
from tests.services import RedisServer

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
SANDBOX = "sankofa-sandbox"
SAMPLE = Path(str(files("sankofa").joinpath("sample")))
COMPONENTS = {"datastore", "keystore", "usagestore"}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
STATUS_BOUND, DATA_BOUND = 1.5, 2.5


@pytest.mark.rule("STAT-2")
def test_health_says_ok(server: LiveServer) -> None:
    answer = server.get("/health")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}


@pytest.mark.rule("STAT-3")
def test_status_reads_every_dependency(server: LiveServer, paid_key: str) -> None:
    answer = server.get("/v1/status")
    assert answer.status_code == 200
    body = answer.json()
    assert body.keys() == {"status", "build", "version", "edition", "time", "checks", "degraded"}
    assert body["status"] == "ok"
    assert body["degraded"] == []
    assert body["build"] == build_id()
    assert re.fullmatch(rf"sankofa-{re.escape(body['version'])}\+([0-9a-f]{{40}}|unknown)", body["build"])
    assert body["version"]
    assert body["edition"] == server.get(ENTITY, paid_key).json()["edition"]
    assert RFC3339.fullmatch(body["time"])
    assert body["checks"].keys() == COMPONENTS
    for check in body["checks"].values():
        assert check.keys() == {"status", "latency_ms"}
        assert check["status"] == "ok"
        assert 0 <= check["latency_ms"] < 1000


def timed(server: LiveServer, path: str, key: str | None = None) -> tuple[httpx.Response, float]:
    with Stopwatch() as watch:
        answer = server.get(path, key)
    return answer, watch.seconds


def until(server: LiveServer, path: str, status: int, key: str | None = None) -> httpx.Response:
    """Ask until the answer has this status."""
    deadline = time.monotonic() + PATIENCE
    while (answer := server.get(path, key)).status_code != status:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.1)
    return answer


def assert_degraded(server: LiveServer, failing: set[str]) -> None:
    until(server, "/v1/status", 503)
    time.sleep(0.3)  # answers are shared for a quarter of a second
    answer, took = timed(server, "/v1/status")
    assert took < STATUS_BOUND
    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    body: dict[str, Any] = answer.json()
    assert body["status"] == "degraded"
    assert set(body["degraded"]) == failing
    assert {name for name, check in body["checks"].items() if check["status"] != "ok"} == failing
    assert server.get("/health").status_code == 200


def assert_data_refused(server: LiveServer, component: str) -> None:
    for path in (ISSUER, ENTITY):
        answer, took = timed(server, path, SANDBOX)
        assert took < DATA_BOUND
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.headers["Content-Type"] == "application/problem+json"
        body = answer.json()
        assert body["status"] == 503
        assert component in body["detail"]
        assert "127.0.0.1" not in body["detail"]
        assert server.http.get(body["docs"]).status_code == 200


@pytest.fixture
def own_home(copy_sample: Copies) -> Path:
    return copy_sample()


@contextmanager
def on_redis(home: Path, redis: RedisServer, *stores: str) -> Iterator[LiveServer]:
    with LiveServer(home, **dict.fromkeys(stores, redis.url)) as live:  # type: ignore[arg-type]
        assert live.get(ENTITY, SANDBOX).status_code == 200
        yield live


@pytest.mark.rule("KEY-13", "STAT-1")
@pytest.mark.parametrize(
    ("stores", "reported"),
    deep_after(
        1,
        [
            (("keystore", "usagestore"), "key store"),
            (("keystore",), "key store"),
            (("usagestore",), "usage store"),
        ],
    ),
    ids=["both", "keys", "usage"],
)
def test_a_frozen_or_dead_store_is_named_and_the_service_recovers_by_itself(
    own_home: Path, redis_server: RedisServer, stores: tuple[str, ...], reported: str
) -> None:
    with on_redis(own_home, redis_server, *stores) as live:
        for stop, go_on in (
            (redis_server.freeze, redis_server.thaw),
            (redis_server.kill, redis_server.start),
        ):
            stop()
            assert_data_refused(live, reported)
            assert_degraded(live, set(stores))
            go_on()
            until(live, ENTITY, 200, SANDBOX)
            until(live, "/v1/status", 200)
        assert SANDBOX not in live.log.replace(f"Sandbox key: {SANDBOX}", "").replace(
            f"X-API-Key: {SANDBOX}", ""
        )


def publish_some(home: Path, **settings: str) -> None:
    """Publish only the registers and the filings of the sample world, which suffice here."""
    for source in ("lei", "filings"):
        succeed(home, "ingest", f"sample-{source}", SAMPLE / source, **settings)
    succeed(home, "publish", **settings)


def test_a_frozen_key_store_delays_no_open_path(own_home: Path, redis_server: RedisServer) -> None:
    with on_redis(own_home, redis_server, "keystore", "usagestore") as live:
        redis_server.freeze()
        for path in ("/health", "/openapi.json", "/problems/not-found"):
            assert live.get(path).status_code == 200
        assert live.get(ISSUER).status_code == 401


@pytest.mark.rule("CLI-3")
def test_the_command_and_the_page_read_the_same_status(sample_home: Path, redis_server: RedisServer) -> None:
    well = succeed(sample_home, "status", keystore=redis_server.url)
    assert [line.split()[:2] for line in well.stdout.splitlines()] == [
        [name, "ok"] for name in ("datastore", "keystore", "usagestore")
    ]
    redis_server.kill()
    degraded = run(sample_home, "status", keystore=redis_server.url)
    assert degraded.returncode == 1
    assert [line.split()[0] for line in degraded.stdout.splitlines() if "FAILED" in line] == ["keystore"]


@pytest.mark.rule("STAT-4")
def test_a_service_without_an_edition_is_degraded_until_one_is_published(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with LiveServer(home) as live:
        assert_degraded(live, {"datastore"})
        assert_data_refused(live, "datastore")
        assert live.get("/v1/status").json()["edition"] is None
        publish_some(home)
        until(live, ENTITY, 200, SANDBOX)
        assert until(live, "/v1/status", 200).json()["edition"]
