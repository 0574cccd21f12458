"""MCP through the SDK's own client, compared byte for byte with REST."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from sankofa.operations.contract import operations
from tests.every import every
from tests.live import LiveServer
from tests.spec.mcp_messages import (
    NEW,
    NOBODY,
    OLD,
    RETAILER,
    REVISIONS,
    SANDBOX,
    call,
    connect,
    message,
    post,
    problem_of,
    rest,
    used,
)
from tests.spec.mcp_messages import serve as serve
from tests.spec.questions import QUESTIONS, address, arguments_of

pytestmark = pytest.mark.anyio

# The list of tools


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_current_protocol_revision_and_the_previous_one_are_served(server, revision):
    async with connect(server, SANDBOX, revision) as client:
        assert client.protocol_version == revision
        assert client.server_info is not None
        assert client.server_info.name == "sankofa"
        for word in ("as_of", "vintages", "source_ref", "license_class", "upgrade.checkout_url", "research"):
            assert word in (client.instructions or "")
        result = await client.call_tool("get_entity", {"service_id": RETAILER})
        assert result.structured_content is not None
        assert (
            result.structured_content["data"][0]["legal_name"] == "Kgalagadi Sample Retail Holdings Limited"
        )


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
        described = tool.input_schema["properties"].items()
        texts = [argument["description"] for name, argument in described if name not in ("limit", "cursor")]
        assert all(texts)
        assert not [text for text in texts if text.endswith(("e.g", "i.e"))], "cut inside a sentence"
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
def test_the_list_of_tools_is_short_and_each_says_how_to_start_and_continue(server):
    listed = post(server, message("tools/list", OLD)).json()["result"]["tools"]
    assert len(json.dumps(listed, separators=(",", ":"))) / 4 < 7_900, "tokens, of about four characters"
    for tool in listed:
        assert "Example: {" in tool["description"] or "e.g. {" in tool["description"], tool["name"]
        example = re.search(r"(?:Example:|e\.g\.) (\{.*?\})", tool["description"])
        assert example is not None
        key = server.key("starter") if tool["name"] == "get_panel" else SANDBOX
        answer = call(server, tool["name"], json.loads(example[1]), key=key)
        assert answer.json()["result"]["isError"] is False, answer.text
    assert "no name search" not in json.dumps(listed).lower()


def test_a_found_organisation_has_each_field_once(server):
    def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(members)) == len(members), members
        return dict(members)

    answer = call(server, "search_entities", {"query": "sample"})
    assert json.loads(answer.text, object_pairs_hook=once)["result"]["structuredContent"]["data"]


async def test_answers_follow_the_output_schema_which_lists_every_field(server):
    key = server.key("professional")
    by_tool = {operation.tool: operation for operation in operations() if operation.tool}
    async with connect(server, key, NEW) as client:
        for tool in (await client.list_tools()).tools:
            operation = by_tool[tool.name]
            few = {"limit": 20} if "limit" in operation.parameters else {}
            own_arguments = arguments_of(operation, {**QUESTIONS[operation.name][0], **few})
            under = operation.rows_under
            body = (await client.call_tool(tool.name, own_arguments)).structured_content
            assert tool.output_schema is not None
            Draft202012Validator(tool.output_schema).validate(body)
            assert body is not None
            envelope = {"count", "_license", "as_of", "edition", "truncated", "next_cursor", "absent"}
            assert set(body) - envelope == set(tool.output_schema["required"]) - envelope
            items = tool.output_schema["properties"][under]["items"]
            row = items.get("anyOf", [items])[0]
            provenance = {"source_ref", "license_class", "observed_at"}
            own = set(body[under][0]) - provenance
            wider = tool.name in ("get_signal", "get_panel")
            assert own >= set(row["required"]) if wider else own == set(row["required"])


# The same call, the same answer


FUNDAMENTALS = f"/v1/fundamentals/{RETAILER}"


@pytest.mark.rule("MCP-2", "MCP-12")
@pytest.mark.parametrize(("tier", "revision"), [("sample", OLD), ("professional", NEW)])
async def test_structured_content_and_text_are_the_rest_body_byte_for_byte(server, tier, revision):
    key = server.key(tier)
    asked = 0
    async with connect(server, key, revision) as client:
        for operation in (one for one in operations() if one.tool and one.path):
            for question in QUESTIONS[operation.name]:
                few: dict[str, Any] = {"limit": 20} if "limit" in operation.parameters else {}
                if operation.name == "search_tenders":  # a tool has every country, in the compact form
                    few |= {"country": "ZA", "detail": "compact"} | question
                path, query = address(operation, {**question, **few})
                body = rest(server, path, key, **query)
                if body.status_code == 402:
                    continue
                assert body.status_code == 200, body.text
                arguments = arguments_of(operation, {**question, **few})
                answer = call(server, str(operation.tool), arguments, revision, key)
                assert answer.content.count(b'"structuredContent":' + body.content) == 1, (path, query)
                assert answer.json()["result"]["content"] == [{"type": "text", "text": body.text}]
                assert answer.json()["result"]["isError"] is False
                result = await client.call_tool(str(operation.tool), arguments)
                assert result.structured_content == body.json()
                asked += 1
    assert asked > 25


@pytest.mark.rule("MCP-2")
@every("revision", REVISIONS)
def test_an_answer_carries_the_id_of_its_call_and_a_malformed_call_is_refused(server, revision):
    lookup = {"name": "get_entity", "arguments": {"service_id": RETAILER}}
    first = post(server, message("tools/call", revision, **lookup), revision)
    for call_id in (1, 0, -7, 2**53 - 1, 2**60, "one", 'a "quoted" one', "", "x" * 80):
        sent = message("tools/call", revision, **lookup) | {"id": call_id}
        again = post(server, sent, revision)
        assert again.status_code == 200
        assert again.json() == {**first.json(), "id": call_id}
        assert again.headers["content-type"] == first.headers["content-type"]
        assert set(again.headers) == set(first.headers)
    for arguments, status in (({"service_id": NOBODY}, 404), ({"service_id": 1.5}, 400), ({"x": None}, 400)):
        sent = message("tools/call", revision, name="get_entity", arguments=arguments)
        problem = problem_of(post(server, sent, revision))
        assert problem["status"] == status
    wrongs: tuple[dict[str, Any], ...] = ({"jsonrpc": "1.0"}, {"id": None}, {"id": 1.5}, {"params": []})
    for wrong in wrongs:
        sent = message("tools/call", revision, **lookup) | wrong
        assert "structuredContent" not in post(server, sent, revision).text


def test_null_for_an_optional_argument_is_the_same_as_leaving_it_out(server):
    nulls = {"service_id": RETAILER, "as_of": None, "period_type": None, "vintages": None, "line_items": None}
    without = call(server, "get_fundamentals", {"service_id": RETAILER})
    assert call(server, "get_fundamentals", nulls).json() == without.json()


# Errors, as an agent reads them


@every("revision", REVISIONS)
@every(
    ("tool", "arguments", "parameter"),
    [
        ("get_entity", {}, "service_id"),
        ("get_entity", {"service_id": None}, "service_id"),
        ("get_entity", {"service_id": 5}, "service_id"),
        ("get_entity", {"service_id": 10.0}, "service_id"),
        ("get_entity", {"service_id": [RETAILER]}, "service_id"),
        ("get_entity", {"service_id": RETAILER, "basis": "current"}, "basis"),
        ("get_fundamentals", {"service_id": RETAILER, "asof": "2024-01-01"}, "asof"),
        ("get_fundamentals", {"service_id": RETAILER, "x\u0000\u00e9": 1}, "x??"),
        ("get_fundamentals", {"service_id": RETAILER, "limit": "5"}, "limit"),
        ("search_tenders", {"cursor": "altered"}, "cursor"),
        ("get_fundamentals", {"service_id": "not an id"}, "service_id"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": "2024-02-30"}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": "2999-01-01"}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "as_of": 20240101}, "as_of"),
        ("get_fundamentals", {"service_id": RETAILER, "line_items": "revenue"}, "line_items"),
    ],
)
def test_a_wrong_argument_is_a_tool_error_400_that_names_it(server, tool, arguments, parameter, revision):
    problem = problem_of(call(server, tool, arguments, revision))
    assert (problem["status"], problem["parameter"]) == (400, parameter)
    assert problem["detail"].startswith(f"{parameter}: ")


def test_an_unpaired_surrogate_in_an_argument_is_a_400(server):
    for arguments in ({"service_id": "\ud800"}, {"service_id": RETAILER, "\ud800": 1}):
        for revision in REVISIONS:
            assert problem_of(call(server, "get_fundamentals", arguments, revision))["status"] == 400


@pytest.mark.rule("MCP-3")
@every(
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
async def test_every_call_counts_once_whatever_its_outcome(server, revision):
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


@pytest.mark.rule("MCP-2")
@every(
    ("method", "params"),
    [
        (
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        ),
        ("ping", None),
        ("tools/list", None),
    ],
)
def test_a_repeated_message_has_the_same_answer_under_its_own_id(
    server: LiveServer, sample_key: str, method: str, params: dict[str, Any] | None
) -> None:
    answers = []
    for number in (1, "two", 3):
        message = {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}
        accepted = {"x-api-key": sample_key, "accept": "application/json, text/event-stream"}
        answer = server.http.post("/mcp", json=message, headers=accepted)
        body = answer.json()
        assert (answer.status_code, body.pop("id")) == (200, number)
        assert "ratelimit" not in answer.headers
        answers.append(body)
    assert answers[0] == answers[1] == answers[2]
    assert "result" in answers[0]
