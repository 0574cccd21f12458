"""Hostile values in every parameter of every endpoint and every argument of every tool, and altered cursors.

The tests read operations, tools and their parameters from the registries, so a new one is attacked too. No
answer may be a 5xx, contain a header or a body that the value wrote, or leave an exception in the log.
"""

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from sankofa.mcp.tools import Tool, tools
from sankofa.operations.contract import Operation, Parameter, operations
from tests.live import LiveServer
from tests.torture import Trial

ISSUER = "DC46AF1B1AAA424B58D1368176"
GOOD = {200, 400, 402, 404, 410, 414}
HOSTILE = (
    "'",
    "' OR '1'='1' --",
    "1; DROP TABLE fact; --",
    "\\'); SELECT pg_sleep(9); --",
    "%27%20UNION%20SELECT%20NULL--",
    '"',
    "`id`",
    "$(sleep 9)",
    "; cat /etc/passwd",
    "| ls",
    "../../../../etc/passwd",
    "..%2f..%2fledger.sqlite",
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data/",
    "{{7*7}}",
    "${7*7}",
    "%s%s%s%n",
    "{0.__class__}",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "x\r\nX-Injected: yes",
    "x\nSet-Cookie: a=b",
    "\x00",
    "A\x00B",
    "\x1b[31mred",
    "\u202egnitsil",
    "\ufeff",
    "\ufffe",
    "\u0660\u0661\u0662",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "-1",
    "0",
    "1e309",
    "NaN",
    "9" * 400,
    "-" + "9" * 40,
    "A" * 3000,
    "[" * 500,
    '{"$gt":""}',
    "null",
    "true",
    "2024-02-30",
    "0000-00-00",
    "9999-12-31T23:59:59Z",
    "__proto__",
    "a,b,c",
    "*",
    "%",
    "_",
    "/",
    "\\",
    " ",
    "\t",
    "é" * 300,
    "🜚",
    "e\u0301",
)
TYPED: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 2**200, 1.5, 1e308, [], ["x"], {}, {"$gt": ""}, [[[[[]]]]], "x" * 20_000,
)  # fmt: skip
"""Values that only a tool can receive."""
ENDPOINTS = [operation for operation in operations() if operation.path]


def least(parameters: dict[str, Parameter]) -> dict[str, Any]:
    """A valid value for each required parameter."""
    examples_ = {
        "service_id": ISSUER,
        "signal_key": "macro_momentum",
        "metric": "net_margin",
        "entity_id": ISSUER,
    }
    arguments = {}
    for name, parameter in parameters.items():
        if parameter.required:
            schema = parameter.kind.schema()
            examples = schema.get("enum") or schema.get("examples") or ["x"]
            arguments[name] = examples_.get(parameter.name, examples[0])
    return arguments


def addresses(operation: Operation) -> Iterator[tuple[str, str]]:
    """The targets, with the path and query of each attack."""
    for name in (*operation.parameters, "edition", "cursor", "format"):
        for value in HOSTILE:
            arguments = {**least(dict(operation.parameters)), name: value}
            path = operation.path
            for part in [part for part in arguments if f"{{{part}}}" in operation.path]:
                path = path.replace(f"{{{part}}}", quote(str(arguments.pop(part)), safe=""))
            pairs = "&".join(f"{quote(n)}={quote(str(v), safe='')}" for n, v in arguments.items())
            yield f"{operation.name}({name}={value[:40]!r})", f"{path}?{pairs}"
    for value in HOSTILE:
        yield f"{operation.name}(a parameter named {value[:40]!r})", f"{operation.path}?{quote(value)}=1"


def check_answer(answer: httpx.Response, what: str) -> None:
    assert answer.status_code in GOOD, (what, answer.status_code, answer.text[:300])
    assert "x-injected" not in answer.headers, what
    assert "set-cookie" not in answer.headers, what
    assert "json" in answer.headers["content-type"], what
    json.loads(answer.content)
    assert "root:x:0" not in answer.text, what
    for secret in ("Traceback", "sqlite3.", "psycopg", "site-packages"):
        assert secret not in answer.text, what


def picked(trial: Trial, every: list[Any], short: int) -> list[Any]:
    trial.chance.shuffle(every)
    return every[: trial.count(short, len(every))]


def test_no_parameter_value_is_interpreted(server: LiveServer, paid_key: str, trial: Trial):
    every = [attack for operation in ENDPOINTS for attack in addresses(operation)]
    for what, address in picked(trial, every, 120):
        answer = server.get(address, paid_key)
        if answer.status_code == 400 and "application/problem+json" in answer.headers["content-type"]:
            assert answer.json()["status"] == 400
        check_answer(answer, what)
        trial.saw(answer.status_code)
    assert "Traceback" not in server.log


def calls(tool: Tool) -> Iterator[tuple[str, dict[str, Any]]]:
    operation = tool.operation
    parameters = {operation.tool_names.get(name, name): p for name, p in operation.parameters.items()}
    for name in (*parameters, "edition", "__proto__"):
        for value in (*HOSTILE, *TYPED):
            yield tool.name, {**least(parameters), name: value}


def test_no_tool_argument_is_interpreted(server: LiveServer, paid_key: str, trial: Trial):
    every = [call for tool in tools().values() for call in calls(tool)]
    headers = {"X-API-Key": paid_key, "Accept": "application/json, text/event-stream"}
    for number, (tool, arguments) in enumerate(picked(trial, every, 100)):
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        answer = server.http.post("/mcp", json=message, headers=headers)
        what = f"{tool}{arguments}"[:200]
        assert answer.status_code in (200, 400), (what, answer.text[:300])
        result = answer.json().get("result", {})
        status = 200
        if result.get("isError"):
            status = json.loads(result["content"][0]["text"])["status"]
        assert status in GOOD, (what, answer.text[:300])
        assert "Traceback" not in answer.text
        trial.saw(status)
    assert "Traceback" not in server.log


@pytest.mark.parametrize("path", ["/v1/tenders?country=KE&limit=1", "/v1/changes?dataset=tenders&limit=1"])
def test_a_cursor_with_any_bit_flipped_is_refused(
    server: LiveServer, paid_key: str, trial: Trial, path: str
) -> None:
    cursor = server.get(path, paid_key).json()["next_cursor"]
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    forged = []
    for at, bit in itertools.product(range(len(raw)), range(8)):
        changed = bytearray(raw)
        changed[at] ^= 1 << bit
        forged.append(base64.urlsafe_b64encode(changed).decode().rstrip("="))
    for at, bit in itertools.product(range(len(cursor)), range(7)):  # including the unused bits of the text
        forged.append(cursor[:at] + chr(ord(cursor[at]) ^ (1 << bit)) + cursor[at + 1 :])
    assert cursor not in forged
    for text in picked(trial, forged, 50):
        answer = server.get(f"{path}&cursor={quote(text, safe='')}", paid_key)
        assert answer.status_code == 400, (text, answer.text[:200])
        trial.saw(400)
