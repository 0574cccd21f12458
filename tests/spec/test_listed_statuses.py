"""OpenAPI lists exactly the statuses that each operation can answer: each of them is provoked here.

The fuzzing of `test_schemathesis` checks that no other status occurs.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from sankofa.operations.contract import Operation, endpoints
from tests.every import every
from tests.live import Copies, LiveServer, create_key
from tests.wire import exchange, request

pytestmark = pytest.mark.rule("SPEC-2")
REMOVED_EDITION = "20200101T000000Z-00001-0123456789"
NEVER = "20200101T000000Z-00001-9876543210"
REQUIRED = {
    "/v1/check": {"subject": "JSE:SMPKG", "measure": "revenue", "period": "2021", "value": "37.5bn"},
    "/v1/panel": {"metrics": "net_margin"},
    "/v1/shared/facts": {"entity_id": "DC46AF1B1AAA424B58D1368176"},
}


class Served(NamedTuple):
    server: LiveServer
    empty: LiveServer
    """Without an edition."""
    document: dict[str, Any]
    keys: dict[str, str]


@pytest.fixture(scope="module")
def served(copy_sample: Copies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = copy_sample()
    with (home / "editions" / "PUBLISHED").open("a") as published:
        published.write(f"{REMOVED_EDITION}\n")
    empty = tmp_path_factory.mktemp("empty") / "home"
    empty.mkdir()
    with LiveServer(home) as server, LiveServer(empty) as other:
        keys = {tier: create_key(home, tier, "--per-minute", "100000") for tier in ("sample", "professional")}
        keys["empty"] = create_key(empty, "professional")
        yield Served(server, other, server.get("/openapi.json").json(), keys)


def target(served: Served, operation: Operation) -> tuple[str, dict[str, str]]:
    path, query = operation.path, dict(REQUIRED.get(operation.path, {}))
    for one in served.document["paths"][path]["get"]["parameters"]:
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", str(one["example"]))
        elif one["required"]:
            query[one["name"]] = str(one.get("example") or one["schema"]["enum"][0])
    return path, query


def brought_about(served: Served, operation: Operation, status: int) -> httpx.Response:
    path, query = target(served, operation)
    key, headers, server = served.keys["professional"], {}, served.server
    if status == 304:
        headers["if-none-match"] = "*"
    elif status == 400:
        query["no_such_parameter"] = "1"
    elif status == 401:
        key = "sk_unknown"
    elif status == 402:
        key = served.keys["sample"]
        if path == "/v1/proof":
            rows = server.get("/v1/changes?dataset=crosswalk&limit=1000", served.keys["professional"]).json()
            paid = next(one for one in rows["data"] if one["row"]["id_type"] == "registry")
            query["record_ref"] = f"crosswalk:{json.dumps(paid['key'])}"
        else:
            query |= {"id_type": "isin"} if path == "/v1/crosswalk" else {"limit": "26"}
    elif status == 404:
        query["edition"] = NEVER
    elif status == 410:
        query["edition"] = REMOVED_EDITION
    elif status == 414:
        query["a"] = "a" * 5_000
    elif status == 429:
        key = create_key(server.home, "professional", "--per-month", "1")
        server.http.get(path, params=query, headers={"x-api-key": key})
    elif status == 431:
        headers["a"] = "a" * 17_000
    elif status == 503:
        key, server = served.keys["empty"], served.empty
    return server.http.get(path, params=query, headers={**headers, "x-api-key": key})


@pytest.mark.parametrize("operation", endpoints(), ids=lambda one: one.name)
def test_every_listed_status_can_occur(served: Served, operation: Operation) -> None:
    listed = {int(status) for status in served.document["paths"][operation.path]["get"]["responses"]}
    for status in sorted(listed):
        answer = brought_about(served, operation, status)
        assert answer.status_code == status, (status, answer.text)
        assert answer.headers["x-service-api-version"] == "1.0.0"
        assert answer.headers["x-request-id"]
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status


@pytest.mark.rule("ERR-2", "ERR-6")
@every("path", ["/", "/companies", "/docs", "/no-such-page", "/health", "/mcp"])
@every(
    ("fields", "query", "status"),
    [
        (("Host: 127.0.0.1", "Host: b"), "", 400),
        ((), "", 400),
        (("Host: 127.0.0.1",), "?a=" + "a" * 5_000, 414),
        (("Host: 127.0.0.1", "A: " + "a" * 17_000), "", 431),
    ],
    ids=["two hosts", "no host", "long query", "large head"],
)
def test_pages_mcp_and_the_api_refuse_the_same_requests(
    server: LiveServer, path: str, fields: tuple[str, ...], query: str, status: int
) -> None:
    own = ("Content-Length: 0",) if path == "/mcp" else ("Accept: text/html",)
    method = "POST" if path == "/mcp" else "GET"
    answer = exchange(server.port, request(f"{path}{query}", *fields, *own, method=method))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert path != "/mcp" or b"application/problem+json" in answer
    assert b"x-service-api-version: 1.0.0" in answer
    assert b"x-request-id: " in answer
