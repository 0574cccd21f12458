"""Messages to the MCP endpoint as a client sends them, and the answers."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from sankofa.model.identifiers import service_id
from tests.live import LiveServer
from tests.patience import PATIENCE

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
    """Starts servers for a test, on a copy of the sample world or without data."""
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
    """Send one message; check the header fields that every response has."""
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
    """Requests counted on a key with that monthly cap, without this one."""
    remaining = re.search(r'"month";r=(\d+)', rest(server, f"/v1/entities/{FUND}", key).headers["ratelimit"])
    assert remaining is not None
    return cap - int(remaining[1]) - 1
