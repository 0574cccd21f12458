"""Every keyword of every published schema of a parameter is kept to (contract: PAR-2).

The violations are made from `/openapi.json` and from `tools/list`, so a new parameter is tested as it is.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sankofa.operations.contract import operations
from sankofa.operations.service import LONGEST_QUERY
from tests.live import LiveServer
from tests.torture import ALL_ROUNDS

Schema = dict[str, Any]
_NOT_CHECKED = {"type", "examples", "description", "default", "items"}


def violations(schema: Schema) -> Iterator[tuple[str, Any]]:
    """For each keyword, values that break it and, as far as can be, no other."""
    for keyword, said in schema.items():
        if keyword not in _NOT_CHECKED:
            made = list(_breaking(keyword, said, schema))
            assert made, f"no violation of {keyword} is made here"
            yield from ((keyword, value) for value in made)
    if "items" in schema:
        (fitting, *_) = schema.get("examples", [["revenue"]])[0]
        yield "items.type", [fitting, 7]
        for keyword, value in violations({**schema["items"], "examples": [fitting]}):
            yield f"items.{keyword}", [fitting, value]


def _breaking(keyword: str, said: Any, schema: Schema) -> Iterator[Any]:
    fitting = (schema.get("examples") or schema.get("enum") or ["a"])[0]
    if keyword == "maxLength":
        yield fitting + fitting[-1] * (said + 1 - len(fitting))
    elif keyword == "minLength" and said:
        yield fitting[: said - 1]
    elif keyword == "pattern":
        yield from (f"{fitting}\n", f"\n{fitting}", f"{fitting}\x00")
        if not re.match(said, ""):
            yield ""
    elif keyword == "enum":
        yield from (f"{said[0]}\n", f"{said[0]}x", said[0].swapcase(), "")
    elif keyword == "minimum":
        yield from (said - 1, -(10**9))
    elif keyword == "maximum":
        yield said + 1
    elif keyword == "format" and said == "date":
        yield from ("2023-02-29", "2024-06-30\n", "2024-6-30", "2024-06-30T00:00:00Z")
    elif keyword == "anyOf":
        yield from ("2023-02-29", "2024\n", "0999", "202", "20240", "")
    elif keyword == "minItems":
        yield []
    elif keyword == "maxItems":
        yield from ([f"{fitting[0]}_{n}" for n in range(said + 1)], [f"name_{n}" for n in range(50_000)])
    elif keyword == "uniqueItems":
        yield [fitting[0], fitting[0]]


@pytest.fixture(scope="module")
def description(server: LiveServer) -> dict[str, Any]:
    found: dict[str, Any] = server.get("/openapi.json").json()
    return found


def _resolved(description: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        found: Any = description
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def _fitting(parameter: dict[str, Any]) -> Any:
    fitting = parameter.get("example", (parameter["schema"].get("enum") or ["a"])[0])
    return fitting if isinstance(fitting, list) else str(fitting)


def _in_a_query(value: Any) -> str:
    """A list is written with commas, and a number in it is a word like any other."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@pytest.mark.slow
@pytest.mark.rule("PAR-2")
def test_every_keyword_of_every_rest_parameter_is_enforced_and_named(
    server: LiveServer, paid_key: str, description: dict[str, Any]
) -> None:
    tried: dict[tuple[str, str], str] = {}
    agreed = {operation.path: operation for operation in operations()}
    for path, item in description["paths"].items():
        if "get" not in item:
            continue
        listed = (*item.get("parameters", ()), *item["get"].get("parameters", ()))
        parameters = [_resolved(description, parameter) for parameter in listed]
        needed = {p["name"]: _fitting(p) for p in parameters if p.get("required") and p["in"] == "query"}
        for parameter in parameters:
            schema = _resolved(description, parameter["schema"])
            for keyword, value in violations({**schema, "examples": [_fitting(parameter)]}):
                if parameter["in"] == "header" and not str(value).isprintable():
                    continue  # no HTTP client would send it
                if not ALL_ROUNDS and tried.get((parameter["name"], keyword), path) != path:
                    continue  # of another endpoint
                if keyword == "items.type" or len(_in_a_query(value)) > LONGEST_QUERY // 2:
                    continue  # no query can say it; a longer one is a 414
                answer = _ask(server, paid_key, path, parameters, needed, parameter, value)
                where = (path, parameter["name"], keyword, value)
                in_path = parameter["in"] == "path"
                not_found = path in agreed and (agreed[path].extension or 400 not in agreed[path].errors)
                if in_path and (not_found or parameter["name"] == "file"):
                    assert answer.status_code == 404, where
                elif not (in_path and value == ""):  # that is another path
                    assert answer.status_code == 400, (where, answer.text)
                    assert answer.json()["parameter"] == parameter["name"], where
                tried.setdefault((parameter["name"], keyword), path)
    assert {"as_of", "limit", "country", "cursor", "metric", "from"} <= {name for name, _ in tried}
    assert {("line_items", "maxItems"), ("line_items", "items.pattern"), ("format", "enum")} <= tried.keys()


def _ask(
    server: LiveServer,
    key: str,
    path: str,
    parameters: list[dict[str, Any]],
    needed: dict[str, str],
    parameter: dict[str, Any],
    value: Any,
) -> httpx.Response:
    for one in parameters:
        if one["in"] == "path":
            said = str(value) if one is parameter else _fitting(one)
            path = path.replace(f"{{{one['name']}}}", quote(said, safe=""))
    if parameter["in"] == "header":
        return server.get(path, key, **{parameter["name"]: str(value)})
    asked = needed | ({parameter["name"]: _in_a_query(value)} if parameter["in"] == "query" else {})
    query = "&".join(f"{name}={quote(text, safe='')}" for name, text in asked.items())
    return server.get(f"{path}?{query}" if query else path, key)


def _tools(server: LiveServer, key: str) -> list[dict[str, Any]]:
    return list(_rpc(server, key, "tools/list", {}).json()["result"]["tools"])


def _rpc(server: LiveServer, key: str, method: str, params: dict[str, Any]) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        "x-api-key": key,
    }
    return server.http.post("/mcp", json=body, headers=headers)


@pytest.mark.rule("PAR-2")
def test_every_keyword_of_every_tool_argument_is_enforced_and_named(server: LiveServer, paid_key: str):
    tried = set()
    for tool in _tools(server, paid_key):
        schema = tool["inputSchema"]
        needed = {name: schema["properties"][name]["examples"][0] for name in schema.get("required", ())}
        for name, declared in schema["properties"].items():
            for keyword, value in violations(declared):
                arguments = {**needed, name: value}
                answer = _rpc(server, paid_key, "tools/call", {"name": tool["name"], "arguments": arguments})
                where = (tool["name"], name, keyword)
                problem = json.loads(answer.json()["result"]["content"][0]["text"])
                in_path = problem["status"] == 404 and name in schema.get("required", ())
                assert problem["status"] == 400 or in_path, (where, problem)
                assert in_path or problem["parameter"] == name, where
                tried.add((name, keyword))
    assert {("line_items", "items.type"), ("limit", "minimum"), ("metric", "enum")} <= tried
