"""`?edition=ID` and `X-Edition`: any kept edition answers, with the same bytes each time."""

import hashlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from sankofa.operations.contract import Operation, endpoints
from tests.live import LiveServer
from tests.spec import market
from tests.spec.market import ENTITIES, Desk, release
from tests.spec.test_formats import questions

desk = market.desk
SERVED = tuple(operation for operation in endpoints() if not operation.live)
UNKNOWN = "20200101T000000Z-00001-0123456789"
FILE = "/v1/export/files/af-tender-releases.parquet"


class PublishedEditions(NamedTuple):
    """Two editions on their own server."""

    desk: Desk
    server: LiveServer
    key: str
    first: str
    second: str

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.server.get(path, self.key, **headers)


@pytest.fixture(scope="module")
def published(
    engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PublishedEditions]:
    desk = Desk(tmp_path_factory.mktemp("kept"), **engine)
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "a.json", [release(f"A{n}") for n in range(5)])
    first = desk.publish()
    time.sleep(1.1)
    desk.ingest("portal-za", "b.json", [release(f"B{n}") for n in range(3)])
    second = desk.publish()
    with desk.serve() as caller:
        yield PublishedEditions(desk, caller.server, caller.key, first, second)


def count(answer: httpx.Response) -> tuple[str, int]:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return body["edition"], body["count"]


@pytest.mark.rule("ENV-9")
def test_any_kept_edition_answers_by_its_id(published: PublishedEditions) -> None:
    assert count(published.get("/v1/tenders")) == (published.second, 8)
    assert count(published.get(f"/v1/tenders?edition={published.first}")) == (published.first, 5)
    assert count(published.get(f"/v1/tenders?edition={published.second}")) == (published.second, 8)
    assert count(published.get("/v1/tenders", x_edition=published.first)) == (published.first, 5)
    assert count(published.get(f"/v1/tenders?edition={published.first}", x_edition=published.first)) == (
        published.first,
        5,
    )


@pytest.mark.parametrize("operation", SERVED, ids=[o.name for o in SERVED])
def test_every_endpoint_accepts_an_edition(published: PublishedEditions, operation: Operation) -> None:
    path = f"{questions(operation)[0]}&edition="
    for edition in (published.first, published.second):
        answer = published.get(path + edition)
        assert answer.status_code in (200, 404), answer.text
        if answer.status_code == 200:
            assert answer.json()["edition"] == edition
    assert published.get(path + UNKNOWN).status_code == 404


@pytest.mark.rule("ENV-9")
@pytest.mark.parametrize("path", ["/v1/tenders", "/open/procurement-demand.parquet", FILE])
def test_an_unknown_edition_is_a_404(published: PublishedEditions, path: str) -> None:
    for answer in (published.get(f"{path}?edition={UNKNOWN}"), published.get(path, x_edition=UNKNOWN)):
        assert answer.status_code == 404
        problem = answer.json()
        assert problem["title"] == "Not found"
        assert UNKNOWN in problem["detail"]
        assert ("RateLimit" in answer.headers) is not path.startswith("/open/")
        assert published.server.get(httpx.URL(problem["docs"]).path).status_code == 200


def test_a_malformed_header_field_is_a_400(published: PublishedEditions) -> None:
    for text in ("a/b", ""):
        answer = published.get("/v1/tenders", x_edition=text)
        assert (answer.status_code, answer.json()["parameter"]) == (400, "X-Edition")
    fields = [("X-API-Key", published.key), ("X-Edition", published.first), ("X-Edition", published.second)]
    assert published.server.http.get("/v1/tenders", headers=fields).status_code == 400


def test_two_editions_at_once_are_a_400(published: PublishedEditions) -> None:
    answer = published.get(f"/v1/tenders?edition={published.first}", x_edition=published.second)
    assert (answer.status_code, answer.json()["parameter"]) == (400, "edition")


@pytest.mark.rule("KEY-7", "PAR-5")
def test_a_malformed_cursor_is_reported_before_a_missing_edition(published: PublishedEditions) -> None:
    cursor = published.get("/v1/tenders?limit=2").json()["next_cursor"]
    altered = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for query in (f"cursor={altered}", f"country=KE&cursor={cursor}"):
        answer = published.get(f"/v1/tenders?{query}&edition={UNKNOWN}")
        assert (answer.status_code, answer.json().get("parameter")) == (400, "cursor")
    assert published.get(f"/v1/tenders?cursor={cursor}&edition={UNKNOWN}").status_code == 404
    assert published.get("/v1/changes?cursor=x", x_edition=UNKNOWN).json()["parameter"] == "cursor"


def test_the_manifest_of_a_named_edition_leads_to_its_files(published: PublishedEditions) -> None:
    for edition in (published.first, published.second):
        for manifest in (
            published.get(f"/v1/export?edition={edition}"),
            published.get("/v1/export", x_edition=edition),
        ):
            for row in manifest.json()["data"]:
                url = httpx.URL(row["url"])
                assert url.params["edition"] == edition
                content = published.get(url.raw_path.decode()).content
                assert hashlib.sha256(content).hexdigest() == row["sha256"], row["name"]
    assert not any("?" in row["url"] for row in published.get("/v1/export").json()["data"])


def test_a_cursor_of_another_edition_is_a_400(published: PublishedEditions) -> None:
    cursor = published.get(f"/v1/tenders?limit=2&edition={published.first}").json()["next_cursor"]
    assert count(published.get(f"/v1/tenders?limit=2&cursor={cursor}")) == (published.first, 2)
    answer = published.get(f"/v1/tenders?limit=2&cursor={cursor}&edition={published.second}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "cursor")


def test_tools_of_mcp_take_no_edition(published: PublishedEditions) -> None:
    """Tools have a fixed set of parameters (contract: MCP-7)."""
    failed, problem = market.PaidCaller(published.server, published.key).tool(
        "search_tenders", edition=published.first
    )
    assert failed
    assert problem["parameter"] == "edition"
