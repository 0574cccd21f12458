"""Wrong keys (contract: KEY-12). An address gets 200 401s a minute, then 429; good keys never."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.patience import PATIENCE, in_one_minute
from tests.services import RedisServer

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
SANDBOX = "sankofa-sandbox"
BUDGET = 200
Serve = Callable[..., LiveServer]


@pytest.fixture
def serve(tmp_path: Path, sample_home: Path) -> Iterator[Serve]:
    fresh = shutil.ignore_patterns("keys*", "usage*")
    home = Path(shutil.copytree(sample_home, tmp_path / "home", ignore=fresh))
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(LiveServer(home, **settings))


def guess(live: LiveServer, times: int, **headers: str) -> Counter[int]:
    return Counter(live.get(ENTITY, f"guess-{n}", **headers).status_code for n in range(times))


@pytest.mark.rule("KEY-12")
@in_one_minute
@pytest.mark.limit("wrong keys of an address")
def test_an_address_gets_two_hundred_401s_a_minute_then_429_for_unknown_keys_only(serve: Serve) -> None:
    live = serve(workers=2)
    good = live.key("professional")
    statuses: Counter[int] = Counter()
    for n in range(BUDGET + 10):
        fresh = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)  # to whichever worker
        fresh.request("GET", ENTITY, headers={"X-API-Key": f"guess-{n}"})
        statuses[fresh.getresponse().status] += 1
        fresh.close()
    assert statuses == {401: BUDGET, 429: 10}
    refused = live.get(ENTITY, "guess")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert "RateLimit" not in refused.headers
    assert live.get(ENTITY).status_code == 401  # no key at all is no guess
    assert live.http.post("/mcp", content=b"{}", headers={"X-API-Key": "guess"}).status_code == 429
    assert live.get(ENTITY, good).status_code == 200
    assert live.get(ENTITY, SANDBOX).status_code == 200
    assert live.get("/health").status_code == 200


@in_one_minute
def test_a_message_over_mcp_without_a_good_key_is_counted_in_the_same_budget(serve: Serve) -> None:
    live = serve()
    for _ in range(5):
        assert live.http.post("/mcp", content=b"{}", headers={"X-API-Key": "guess"}).status_code == 401
    assert guess(live, BUDGET) == {401: BUDGET - 5, 429: 5}


@pytest.mark.deep
@in_one_minute
def test_behind_a_known_proxy_the_address_is_the_clients(serve: Serve) -> None:
    live = serve(proxies="127.0.0.0/8, 10.42.0.0/16, 2001:db8::1")
    hops = "10.0.0.1, 192.0.2.7, 10.42.3.4, 2001:DB8:0::1"  # its own word, it, and two proxies
    assert guess(live, BUDGET + 1, x_forwarded_for=hops) == {401: BUDGET, 429: 1}
    assert guess(live, 1, x_forwarded_for="192.0.2.7, 192.0.2.8") == {401: 1}
    assert guess(live, 1, x_forwarded_for="192.0.2.7, unknown") == {401: 1}


@pytest.mark.deep
@in_one_minute
def test_an_address_that_anyone_may_write_is_not_believed(serve: Serve) -> None:
    live = serve()
    statuses = [
        live.get(ENTITY, "guess", x_forwarded_for=f"192.0.2.{n}").status_code for n in range(BUDGET + 1)
    ]
    assert Counter(statuses) == {401: BUDGET, 429: 1}


@pytest.mark.deep
def test_a_usage_store_that_is_down_leaves_it_at_401(serve: Serve, redis_server: RedisServer) -> None:
    live = serve(usagestore=redis_server.url)
    redis_server.kill()
    assert guess(live, 3) == {401: 3}
