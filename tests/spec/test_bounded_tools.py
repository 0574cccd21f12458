"""Every answer of a tool fits its budget; a cursor leads to the rest."""

import io
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pyarrow
import pytest

from sankofa.model.line_items import LINE_ITEMS
from sankofa.operations.contract import operations
from tests.every import every
from tests.live import Copies, LiveServer, run

BUDGET = 61_440
SMALL = 6_000
SANDBOX = "sankofa-sandbox"
RETAILER = "DC46AF1B1AAA424B58D1368176"
LISTS: list[tuple[str, dict[str, Any]]] = [
    ("get_fundamentals", {"service_id": RETAILER, "vintages": "all"}),
    ("get_fundamentals", {"service_id": RETAILER, "limit": 10_000}),
    ("get_macro", {"limit": 10_000}),
    ("get_macro", {"series": "FX.EUR.ZAR", "limit": 10_000}),
    ("search_tenders", {"limit": 10_000}),
    ("search_tenders", {"country": "KE", "detail": "full", "limit": 100}),
    ("get_resolved_parties", {"limit": 10_000}),
    ("get_metrics", {"service_id": RETAILER}),
    ("screen_issuers", {"metric": "net_margin"}),
    ("get_signal", {"signal_key": "macro-momentum", "limit": 10_000}),
    ("get_procurement_demand", {"limit": 10_000}),
    ("get_quality_metrics", {"sku": "AF-MACRO"}),
]


class Tools(NamedTuple):
    server: LiveServer
    key: str

    def call(
        self, name: str, arguments: dict[str, Any], key: str | None = None
    ) -> tuple[dict[str, Any], int]:
        """The structured answer, and the size in bytes of one copy of it."""
        result = self.server.call(name, key or self.key, arguments)
        assert result["isError"] is False, result
        (content,) = result["content"]
        body: dict[str, Any] = result["structuredContent"]
        assert json.loads(content["text"]) == body
        return body, len(content["text"].encode())


@pytest.fixture(scope="module")
def default(server: LiveServer, paid_key: str) -> Tools:
    return Tools(server, paid_key)


@pytest.fixture(scope="module")
def small(copy_sample: Copies) -> Iterator[Tools]:
    """A server whose answers have room for a few rows."""
    with LiveServer(
        copy_sample(), mcp_answer_bytes=str(SMALL), per_minute_starter="100000", per_minute_sample="100000"
    ) as server:
        yield Tools(server, server.key("starter"))


def rows_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = body["data"] if "data" in body else body["observations"]
    return rows


@pytest.mark.rule("MCP-9")
@pytest.mark.parametrize(("name", "arguments"), LISTS, ids=lambda part: str(part))
@pytest.mark.limit("SANKOFA_MCP_ANSWER_BYTES")
def test_no_answer_is_larger_than_61_440_bytes_by_default(
    default: Tools, name: str, arguments: dict[str, Any]
) -> None:
    body, size = default.call(name, arguments)
    assert size <= BUDGET
    assert rows_of(body)
    assert body["truncated"] == (body["next_cursor"] is not None)
    if "hint" in body:
        assert body["truncated"] is True
        assert size > BUDGET - 4_000, "as many rows as fit"


@pytest.mark.rule("MCP-9")
@pytest.mark.parametrize(("name", "arguments"), LISTS, ids=lambda part: str(part))
def test_pages_of_bounded_answers_give_every_row_once_in_order(
    small: Tools, default: Tools, name: str, arguments: dict[str, Any]
) -> None:
    expected: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    whole = (
        {**arguments, "order": "statement"}
        if name == "get_fundamentals" and "limit" not in arguments
        else arguments
    )
    while len(expected) < 60:
        body, _ = default.call(name, {**whole, **cursor})
        expected += rows_of(body)
        if body["next_cursor"] is None:
            break
        cursor = {"cursor": body["next_cursor"]}
    paged: list[dict[str, Any]] = []
    cursor = {}
    while len(paged) < min(len(expected), 60):
        body, size = small.call(name, {**arguments, **cursor})
        assert size <= SMALL
        assert rows_of(body), "at least one row, or the walk would stand still"
        paged += rows_of(body)
        if body["next_cursor"] is None:
            break
        assert "next_cursor" in body["hint"]
        cursor = {"cursor": body["next_cursor"]}
    shared = min(len(paged), len(expected))
    ids = [{k: v for k, v in row.items() if k != "observed_at"} for row in expected[:shared]]
    assert [{k: v for k, v in row.items() if k != "observed_at"} for row in paged[:shared]] == ids
    assert shared >= min(len(expected), 60)


@pytest.mark.rule("MCP-9", "FUND-8")
def test_core_line_items_of_the_newest_period_come_first_if_not_all_fit(default: Tools):
    body, _ = default.call("get_fundamentals", {"service_id": RETAILER})
    assert body["truncated"] is True
    assert "`line_items`" in body["hint"]
    assert body["hint"].count(". ") == 0
    rows = body["data"]
    everything = default.server.get(f"/v1/fundamentals/{RETAILER}", default.key).json()["data"]
    assert all(row in everything for row in rows)
    core = [row["line_item"] in LINE_ITEMS for row in rows]
    assert core == sorted(core, reverse=True)
    assert core[0]
    ends = [row["period_end"] for row in rows if row["line_item"] in LINE_ITEMS]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == everything[0]["period_end"]
    newest = [row["line_item"] for row in rows if row["period_end"] == ends[0] and row["period_type"] == "FY"]
    assert newest[:3] == sorted(newest[:3], key=LINE_ITEMS.index)


@pytest.mark.rule("MCP-9", "KEY-10")
def test_a_sample_key_gets_the_upgrade_link_instead_of_a_cursor(small: Tools) -> None:
    body, size = small.call("get_metrics", {"service_id": RETAILER}, SANDBOX)
    assert size <= SMALL
    assert (body["truncated"], body["next_cursor"]) == (True, None)
    assert "paid key" in body["hint"]
    assert "`metric`" in body["hint"]
    tenders, _ = small.call("search_tenders", {}, SANDBOX)
    assert tenders["next_cursor"] is not None
    following, _ = small.call("search_tenders", {"cursor": tenders["next_cursor"]}, SANDBOX)
    assert following["data"][0] not in tenders["data"]


@pytest.mark.rule("MCP-9")
def test_a_row_that_is_too_large_links_to_its_release(copy_sample: Copies) -> None:
    with LiveServer(copy_sample(), mcp_answer_bytes="1650") as server:
        tools = Tools(server, server.key("starter"))
        body, size = tools.call("search_tenders", {"country": "ZA", "detail": "full"})
        (row,) = body["data"]
        assert size <= 1650
        assert "release" not in row
        assert f"country=ZA&from={row['release_date'][:10]}" in body["hint"]
        following, _ = tools.call(
            "search_tenders", {"country": "ZA", "detail": "full", "cursor": body["next_cursor"]}
        )
        assert following["data"][0]["ocid"] != row["ocid"] or following["data"][0] != row


PATH = f"/v1/fundamentals/{RETAILER}"
ARROW = "application/vnd.apache.arrow.stream"
APP = "https://app.example"
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


# ?format=


@pytest.mark.rule("ENV-11")
@every(("name", "media_type"), [("csv", "text/csv"), ("arrow", ARROW), ("json", "application/json")])
def test_a_format_in_the_query_is_the_same_as_accept(
    server: LiveServer, paid_key: str, name: str, media_type: str
) -> None:
    by_query = server.get(f"{PATH}?limit=7&format={name}", paid_key)
    by_accept = server.get(f"{PATH}?limit=7", paid_key, accept=media_type)
    assert by_query.headers["content-type"] == by_accept.headers["content-type"]
    if name == "arrow":
        assert pyarrow.ipc.open_stream(io.BytesIO(by_query.content)).read_all().num_rows == 7
    else:
        assert len(by_query.content) == len(by_accept.content)
    assert by_query.headers["etag"] != by_accept.headers["etag"]
    link = by_query.headers["link"]
    assert f"format={name}" in link, "the next page comes in the same form"
    again = server.get(
        f"{PATH}?limit=7&format={name}", paid_key, **{"if-none-match": by_query.headers["etag"]}
    )
    assert again.status_code == 304
    head = server.http.head(f"{PATH}?limit=7&format={name}", headers={"x-api-key": paid_key})
    assert head.headers["content-type"] == by_query.headers["content-type"]
    assert head.content == b""


@pytest.mark.rule("ENV-11")
def test_format_wins_over_accept_and_an_unknown_format_is_a_400(server: LiveServer, paid_key: str) -> None:
    browser = "text/html,application/xhtml+xml,*/*;q=0.8"
    for accept in ("application/json", ARROW, browser, "nonsense"):
        answer = server.get(f"{PATH}?limit=2&format=csv", paid_key, accept=accept)
        assert answer.headers["content-type"].startswith("text/csv")
    packed = server.get(f"{PATH}?limit=2&format=arrow", paid_key, accept=f"{ARROW};compression=zstd")
    assert packed.headers["content-type"].endswith("compression=zstd")
    for wrong in ("format=CSV", "format=", "format=parquet", "format=csv&format=csv"):
        refused = server.get(f"{PATH}?{wrong}", paid_key)
        assert (refused.status_code, refused.json()["parameter"]) == (400, "format")
        assert refused.headers["content-type"] == "application/problem+json"


# Pages of other sites


@pytest.fixture(scope="module")
def open_to_app(copy_sample: Copies) -> Iterator[LiveServer]:
    with LiveServer(
        copy_sample(), cors_origins=f"{APP}/, http://localhost:3000", per_minute_sample="100000"
    ) as live:
        yield live


def preflight(server: LiveServer, path: str, origin: str, method: str = "GET") -> httpx.Response:
    fields = {"origin": origin, "access-control-request-method": method}
    fields["access-control-request-headers"] = "x-api-key,authorization,if-none-match"
    return server.http.request("OPTIONS", path, headers=fields)


@pytest.mark.rule("CORS-1")
def test_by_default_no_page_of_another_site_may_read_an_answer(server: LiveServer) -> None:
    for answer in (
        preflight(server, PATH, APP),
        server.get(PATH, "sankofa-sandbox", origin=APP),
        server.get("/health", origin=APP),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.rule("CORS-1")
@pytest.mark.parametrize("path", [PATH, "/v1/status", "/openapi.json", "/mcp", "/v1/export/files/x.parquet"])
def test_the_preflight_of_an_allowed_page_lists_allowed_headers(open_to_app: LiveServer, path: str) -> None:
    method = "POST" if path == "/mcp" else "GET"
    answer = preflight(open_to_app, path, APP, method)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == APP
    assert method in answer.headers["access-control-allow-methods"].split(", ")
    allowed = {name.lower() for name in answer.headers["access-control-allow-headers"].split(", ")}
    assert {"x-api-key", "authorization", "if-none-match", "range", "content-type", "x-edition"} <= allowed
    assert "Origin" in answer.headers.get_list("vary")
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["x-service-api-version"] == "1.0.0"
    for other in ("https://evil.example", f"{APP}.evil.example", "null", f"{APP}:444"):
        refused = preflight(open_to_app, path, other, method)
        assert "access-control-allow-origin" not in refused.headers


@pytest.mark.rule("CORS-1")
def test_every_answer_to_an_allowed_page_may_be_read_with_its_header_fields(open_to_app: LiveServer) -> None:
    key = "sankofa-sandbox"
    good = open_to_app.get(PATH, key, origin=APP)
    unchanged = open_to_app.get(PATH, key, origin=APP, **{"if-none-match": good.headers["etag"]})
    answers = {
        200: good,
        304: unchanged,
        400: open_to_app.get(f"{PATH}?nothing=1", key, origin=APP),
        401: open_to_app.get(PATH, "wrong", origin=APP),
        402: open_to_app.get("/v1/changes", key, origin=APP),
        404: open_to_app.get("/nothing", origin=APP),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == APP
        exposed = {name.lower() for name in answer.headers["access-control-expose-headers"].split(", ")}
        assert {"etag", "link", "ratelimit", "retry-after", "x-request-id", "x-upgrade-url"} <= exposed
        assert any("Origin" in value for value in answer.headers.get_list("vary"))
    plain = open_to_app.get(PATH, key)
    assert "access-control-allow-origin" not in plain.headers
    assert any("Origin" in value for value in plain.headers.get_list("vary")), "a cache must know"
    assert open_to_app.http.head(PATH, headers={"x-api-key": key, "origin": APP}).status_code == 200
    post = open_to_app.http.post("/mcp", json=MESSAGE, headers={**MCP, "x-api-key": key, "origin": APP})
    assert post.status_code == 200
    assert post.headers["access-control-allow-origin"] == APP
    evil = open_to_app.http.post(
        "/mcp", json=MESSAGE, headers={**MCP, "x-api-key": key, "origin": "https://evil.example"}
    )
    assert evil.status_code == 403


@pytest.mark.rule("CORS-1")
def test_an_open_file_is_open_to_every_page_whatever_is_allowed(open_to_app: LiveServer) -> None:
    rows = open_to_app.get("/v1/export", "sankofa-sandbox").json()["data"]
    path = next(httpx.URL(row["url"]).path for row in rows if row["access"] == "open")
    for origin in (APP, "https://anywhere.example"):
        part = open_to_app.get(path, origin=origin, range="bytes=0-3")
        assert (part.status_code, part.content) == (206, b"PAR1")
        assert part.headers.get_list("access-control-allow-origin") == ["*"]
        assert preflight(open_to_app, path, origin).headers["access-control-allow-origin"] == "*"


@pytest.mark.rule("CORS-1")
def test_an_asterisk_allows_every_page_and_a_bad_origin_stops_the_start(copy_sample: Copies) -> None:
    home = copy_sample()
    with LiveServer(home, cors_origins="*") as server:
        answer = server.get("/health", origin="https://any.example")
        assert answer.headers["access-control-allow-origin"] == "*"
        post = server.http.post(
            "/mcp",
            json=MESSAGE,
            headers={**MCP, "x-api-key": "sankofa-sandbox", "origin": "https://any.example"},
        )
        assert (post.status_code, post.headers["access-control-allow-origin"]) == (200, "*")
    for wrong in ("app.example", "https://app.example/path", "https://", f"{APP}, nonsense"):
        refused = run(home, "keys", "list", cors_origins=wrong)
        assert refused.returncode == 1
        assert "SANKOFA_CORS_ORIGINS" in refused.stderr


# How to present a key


@pytest.mark.rule("KEY-19")
def test_a_401_says_how_to_present_a_key(server: LiveServer) -> None:
    refused = server.get(PATH)
    address = f'resource_metadata="{server_base(server)}/.well-known/oauth-protected-resource"'
    assert address in refused.headers["www-authenticate"]
    mcp = server.http.post("/mcp", json=MESSAGE, headers=MCP)
    assert mcp.status_code == 401
    assert address.replace('source"', 'source/mcp"') in mcp.headers["www-authenticate"]
    for path, resource in (("", ""), ("/mcp", "/mcp")):
        answer = server.get(f"/.well-known/oauth-protected-resource{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        body = answer.json()
        assert body["resource"] == server_base(server) + resource
        assert body["bearer_methods_supported"] == ["header"]
        assert "X-API-Key" in body["api_key_methods_supported"]
        assert server.get(httpx.URL(body["resource_documentation"]).path).status_code == 200


def server_base(server: LiveServer) -> str:
    base: str = server.get("/openapi.json").json()["servers"][0]["url"]
    return base


@pytest.mark.rule("KEY-20")
def test_llms_txt_names_every_tool_and_every_endpoint(server: LiveServer) -> None:
    answer = server.get("/llms.txt")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.text.startswith("# Sankofa\n\n> ")
    for operation in operations():
        assert not operation.tool or f"`{operation.tool}`" in answer.text
        assert not operation.path or f"[{operation.path}]" in answer.text
    for word in ("X-API-Key", "Authorization: Bearer", "/mcp", "/openapi.json", "sankofa-sandbox", "as_of"):
        assert word in answer.text
    assert server.http.head("/llms.txt").status_code == 200
    assert json.dumps(answer.text)
