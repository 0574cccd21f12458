"""Calls of a shape that the SDK has accepted: only what it would answer the same is taken for one."""

import json
from typing import Any

import pytest

from sankofa.mcp.guard import KnownCalls, plain_call

FIELDS = [(b"accept", b"application/json"), (b"mcp-protocol-version", b"2025-11-25")]
TEXT, STRUCTURE = b'"mark"', b'{"mark":0}'


def sent(**other: Any) -> bytes:
    params = {"name": "get_entity", "arguments": {"service_id": "DC1"}, **other.pop("params", {})}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **other}).encode()


def test_the_shape_of_a_call_is_all_but_its_id_its_tool_its_arguments_and_who_asks() -> None:
    one = plain_call([*FIELDS, (b"x-api-key", b"a"), (b"content-length", b"7")], sent())
    other = plain_call(
        [*FIELDS, (b"x-api-key", b"b"), (b"user-agent", b"x")],
        sent(id="two", params={"name": "get_macro", "arguments": {"limit": 5, "line_items": ["a"]}}),
    )
    assert one is not None
    assert other is not None
    assert one.shape == other.shape
    assert (one.id, other.id) == (b"1", b'"two"')
    for headers, body in (
        ([(b"accept", b"*/*"), FIELDS[1]], sent()),
        ([FIELDS[0], (b"mcp-protocol-version", b"2026-07-28")], sent()),
        ([*FIELDS, (b"mcp-name", b"get_entity")], sent()),
        (FIELDS, sent(params={"_meta": {"progressToken": 1}})),
    ):
        differing = plain_call(headers, body)
        assert differing is not None
        assert differing.shape != one.shape


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "answer",
    [
        b'{"id":2,"result":{"text":"mark","structure":{"mark":0}}}',
        b'{"id":1,"result":{"text":"mark"}}',
        b'{"id":1,"result":{"structure":{"mark":0},"text":"mark"}}',
        b'{"result":{"text":"mark","structure":{"mark":0}},"id":1}',
        b'{"id":1,"again":{"id":1},"text":"mark","structure":{"mark":0}}',
    ],
)
def test_an_envelope_whose_places_are_not_plain_is_not_kept(answer: bytes) -> None:
    known = KnownCalls()
    call = plain_call(FIELDS, sent())
    assert call is not None
    known.learn(call, answer, TEXT, STRUCTURE)
    assert known.envelope(call) is None


def test_an_envelope_is_kept_in_its_pieces() -> None:
    known = KnownCalls()
    call = plain_call(FIELDS, sent())
    assert call is not None
    known.learn(call, b'{"id":1,"r":{"text":"mark","s":{"mark":0}}}', TEXT, STRUCTURE)
    assert known.envelope(call) == (b'{"id":', b',"r":{"text":', b',"s":', b"}}")
