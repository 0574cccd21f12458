"""Strict parameters (contract: PAR-1).

A mistyped `as_of` must never silently return look-ahead.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sankofa.operations.contract import operations
from sankofa.operations.service import LONGEST_QUERY
from tests.every import every
from tests.live import LiveServer
from tests.torture import ALL_ROUNDS
from tests.wire import exchange, request, statuses

ID = "DC46AF1B1AAA424B58D1368176"
ISSUER = f"/v1/fundamentals/{ID}"
ENTITY = f"/v1/entities/{ID}"


def refused(server: LiveServer, key: str, path: str) -> str:
    """The parameter that a 400 names."""
    answer = server.get(path, key)
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert body["detail"].startswith(f"{body['parameter']}:")
    return str(body["parameter"])


BAD_DAYS = [
    "2024-02-30",
    "2024-13-01",
    "0000-01-01",
    "2024-1-1",
    "20240101",
    "2024/01/01",
    "2024-01-01T00:00:00Z",
    "2024-W01-1",
    "+2024-01-01",
    "%202024-01-01",
    "2024-01-01%20",
    "2024-01-01%0A",
    "2024-01-01%00",
    "2_24-01-01",
    "today",
    "1704067200",
    "\u0662\u0660\u0662\u0664-\u0660\u0661-\u0660\u0661",
    "\uff12024-01-01",
    "2024\N{EN DASH}01\N{EN DASH}01",
    "",
    "2024-01-01,2024-01-02",
    "9" * 3000,
]


NOT_UTF8 = ["%FF", "%C3", "%ED%A0%80", "2024-01-01%80", "%C0%AF"]
TWICE = [
    "as_of=2024-01-01&as_of=2024-01-01",
    "as_of=2024-01-01&as_of=2030-01-01",
    "as_of=2024-01-01&as%5Fof=2024-01-01",
    "as_of=2024-01-01&period_type=FY&as_of=",
]
NO_PERIODS = ["", "fy", "FY ", "Q5", "FY,H1", "ANNUAL", "FY%00", "1_0", "+10", "\uff11", "*"]
NO_LIMITS = ["0", "-1", "+10", "1_0", "1.0", "1e3", "010", "%2010", "", "\uff11", "\u0661", "1" * 101]
NO_VINTAGES = ["", "Latest", "ALL", "first", "latest,all", "all%00", "as-reported"]


@pytest.mark.rule("PAR-1", "PAR-11")
@every(
    ("parameter", "query"),
    [
        *(("as_of", f"as_of={value}") for value in (*BAD_DAYS, *NOT_UTF8)),
        *(("as_of", query) for query in TWICE),
        *(("period_type", f"period_type={value}") for value in NO_PERIODS),
        *(("vintages", f"vintages={value}") for value in NO_VINTAGES),
        *(("limit", f"limit={value}") for value in NO_LIMITS),
    ],
)
def test_a_bad_or_repeated_value_is_a_400_that_names_its_parameter(
    server: LiveServer, paid_key: str, parameter: str, query: str
) -> None:
    assert refused(server, paid_key, f"{ISSUER}?{query}") == parameter


def test_a_name_that_is_not_utf8_and_raw_bytes_are_400(server: LiveServer, paid_key: str) -> None:
    assert server.get(f"{ISSUER}?as%FFof=2024-01-01", paid_key).status_code == 400
    line = request(f"{ISSUER}?as_of=MARK", "Host: x", f"X-API-Key: {paid_key}")
    assert statuses(exchange(server.port, line.replace(b"MARK", b"\xff\xfe"))) == [400]


@pytest.mark.rule("PIT-2")
def test_a_future_as_of_is_400(server: LiveServer, paid_key: str) -> None:
    # two days, in case midnight passes during the test
    future = (datetime.now(UTC).date() + timedelta(days=2)).isoformat()
    assert refused(server, paid_key, f"{ISSUER}?as_of={future}") == "as_of"
    assert refused(server, paid_key, f"{ISSUER}?as_of=9999-12-31") == "as_of"


@every("day", ["2024-02-29", "0001-01-01", "1900-01-01", "2024-12-31"])
def test_a_valid_day_is_applied_and_returned(server: LiveServer, paid_key: str, day: str) -> None:
    answer = server.get(f"{ISSUER}?as_of={day}", paid_key)
    assert answer.status_code == 200
    assert answer.json()["as_of"] == day
    assert server.get(f"{ISSUER}?as_of={day.replace('-', '%2D')}", paid_key).content == answer.content


@pytest.mark.rule("PAR-1")
@every(
    "name",
    ["as_0f", "asof", "AS_OF", "As_Of", "as-of", "as_of%20", "%20as_of", "as_of[]", "limit", "service_id"],
)
def test_an_unknown_parameter_is_a_400_that_names_it(server: LiveServer, paid_key: str, name: str) -> None:
    parameter = refused(server, paid_key, f"{ISSUER}?{name}=2024-01-01")
    assert parameter.strip() == name.replace("%20", " ").strip()


@every("query", ["x=1", "basis=current", "limit=1", f"service_id={ID}", "="])
def test_an_endpoint_without_parameters_refuses_any(server: LiveServer, paid_key: str, query: str) -> None:
    refused(server, paid_key, f"{ENTITY}?{query}")


def test_a_malformed_text_is_refused_with_a_valid_example(server: LiveServer, paid_key: str) -> None:
    for path, example in (
        ("/v1/shared/facts?dataset=AF-TENDER&country=KE", "such as ZAF"),
        ("/v1/search?q=", "such as Kgalagadi Retail"),
        ("/v1/macro?series=F%20X", "such as CPI.ZA"),
    ):
        answer = server.get(path, paid_key)
        assert answer.status_code == 400
        assert answer.json()["detail"].endswith(example)


@every("query", ["", "?", "?&", "?&&as_of=2024-06-30&"])
def test_an_empty_query_is_no_parameter(server: LiveServer, paid_key: str, query: str) -> None:
    assert server.get(ISSUER + query, paid_key).status_code == 200


MALFORMED_IDS = [
    "no-such-id",
    "DC_1",
    "%20",
    "DC%00",
    f"{ID}%0A",
    "%FF",
    "%C3%A9",
    "DC\u0662",
    "DC.1",
    "A" * 65,
    "a;b",
    "..%2E",
]


@pytest.mark.rule("PAR-8")
@every("identifier", MALFORMED_IDS)
def test_a_malformed_id_is_400_on_fundamentals_and_404_on_entities(
    server: LiveServer, paid_key: str, identifier: str
) -> None:
    assert refused(server, paid_key, f"/v1/fundamentals/{identifier}") == "service_id"
    assert server.get(f"/v1/entities/{identifier}", paid_key).status_code == 404


@every("kind", ["fundamentals", "entities"])
@every("identifier", ["A", "0", "DC000000000000000000000000", "A" * 64])
def test_an_unknown_id_is_404(server: LiveServer, paid_key: str, kind: str, identifier: str) -> None:
    assert server.get(f"/v1/{kind}/{identifier}", paid_key).status_code == 404


Schema = dict[str, Any]
_NOT_CHECKED = {"type", "examples", "description", "default", "items"}


def violations(schema: Schema) -> Iterator[tuple[str, Any]]:
    """For each keyword, values that violate it and, if possible, no other."""
    for keyword, argument in schema.items():
        if keyword not in _NOT_CHECKED:
            values = list(_breaking(keyword, argument, schema))
            assert values, f"no violation of {keyword} is made here"
            yield from ((keyword, value) for value in values)
    if "items" in schema:
        (fitting, *_) = schema.get("examples", [["revenue"]])[0]
        yield "items.type", [fitting, 7]
        for keyword, value in violations({**schema["items"], "examples": [fitting]}):
            yield f"items.{keyword}", [fitting, value]


def _breaking(keyword: str, argument: Any, schema: Schema) -> Iterator[Any]:
    fitting = (schema.get("examples") or schema.get("enum") or ["a"])[0]
    if keyword == "maxLength":
        yield fitting + fitting[-1] * (argument + 1 - len(fitting))
    elif keyword == "minLength" and argument:
        yield fitting[: argument - 1]
    elif keyword == "pattern":
        yield from (f"{fitting}\n", f"\n{fitting}", f"{fitting}\x00")
        if not re.match(argument, ""):
            yield ""
    elif keyword == "enum":
        yield from (f"{argument[0]}\n", f"{argument[0]}x", argument[0].swapcase(), "")
    elif keyword == "minimum":
        yield from (argument - 1, -(10**9))
    elif keyword == "maximum":
        yield argument + 1
    elif keyword == "format" and argument == "date":
        yield from ("2023-02-29", "2024-06-30\n", "2024-6-30", "2024-06-30T00:00:00Z")
    elif keyword == "anyOf":
        yield from ("2023-02-29", "2024\n", "0999", "202", "20240", "")
    elif keyword == "minItems":
        yield []
    elif keyword == "maxItems":
        yield from ([f"{fitting[0]}_{n}" for n in range(argument + 1)], [f"name_{n}" for n in range(50_000)])
    elif keyword == "uniqueItems":
        yield [fitting[0], fitting[0]]


@pytest.fixture(scope="module")
def description(server: LiveServer) -> dict[str, Any]:
    document: dict[str, Any] = server.get("/openapi.json").json()
    return document


def _resolved(description: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = description
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def _fitting(parameter: dict[str, Any]) -> Any:
    fitting = parameter.get("example", (parameter["schema"].get("enum") or ["a"])[0])
    return fitting if isinstance(fitting, list) else str(fitting)


def _in_a_query(value: Any) -> str:
    """A list is written with commas, and a number in it is just a word."""
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
                    continue  # no query can express it; a longer one is a 414
                answer = _ask(server, paid_key, path, parameters, needed, parameter, value)
                where = (path, parameter["name"], keyword, value)
                in_path = parameter["in"] == "path"
                is_404 = path in agreed and (agreed[path].extension or agreed[path].malformed_id_is_unknown)
                if in_path and (is_404 or parameter["name"] == "file"):
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
            path_value = str(value) if one is parameter else _fitting(one)
            path = path.replace(f"{{{one['name']}}}", quote(path_value, safe=""))
    if parameter["in"] == "header":
        return server.get(path, key, **{parameter["name"]: str(value)})
    sent = needed | ({parameter["name"]: _in_a_query(value)} if parameter["in"] == "query" else {})
    query = "&".join(f"{name}={quote(text, safe='')}" for name, text in sent.items())
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
