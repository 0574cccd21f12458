"""The MCP endpoint as HTTP: keys, hosts, origins, methods, bodies and logs."""

import socket

import httpx
import pytest

from sankofa.mcp.surface import LARGEST_BODY
from tests.every import every
from tests.patience import PATIENCE
from tests.spec.mcp_messages import (
    OLD,
    RETAILER,
    REVISIONS,
    SANDBOX,
    call,
    checked,
    connect,
    message,
    post,
    used,
)
from tests.spec.mcp_messages import serve as serve

pytestmark = pytest.mark.anyio

# Who is calling


def authentication(*headers: tuple[str, str]) -> list[tuple[str, str]]:
    return [("accept", "application/json"), ("content-type", "application/json"), *headers]


@pytest.mark.rule("MCP-3")
@every(
    "headers",
    [
        (),
        (("x-api-key", ""),),
        (("x-api-key", "sk_wrong"),),
        (("x-api-key", "clé".encode().decode("latin-1")),),
        (("x-api-key", SANDBOX), ("x-api-key", SANDBOX)),
        (("authorization", f"Bearer {SANDBOX}"), ("authorization", f"Bearer {SANDBOX}")),
        (("x-api-key", SANDBOX), ("authorization", "Bearer sk_other")),
        (("x-api-key", SANDBOX), ("authorization", f"Bearer {SANDBOX}")),
        (("authorization", SANDBOX),),
        (("authorization", f"Basic {SANDBOX}"),),
    ],
)
def test_no_key_a_wrong_one_or_more_than_one_is_401_over_http(server, headers):
    url, body = f"{server.url}/mcp", message("tools/list", OLD)
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in authentication(*headers)]
    response = checked(httpx.post(url, json=body, headers=encoded))
    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert "www-authenticate" in response.headers
    assert "sk_" not in response.text


# When something is down


@pytest.mark.rule("MCP-3")
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_edition_is_503_over_http_and_not_a_tool_error(serve, revision):
    server = serve(empty=True)
    response = call(server, "get_entity", {"service_id": RETAILER}, revision)
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) >= 1
    assert "isError" not in response.text
    assert "ratelimit" in response.headers
    assert post(server, message("tools/list", revision), revision).status_code == 200


@pytest.mark.parametrize(("store", "listing"), [("keystore", 503), ("usagestore", 200)])
def test_a_store_that_is_down_is_503_for_what_needs_it(serve, redis_server, store, listing):
    server = serve(**{store: redis_server.url})
    assert call(server, "get_entity", {"service_id": RETAILER}).status_code == 200
    redis_server.kill()
    for revision in REVISIONS:
        response = call(server, "get_entity", {"service_id": RETAILER}, revision)
        assert response.status_code == 503
        assert response.headers["content-type"] == "application/problem+json"
        assert "retry-after" in response.headers
        assert redis_server.url not in response.text
        assert post(server, message("tools/list", revision), revision).status_code == listing


# Hosts, origins, methods, bodies


@pytest.mark.rule("MCP-8")
@every(
    ("headers", "status"),
    [
        ({"host": "localhost:1"}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "127.0.0.1:80@evil.example"}, 421),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "file://"}, 403),
    ],
)
def test_only_requests_for_this_host_and_from_its_own_pages_are_answered(server, headers, status):
    for revision in REVISIONS:
        assert post(server, message("tools/list", revision), revision, **headers).status_code == status
    if status != 200:  # an unauthorised page learns nothing about the key
        refused = post(server, message("tools/list", OLD), key=None, **headers)
        assert refused.status_code == status
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.rule("MCP-8")
def test_the_operator_may_allow_more_hosts_and_origins(serve):
    server = serve(
        mcp_url="https://mcp.sankofa.example",
        mcp_allowed_hosts="inner.example, ported.example:81",
        mcp_allowed_origins="https://app.example",
    )
    allowed = {
        "host": ["mcp.sankofa.example", "mcp.sankofa.example:443", "inner.example:9", "ported.example:81"],
        "origin": ["https://app.example", "https://mcp.sankofa.example"],
    }
    refused = {
        "host": ["ported.example:82", "other.example"],
        "origin": ["http://app.example", "https://x.example"],
    }
    for name in ("host", "origin"):
        for value in allowed[name]:
            assert post(server, message("tools/list", OLD), **{name: value}).status_code == 200
        for value in refused[name]:
            assert post(server, message("tools/list", OLD), **{name: value}).status_code in (403, 421)


def test_an_asterisk_allows_any_host_and_any_origin(serve):
    server = serve(mcp_allowed_hosts="*", mcp_allowed_origins="*")
    for headers in ({"host": "any.example"}, {"origin": "https://any.example"}, {"origin": "null"}):
        assert post(server, message("tools/list", OLD), **headers).status_code == 200


@every("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH"])
def test_another_method_than_post_is_405_with_allow_and_is_not_held_open(server, method):
    headers = {"x-api-key": SANDBOX, "accept": "text/event-stream"}
    response = checked(server.http.request(method, "/mcp", headers=headers, timeout=PATIENCE))
    assert response.status_code == 405
    assert response.headers["allow"] == "POST, OPTIONS"
    assert bool(response.content) == (method != "HEAD")


@pytest.mark.rule("MCP-4")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_small_known_messages_do_not_count(server, revision):
    cap = 1000
    key = server.key("starter", "--per-month", str(cap))
    async with connect(server, key, revision) as client:
        await client.list_tools(cache_mode="refresh")
    for method in ("ping", "server/discover", "tools/list", "resources/list", "notifications/initialized"):
        post(server, message(method, revision), revision, key)
    assert used(server, key, cap) == 0


@pytest.mark.rule("MCP-4")
@every("revision", REVISIONS)
def test_any_other_message_counts(server, revision):
    cap = 1000
    key = server.key("starter", "--per-month", str(cap))
    long_ping = message("ping", revision) | {"padding": "x" * 16_384}
    others = (
        message("no/such/method", revision),
        b"not json",
        [message("tools/call", revision)],
        long_ping,
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    )
    for other in others:
        post(server, other, revision, key)
    assert used(server, key, cap) == len(others)


def test_a_counted_message_beyond_the_quota_is_a_429_and_a_free_one_is_answered(server):
    key = server.key("starter", "--per-minute", "1000", "--per-month", "1")
    revision = REVISIONS[0]
    assert post(server, message("no/such/method", revision), revision, key).status_code != 429
    refused = post(server, message("no/such/method", revision), revision, key)
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert int(refused.headers["retry-after"]) >= 1
    assert post(server, message("tools/list", revision), revision, key).status_code == 200


@pytest.mark.rule("MCP-4")
def test_a_message_that_is_too_long_is_refused_before_it_is_sent(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(_head("Content-Length: 2000000"))
        answer = _until_closed(link)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer
    for method in ("tools/list", "initialize", "no/such"):
        padded = message(method, OLD, name="x", arguments={"a": "x" * LARGEST_BODY})
        assert post(server, padded, OLD).status_code == 413, "only a call is as long as its arguments"


@every(
    "body",
    [
        b"ZZ\r\n{}\r\n0\r\n\r\n",
        b"-1\r\n{}\r\n0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}xx\r\n0\r\n\r\n",
        b"2\n{}\n0\n\n",
        b"2;" + b"x" * 20_000 + b"\r\n{}\r\n0\r\n\r\n",
        b"20\r\n{}",
    ],
    ids=[
        "no number",
        "negative",
        "overflow",
        "longer than said",
        "bare line feeds",
        "extension",
        "cut short",
    ],
)
def test_malformed_chunks_are_a_400_problem(server, body):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(_head("Transfer-Encoding: chunked") + body)
        link.shutdown(socket.SHUT_WR)
        answer = _until_closed(link)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert b"x-request-id" in answer


def _head(framing: str) -> bytes:
    fields = (
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"X-API-Key: {SANDBOX}",
        "Content-Type: application/json",
    )
    return "\r\n".join((*fields, "Accept: application/json", framing, "", "")).encode()


def _until_closed(link: socket.socket) -> bytes:
    received = b""
    while part := link.recv(65536):
        received += part
    return received


@pytest.mark.rule("MCP-13")
@every("revision", REVISIONS)
@every(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b'{"jsonrpc": ', {}, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', {}, 400),
        (b"[" * 100_000, {}, 400),
        (b'{"method":7}', {}, 400),
        (b"{}", {"content-type": "text/plain"}, 400),
        (b"{}", {"accept": "text/html"}, 406),
        (b" " * (1 << 20) + b"{}", {}, 413),
    ],
)
def test_a_malformed_body_is_refused_and_the_server_lives(server, body, headers, status, revision):
    assert post(server, body, revision, **headers).status_code == status
    assert post(server, message("tools/list", revision), revision).status_code == 200
