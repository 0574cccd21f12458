"""/v1/contracts/{ocid}: the state of a contracting process on a day."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.spec.market import BREWER, ENTITIES, Desk, Json, PaidCaller, identified, package, party, release

BEER, ROADS = "Thornveld Breweries (Pty) Ltd", "Thornveld Roads (Pty) Ltd"
PARTIES = [party("b", BEER, "supplier", **identified("XI-LEI", BREWER)), party("r", ROADS, "supplier")]
OCID = "ocds-test-p/1"
BIG = {"amount": "123456789012345678.25", "currency": "ZAR"}


def _at(day: str, number: int, **fields: Any) -> Json:
    return release("p/1", f"{day}T10:00:00Z", number=number, **fields)


STEPS = [
    _at("2025-01-01", 1, tender={"id": "t", "status": "active", "value": {"amount": 100, "currency": "ZAR"},
                                 "tenderPeriod": {"endDate": "2025-02-01T00:00:00Z"}}),
    _at("2025-01-10", 2, tender={"status": "active", "value": {"amount": 0, "currency": "ZAR"},
                                 "tenderPeriod": {"endDate": "2025-02-15T00:00:00Z"}}),
    _at("2025-02-20", 4, tender={"status": "complete"}, parties=PARTIES,
        awards=[{"id": "a", "status": "active", "value": BIG,
                 "suppliers": [{"id": "b", "name": BEER}]}]),
    _at("2025-02-20", 3, tender={"title": "Same instant, an earlier id", "status": "unsuccessful"}),
    _at("2025-03-01", 5, parties=PARTIES, tender={"title": None},
        awards=[{"id": "a", "value": {"amount": 90, "currency": "ZAR"}, "suppliers": [{"id": "r"}]}]),
]  # fmt: skip
LARGE = [
    release("large", f"2025-04-0{n}", number=n, tender={"items": [
        {"id": f"{m}", "description": f"Lot {m} " + "of many things " * 10} for m in range(400)
    ], "status": f"s{n}"})
    for n in (1, 2)
]  # fmt: skip


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("contracts"))
    desk.records(*ENTITIES)
    desk.ingest("portal-za", "za.json", package(*STEPS, *LARGE, release("other")))
    with desk.publish_and_serve() as caller:
        yield caller


def _contract(market: PaidCaller, view: str = "", **query: str) -> Json:
    (row,) = market.get(f"{view}/v1/contracts/ocds-test-p%2F1", **query)["data"]
    return dict(row)


@pytest.mark.rule("CON-1")
def test_a_process_combines_its_releases_up_to_the_day(market: PaidCaller) -> None:
    row = _contract(market)
    assert (row["country"], row["ocid"], row["release_count"]) == ("ZA", OCID, 5)
    assert (row["first_release_date"], row["last_release_date"]) == (
        "2025-01-01T10:00:00Z",
        "2025-03-01T10:00:00Z",
    )
    whole = row["release"]
    assert (whole["tag"], whole["id"]) == (["compiled"], f"{OCID}-2025-03-01T10:00:00Z")
    assert whole["tender"]["status"] == "complete"
    assert whole["tender"]["value"] == {"amount": 100, "currency": "ZAR"}, "a zero says nothing"
    assert "title" not in whole["tender"], "null removes it"
    (award,) = whole["awards"]
    assert award["value"]["amount"] == 90
    assert [one["id"] for one in award["suppliers"]] == ["b", "r"]
    on_day = _contract(market, as_of="2025-02-20")["release"]
    assert on_day["tender"]["title"] == "Same instant, an earlier id"
    assert str(on_day["awards"][0]["value"]["amount"]) == "123456789012345678.25"
    assert "awards" not in _contract(market, as_of="2025-02-19")["release"]


@pytest.mark.rule("CON-2")
def test_every_value_names_the_release_that_set_it_and_changes_have_old_and_new(market: PaidCaller) -> None:
    row = _contract(market)
    setters = {at: one["release_id"] for at, one in row["set_by"].items()}
    assert (setters["/tender/status"], setters["/tender/value/amount"]) == ("p/1-4", "p/1-1")
    assert setters["/tender/tenderPeriod/endDate"] == "p/1-2"
    assert setters["/awards/0/value/amount"] == "p/1-5"
    assert setters["/awards/0/value/currency"] == "p/1-4", "given again is not set again"
    changes = [(c["field"], c["path"], c["old"], c["new"], c["release_id"]) for c in row["changes"]]
    deadline = ("2025-02-01T00:00:00Z", "2025-02-15T00:00:00Z")
    assert [c if c[0] != "amount" else c[:2] for c in changes] == [
        ("deadline", "/tender/tenderPeriod/endDate", *deadline, "p/1-2"),
        ("status", "/tender/status", "active", "unsuccessful", "p/1-3"),
        ("status", "/tender/status", "unsuccessful", "complete", "p/1-4"),
        ("amount", "/awards/0/value/amount"),
        ("supplier", "/awards/0/suppliers", [BEER], [BEER, ROADS], "p/1-5"),
    ]


@pytest.mark.rule("CON-1", "LOCK-2")
def test_days_before_the_first_release_and_locked_views(market: PaidCaller) -> None:
    body = market.get("/v1/contracts/ocds-test-p%2F1", as_of="2024-12-31")
    assert (body["data"], body["absent"]["reason"], body["absent"]["first"]) == (
        [],
        "not_yet_known",
        "2025-01-01",
    )
    assert market.refused("/v1/contracts/ocds-test-nobody")["status"] == 404
    locked = _contract(market, "/at/2025-01-31")
    assert locked["observed_at"] is None
    assert locked["release"] == _contract(market, as_of="2025-01-31")["release"]
    assert market.refused("/at/2024-12-31/v1/contracts/ocds-test-p%2F1")["status"] == 404, "nobody knew of it"
    assert market.refused("/at/2025-01-31/v1/contracts/ocds-test-p%2F1", as_of="2025-02-01")["status"] == 400


@pytest.mark.rule("CON-1", "MCP-2")
def test_the_tool_gives_the_same_row_and_shortens_one_that_is_too_large(market: PaidCaller) -> None:
    failed, body = market.tool("get_contract", ocid=OCID, as_of="2025-01-31")
    assert not failed
    assert body == market.get("/v1/contracts/ocds-test-p%2F1", as_of="2025-01-31")
    failed, large = market.tool("get_contract", ocid="ocds-test-large")
    assert not failed
    assert large["data"][0]["set_by"] == {}
    assert "/v1/contracts/ocds-test-large" in large["hint"]
    (whole,) = market.get("/v1/contracts/ocds-test-large")["data"]
    assert len(whole["release"]["tender"]["items"]) == 400
    assert whole["set_by"]["/tender/items/399/description"]["release_id"] == "large-1"
