"""The API description is complete, exact and unchanged unless a change is meant.

After such a change `make snapshots` writes the snapshot and the example answers: review the difference.
"""

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import sankofa.rest
from sankofa.operations.contract import Operation, endpoints
from sankofa.rest.openapi import describe
from sankofa.settings import Settings
from tests.every import every
from tests.live import LiveServer
from tests.spec.questions import QUESTIONS, address

SNAPSHOT = Path(__file__).with_name("snapshots") / "openapi.json"
EXAMPLES = Path(sankofa.rest.__file__).with_name("examples")
OTHER_MODE = {
    "get_fundamentals_matrix": ("from", "to"),  # the examples of the others form one question
    "get_macro": ("indicator",),
    "get_shared_facts": ("country",),
    "get_signal": ("basis",),
}
EXAMPLE_ROWS = 2
EXAMPLE_SALT = "Jb3lVv1m7W2o0kC5xq9sZA=="
EXAMPLE_HASH = "u0m7q3Vh2n1wJr8cQd5sYk4pXz6tLf9aBgEiUoSvTxM="
EXAMPLE_CHECKPOINT = f"log.example\n1\n{EXAMPLE_HASH}\n\n— log.example 5dEZ...\n"
EXAMPLE_EDITION = "20240701T060000Z-5d41402abc"
UPDATE = "UPDATE_SNAPSHOTS" in os.environ
SERVED = endpoints()
FILES = {"/open/{file}", "/v1/export/files/{file}"}
IDS = [operation.name for operation in SERVED]

# Each path of the API, and the errors listed for it.
SECTION_4 = {
    "/v1/export": {401, 429, 503},
    "/v1/fundamentals/{service_id}": {400, 401, 404, 429, 503},
    "/v1/tenders": {400, 401, 402, 429, 503},
    "/v1/shared/facts": {400, 401, 402, 429, 503},
    "/v1/tender-parties": {401, 429, 503},
    "/v1/macro": {400, 401, 402, 429, 503},
    "/v1/entities/{service_id}": {401, 404, 429, 503},
    "/v1/crosswalk/{service_id}": {401, 404, 429, 503},
    "/v1/crosswalk": {400, 401, 402, 429, 503},
    "/v1/screen": {400, 401, 402, 429, 503},
    "/v1/metrics/{service_id}": {400, 401, 402, 429, 503},
    "/v1/signals/procurement-demand": {401, 402, 429, 503},
    "/v1/signals/{signal_key}": {400, 401, 404, 429, 503},
    "/v1/quality-metrics/{sku}": {401, 404, 429, 503},
}
# Other paths.
EXTENSIONS = {
    "/v1/changes": {400, 401, 402, 404, 410, 429, 503},
    "/v1/search": {400, 401, 402, 429, 503},
    "/v1/issuers": {400, 401, 402, 429, 503},
    "/v1/panel": {400, 401, 402, 429, 503},
    "/v1/statements/{service_id}": {400, 401, 402, 404, 429, 503},
    "/v1/series": {400, 401, 402, 429, 503},
    "/v1/series/{series}/vintages": {400, 401, 402, 404, 429, 503},
    "/v1/series/{series}/revisions": {400, 401, 404, 429, 503},
    "/v1/series/{series}/matrix": {400, 401, 404, 429, 503},
    "/v1/fundamentals/{service_id}/matrix": {400, 401, 404, 429, 503},
    "/v1/entities/{service_id}/history": {400, 401, 404, 429, 503},
    "/v1/restatements": {400, 401, 402, 429, 503},
    "/v1/check": {400, 401, 429, 503},
    "/v1/proof": {400, 401, 402, 404, 429, 503},
    "/v1/contracts/{ocid}": {400, 401, 404, 429, 503},
    "/v1/flags": {400, 401, 402, 429, 503},
    "/v1/cross-rates": {400, 401, 402, 429, 503},
    "/v1/sources": {400, 401, 429, 503},
    "/v1/coverage": {400, 401, 402, 429, 503},
    "/v1/usage": {401, 429, 503},
}
SECTION_4 |= EXTENSIONS
# Without a key.
OPEN = {"/health": {"200"}, "/v1/status": {"200", "503"}, "/openapi.json": {"200", "304"}}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return describe(Settings())


@pytest.mark.ci
@pytest.mark.rule("SPEC-1")
def test_description_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "1.0.0"


@pytest.mark.rule("SPEC-1")
def test_server_serves_the_same_description_every_day(server: LiveServer) -> None:
    served = server.get("/openapi.json").json()
    assert served == _as_json(describe(Settings(base_url=server.url)))
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    (as_of,) = [p for p in served["paths"]["/v1/screen"]["get"]["parameters"] if p["name"] == "as_of"]
    assert re.search(as_of["schema"]["pattern"], tomorrow.isoformat())
    refused = server.get(f"/v1/screen?metric=net_margin&as_of={tomorrow + timedelta(1)}", "sankofa-sandbox")
    assert (refused.status_code, refused.json()["parameter"]) == (400, "as_of")


def test_description_is_the_one_last_reviewed(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if UPDATE:
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(text)
    assert json.loads(text) == json.loads(SNAPSHOT.read_text()), __doc__


@pytest.mark.rule("SPEC-2")
def test_every_operation_is_described_and_nothing_else(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {operation.path for operation in SERVED} | set(OPEN) | FILES
    assert all(set(path) == {"get"} for path in document["paths"].values())


@pytest.mark.rule("SPEC-2")
@every("operation", SERVED, ids=IDS)
def test_statuses_of_an_endpoint_are_those_listed_for_it(document: dict[str, Any], operation: Operation):
    responses = document["paths"][operation.path]["get"]["responses"]
    unchanged = set() if operation.live else {"304"}
    listed = {int(status) for status in responses} - {200, 304}
    assert ("304" in responses) == bool(unchanged)
    assert SECTION_4[operation.path] <= listed
    for_sale = {402} if operation.parameters.keys() & {"limit", "cursor"} else set()
    assert listed - for_sale - SECTION_4[operation.path] <= {400, 404, 410, 414, 431}


@pytest.mark.rule("SPEC-3")
@every("operation", SERVED, ids=IDS)
def test_extensions_of_the_specification_are_marked(document: dict[str, Any], operation: Operation) -> None:
    entry = document["paths"][operation.path]["get"]
    assert entry.get("x-sankofa-extension", False) is (operation.path in EXTENSIONS)


@pytest.mark.rule("KEY-2")
@every("operation", SERVED, ids=IDS)
def test_every_other_endpoint_needs_the_key(document: dict[str, Any], operation: Operation) -> None:
    assert "security" not in document["paths"][operation.path]["get"]
    (by_key, no_scopes), (by_token, none_either) = [
        pair for entry in document["security"] for pair in entry.items()
    ]
    assert no_scopes == none_either == []
    schemes = document["components"]["securitySchemes"]
    header = schemes[by_key]
    assert (header["type"], header["in"], header["name"]) == ("apiKey", "header", "X-API-Key")
    assert (schemes[by_token]["type"], schemes[by_token]["scheme"]) == ("http", "bearer")


@pytest.mark.rule("PROV-1", "FIG-2")
@every("operation", SERVED, ids=IDS)
def test_every_field_of_an_answer_and_its_rows_is_required(document: dict[str, Any], operation: Operation):
    schemas = document["components"]["schemas"]
    content = document["paths"][operation.path]["get"]["responses"]["200"]["content"]
    answer = schemas[content["application/json"]["schema"]["$ref"].rpartition("/")[2]]
    assert answer["required"] == [name for name in answer["properties"] if name != "known_by"]
    assert {operation.rows_under, "count", "_license", "edition", "truncated"} <= set(answer["properties"])
    items = answer["properties"][operation.rows_under]["items"]
    for shape, item in zip(operation.shapes, items.get("anyOf", [items]), strict=True):
        row = schemas[item["$ref"].rpartition("/")[2]]
        assert row["required"] == list(row["properties"]) == list(shape.__struct_encode_fields__)


@pytest.mark.rule("SPEC-2", "PAR-6")
def test_links_lead_to_the_next_page_and_to_other_operations(
    server: LiveServer, paid_key: str, document: dict[str, Any]
) -> None:
    by_name = {operation.name: operation for operation in SERVED}
    followed = 0
    for operation in SERVED:
        listed = document["paths"][operation.path]["get"]["responses"]["200"].get("links", {})
        for link in listed.values():
            assert link["parameters"].keys() <= by_name[link["operationId"]].parameters.keys()
        if "NextPage" not in listed:
            continue
        question = {**QUESTIONS[operation.name][-1], "limit": "1"}
        path, query = address(operation, question)
        sent = {"$response.body#/next_cursor": server.body(path, paid_key, **query)["next_cursor"]}
        sent |= {f"$request.{place}.{n}": v for n, v in question.items() for place in ("path", "query")}
        parameters = listed["NextPage"]["parameters"]
        again = {name: sent[value] for name, value in parameters.items() if sent.get(value)}
        if "cursor" in again:
            path, query = address(operation, again)
            assert server.body(path, paid_key, **query)["count"] == 1, path
            followed += 1
    assert followed > 10


def test_as_of_accepts_calendar_days_and_says_that_future_ones_are_refused(document: dict[str, Any]):
    """A future as_of is a 400, but the schema cannot know the date."""
    parameters = [p for p in _parameters(document) if p["name"] == "as_of"]
    assert parameters
    for parameter in parameters:
        pattern = parameter["schema"]["pattern"]
        assert re.search(pattern, "2026-01-15")
        assert re.search(pattern, "9999-12-31")
        assert not re.search(pattern, "2023-02-29")
        assert "A day in the future is a 400." in parameter["description"]


@every("operation", SERVED, ids=IDS)
def test_examples_are_answers_of_the_sample_world(
    server: LiveServer, paid_key: str, document: dict[str, Any], operation: Operation
) -> None:
    """Limited to a few rows, as for a tier with that cap, and without the times of capture and
    publication.
    """
    entry = document["paths"][operation.path]["get"]
    examples = {p["name"]: p["example"] for p in entry["parameters"] if "example" in p}
    not_sent = (*OTHER_MODE.get(operation.name, ()), "proof")
    query = urlencode(
        {
            p["name"]: ",".join(p["example"]) if isinstance(p["example"], list) else p["example"]
            for p in entry["parameters"]
            if "example" in p and p["in"] == "query" and p["name"] not in not_sent
        }
    )
    answer = server.get(f"{operation.path.format(**examples)}?{query}", paid_key).json()
    rows = [_without_times(row) for row in answer[operation.rows_under]]
    for row in rows:
        if "sha256" in row:  # it contains the edition, and so the time of capture
            row |= {"sha256": "0" * 64, "size_bytes": 20_000}
            row["url"] = row["url"].replace(server.url, "http://127.0.0.1:8000")
            row["source_ref"] = row["source_ref"].replace(answer["edition"], EXAMPLE_EDITION)
    if operation.live:  # it contains the time, and how often the other tests asked
        stored = json.loads((EXAMPLES / f"{operation.name}.json").read_text())
        assert [set(row) for row in rows] == [set(row) for row in stored[operation.rows_under]]
        return
    answer["edition"] = EXAMPLE_EDITION
    answer |= {operation.rows_under: rows[:EXAMPLE_ROWS], "count": min(len(rows), EXAMPLE_ROWS)}
    answer["truncated"] = len(rows) > EXAMPLE_ROWS
    if "next_cursor" in answer:
        answer["next_cursor"] = "q8Zr0kWm2vJt5sPdX1bY7A"
    if "proof" in answer:  # its hashes depend on the key and the secret of the HOME
        row = answer["proof"]["rows"][0]
        row |= {"salt": EXAMPLE_SALT, "path": [EXAMPLE_HASH] * len(row["path"])}
        signed = {"edition": EXAMPLE_EDITION, "checkpoint": EXAMPLE_CHECKPOINT, "entry": "eyJ0eXBlIjoi..."}
        answer["proof"] |= signed
    if UPDATE:
        text = json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
        (EXAMPLES / f"{operation.name}.json").write_text(text)
    example = json.loads((EXAMPLES / f"{operation.name}.json").read_text())
    assert example[operation.rows_under], "an example without rows shows nothing"
    assert answer == example, __doc__


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    """Remove times of capture, which differ in each test run."""
    names = ("observed_at", "measured_at", "updated_at", "captured_at")
    times: dict[str, Any] = dict.fromkeys(names, "2024-07-01T06:00:00Z")
    times["provenance_id"] = "b2e13a6d40c95f7818ce02d4"  # it contains the time too
    if row.get("freshness_days") is not None:  # to the day of capture
        times["freshness_days"] = 30
    nested: dict[str, Any] = {name: _without_times(value) for name, value in row.items() if name == "row"}
    if isinstance(inputs := row.get("inputs"), list):
        nested["inputs"] = [_without_times(one) for one in inputs]
    return row | {name: time for name, time in times.items() if name in row} | nested


def _parameters(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path["get"].get("parameters", ())


def _as_json(document: dict[str, Any]) -> Any:
    return json.loads(json.dumps(document))
