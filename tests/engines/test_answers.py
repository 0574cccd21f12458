"""Every endpoint answers the same bytes whichever engine holds the ledger and the editions.

What the bytes have to be is specified in tests/spec, on files.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import httpx
import pytest

from sankofa.edition.write.publish import publish
from tests.depth import deep_after
from tests.engines.datastores import SAMPLE, Engine, ingest_sample
from tests.live import LiveServer
from tests.patience import PATIENCE
from tests.services import PostgresServer

FORMATS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")
FIRST = ("lei", "identifiers", "isin", "openfigi", "filings", "tenders-za")
SECOND = ("companyfacts", "worldbank", "series", "tenders-ke")
SETTINGS = {"base_url": "http://service.example", "cursor_secret": "a secret", "gate_secret": "another"}
PASSING = {"date", "x-request-id", "ratelimit"}
OTHER_MODE = {
    "/v1/macro": "indicator",
    "/v1/shared/facts": "country",
    "/v1/signals/{signal_key}": "basis",
}
"""A parameter whose example belongs to another question than those of the others."""


class Twins(NamedTuple):
    """The sample world in two editions, served from files and from PostgreSQL."""

    files: LiveServer
    keys: dict[LiveServer, str]
    """A key of each."""
    editions: list[str]

    def same(self, path: str, method: str = "GET", content: bytes = b"", **headers: str) -> httpx.Response:
        """The answer of both, which must be the same."""
        answers = []
        for server, key in self.keys.items():
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = server.http.request(
                method, path, content=content, headers={"x-api-key": key, **fields}, timeout=PATIENCE
            )
            answers.append(answer)
        first, second = answers
        assert second.status_code == first.status_code, path
        assert _without_passing(second) == _without_passing(first), path
        assert _text(second) == _text(first), path
        return first


def _without_passing(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in PASSING}


def _text(answer: httpx.Response) -> bytes:
    return answer.content.replace(answer.headers["x-request-id"].encode(), b"")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory, postgres_process: PostgresServer) -> Iterator[Twins]:
    postgres_process.ensure()
    with ExitStack() as stack:
        url = stack.enter_context(postgres_process.database())
        servers, editions = [], []
        for name, datastore in (("sqlite", "sqlite:"), ("postgres", url)):
            home = tmp_path_factory.mktemp(name)
            editions.append(_publish_twice(Engine(name, datastore, home)))
            servers.append(stack.enter_context(LiveServer(home, workers=1, datastore=datastore, **SETTINGS)))
        assert editions[0] == editions[1]
        keys = {
            server: server.key("professional", "--per-minute", "1000000", "--per-month", "1000000")
            for server in servers
        }
        yield Twins(servers[0], keys, editions[0])


def _publish_twice(engine: Engine) -> list[str]:
    with closing(engine.store):
        editions = []
        for folders in (FIRST, SECOND):
            sources = [(f"sample-{folder}", folder) for folder in folders if (SAMPLE / folder).exists()]
            with closing(ingest_sample(engine, sources)) as ledger:
                editions.append(str(publish(engine.store, ledger, keep=3)["edition"]))
    return editions


def questions(description: dict[str, Any], editions: list[str]) -> Iterator[str]:
    """Of each endpoint the question of its examples, each parameter alone, and the one without any."""
    for path, methods in description["paths"].items():
        parameters = methods["get"].get("parameters", [])
        inside = {p["name"]: p["example"] for p in parameters if p["in"] == "path"}
        examples = {p["name"]: p["example"] for p in parameters if p["in"] == "query" and "example" in p}
        given = {name: ",".join(e) if isinstance(e, list) else str(e) for name, e in examples.items()}
        given.pop("format", None)  # asked by `Accept`
        if "since" in {p["name"] for p in parameters}:
            given["since"] = editions[0]
        target = path.format(**inside)
        needed = {p["name"]: given[p["name"]] for p in parameters if p.get("required") and p["in"] == "query"}
        together = {name: value for name, value in given.items() if name != OTHER_MODE.get(path)}
        alone = ({**needed, name: value} for name, value in given.items())
        for query in (needed, together, *alone, {**together, "edition": editions[0]}, {"nothing": "x"}):
            yield str(httpx.URL(target, params=query))


@pytest.mark.rule("SET-3")
@pytest.mark.parametrize("form", deep_after(1, FORMATS))
def test_every_endpoint_answers_the_same(twins: Twins, form: str) -> None:
    description = twins.files.get("/openapi.json").json()
    answered: dict[str, int] = {}
    for question in questions(description, twins.editions):
        if question.startswith(("/health", "/v1/status", "/v1/usage")):
            continue  # they tell the time
        answer = twins.same(question, accept=form)
        path = answer.url.path
        answered[path] = answered.get(path, 0) + (answer.status_code == 200)
    assert len(answered) == len(description["paths"]) - 3
    assert not [path for path, number in answered.items() if not number]


@pytest.mark.deep
@pytest.mark.parametrize(
    "path",
    deep_after(
        2,
        [
            "/v1/tenders?country=ZA",
            "/v1/changes?since={since}&dataset=tenders",
            "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?order=statement",
            "/v1/macro?series=CPI.ZA",
            "/v1/shared/facts?country=ZAF&dataset=AF-TENDER",
            "/v1/tender-parties?role=supplier",
        ],
    ),
)
def test_every_page_of_a_walk_is_the_same(twins: Twins, path: str) -> None:
    start = path.format(since=twins.editions[0]) + "&limit=5"
    page, pages = twins.same(start).json(), 1
    while page["next_cursor"] is not None:
        page, pages = twins.same(f"{start}&cursor={page['next_cursor']}").json(), pages + 1
    assert pages > 2


@pytest.mark.deep
def test_every_file_and_every_part_of_it_is_the_same(twins: Twins) -> None:
    rows = twins.same("/v1/export").json()["data"]
    assert len(rows) > 15
    for row in rows:
        path = httpx.URL(row["url"]).path
        whole = twins.same(path)
        assert len(whole.content) == row["size_bytes"]
        for part in ("bytes=0-3", "bytes=-100", "bytes=7-7,20-400", f"bytes={len(whole.content)}-"):
            twins.same(path, range=part)
        twins.same(path, "HEAD")


def test_every_tool_answers_the_same(twins: Twins) -> None:
    listed = _message(twins, "tools/list", {})["tools"]
    assert listed
    page = _message(twins, "tools/call", {"name": "search_tenders", "arguments": {"limit": 30}})
    walked = {"limit": 30, "cursor": page["structuredContent"]["next_cursor"]}
    _message(twins, "tools/call", {"name": "search_tenders", "arguments": walked})
    for tool in listed:
        fields = tool["inputSchema"]["properties"]
        given = {name: field["examples"][0] for name, field in fields.items() if "examples" in field}
        needed = {name: given[name] for name in tool["inputSchema"].get("required", []) if name in given}
        for arguments in (needed, given, {**needed, "nothing": 1}):
            _message(twins, "tools/call", {"name": tool["name"], "arguments": arguments})


def _message(twins: Twins, method: str, params: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    answer = twins.same(
        "/mcp",
        "POST",
        content,
        accept="application/json, text/event-stream",
        content_type="application/json",
        mcp_protocol_version="2025-11-25",
        host="127.0.0.1",
    )
    result: dict[str, Any] = answer.json()["result"]
    return result
