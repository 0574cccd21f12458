"""Random questions: REST (JSON, CSV and Arrow), MCP and the client give the same rows or the same refusal.

tests/spec/test_export.py checks that Parquet files hold every row of the API.
"""

import csv
import io
import json
import random
from typing import Any

import pyarrow
import pytest

from sankofa.client import Client
from sankofa.client.session import ENDPOINTS
from sankofa.mcp.tools import Tool, tools
from sankofa.operations.contract import Operation, endpoints
from sankofa.rest.formats import ARROW, CSV
from tests.live import LiveServer
from tests.spec.test_formats import as_json, compare
from tests.torture import Trial, rounds
from tools.replay_questions import Asker


class Questions:
    """Draws a question: an operation and arguments, most of them valid."""

    def __init__(self, server: LiveServer, key: str, chance: random.Random) -> None:
        keys = {"professional": key}
        self._asker = Asker(server.http, keys, [server.get("/v1/status").json()["edition"]], lambda *_: None)
        self._asker.chance = chance
        self._operations = [
            operation
            for operation in endpoints()
            if not operation.live and not operation.path.endswith("/matrix")  # contract: SER-5
        ]
        self._chance = chance

    def draw(self) -> tuple[Operation, dict[str, str]]:
        operation = self._chance.choice(self._operations)
        parameters = {n: p for n, p in operation.parameters.items() if n != "cursor"}
        optional = [name for name, p in parameters.items() if not p.required]
        chosen = {name for name, p in parameters.items() if p.required}
        chosen |= set(self._chance.sample(optional, min(len(optional), self._chance.randint(0, 3))))
        return operation, {
            n: self._asker._value(n, parameters[n].kind.schema()) for n in parameters if n in chosen
        }


def address(operation: Operation, arguments: dict[str, str]) -> tuple[str, dict[str, str]]:
    inside = {n: v for n, v in arguments.items() if f"{{{n}}}" in operation.path}
    return operation.path.format(**inside), {n: v for n, v in arguments.items() if n not in inside}


def tool_answer(server: LiveServer, key: str, tool: Tool, arguments: dict[str, str]) -> tuple[int, str]:
    """The status of a tool's answer, and its unparsed body."""
    names = tool.operation.tool_names
    if tool.name == "search_tenders":  # the default of REST
        arguments = {"country": "ZA", "detail": "full", **arguments}
    properties = tool.input_schema()["properties"]
    typed: dict[str, Any] = {}
    for name, text in arguments.items():
        own = names.get(name, name)
        schema = json.dumps(properties[own])
        if '"array"' in schema:  # REST takes a list with commas
            typed[own] = text.split(",")
        else:
            typed[own] = int(text) if "integer" in schema and text.lstrip("-").isdigit() else text
    result = server.call(tool.name, key, typed)
    text = result["content"][0]["text"]
    return (json.loads(text)["status"] if result.get("isError") else 200), text


@pytest.mark.rule("ENV-7")
def test_every_surface_gives_the_same_rows_or_the_same_refusal(
    server: LiveServer, paid_key: str, trial: Trial
) -> None:
    questions = Questions(server, paid_key, trial.chance)
    by_operation = {tool.operation.name: tool for tool in tools().values()}
    count = trial.count(rounds(12, 40, here=5), 500)
    with Client(paid_key, server.url) as client:
        while trial.outcomes["200"] < count:
            operation, arguments = questions.draw()
            if "" in arguments.values():  # this would be another path
                continue
            path, query = address(operation, arguments)
            plain, in_csv, in_arrow = (
                server.http.get(path, params=query, headers={"X-API-Key": paid_key, "Accept": form})
                for form in ("application/json", CSV, ARROW)
            )
            what = f"{path} {query}"
            trial.saw(plain.status_code)
            assert in_csv.status_code == in_arrow.status_code == plain.status_code, what
            tool = by_operation.get(operation.name)
            if tool is not None:
                status, text = tool_answer(server, paid_key, tool, arguments)
                assert status == plain.status_code, (what, text[:300])
                if status == 200:
                    _the_same_as_far_as_it_fits(json.loads(text), plain.json(), operation.rows_under, what)
            if plain.status_code != 200:
                continue
            rows, _ = as_json(plain, operation)
            compare(rows, list(csv.DictReader(io.StringIO(in_csv.text, newline=""), strict=True)))
            compare(rows, pyarrow.ipc.open_stream(in_arrow.content).read_all().to_pylist(), arrow=True)
            method = getattr(client, operation.name)
            own = ENDPOINTS[operation.name]
            answer = method(**{_argument(n): v for n, v in arguments.items()})
            assert json.loads(json.dumps(answer.rows, default=float)) == plain.json()[own.rows_under], what


def _the_same_as_far_as_it_fits(by_tool: Any, by_rest: Any, under: str, what: str) -> None:
    """A tool leaves out rows that do not fit, and says so (contract: MCP-9)."""
    if "hint" not in by_tool:
        assert by_tool == by_rest, what
        return
    rows = by_tool.pop(under)
    assert by_tool.pop("hint")
    assert by_tool["truncated"], what
    order = {json.dumps(row) for row in by_rest[under]}
    assert len(rows) == by_tool["count"] < len(by_rest[under]), what
    assert {json.dumps(row) for row in rows} <= order, what
    for name in ("as_of", "edition", "_license"):
        assert by_tool.get(name) == by_rest.get(name), (what, name)


def _argument(name: str) -> str:
    return "from_" if name == "from" else name
