"""Answers that a shared cache may store, and those that it must not."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.every import every
from tests.live import LiveServer
from tests.nodes.servers import Nginx
from tests.patience import PATIENCE, in_one_minute, until
from tests.services import RedisServer, free_port

DOCUMENTS = """
    /openapi.json /llms.txt /.well-known/oauth-protected-resource /problems/not-found
    /methodology/net_margin-v1 /docs /docs/api /docs/readme
""".split()
FILE = "/open/macro-momentum.parquet"


def served_path(server: LiveServer, path: str) -> str:
    """The path of a methodology has a version, which the index of problems does not show."""
    if not path.startswith("/methodology/"):
        return path
    row = server.get("/v1/screen?metric=net_margin&limit=1", "sankofa-sandbox").json()["data"][0]
    return f"/methodology/{row['methodology_ref']}"


@pytest.mark.rule("CDN-1")
@every("path", DOCUMENTS)
def test_documents_may_be_cached_by_all_and_revalidated_by_their_tag(server: LiveServer, path: str) -> None:
    path = served_path(server, path)
    answer = server.get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert "Accept-Encoding" in answer.headers["vary"]
    assert "set-cookie" not in answer.headers
    again = server.get(path, if_none_match=answer.headers["etag"])
    assert again.status_code == 304
    assert again.headers["cache-control"] == "public, max-age=300"
    assert server.get(path, accept_encoding="identity", if_none_match='"another"').text == answer.text


@pytest.mark.rule("CDN-1")
def test_no_answer_to_a_visitor_or_a_key_is_public(server: LiveServer, paid_key: str) -> None:
    for path, key, headers in (
        ("/docs", None, {"cookie": "sankofa_lang=fr"}),
        ("/docs", paid_key, {}),
        ("/docs?lang=fr", None, {}),
        ("/", None, {}),
        ("/status", None, {}),
        ("/v1/screen?metric=net_margin", paid_key, {}),
        ("/v1/status", None, {}),
        ("/v1/entities/none", None, {}),
    ):
        assert "public" not in server.get(path, key, **headers).headers.get("cache-control", ""), path


@pytest.mark.rule("CDN-1")
def test_a_shared_cache_serves_documents_and_open_files_and_forwards_keys(
    server: LiveServer, paid_key: str, tmp_path: Path
) -> None:
    """nginx with its default cache, which knows nothing of the service but its header fields."""
    port = free_port()
    configuration = f"""
proxy_cache_path {tmp_path}/kept keys_zone=kept:1m;
server {{
  listen 127.0.0.1:{port};
  location / {{
    proxy_pass {server.url}; proxy_cache kept; proxy_cache_revalidate on; proxy_set_header Host $http_host;
    add_header X-Kept $upstream_cache_status always;
  }}
}}"""
    pinned = f"{FILE}?edition={server.get('/v1/status').json()['edition']}"
    with Nginx(tmp_path / "nginx", configuration), httpx.Client(base_url=f"http://127.0.0.1:{port}") as cache:

        def cache_status(path: str, **headers: str) -> str:
            return str(cache.get(path, headers=headers).headers["x-kept"])

        def listens() -> bool:
            try:
                return cache.get("/health").status_code == 200
            except httpx.TransportError:
                return False

        until(listens)
        for path in ("/openapi.json", "/llms.txt", "/docs", "/problems/not-found", pinned):
            assert [cache_status(path), cache_status(path)] == ["MISS", "HIT"], path
        assert cache.get(pinned).content == server.get(pinned).content
        key = {"x-api-key": paid_key}
        for path in ("/v1/screen?metric=net_margin", "/docs/api"):
            assert {cache_status(path, **key), cache_status(path, **key)} == {"MISS"}, path


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
        fresh = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)  # from whichever worker
        fresh.request("GET", ENTITY, headers={"X-API-Key": f"guess-{n}"})
        statuses[fresh.getresponse().status] += 1
        fresh.close()
    assert statuses == {401: BUDGET, 429: 10}
    refused = live.get(ENTITY, "guess")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert "RateLimit" not in refused.headers
    assert live.get(ENTITY).status_code == 401  # a missing key is not a guess
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
def test_with_the_usage_store_down_a_bad_key_is_still_a_401(serve: Serve, redis_server: RedisServer) -> None:
    live = serve(usagestore=redis_server.url)
    redis_server.kill()
    assert guess(live, 3) == {401: 3}
