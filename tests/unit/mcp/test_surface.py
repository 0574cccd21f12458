"""MCP with failing tools, and with clients that are slow or disconnect."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sankofa.edition.read.edition import Notice
from sankofa.mcp import surface
from sankofa.mcp.surface import McpSurface
from sankofa.mcp.tools import Tool
from sankofa.model.rows import EntityRow
from sankofa.operations import contract
from sankofa.operations.contract import Answer, Call, Operation
from sankofa.operations.parameters import Limit
from sankofa.operations.service import Service
from sankofa.rest.app import RestApp
from sankofa.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def search() -> Operation:
    async def search_things(call: Call, *, limit: Limit = None) -> Answer:
        """Things."""
        raise ValueError("secret internals")

    declared: dict[str, Operation] = {}
    with pytest.MonkeyPatch.context() as patch:  # the registry is global, so only during the declaration
        patch.setattr(contract, "_OPERATIONS", declared)
        declare = contract.operation("/v1/things", row=EntityRow, tool="search_things")
        declare(search_things)
    return declared["search_things"]


class FakeEdition:
    lock = None
    id = "stand-in"

    def notice(self, dataset: str) -> Notice:
        return Notice("terms")


@asynccontextmanager
async def connected(
    home: Path, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Client, httpx2.AsyncClient]]:
    """An SDK client on the surface in this process, with one tool."""
    monkeypatch.setattr(surface, "tools", lambda: {"search_things": Tool(operation, "search_things")})
    service = Service(Settings(home=home))
    monkeypatch.setattr(service.edition, "get", FakeEdition)
    agents = McpSurface(service)
    transport = httpx2.ASGITransport(RestApp(service, {}, mounted={"/mcp": agents}))
    headers = {"x-api-key": "sankofa-sandbox", "accept": "application/json"}
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http,
        Client(streamable_http_client("http://localhost/mcp", http_client=http)) as client,
    ):
        yield client, http
    await service.stop()


def problem_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    problem: dict[str, Any] = json.loads(result.content[0].text)
    return problem


@pytest.mark.rule("ERR-5")
async def test_a_defect_is_a_500_with_details_only_in_the_log(tmp_path, search, monkeypatch, caplog):
    async with connected(tmp_path, search, monkeypatch) as (client, _):
        problem = problem_of(await client.call_tool("search_things", {"limit": 7}))
    assert problem["status"] == 500
    assert "secret internals" not in json.dumps(problem)
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert problem["request_id"] in record.getMessage()


@pytest.mark.limit("time for the body of an MCP message")
async def test_a_body_that_dribbles_is_cut_off_with_408(tmp_path, search, monkeypatch):
    monkeypatch.setattr(surface, "_BODY_SECONDS", 0.05)
    async with connected(tmp_path, search, monkeypatch) as (_, http):
        sent = await ask(http._transport.app, asgi_scope(), wait=True)  # type: ignore[attr-defined]
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


async def test_a_body_that_breaks_off_is_a_400(tmp_path, search, monkeypatch):
    """The server reports the same for a client that hung up and for malformed chunks."""
    async with connected(tmp_path, search, monkeypatch) as (_, http):
        sent = await ask(http._transport.app, asgi_scope())  # type: ignore[attr-defined]
        assert sent[0]["status"] == 400
        assert (b"connection", b"close") in sent[0]["headers"]


def asgi_scope() -> dict[str, Any]:
    headers = [
        (b"host", b"localhost"),
        (b"x-api-key", b"sankofa-sandbox"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
    ]
    return {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}


async def ask(
    app: Any, scope: dict[str, Any], *, body: bytes | None = None, wait: bool = False
) -> list[dict[str, Any]]:
    """Send a request whose body is complete, stalls for ever, or ends because the client hung up."""
    sent: list[dict[str, Any]] = []
    first: dict[str, Any] = {"type": "http.request", "body": body or b"{", "more_body": body is None}
    messages = [first] if body is not None or wait else [first, {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await anyio.sleep_forever()
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
