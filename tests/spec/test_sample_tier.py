"""A sample key gets no more of a dataset, by any path, format, file or tool, than the dataset's own
endpoint gives it. Operations, tools, parameters, formats and files come from the registries, so new ones
are tested too.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import httpx
import pyarrow
import pytest

from sankofa.derive.signals.contract import panels
from sankofa.mcp.tools import Tool, tools
from sankofa.model.provenance import SKUS
from sankofa.operations.contract import Operation, Parameter, operations
from sankofa.rest.formats import ARROW, CSV, MEDIA_TYPES, XLSX
from tests.live import Copies, LiveServer
from tests.spec.questions import address
from tests.torture import ALL_ROUNDS, rounds

CAP = 3
SANDBOX = "sankofa-sandbox"
ISSUERS = ("DC46AF1B1AAA424B58D1368176", "DC000000000000000000000000")
Arguments = dict[str, Any]
Rows = list[dict[str, Any]]

OWN_RULE = {
    "get_crosswalk": "free kinds of one organisation",
    "get_entity_history": "names of one organisation, and free kinds",
    "find_by_identifier": "at most 20 matches of a free kind",
    "get_quality_metrics": "figures about the service, not of it",
    "get_export": "a list of files",
    "get_usage": "where the key stands",
    "get_sources": "who publishes what",
    "get_coverage": "figures about the service, not of it",
}
"""Operations whose own endpoint gives the sample tier all it has: none holds rows of a licensed dataset."""
AS_PUBLISHED = ("source_ref", "release", "identifier", "record_ref", "fact_id", "provenance_id", "inputs")
"""Fields that say where a row is from, or are part of a tender: identifiers in them are on every tier."""


class World(NamedTuple):
    """The sample world, and the answers that a paying customer gets."""

    server: LiveServer
    paid_key: str
    organisations: list[str]
    paid_identifiers: dict[str, str]
    """Each with its kind."""

    def get(
        self, path: str, key: str = SANDBOX, params: Arguments | None = None, **headers: str
    ) -> httpx.Response:
        return self.server.http.get(path, params=params, headers={"x-api-key": key, **headers})

    def tool(self, name: str, arguments: Arguments, key: str = SANDBOX) -> tuple[int, dict[str, Any]]:
        """The status of a tool's answer, and its body."""
        body = self.server.tool(name, key, arguments)
        return (body["status"] if "request_id" in body else 200), body


@pytest.fixture(scope="module")
def world(copy_sample: Copies) -> Iterator[World]:
    with LiveServer(
        copy_sample(), per_minute_sample="1000000", per_month_sample="10000000", rows_sample=str(CAP)
    ) as server:
        key = server.key("starter", "--per-minute", "1000000")
        entities = server.get("/v1/changes?dataset=entities&limit=10000", key).json()["data"]
        organisations = [change["key"][0] for change in entities]
        paid: dict[str, str] = {}
        for organisation in organisations:
            for row in server.get(f"/v1/crosswalk/{organisation}", key).json()["data"]:
                if row["id_type"] not in ("lei", "ticker"):
                    paid[row["id_value"]] = row["id_type"]
        assert len(organisations) > CAP
        assert {"registry", "aggregator", "isin", "figi"} <= set(paid.values())
        yield World(server, key, organisations, paid)


def values(parameter: Parameter) -> list[Any]:
    """The values to try for a parameter: all of them, or examples."""
    examples: dict[str, tuple[Any, ...]] = {
        "service_id": ISSUERS,
        "entity_id": (*ISSUERS, "ZAF"),
        "signal_key": tuple(panels()),
        "sku": SKUS,
        "limit": (1, CAP),
    }
    if parameter.name in examples:
        return list(examples[parameter.name])
    schema = parameter.kind.schema()
    every = list(schema.get("enum") or schema.get("examples") or [])
    return every[: rounds(2, len(every), here=1)]


def questions(operation: Operation, parameters: dict[str, Parameter]) -> Iterator[Arguments]:
    """Every required parameter with each of its values, and every optional one alone."""
    required = {name: p for name, p in parameters.items() if p.required}
    least = {name: values(p)[0] for name, p in required.items()}
    if operation.name == "get_shared_facts":
        least = {"entity_id": ISSUERS[0]}
        for dataset in ("AF-TENDER", "AF-MACRO"):
            yield {"country": "ZAF", "dataset": dataset}
    yield least
    for name, parameter in parameters.items():
        if name != "cursor":
            yield from ({**least, name: value} for value in values(parameter))


ENDPOINTS = [operation for operation in operations() if operation.path]
TOOLS = list(tools().values())


def is_capped(operation: Operation) -> bool:
    return operation.name not in OWN_RULE


def rows_in(answer: httpx.Response, operation: Operation) -> int:
    """The number of rows in a body, whatever its envelope says."""
    kind = answer.headers["content-type"].partition(";")[0]
    if kind == CSV:
        lines = csv.reader(io.StringIO(answer.text, newline=""))
        return sum(1 for line in lines if not line[0].startswith("# first ")) - 1
    if kind == XLSX:
        with zipfile.ZipFile(io.BytesIO(answer.content)) as book:
            return book.read("xl/worksheets/sheet1.xml").count(b"<row ") - 1
    if kind == ARROW:
        return int(pyarrow.ipc.open_stream(answer.content).read_all().num_rows)
    return len(answer.json()[operation.rows_under])


def texts(value: Any) -> Iterator[str]:
    """Every text in a row that is not published content."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in AS_PUBLISHED:
                yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value


def assert_no_paid_identifier(world: World, rows: Rows) -> None:
    for text in texts(rows):
        assert text not in world.paid_identifiers, (text, world.paid_identifiers[text])


@pytest.mark.rule("KEY-9")
@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda o: o.name)
def test_no_answer_in_any_form_has_more_rows_than_the_cap(world: World, operation: Operation) -> None:
    """The first valid question is sent in every way, the others in one way each; with every round, all in
    all.
    """
    edition = world.server.get("/v1/status").json()["edition"]
    forms = (*MEDIA_TYPES, f"{ARROW};compression=zstd", "text/csv;q=0.1")
    ways: list[tuple[str, Arguments]] = [
        (form, more) for form in forms for more in ({}, {"edition": edition})
    ]
    number = count()
    statuses: set[int] = set()
    for arguments in questions(operation, dict(operation.query) | _in_path(operation)):
        path, query = address(operation, arguments)
        first = world.get(path, params=query)
        in_all_ways = ALL_ROUNDS or 200 not in statuses
        statuses.add(first.status_code)
        assert first.status_code in (200, 400, 402, 404), first.text
        for form, more in ways if in_all_ways else [ways[next(number) % len(ways)]]:
            answer = world.get(path, params=query | more, accept=form, range="bytes=0-100000000")
            assert answer.status_code == first.status_code, (path, query, form)
            if answer.status_code == 200 and is_capped(operation):
                assert rows_in(answer, operation) <= CAP, (path, query, form)
        head = world.server.http.head(path, params=query, headers={"x-api-key": SANDBOX})
        assert (head.status_code, head.content) == (first.status_code, b"")
        if first.status_code == 200:
            assert_no_paid_identifier(world, first.json()[operation.rows_under])
        if "limit" in operation.query:
            above = world.get(path, params=query | {"limit": CAP + 1})
            assert above.status_code in (400, 402), (path, query)
    assert statuses & {200, 402}, "no question was a good one"


def _in_path(operation: Operation) -> dict[str, Parameter]:
    return {name: p for name, p in operation.parameters.items() if p.in_path}


@pytest.mark.rule("KEY-9", "MCP-5")
@pytest.mark.parametrize("tool", TOOLS, ids=lambda t: t.name)
def test_no_answer_of_a_tool_has_more_rows_than_the_cap(world: World, tool: Tool) -> None:
    operation = tool.operation
    parameters = {operation.tool_names.get(name, name): p for name, p in operation.parameters.items()}
    answers = 0
    for arguments in questions(operation, parameters):
        status, body = world.tool(tool.name, arguments)
        assert status in (200, 400, 402, 404), body
        if status == 200:
            answers += 1
            rows = body[operation.rows_under]
            assert len(rows) <= CAP or not is_capped(operation), arguments
            assert_no_paid_identifier(world, rows)
        if "limit" in parameters:
            assert world.tool(tool.name, {**arguments, "limit": CAP + 1})[0] in (400, 402), arguments
    assert answers or operation.paid


@pytest.mark.rule("KEY-10")
@pytest.mark.rule("PAR-4", "KEY-8")
@pytest.mark.parametrize(
    "path", ["/v1/quality-metrics/AF-FUND", "/v1/coverage", "/v1/sources", "/v1/export", "/v1/crosswalk/{}"]
)
def test_lists_about_the_service_or_one_organisation_are_complete_without_a_limit(
    world: World, path: str
) -> None:
    has_limit = path not in ("/v1/sources", "/v1/export")
    for organisation in world.organisations if "{}" in path else world.organisations[:1]:
        address = path.format(organisation)
        paid, sample = (world.get(address, key).json() for key in (world.paid_key, SANDBOX))
        if "{}" in path:
            assert sample["data"] == [row for row in paid["data"] if row["id_type"] in ("lei", "ticker")]
        else:
            assert sample["data"] == paid["data"]
            assert (sample["count"] > CAP, sample["truncated"]) == (True, False)
        above = world.get(address, params={"limit": CAP + 1})
        assert above.status_code == (402 if has_limit else 400)


@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda o: o.name)
def test_paging_gives_no_more_than_one_answer_except_for_tenders(world: World, operation: Operation) -> None:
    """With its own cursor, or with one that a paying customer got."""
    for arguments in questions(operation, dict(operation.query) | _in_path(operation)):
        path, query = address(operation, arguments)
        for key in (SANDBOX, world.paid_key):
            answer = world.get(
                path, key, params={**query, "limit": 1} if "limit" in operation.query else query
            )
            if answer.status_code != 200:
                continue
            following = answer.json().get("next_cursor")
            if following is None:
                continue
            again = world.get(path, params={**query, "cursor": following})
            if operation.name == "search_tenders":
                assert again.status_code == 200
            else:
                assert again.status_code == 402, (path, query)


def test_licensed_files_are_always_402(world: World) -> None:
    edition = world.server.get("/v1/status").json()["edition"]
    licensed = []
    for row in world.get("/v1/export", world.paid_key).json()["data"]:
        path = httpx.URL(row["url"]).path
        if row["access"] == "open":
            assert world.server.get(path).status_code == 200
            continue
        licensed.append(row["name"])
        for params in ({}, {"edition": edition}):
            for headers in ({}, {"range": "bytes=0-3"}, {"range": "bytes=-8"}, {"if-none-match": "*"}):
                answer = world.get(path, params=params, **headers)
                assert answer.status_code == 402, (path, params, headers)
                assert b"PAR1" not in answer.content
            head = world.server.http.head(path, params=params, headers={"x-api-key": SANDBOX})
            assert head.status_code == 402
        for elsewhere in (
            f"/open/{row['name']}",
            f"/open/../v1/export/files/{row['name']}",
            f"/{row['name']}",
        ):
            assert world.get(elsewhere).status_code in (402, 404)
        assert world.get(path, world.paid_key).status_code == 200
    assert licensed


def test_a_paid_identifier_finds_nothing(world: World) -> None:
    """Neither the lookup nor the search shows it: search matches free fields only."""
    for value, kind in world.paid_identifiers.items():
        assert world.get("/v1/crosswalk", params={"id_type": kind, "id_value": value}).status_code == 402
        for tool in TOOLS:
            if "query" in tool.operation.parameters and tool.operation.name != "search_tenders":
                status, body = world.tool(tool.name, {"query": value})
                assert status == 200
                for row in body[tool.operation.rows_under]:
                    matched = json.dumps([row.get("match"), row.get("matched")])
                    assert value not in matched, (tool.name, value)
                    assert f'"{kind}"' not in matched, (tool.name, value)


@pytest.mark.rule("CROSS-7")
def test_the_source_of_an_organisation_does_not_show_its_paid_identifiers(world: World) -> None:
    for service_id in world.organisations:
        (record,) = world.get(f"/v1/entities/{service_id}").json()["data"]
        (match,) = world.tool("search_entities", {"query": service_id})[1]["data"]
        for row in (record, match):
            location = row["source_ref"].partition("#")[2]
            assert location
            assert not [value for value in world.paid_identifiers if value in location], location
