"""Each method of the client matches an endpoint of the OpenAPI document."""

import asyncio
import inspect
import json
from datetime import date
from decimal import Decimal
from typing import Any, get_args

import pytest
from msgspec import Raw

from sankofa.client import AsyncClient, Client, rows
from sankofa.client.frames import columns_of
from sankofa.client.session import ENDPOINTS
from sankofa.edition.format.columns import columns_of as service_columns
from sankofa.operations.contract import endpoints
from tests.every import every
from tests.live import LiveServer, run
from tests.torture import ALL_ROUNDS

FILES = {"get_open_file", "get_licensed_file"}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The output of `sankofa openapi`, by operation."""
    document = json.loads(run(tmp_path_factory.mktemp("home"), "openapi").stdout)
    schemas = document["components"]["schemas"]
    return {m["get"]["operationId"]: {**m["get"], "schemas": schemas} for m in document["paths"].values()}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_endpoint_has_a_method_with_its_parameters(kind: type, described: dict[str, Any]) -> None:
    for name, operation in described.items():
        method = getattr(kind, name)
        assert inspect.iscoroutinefunction(method) is (kind is AsyncClient), name
        own = {n.rstrip("_"): p for n, p in inspect.signature(method).parameters.items() if n != "self"}
        if name in FILES:
            assert list(own) == ["file", "into", "edition"]
            continue
        expected = {p["name"]: p for p in operation.get("parameters", ()) if p["name"] != "format"}
        if "cursor" in expected:
            assert own.pop("all").default is False, name
        assert list(own) == list(expected), name
        for parameter, spec in expected.items():
            default = own[parameter].default
            if spec["required"]:
                assert default is inspect.Parameter.empty, parameter
            else:
                assert default == spec["schema"].get("default"), parameter
                assert own[parameter].kind is inspect.Parameter.KEYWORD_ONLY
            assert words_of(own[parameter].annotation) == tuple(spec["schema"].get("enum", ())), parameter


def words_of(annotation: Any) -> tuple[str, ...]:
    """The values of a Literal, optional or not."""
    words = [word for part in (annotation, *get_args(annotation)) for word in get_args(part)]
    return tuple(dict.fromkeys(word for word in words if isinstance(word, str)))


def test_every_row_is_typed_with_its_fields(described: dict[str, Any]) -> None:
    for name, endpoint in ENDPOINTS.items():
        for shape in endpoint.shapes:
            fields = list(described[name]["schemas"][shape]["properties"])
            assert list(getattr(rows, shape).__annotations__) == fields
            assert list(columns_of(shape)) == fields


def test_the_kind_of_a_column_follows_from_the_type_of_its_field(described: dict[str, Any]) -> None:
    kinds = {date: "day", int: "whole", bool: "truth", float: "float", Decimal: "figure", Raw: "nested"}
    for operation in endpoints():
        for shape in operation.shapes:
            kind_of = columns_of(shape.__name__)
            fields = described[operation.name]["schemas"][shape.__name__]["properties"]
            for column in service_columns(shape):
                field = fields[column.name]
                never = field.get("type") == "null"  # no source gives evidence of the day
                text = "instant" if field.get("format") == "date-time" else "day" if never else "text"
                assert kind_of[column.name] == kinds.get(column.type, text), (shape, column.name)


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("get_changes", {"limit": 40}),
    ("find_by_identifier", {"id_type": "ticker", "id_value": "NSE-KE:SMPRL"}),
    ("get_crosswalk", {"service_id": "DC8342E4A6CD9A7F25CAC383F4"}),
    ("get_entity", {"service_id": "DC8342E4A6CD9A7F25CAC383F4"}),
    ("get_entity_history", {"service_id": "DC8342E4A6CD9A7F25CAC383F4"}),
    ("get_export", {}),
    ("get_fundamentals", {"service_id": "DC8342E4A6CD9A7F25CAC383F4", "vintages": "all"}),
    ("get_macro", {"country": "ZA", "from_": 2015, "limit": 500}),
    ("get_macro", {"series": "CPI.ZA", "as_of": date(2024, 6, 30), "from_": "2020-01-01"}),
    ("get_metrics", {"service_id": "DC8342E4A6CD9A7F25CAC383F4"}),
    ("get_panel", {"from_": "2023-01-01", "to": "2024-12-31", "metrics": ["net_margin"], "every": "quarter"}),
    ("get_quality_metrics", {"sku": "AF-FUND"}),
    ("get_screen", {"metric": "net_margin", "as_of": "2024-12-31"}),
    ("get_shared_facts", {"country": "ZAF", "dataset": "AF-MACRO", "limit": 300}),
    ("get_procurement_demand", {"category": "Services: Civil"}),
    ("get_signal", {"signal_key": "macro-momentum"}),
    ("get_resolved_parties", {"country": "KE"}),
    ("search_tenders", {"country": "KE", "from_": date(2025, 1, 1), "limit": 30}),
    ("search", {"q": "sample bank"}),
    ("list_issuers", {"country": "NG", "as_of": date(2024, 6, 30)}),
    ("get_statement", {"service_id": "DC8342E4A6CD9A7F25CAC383F4", "period_type": "FY"}),
    ("list_series", {"q": "gdp", "limit": 5}),
    ("get_series_revisions", {"series": "CPI.ZA"}),
    ("get_series_matrix", {"series": "CPI.ZA", "from_": "2022-01-01"}),
    ("get_fundamentals_matrix", {"service_id": "DC8342E4A6CD9A7F25CAC383F4", "line_item": "revenue"}),
    ("get_contract", {"ocid": "ocds-999sza-00134", "as_of": "2026-02-01"}),
    ("get_flags", {"ocid": "ocds-999sza-00134", "as_of": "2026-02-01"}),
    ("check_claim", {"subject": "JSE:SMPKG", "measure": "revenue", "period": "2024", "value": "46.2bn"}),
    ("get_proof", {"record_ref": "30b0939ed17a65fb79375e04", "since_size": 1}),
    ("get_restatements", {"country": "ZA", "min_change": Decimal("0.02")}),
    ("get_series_vintages", {"series": "CPI.ZA", "limit": 5}),
    ("get_cross_rates", {"base": "GBP", "quote": "ZAR", "as_of": date(2024, 6, 30), "limit": 5}),
    ("get_sources", {}),
    ("get_coverage", {"country": "ZA"}),
]


def test_every_endpoint_has_a_question() -> None:
    assert {name for name, _ in QUESTIONS} == set(ENDPOINTS) - {"get_usage"}


def test_usage_shows_what_the_key_has_used(server: LiveServer, paid_key: str) -> None:
    with Client(paid_key, server.url) as client:
        first, second = client.get_usage().rows[0], client.columns.get_usage().rows[0]
    assert first["tier"] == second["tier"] == "starter"
    assert second["month_used"] > first["month_used"] >= 1


def test_line_items_are_given_as_a_list(server: LiveServer, paid_key: str) -> None:
    with Client(paid_key, server.url) as client:
        rows = client.get_fundamentals("DC8342E4A6CD9A7F25CAC383F4", line_items=["revenue", "assets"]).rows
        iterated = list(
            client.iter_fundamentals("DC8342E4A6CD9A7F25CAC383F4", line_items=("revenue",), limit=3)
        )
    assert {row["line_item"] for row in rows} == {"revenue", "assets"}
    assert iterated == [row for row in rows if row["line_item"] == "revenue"]
    assert len(iterated) > 3


@every(("name", "arguments"), QUESTIONS)
def test_a_method_returns_what_the_endpoint_answers(
    server: LiveServer, client: Client, paid_key: str, name: str, arguments: dict[str, Any]
) -> None:
    endpoint = ENDPOINTS[name]
    query = {
        k.rstrip("_"): ",".join(v) if isinstance(v, list) else str(v)
        for k, v in arguments.items()
        if k not in endpoint.in_path
    }
    path = endpoint.path.format(**arguments)
    body = server.http.get(path, params=query, headers={"X-API-Key": paid_key}).json()

    async def by_async_client() -> Any:
        async with AsyncClient(paid_key, server.url) as client:
            return await getattr(client, name)(**arguments)

    answers = [getattr(client, name)(**arguments), getattr(client.columns, name)(**arguments)]
    if ALL_ROUNDS or name.startswith("get_s"):
        answers.append(asyncio.run(by_async_client()))
    for answer in answers:
        assert answer.count == len(answer) == len(list(answer)) > 0
        rows = body[endpoint.rows_under]
        if name.endswith("_matrix"):  # only its date and value columns
            assert {"date", "available_at", "value"} & set(answer.rows[0])
            rows = [{column: row[column] for column in answer.rows[0]} for row in rows]
        assert json.loads(json.dumps(answer.rows, default=float)) == rows
        assert (answer.edition, answer.license) == (body["edition"], body["_license"])
        assert answer.truncated is body["truncated"]
        assert (answer.as_of and answer.as_of.isoformat()) == body.get("as_of")
        assert answer.next_cursor == body.get("next_cursor")
        assert answer.request_id
        own = {
            "count",
            "_license",
            "as_of",
            "edition",
            "truncated",
            "next_cursor",
            "absent",
            endpoint.rows_under,
        }
        assert answer.members == {k: v for k, v in body.items() if k not in own}


def test_open_endpoints_need_no_key(server: LiveServer) -> None:
    with Client(base_url=server.url) as client:
        assert client.get_health() == {"status": "ok"}
        assert client.get_status()["status"] == "ok"
        assert client.get_openapi()["openapi"].startswith("3.1")


def test_no_output_shows_the_key(server: LiveServer, paid_key: str) -> None:
    with Client(paid_key, server.url) as client:
        answer = client.get_entity("DC8342E4A6CD9A7F25CAC383F4")
        assert paid_key not in repr(client) + repr(vars(client)) + repr(answer)
