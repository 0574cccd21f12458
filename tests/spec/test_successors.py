"""A successor links to its predecessor's figures; the two are never merged."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sankofa.model.identifiers import service_id
from tests.spec.ingesting import source_entry
from tests.spec.market import Desk, PaidCaller

OLD, NEW, OTHER = (f"registry:US-SEC-CIK:000000000{n}" for n in (1, 2, 3))
IDS = f"""\
entity,id_type,id_value,registry,legal_name,country,successor
{OLD},registry,0000000001,US-SEC-CIK,Old Gold Limited,ZA,ticker:NYSE:NEWG
{NEW},ticker,NYSE:NEWG,,New Gold plc,GB,
{OTHER},registry,0000000003,US-SEC-CIK,Other Gold Limited,ZA,registry:US-SEC-CIK:0000000099
bad,registry,0000000003,US-SEC-CIK,Other Gold Limited,ZA,
{OTHER},registry,0000000003,US-SEC-CIK,Other Gold Limited,ZA,nonsense
"""
FIGURES = f"""\
entity,line_item,value,currency,period_start,period_end,available_at,document
{OLD},revenue,100,USD,2020-01-01,2020-12-31,2021-03-01,afs
"""
SOURCES = source_entry("ids", "identifiers-csv") + source_entry(
    "figures",
    "filings-csv",
    publisher="An Exchange",
    licence="CC-BY-4.0",
    attribution="As the filing says: (c) Issuers.",
)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("successors"), SOURCES)
    assert desk.ingest("ids", "ids.csv", IDS)["rejected"] == 2
    assert "successor: " in desk.rejects()[-1]["reason"]
    desk.ingest("figures", "figures.csv", FIGURES)
    with desk.publish_and_serve() as caller:
        yield caller


@pytest.mark.rule("ENT-8")
def test_a_ticker_leads_to_the_successor_which_links_to_the_figures(caller: PaidCaller) -> None:
    (match,) = caller.get("/v1/crosswalk", id_type="ticker", id_value="NYSE:NEWG")["data"]
    body = caller.get(f"/v1/entities/{match['service_id']}")
    assert body["data"][0]["legal_name"] == "New Gold plc"
    assert body["successor"] is None
    assert body["predecessors"] == [{"service_id": service_id(OLD), "legal_name": "Old Gold Limited"}]
    before = caller.get(f"/v1/entities/{service_id(OLD)}")
    assert (before["successor"], before["predecessors"]) == (match["service_id"], [])
    assert before["data"][0]["country"] == "ZA"
    assert caller.get(f"/v1/fundamentals/{service_id(OLD)}")["count"] == 1
    assert caller.get(f"/v1/entities/{service_id(OTHER)}")["successor"] is None  # of nobody in the data


@pytest.mark.rule("LOCK-2", "ENT-8")
def test_a_locked_view_does_not_name_a_successor_that_appeared_later(caller: PaidCaller) -> None:
    body = caller.get(f"/at/2022-01-01/v1/entities/{service_id(OLD)}")
    assert body["data"][0]["legal_name"] == "Old Gold Limited"
    assert body["successor"] is None
    today = datetime.now(UTC).date()
    assert caller.get(f"/at/{today}/v1/entities/{service_id(OLD)}")["successor"] == service_id(NEW)


@pytest.mark.rule("ENT-8")
@pytest.mark.parametrize("path", ["fundamentals", "statements", "metrics"])
def test_an_empty_answer_of_a_successor_names_its_predecessor(caller: PaidCaller, path: str) -> None:
    body = caller.get(f"/v1/{path}/{service_id(NEW)}")
    assert body["count"] == 0
    assert f"{service_id(OLD)} (Old Gold Limited)" in body["hint"]
    assert "hint" not in caller.get(f"/v1/{path}/{service_id(OTHER)}")


@pytest.mark.rule("ENV-7")
@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_the_predecessors_are_in_a_header_field_of_the_other_formats(caller: PaidCaller, form: str) -> None:
    answer = caller.server.get(f"/v1/entities/{service_id(NEW)}?format={form}", caller.key)
    assert answer.status_code == 200
    expected = [{"service_id": service_id(OLD), "legal_name": "Old Gold Limited"}]
    assert json.loads(answer.headers["x-predecessors"]) == expected


def test_the_pages_of_both_link_to_each_other(caller: PaidCaller) -> None:
    for one, other, words in ((NEW, OLD, "Successor of"), (OLD, NEW, "Succeeded by")):
        page = caller.server.http.get(f"/company/{service_id(one)}", headers={"accept-language": "en"}).text
        assert words in page
        assert f"/company/{service_id(other)}" in page


@pytest.mark.rule("PROV-4")
def test_the_attribution_equals_that_of_the_registry_entry(caller: PaidCaller) -> None:
    (source,) = [one for one in caller.get("/v1/sources")["data"] if one["source_id"] == "figures"]
    assert source["attribution"] == "As the filing says: (c) Issuers."
    notice = caller.get(f"/v1/fundamentals/{service_id(OLD)}")["_license"]
    assert "Attribution: As the filing says: (c) Issuers. (CC-BY-4.0)" in notice
