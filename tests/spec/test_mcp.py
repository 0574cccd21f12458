"""MCP, through the SDK's own client, and byte for byte beside REST."""

import asyncio
import json
import re
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from sankofa.model.identifiers import service_id
from sankofa.operations.contract import operations
from tests.live import LiveServer, run
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio

OLD, NEW = "2025-11-25", "2026-07-28"
REVISIONS = (OLD, NEW)
MODES = {OLD: "legacy", NEW: "auto"}
SANDBOX = "sankofa-sandbox"
RETAILER = service_id("lei:999900SAMPLEZA000189")
BANK = service_id("lei:999900SAMPLENG000126")
FUND = service_id("lei:999900SAMPLEZA000286")
NOBODY = "DC000000000000000000000000"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def serve(tmp_path: Path, sample_home: Path) -> Iterator[Callable[..., LiveServer]]:
    """Starts a server of the test's own, on a copy of the sample world or on nothing at all."""
    with ExitStack() as stack:

        def start(*, empty: bool = False, workers: int = 1, **settings: str) -> LiveServer:
            home = tmp_path / "home"
            if not empty:
                shutil.copytree(sample_home, home)
            return stack.enter_context(LiveServer(home, workers=workers, **settings))

        yield start


@asynccontextmanager
async def connect(server: LiveServer, key: str, revision: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"x-api-key": key}, verify=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=MODES[revision]) as client,
    ):
        yield client


def message(method: str, revision: str, **params: Any) -> dict[str, Any]:
    if revision == NEW:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": NEW,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(
    server: LiveServer, body: Any, revision: str = OLD, key: str | None = SANDBOX, **headers: str
) -> httpx.Response:
    """One message as it goes on the wire; whatever the answer, it carries what every response does."""
    sent = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    sent["mcp-protocol-version"] = revision
    if isinstance(body, dict) and revision == NEW and "method" in body:
        sent["mcp-method"] = body["method"]
        if "name" in body.get("params", {}):
            sent["mcp-name"] = body["params"]["name"]
    if key is not None:
        sent["x-api-key"] = key
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return checked(server.http.post("/mcp", content=content, headers={**sent, **headers}, timeout=PATIENCE))


def checked(response: httpx.Response) -> httpx.Response:
    assert response.headers["x-service-api-version"] == "1.0.0"
    assert len(response.headers.get_list("x-request-id")) == 1
    if response.headers.get("content-type") == "application/problem+json" and response.content:
        assert response.json()["request_id"] == response.headers["x-request-id"]
        assert response.json()["status"] == response.status_code
    return response


def call(
    server: LiveServer, tool: str, arguments: Any, revision: str = OLD, key: str = SANDBOX, **headers: str
) -> httpx.Response:
    return post(
        server, message("tools/call", revision, name=tool, arguments=arguments), revision, key, **headers
    )


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """The problem in a tool error."""
    result = response.json()["result"]
    assert response.status_code == 200
    assert result["isError"] is True
    assert "structuredContent" not in result
    problem: dict[str, Any] = json.loads(result["content"][0]["text"])
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem


def rest(server: LiveServer, path: str, key: str = SANDBOX, **query: str) -> httpx.Response:
    return server.http.get(path, params=query, headers={"x-api-key": key})


def used(server: LiveServer, key: str, cap: int) -> int:
    """What was counted on a key of that monthly cap, this question excepted."""
    left = re.search(r'"month";r=(\d+)', rest(server, f"/v1/entities/{FUND}", key).headers["ratelimit"])
    assert left is not None
    return cap - int(left[1]) - 1


# What is offered


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_current_protocol_revision_and_the_previous_one_are_served(server, revision):
    async with connect(server, SANDBOX, revision) as client:
        assert client.protocol_version == revision
        assert client.server_info is not None
        assert client.server_info.name == "sankofa"
        for word in ("as_of", "vintages", "source_ref", "license_class", "upgrade.checkout_url", "research"):
            assert word in (client.instructions or "")
        found = await client.call_tool("get_entity", {"service_id": RETAILER})
        assert found.structured_content is not None
        assert found.structured_content["data"][0]["legal_name"] == "Kgalagadi Sample Retail Holdings Limited"


@pytest.mark.rule("MCP-1")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_operation_with_a_tool_is_listed_with_its_schemas_and_as_read_only(server, revision):
    async with connect(server, SANDBOX, revision) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    declared = {operation.tool: operation for operation in operations() if operation.tool}
    assert set(tools) == set(declared) >= {"get_entity", "get_fundamentals"}
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (True, False, False)
        assert tool.title
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert all(argument["description"] for argument in tool.input_schema["properties"].values())
        assert len(tool.input_schema["properties"]) == len(declared[name].parameters)
        for schema in (tool.input_schema, tool.output_schema):
            assert schema is not None
            Draft202012Validator.check_schema(schema)
            assert "$ref" not in json.dumps(schema)
    arguments = tools["get_fundamentals"].input_schema
    assert list(arguments["properties"]) == [
        *("service_id", "as_of", "period_type", "vintages", "line_items", "order", "limit", "cursor")
    ]
    assert arguments["required"] == ["service_id"]


@pytest.mark.rule("MCP-11")
def test_the_list_of_tools_is_short_and_each_says_how_to_begin_and_what_comes_next(server):
    listed = post(server, message("tools/list", OLD)).json()["result"]["tools"]
    assert len(json.dumps(listed, separators=(",", ":"))) / 4 < 6_000, "tokens, of about four characters"
    for tool in listed:
        assert "Example: {" in tool["description"] or "e.g. {" in tool["description"], tool["name"]
        given = re.search(r"(?:Example:|e\.g\.) (\{.*?\})", tool["description"])
        assert given is not None
        answer = call(server, tool["name"], json.loads(given[1]))
        assert answer.json()["result"]["isError"] is False, answer.text
    assert "no name search" not in json.dumps(listed).lower()


async def test_answers_keep_to_the_output_schema_which_knows_every_field(server):
    key = server.key("professional")
    async with connect(server, key, NEW) as client:
        for tool in (await client.list_tools()).tools:
            asked: dict[str, dict[str, Any]] = {
                "search_entities": {"query": "sample bank"},
                "search_tenders": {"query": "supply"},
                "get_macro": {},
                "get_quality_metrics": {"sku": "AF-FUND"},
                "get_statement": {"service_id": BANK, "kind": "cash", "period_type": "FY"},
                "list_issuers": {},
                "list_series": {},
                "get_cross_rates": {"base": "GBP", "quote": "ZAR", "limit": 5},
                "get_coverage": {},
                "screen_issuers": {"metric": "net_margin"},
                "get_signal": {"signal_key": "macro-momentum"},
                "get_procurement_demand": {},
                "lookup_identifier": {"id_type": "lei", "id_value": "999900SAMPLENG000126"},
                "get_fundamentals": {"service_id": BANK, "line_items": ["revenue"]},
                "get_resolved_parties": {"service_id": BANK},
            }
            given = asked.get(tool.name, {"service_id": BANK})
            under = "observations" if tool.name in ("get_signal", "get_procurement_demand") else "data"
            found = (await client.call_tool(tool.name, given)).structured_content
            assert tool.output_schema is not None
            Draft202012Validator(tool.output_schema).validate(found)
            assert found is not None
            assert set(found) == set(tool.output_schema["required"])
            items = tool.output_schema["properties"][under]["items"]
            row = items.get("anyOf", [items])[0]
            provenance = {"source_ref", "license_class", "observed_at"}
            own = set(found[under][0]) - provenance
            assert own >= set(row["required"]) if tool.name == "get_signal" else own == set(row["required"])


# The same call, the same answer


FUNDAMENTALS = f"/v1/fundamentals/{RETAILER}"
SAME_CALLS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("get_entity", f"/v1/entities/{RETAILER}", {"service_id": RETAILER}, {}),
    ("get_entity", f"/v1/entities/{RETAILER.lower()}", {"service_id": RETAILER.lower()}, {}),
    ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"as_of": "2020-01-31"}),
    ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"as_of": "1990-01-01"}),
    ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"vintages": "all", "period_type": "H1"}),
    ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"vintages": "as_reported", "limit": 20}),
    (
        "get_fundamentals",
        f"/v1/fundamentals/{BANK}",
        {"service_id": BANK},
        {"order": "statement", "limit": 9},
    ),
    ("get_fundamentals", f"/v1/fundamentals/{FUND}", {"service_id": FUND}, {}),
    ("get_macro", "/v1/macro", {}, {"country": "ZAF"}),
    ("get_macro", "/v1/macro", {}, {"series": "FX.EUR.ZAR", "as_of": "2024-01-31"}),
    ("search_tenders", "/v1/tenders", {}, {"country": "ZA", "detail": "compact"}),
    ("search_tenders", "/v1/tenders", {}, {"country": "ke", "detail": "full", "limit": 20}),
    ("screen_issuers", "/v1/screen", {}, {"metric": "net_margin", "order": "asc"}),
    ("get_metrics", f"/v1/metrics/{RETAILER}", {"service_id": RETAILER}, {}),
    ("get_signal", "/v1/signals/macro-momentum", {"signal_key": "macro-momentum"}, {}),
    ("get_procurement_demand", "/v1/signals/procurement-demand", {}, {"country": "KE"}),
    ("lookup_identifier", "/v1/crosswalk", {}, {"id_type": "lei", "id_value": "999900SAMPLENG000126"}),
    ("get_resolved_parties", "/v1/tender-parties", {}, {"role": "buyer", "country": "ng"}),
    ("get_resolved_parties", "/v1/tender-parties", {}, {"service_id": BANK}),
]


@pytest.mark.rule("MCP-2")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tier", ["sample", "professional"])
async def test_structured_content_and_text_are_the_rest_body_byte_for_byte(server, tier, revision):
    key = server.key(tier)
    async with connect(server, key, revision) as client:
        for tool, path, arguments, query in SAME_CALLS:
            body = rest(server, path, key, **query)
            assert body.status_code == 200
            assert len(body.content) <= 61_440
            answer = call(server, tool, {**arguments, **query}, revision, key)
            assert answer.content.count(b'"structuredContent":' + body.content) == 1
            assert answer.json()["result"]["content"] == [{"type": "text", "text": body.text}]
            assert answer.json()["result"]["isError"] is False
            found = await client.call_tool(tool, {**arguments, **query})
            assert found.structured_content == body.json()


@pytest.mark.rule("MCP-2")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_like_one_before_has_the_answer_that_the_sdk_would_write(server, revision):
    asked = {"name": "get_entity", "arguments": {"service_id": RETAILER}}
    unheard = {"x-unheard-of": revision}  # no call before had this field: the first goes through the SDK
    first = post(server, message("tools/call", revision, **asked), revision, **unheard)
    for call_id in (1, 0, -7, 2**53 - 1, 2**60, "one", 'a "quoted" one', "", "x" * 80):
        sent = message("tools/call", revision, **asked) | {"id": call_id}
        again = post(server, sent, revision, **unheard)
        assert again.status_code == 200
        assert again.json() == {**first.json(), "id": call_id}
        assert again.headers["content-type"] == first.headers["content-type"]
        assert set(again.headers) == set(first.headers)
    for arguments, status in (({"service_id": NOBODY}, 404), ({"service_id": 1.5}, 400), ({"x": None}, 400)):
        sent = message("tools/call", revision, name="get_entity", arguments=arguments)
        problem = problem_of(post(server, sent, revision, **unheard))
        assert problem["status"] == status
    wrongs: tuple[dict[str, Any], ...] = ({"jsonrpc": "1.0"}, {"id": None}, {"id": 1.5}, {"params": []})
    for wrong in wrongs:
        sent = message("tools/call", revision, **asked) | wrong
        assert "structuredContent" not in post(server, sent, revision, **unheard).text


@pytest.mark.rule("FIG-1")
def test_whole_numbers_beyond_2_to_the_53_keep_every_digit(server):
    asked = {"service_id": BANK, "vintages": "all", "line_items": ["payments_processed"]}
    answer = call(server, "get_fundamentals", asked, NEW, server.key("professional"))
    structured = answer.content.partition(b'"structuredContent":')[2]
    for figure in (b"9007199254740992", b"9007199254740993", b"11258999068426241", b"8123456789012345.67"):
        assert b'"value_reported":' + figure + b"," in structured


@pytest.mark.rule("MCP-7")
def test_line_items_narrow_the_rows_to_those_rest_has_of_them(server):
    key = server.key("professional")
    everything = rest(server, FUNDAMENTALS, key).json()["data"]
    found = call(
        server, "get_fundamentals", {"service_id": RETAILER, "line_items": ["revenue", "assets"]}, key=key
    )
    rows = found.json()["result"]["structuredContent"]["data"]
    assert rows == [row for row in everything if row["line_item"] in ("revenue", "assets")]
    assert {row["line_item"] for row in rows} == {"revenue", "assets"}


def test_null_for_an_optional_argument_is_the_same_as_leaving_it_out(server):
    nulls = {"service_id": RETAILER, "as_of": None, "period_type": None, "vintages": None, "line_items": None}
    left_out = call(server, "get_fundamentals", {"service_id": RETAILER})
    assert call(server, "get_fundamentals", nulls).json() == left_out.json()


# What is wrong, as the agent hears it


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("tool", "arguments", "parameter"),
    [
        ("get_entity", {}, "service_id"),
        ("get_entity", None, "service_id"),
        ("get_entity", {"service_id": None}, "service_id"),
        ("get_entity", {"service_id": 5}, "service_id"),
        ("get_entity", {"service_id": True}, "service_id"),
        ("get_entity", {"service_id": 10.0}, "service_id"),
        ("get_entity", {"service_id": [RETAILER]}, "service_id"),
        ("get_entity", {"service_id": {"a": 1}}, "service_id"),
        ("get_entity", {"service_id": RETAILER, "as_of": "2024-01-01"}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "asof": "2024-01-01"}, "asof"),
        ("get_fundamentals", {"service_id": RETAILER, "x\u0000\u00e9": 1}, "x??"),
        ("get_fundamentals", {"service_id": RETAILER, "limit": 0}, "limit"),
        ("get_fundamentals", {"service_id": RETAILER, "limit": "5"}, "limit"),
        ("get_fundamentals", {"service_id": RETAILER, "line_items": []}, "line_items"),
        ("search_tenders", {"cursor": "altered"}, "cursor"),
        ("get_fundamentals", {"service_id": "not an id"}, "service_id"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": "2024-02-30"}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": "2999-01-01"}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": 20240101}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "vintages": "newest"}, "vintages"),
        ("get_fundamentals", {"service_id": RETAILER, "period_type": "fy"}, "period_type"),
        ("get_fundamentals", {"service_id": RETAILER, "line_items": "revenue"}, "line_items"),
        ("get_fundamentals", {"service_id": RETAILER, "line_items": [1]}, "line_items"),
    ],
)
def test_a_wrong_argument_is_a_tool_error_400_that_names_it(server, tool, arguments, parameter, revision):
    problem = problem_of(call(server, tool, arguments, revision))
    assert (problem["status"], problem["parameter"]) == (400, parameter)
    assert problem["detail"].startswith(f"{parameter}: ")


def test_half_a_character_in_an_argument_is_a_400_too(server):
    for arguments in ({"service_id": "\ud800"}, {"service_id": RETAILER, "\ud800": 1}):
        assert problem_of(call(server, "get_fundamentals", arguments, NEW))["status"] == 400
        assert call(server, "get_fundamentals", arguments, OLD).status_code == 400  # by the SDK


@pytest.mark.rule("MCP-3")
@pytest.mark.parametrize(
    ("tool", "path", "arguments", "query"),
    [
        ("get_entity", f"/v1/entities/{NOBODY}", {"service_id": NOBODY}, {}),
        ("get_entity", "/v1/entities/no-such-id", {"service_id": "no-such-id"}, {}),
        ("get_fundamentals", f"/v1/fundamentals/{NOBODY}", {"service_id": NOBODY}, {}),
        ("get_fundamentals", "/v1/fundamentals/no-such-id", {"service_id": "no-such-id"}, {}),
        ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"as_of": "yesterday"}),
        ("get_fundamentals", FUNDAMENTALS, {"service_id": RETAILER}, {"vintages": "newest"}),
    ],
)
def test_a_tool_error_has_the_problem_body_of_rest(server, tool, path, arguments, query):
    expected = rest(server, path, **query)
    assert expected.status_code in (400, 404)
    problem = problem_of(call(server, tool, {**arguments, **query}))
    assert {**problem, "request_id": ""} == {**expected.json(), "request_id": ""}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_unknown_tool_is_an_error_of_the_protocol(server, revision):
    async with connect(server, SANDBOX, revision) as client:
        with pytest.raises(MCPError, match="Unknown tool: get_everything"):
            await client.call_tool("get_everything", {})


# Quotas


@pytest.mark.rule("MCP-3")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_one_call_too_many_is_a_tool_error_429(server, revision):
    key = server.key("starter", "--per-month", "2")
    async with connect(server, key, revision) as client:
        for _ in range(2):
            assert not (await client.call_tool("get_entity", {"service_id": RETAILER})).is_error
        refused = await client.call_tool("get_entity", {"service_id": RETAILER})
        assert refused.is_error
        assert (await client.list_tools()).tools
    response = call(server, "get_entity", {"service_id": RETAILER}, revision, key)
    problem = problem_of(response)
    assert problem["status"] == 429
    assert problem["instance"] == f"/v1/entities/{RETAILER}"
    assert int(response.headers["retry-after"]) >= 1
    assert '"month";r=0' in response.headers["ratelimit"]


@pytest.mark.rule("KEY-5")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_call_counts_once_whatever_comes_of_it(server, revision):
    cap = 1000
    key = server.key("starter", "--per-month", str(cap))
    assert used(server, key, cap) == 0
    for counted, arguments in enumerate(
        ({"service_id": RETAILER}, {"service_id": NOBODY}, {"a": 1}, [1], "text"), 2
    ):
        response = call(server, "get_entity", arguments, revision, key)
        assert f'"month";r={cap - counted};' in response.headers["ratelimit"]
        assert response.headers["cache-control"] == "private"
    call(server, "no_such_tool", {}, revision, key)
    post(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, revision, key)
    assert used(server, key, cap) == 1 + 5 + 2
    if revision == NEW:
        assert call(server, "get_entity", {}, revision, key, **{"mcp-name": "other"}).status_code == 400
        assert used(server, key, cap) == 8 + 1 + 1


@pytest.mark.rule("MCP-5")
async def test_concurrent_calls_are_never_one_over_the_cap_across_workers(serve):
    server = serve(workers=2)
    key = server.key("starter", "--per-month", "25")
    async with connect(server, key, NEW) as one, connect(server, key, OLD) as other:
        calls = [client.call_tool("get_entity", {"service_id": RETAILER}) for client in (one, other) * 20]
        errors = [found.is_error for found in await asyncio.gather(*calls)]
    assert (errors.count(False), errors.count(True)) == (25, 15)


# Who is calling


def authentication(*headers: tuple[str, str]) -> list[tuple[str, str]]:
    return [("accept", "application/json"), ("content-type", "application/json"), *headers]


@pytest.mark.rule("MCP-3")
@pytest.mark.parametrize(
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


@pytest.mark.rule("KEY-16")
def test_a_key_in_the_query_string_is_401(server):
    url = f"{server.url}/mcp?x-api-key={SANDBOX}&api_key={SANDBOX}"
    assert httpx.post(url, json=message("tools/list", OLD), headers=authentication()).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        (("X-API-Key", SANDBOX),),
        (("Authorization", f"Bearer {SANDBOX}"),),
        (("authorization", f"bearer {SANDBOX}"),),
        (("x-api-key", SANDBOX), ("authorization", "Basic dXNlcjpwYXNz")),
    ],
)
def test_the_key_is_taken_from_either_header(server, headers):
    body = message("tools/list", OLD)
    assert server.http.post("/mcp", json=body, headers=authentication(*headers)).status_code == 200


def test_a_revoked_key_gets_401_at_the_next_message(server):
    key = server.key("professional")
    listed = {line.split()[0] for line in run(server.home, "keys", "list").stdout.splitlines()}
    other = server.key("professional")
    after = {line.split()[0] for line in run(server.home, "keys", "list").stdout.splitlines()}
    assert post(server, message("tools/list", OLD), key=other).status_code == 200
    run(server.home, "keys", "revoke", (after - listed).pop())
    assert post(server, message("tools/list", OLD), key=other).status_code == 401
    assert post(server, message("tools/list", OLD), key=key).status_code == 200


def test_a_client_that_keeps_its_connection_survives_a_refusal(server):
    with httpx.Client(base_url=server.url) as client:
        for _ in range(10):
            big = b" " * 300_000
            assert client.post("/mcp", content=big, headers=authentication()).status_code == 401
            good = authentication(("x-api-key", SANDBOX))
            assert client.post("/mcp", json=message("tools/list", OLD), headers=good).status_code == 200


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
@pytest.mark.parametrize(
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
def test_only_the_names_of_this_server_and_pages_of_its_own_are_answered(server, headers, status):
    for revision in REVISIONS:
        assert post(server, message("tools/list", revision), revision, **headers).status_code == status
    if status != 200:  # nothing is said about the key to someone who should not be asking
        refused = post(server, message("tools/list", OLD), key=None, **headers)
        assert refused.status_code == status
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("hosts", [b"", b"host:\r\n", b"host: localhost\r\nhost: localhost\r\n"])
def test_a_request_without_exactly_one_host_is_400(server, hosts):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(
            b"POST /mcp HTTP/1.1\r\nx-api-key: any\r\ncontent-length: 2\r\n" + hosts + b"\r\n{}"
        )
        assert connection.recv(64).startswith(b"HTTP/1.1 400 ")


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


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH"])
def test_another_method_than_post_is_405_with_allow_and_is_not_held_open(server, method):
    headers = {"x-api-key": SANDBOX, "accept": "text/event-stream"}
    response = checked(server.http.request(method, "/mcp", headers=headers, timeout=PATIENCE))
    assert response.status_code == 405
    assert response.headers["allow"] == "POST, OPTIONS"
    assert bool(response.content) == (method != "HEAD")


def test_options_says_what_is_allowed(server):
    response = checked(server.http.options("/mcp"))
    assert (response.status_code, response.headers["allow"]) == (204, "POST, OPTIONS")


@pytest.mark.rule("MCP-4")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_small_messages_that_are_known_do_not_count(server, revision):
    cap = 1000
    key = server.key("starter", "--per-month", str(cap))
    async with connect(server, key, revision) as client:
        await client.list_tools(cache_mode="refresh")
    for method in ("ping", "server/discover", "tools/list", "resources/list", "notifications/initialized"):
        post(server, message(method, revision), revision, key)
    assert used(server, key, cap) == 0


@pytest.mark.rule("MCP-4")
@pytest.mark.parametrize("revision", REVISIONS)
def test_whatever_is_no_small_known_message_counts(server, revision):
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


@pytest.mark.parametrize(
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
def test_chunks_that_are_not_well_formed_are_a_400_problem(server, body):
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


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
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
def test_a_body_that_is_no_message_is_refused_and_the_server_lives(server, body, headers, status, revision):
    assert post(server, body, revision, **headers).status_code == status
    assert post(server, message("tools/list", revision), revision).status_code == 200


# Secrets


@pytest.mark.rule("KEY-16")
def test_no_key_reaches_the_log_or_an_answer_or_the_disk(serve):
    server = serve(log_level="debug")
    key = server.key("starter", "--per-month", "4")
    for revision in REVISIONS:
        post(server, message("tools/list", revision), revision, key)
        call(server, "get_entity", {"service_id": RETAILER}, revision, key)
        call(server, "get_entity", {"service_id": RETAILER, "api_key": key}, revision, key)
        call(server, "get_entity", [key], revision, key)
        call(server, "get_entity", {"service_id": key}, revision, "sk_" + key)
        post(server, f'{{"key": "{key}"'.encode(), revision, key)
        httpx.post(
            f"{server.url}/mcp", json={}, headers={"x-api-key": key, "authorization": f"Bearer {key}x"}
        )
        httpx.post(f"{server.url}/mcp", json={}, headers={"x-api-key": key, "origin": "https://evil.example"})
    assert "Sankofa at" in server.log
    assert key not in server.log
    for path in (found for found in server.home.rglob("*") if found.is_file()):
        assert key.encode() not in path.read_bytes(), path
