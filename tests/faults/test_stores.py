"""Datastore, key store and usage store are stopped, frozen or cut off, alone and in pairs.

Every request is refused in time and says when to retry, the status names exactly the failed stores, and the
service recovers by itself.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.live import LiveServer
from tests.publisher import Proxy
from tests.services import PostgresServer, RedisServer, Server
from tests.spec.test_status import DATA_BOUND, ENTITY, ISSUER, SANDBOX, assert_degraded, timed
from tests.starter import publish_without_rates
from tests.torture import Trial

RECOVERY_SECONDS = 5.0
DETAIL = {"datastore": "datastore", "keystore": "key store", "usagestore": "usage store"}


@dataclass
class Dependency:
    """A store behind a proxy."""

    server: Server
    proxy: Proxy

    def ways(self) -> dict[str, tuple[Callable[[], None], Callable[[], None]]]:
        """How it fails, and how the failure ends."""
        return {
            "stopped": (self.server.kill, self.server.start),
            "frozen": (self.server.freeze, self.server.thaw),
            "cut off": (self.proxy.cut, self.proxy.mend),
        }


def cases() -> list[dict[str, str]]:
    """Each failure of each store alone, and every pair of stores in every two failures."""
    ways = ("stopped", "frozen", "cut off")
    single = [{name: way} for name in DETAIL for way in ways]
    pairs = [
        dict(zip(names, both, strict=True))
        for names in itertools.combinations(DETAIL, 2)
        for both in itertools.product(ways, repeat=2)
    ]
    return single + pairs


@contextmanager
def behind_proxies(
    postgres: PostgresServer, database: str, redis: RedisServer
) -> Iterator[tuple[dict[str, Dependency], dict[str, str]]]:
    with ExitStack() as stack:
        second = RedisServer(redis.binary)
        stack.callback(second.close)
        second.start()
        servers: dict[str, Server] = {"datastore": postgres, "keystore": redis, "usagestore": second}
        dependencies = {
            name: Dependency(server, stack.enter_context(Proxy(server.port)))
            for name, server in servers.items()
        }
        name = urlsplit(database).path
        settings = {
            "datastore": f"postgresql://postgres@127.0.0.1:{dependencies['datastore'].proxy.port}{name}",
            **{s: f"redis://127.0.0.1:{dependencies[s].proxy.port}/0" for s in ("keystore", "usagestore")},
        }
        yield dependencies, settings


@pytest.mark.deep
@pytest.mark.rule("STAT-1")
def test_stores_that_fail_alone_or_together_are_named_and_the_service_recovers(
    tmp_path: Path,
    postgres_server: PostgresServer,
    postgres_url: str,
    redis_server: RedisServer,
    trial: Trial,
) -> None:
    home = tmp_path / "home"
    publish_without_rates(home, datastore=postgres_url)
    every = cases()
    trial.chance.shuffle(every)
    with (
        behind_proxies(postgres_server, postgres_url, redis_server) as (stores, settings),
        LiveServer(home, per_minute_sample="100000", **settings) as live,  # type: ignore[arg-type]
    ):
        _recovered(live)
        for case in every[: trial.count(3, len(every))]:
            _fail(live, stores, case, trial)
            trial.saw(" and ".join(sorted(case.values())))
        assert "Traceback" not in live.log


def _fail(live: LiveServer, stores: dict[str, Dependency], case: dict[str, str], trial: Trial) -> None:
    for name, way in case.items():
        stores[name].ways()[way][0]()
    needed = [name for name in case if name != "datastore"]
    for path in (ISSUER, ENTITY):
        answer, took = timed(live, path, SANDBOX)
        assert took < DATA_BOUND, case
        if not needed:  # editions are files of the node
            assert answer.status_code == 200, (case, answer.text)
            continue
        trial.measured("slowest 503, seconds", took)
        assert answer.status_code == 503, (case, answer.text)
        assert int(answer.headers["Retry-After"]) >= 1
        assert any(DETAIL[name] in answer.json()["detail"] for name in needed), (case, answer.text)
    assert_degraded(live, set(case))
    for name, way in case.items():
        stores[name].ways()[way][1]()
    trial.measured("slowest recovery, seconds", _recovered(live))


def _recovered(live: LiveServer) -> float:
    """Seconds until requests and the status are good again."""
    began = time.monotonic()
    while live.get(ENTITY, SANDBOX).status_code != 200 or live.get("/v1/status").status_code != 200:
        assert time.monotonic() - began < RECOVERY_SECONDS, live.get("/v1/status").text
        time.sleep(0.05)
    return time.monotonic() - began
