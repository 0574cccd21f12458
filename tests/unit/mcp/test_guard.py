"""Calls of a shape that the SDK has accepted: only what it would answer the same is taken for one."""

import json
from typing import Any

from sankofa.mcp.guard import plain_call
from tests.every import every

FIELDS = [(b"accept", b"application/json"), (b"mcp-protocol-version", b"2025-11-25")]


def sent(**other: Any) -> bytes:
    params = {"name": "get_entity", "arguments": {"service_id": "DC1"}, **other.pop("params", {})}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **other}).encode()


@every(
    "body",
    [
        b"",
        b"[]",
        b"nonsense",
        sent(id=None),
        sent(id=1.0),
        sent(id=2**53),
        sent(id='"'),
        sent(id="é"),
        sent(jsonrpc="1.0"),
        sent(method="tools/list"),
        sent(extra=1),
        sent(params={"task": {}}),
        sent(params={"name": 5}),
        sent(params={"arguments": [1]}),
        sent(params={"arguments": {"limit": 1.5}}),
        sent(params={"arguments": {"limit": 2**53}}),
        sent(params={"arguments": {"line_items": [1]}}),
        sent(params={"arguments": {"nested": {"a": 1}}}),
    ],
)
def test_anything_unusual_is_left_to_the_sdk(body: bytes) -> None:
    assert plain_call(FIELDS, body) is None


def test_a_name_in_the_header_must_be_that_of_the_call() -> None:
    assert plain_call([*FIELDS, (b"mcp-name", b"get_macro")], sent()) is None
    assert plain_call([*FIELDS, (b"mcp-name", b"get_entity"), (b"mcp-name", b"get_entity")], sent()) is None
