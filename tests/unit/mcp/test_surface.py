"""What today's tools cannot show: renamed and numeric arguments, 402, defects, clients slow or gone."""

import errno
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sankofa.edition.read.edition import Notice, Selection
from sankofa.mcp import exchange, surface, tools
from sankofa.mcp.surface import McpSurface
from sankofa.mcp.tools import Tool
from sankofa.model.rows import EntityRow
from sankofa.operations import contract
from sankofa.operations.contract import Answer, Call, Operation
from sankofa.operations.parameter_types import Day
from sankofa.operations.parameters import Limit
from sankofa.operations.service import Service
from sankofa.rest.app import RestApp
from sankofa.rest.pages import open_pages
from sankofa.settings import Settings
from tests.patience import PATIENCE

pytestmark = pytest.mark.anyio
DayParameter = Annotated[date | None, Day(), "From this day on."]


@pytest.fixture
def search() -> Operation:
    """An operation as later ones will be: with a limit, and a parameter that tools call otherwise."""

    async def search_things(call: Call, *, from_: DayParameter = None, limit: Limit = None) -> Answer:
        """Things."""
        if limit == 7:
            raise ValueError("secret internals")
        call.grant.rows(limit)
        return Answer(Selection((), 0, truncated=False), members={"asked": [str(from_), limit]})

    declared: dict[str, Operation] = {}
    names = {"from": "from_date"}
    with pytest.MonkeyPatch.context() as patch:  # only while declaring: the registry is everyone's
        patch.setattr(contract, "_OPERATIONS", declared)
        declare = contract.operation(
            "/v1/things", row=EntityRow, errors=(400, 402), tool="search_things", tool_names=names
        )
        declare(search_things)
    return declared["search_things"]


class StandInEdition:
    lock = None
    id = "stand-in"

    def notice(self, dataset: str) -> Notice:
        return Notice("terms")


@asynccontextmanager
async def connected(
    home: Path, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Client, httpx2.AsyncClient]]:
    """An SDK client on the surface in this process, with one tool."""
    monkeypatch.setattr(tools, "tools", lambda: {"search_things": Tool(operation, "search_things")})
    service = Service(Settings(home=home))
    monkeypatch.setattr(service.edition, "get", StandInEdition)
    agents = McpSurface(service)
    transport = httpx2.ASGITransport(RestApp(service, {}, mounted={"/mcp": agents}))
    headers = {"x-api-key": "sankofa-sandbox", "accept": "application/json"}
    async with (
        agents.running(),
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


@pytest.mark.rule("MCP-3")
async def test_402_tells_the_agent_how_to_upgrade(tmp_path, search, monkeypatch):
    async with connected(tmp_path, search, monkeypatch) as (client, _):
        problem = problem_of(await client.call_tool("search_things", {"limit": 26}))
    assert problem["status"] == 402
    assert problem["upgrade"] == {"checkout_url": Settings().upgrade_url}
    assert problem["instance"] == "/v1/things"


@pytest.mark.rule("ERR-5")
async def test_a_defect_is_a_500_whose_details_are_only_in_the_log(tmp_path, search, monkeypatch, caplog):
    async with connected(tmp_path, search, monkeypatch) as (client, _):
        problem = problem_of(await client.call_tool("search_things", {"limit": 7}))
    assert problem["status"] == 500
    assert "secret internals" not in json.dumps(problem)
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert problem["request_id"] in record.getMessage()


@pytest.mark.limit("time for the body of an MCP message")
async def test_a_body_that_dribbles_is_cut_off_with_408(tmp_path, search, monkeypatch):
    monkeypatch.setattr(exchange, "_BODY_SECONDS", 0.05)
    async with connected(tmp_path, search, monkeypatch) as (_, http):
        sent = await ask(http._transport.app, asgi_scope(), wait=True)  # type: ignore[attr-defined]
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


async def test_a_body_that_breaks_off_is_a_400(tmp_path, search, monkeypatch):
    """The server tells the same of a client that hung up and of one that sent chunks that are none."""
    async with connected(tmp_path, search, monkeypatch) as (_, http):
        sent = await ask(http._transport.app, asgi_scope())  # type: ignore[attr-defined]
        assert sent[0]["status"] == 400
        assert (b"connection", b"close") in sent[0]["headers"]


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.rule("MCP-13")
async def test_a_message_that_comes_before_the_sdk_is_loaded_is_answered_once_it_is(tmp_path, monkeypatch):
    go_on = threading.Event()
    load = McpSurface._load_protocol

    def slow_load(agents: McpSurface) -> Any:
        assert go_on.wait(PATIENCE)
        return load(agents)

    monkeypatch.setattr(McpSurface, "_load_protocol", slow_load)
    service = Service(Settings(home=tmp_path))
    agents = McpSurface(service)
    app = RestApp(service, open_pages(service), mounted={"/mcp": agents})
    answers: list[list[dict[str, Any]]] = []

    async def ping() -> None:
        answers.append(await ask(app, asgi_scope(), body=PING))

    async with agents.running(), anyio.create_task_group() as group:
        group.start_soon(ping)
        health = await ask(app, asgi_scope() | {"method": "GET", "path": "/health"}, body=b"")
        assert health[0]["status"] == 200
        refused = asgi_scope()
        refused["headers"].remove((b"x-api-key", b"sankofa-sandbox"))
        assert (await ask(app, refused, body=PING))[0]["status"] == 401
        assert not answers
        go_on.set()
    assert answers[0][0]["status"] == 200
    assert json.loads(answers[0][1]["body"]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    await service.stop()


@pytest.mark.rule("MCP-13")
async def test_an_sdk_that_cannot_be_loaded_is_a_503_until_it_can(tmp_path, monkeypatch, caplog):
    load = McpSurface._load_protocol
    failures = [OSError(errno.EMFILE, "Too many open files")]

    def failing_load(agents: McpSurface) -> Any:
        if failures:
            raise failures.pop()
        return load(agents)

    monkeypatch.setattr(McpSurface, "_load_protocol", failing_load)
    monkeypatch.setattr(surface, "_RETRY_SECONDS", 0.05)
    service = Service(Settings(home=tmp_path))
    agents = McpSurface(service)
    app = RestApp(service, {}, mounted={"/mcp": agents})
    statuses = set()
    async with agents.running():
        with anyio.fail_after(PATIENCE):
            while 200 not in statuses:
                (answer, _) = await ask(app, asgi_scope(), body=PING)
                statuses.add(answer["status"])
                assert answer["status"] == 200 or (b"retry-after", b"2") in answer["headers"]
                await anyio.sleep(0.01)
    assert statuses <= {200, 503}
    (record,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert "trying again" in record.getMessage()
    await service.stop()


@pytest.mark.rule("MCP-13")
async def test_a_message_does_not_wait_for_the_sdk_for_ever(tmp_path, monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(McpSurface, "_load_protocol", lambda _: go_on.wait(PATIENCE) and no_sdk())
    monkeypatch.setattr(surface, "_LOAD_SECONDS", 0.05)
    service = Service(Settings(home=tmp_path))
    agents = McpSurface(service)
    app = RestApp(service, {}, mounted={"/mcp": agents})
    async with agents.running():
        sent = await ask(app, asgi_scope(), body=PING)
        go_on.set()
    assert sent[0]["status"] == 503
    assert b"MCP surface" in sent[1]["body"]
    await service.stop()


def no_sdk() -> Any:
    raise ImportError("no SDK")


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
    """One request whose body is given, or stops in the middle: for ever, or because the client hung up."""
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
