"""Questions in one line: an endpoint or a tool asked, and the body of its answer."""

import json
from typing import Any

from tests.live import LiveServer


def get(server: LiveServer, path: str, key: str) -> dict[str, Any]:
    """The body of an answer that is to be good."""
    answer = server.get(path, key)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body["count"] == len(body["data"])
    return body


def call_tool(server: LiveServer, key: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The body of a tool's answer; of an error, the problem."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {
        "x-api-key": key,
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    answer = server.http.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    body: dict[str, Any] = (
        json.loads(result["content"][0]["text"]) if result.get("isError") else result["structuredContent"]
    )
    return body
