"""Calls longer than any that a tool takes: refused as others are, and nobody waits for them."""

import json
from typing import Any

from sankofa.mcp.exchange import LARGEST_BODY
from tests.every import every
from tests.live import LiveServer
from tests.spec.mcp_messages import NEW, OLD, SANDBOX, message, post

ISSUER = "DC46AF1B1AAA424B58D1368176"


def _refused(server: LiveServer, revision: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = post(
        server, message("tools/call", revision, name="get_fundamentals", arguments=arguments), revision
    )
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert result["isError"]
    problem: dict[str, Any] = json.loads(result["content"][0]["text"])
    return problem


@every("revision", [OLD, NEW])
@every(
    ("arguments", "named"),
    [
        ({"service_id": ISSUER, "line_items": [f"a{n}" for n in range(45_000)]}, "line_items"),
        ({"service_id": ISSUER, "line_items": ["revenue"] * 101}, "line_items"),
        ({"service_id": ISSUER, "line_items": ["x" * 400_000]}, "line_items"),
        ({"service_id": "D" * 450_000}, "service_id"),
        ({"service_id": ISSUER, "as_of": {str(n): {} for n in range(25_000)}}, "as_of"),
    ],
)
def test_an_argument_that_is_too_long_is_400_naming_it(
    server: LiveServer, revision: str, arguments: dict[str, Any], named: str
) -> None:
    problem = _refused(server, revision, arguments)
    assert (problem["status"], problem["parameter"]) == (400, named)
    assert len(json.dumps(problem)) < 2_000


def test_a_hundred_line_items_are_taken(server: LiveServer, paid_key: str) -> None:
    names = ["revenue", *(f"{'x' * 110}_{n}" for n in range(99))]
    arguments = {"service_id": ISSUER, "line_items": names}
    answer = post(
        server, message("tools/call", OLD, name="get_fundamentals", arguments=arguments), OLD, paid_key
    )
    rows = answer.json()["result"]["structuredContent"]["data"]
    assert rows
    assert {row["line_item"] for row in rows} == {"revenue"}


@every("method", ["tools/list", "initialize", "no/such"])
def test_no_other_message_is_that_long(server: LiveServer, method: str) -> None:
    padded = message(method, OLD, name="x", arguments={"a": "x" * LARGEST_BODY})
    assert post(server, padded, OLD, SANDBOX).status_code == 413


def test_a_tool_there_is_not_is_told_so_however_long_its_arguments(server: LiveServer) -> None:
    padded = message("tools/call", OLD, name="no_such_tool", arguments={"a": "x" * 400_000})
    assert "Unknown tool: no_such_tool" in post(server, padded, OLD).text
