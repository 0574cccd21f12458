"""`?edition=ID` and `X-Edition`: any kept edition answers, with the same bytes each time."""

import hashlib

import httpx
import pytest

from sankofa.operations.contract import Operation, endpoints
from tests.spec import market
from tests.spec.test_edition_log import Logged
from tests.spec.test_edition_log import logged as logged
from tests.spec.test_formats import questions

SERVED = tuple(operation for operation in endpoints() if not operation.live)
UNKNOWN = "20200101T000000Z-00001-0123456789"
FILE = "/v1/export/files/af-tender-releases.parquet"


def count(answer: httpx.Response) -> tuple[str, int]:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return body["edition"], body["count"]


@pytest.mark.rule("ENV-9")
def test_any_kept_edition_answers_by_its_id(logged: Logged) -> None:
    assert count(logged.get("/v1/tenders")) == (logged.second, 8)
    assert count(logged.get(f"/v1/tenders?edition={logged.first}")) == (logged.first, 5)
    assert count(logged.get(f"/v1/tenders?edition={logged.second}")) == (logged.second, 8)
    assert count(logged.get("/v1/tenders", x_edition=logged.first)) == (logged.first, 5)
    assert count(logged.get(f"/v1/tenders?edition={logged.first}", x_edition=logged.first)) == (
        logged.first,
        5,
    )


@pytest.mark.parametrize("operation", SERVED, ids=[o.name for o in SERVED])
def test_every_endpoint_accepts_an_edition(logged: Logged, operation: Operation) -> None:
    path = f"{questions(operation)[0]}&edition="
    for edition in (logged.first, logged.second):
        answer = logged.get(path + edition)
        assert answer.status_code in (200, 404), answer.text
        if answer.status_code == 200:
            assert answer.json()["edition"] == edition
    assert logged.get(path + UNKNOWN).status_code == 404


@pytest.mark.rule("ENV-9")
@pytest.mark.parametrize("path", ["/v1/tenders", "/open/procurement-demand.parquet", FILE])
def test_an_unknown_edition_is_a_404(logged: Logged, path: str) -> None:
    for answer in (logged.get(f"{path}?edition={UNKNOWN}"), logged.get(path, x_edition=UNKNOWN)):
        assert answer.status_code == 404
        problem = answer.json()
        assert problem["title"] == "Not found"
        assert UNKNOWN in problem["detail"]
        assert ("RateLimit" in answer.headers) is not path.startswith("/open/")
        assert logged.server.get(httpx.URL(problem["docs"]).path).status_code == 200


def test_a_malformed_header_field_is_a_400(logged: Logged) -> None:
    for text in ("a/b", ""):
        answer = logged.get("/v1/tenders", x_edition=text)
        assert (answer.status_code, answer.json()["parameter"]) == (400, "X-Edition")
    fields = [("X-API-Key", logged.key), ("X-Edition", logged.first), ("X-Edition", logged.second)]
    assert logged.server.http.get("/v1/tenders", headers=fields).status_code == 400


def test_two_editions_at_once_are_a_400(logged: Logged) -> None:
    answer = logged.get(f"/v1/tenders?edition={logged.first}", x_edition=logged.second)
    assert (answer.status_code, answer.json()["parameter"]) == (400, "edition")


@pytest.mark.rule("KEY-7", "PAR-5")
def test_a_malformed_cursor_is_reported_before_a_missing_edition(logged: Logged) -> None:
    cursor = logged.get("/v1/tenders?limit=2").json()["next_cursor"]
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for query in (f"cursor={altered}", f"country=KE&cursor={cursor}"):
        answer = logged.get(f"/v1/tenders?{query}&edition={UNKNOWN}")
        assert (answer.status_code, answer.json().get("parameter")) == (400, "cursor")
    assert logged.get(f"/v1/tenders?cursor={cursor}&edition={UNKNOWN}").status_code == 404
    assert logged.get("/v1/changes?cursor=x", x_edition=UNKNOWN).json()["parameter"] == "cursor"


def test_the_manifest_of_a_named_edition_leads_to_its_files(logged: Logged) -> None:
    for edition in (logged.first, logged.second):
        for manifest in (
            logged.get(f"/v1/export?edition={edition}"),
            logged.get("/v1/export", x_edition=edition),
        ):
            for row in manifest.json()["data"]:
                url = httpx.URL(row["url"])
                assert url.params["edition"] == edition
                content = logged.get(url.raw_path.decode()).content
                assert hashlib.sha256(content).hexdigest() == row["sha256"], row["name"]
    assert not any("?" in row["url"] for row in logged.get("/v1/export").json()["data"])


def test_a_cursor_of_another_edition_is_a_400(logged: Logged) -> None:
    cursor = logged.get(f"/v1/tenders?limit=2&edition={logged.first}").json()["next_cursor"]
    assert count(logged.get(f"/v1/tenders?limit=2&cursor={cursor}")) == (logged.first, 2)
    answer = logged.get(f"/v1/tenders?limit=2&cursor={cursor}&edition={logged.second}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "cursor")


def test_tools_of_mcp_take_no_edition(logged: Logged) -> None:
    """Tools have a fixed set of parameters (contract: MCP-7)."""
    failed, problem = market.PaidCaller(logged.server, logged.key).tool(
        "search_tenders", edition=logged.first
    )
    assert failed
    assert problem["parameter"] == "edition"
