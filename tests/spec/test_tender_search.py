"""Words in /v1/tenders and the tool search_tenders."""

from typing import Any

import pytest

from tests.live import succeed
from tests.spec.market import Desk, PaidCaller, package, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.tender_market import SPREAD, expected, keys, wait_for_edition
from tests.spec.tender_market import market as market


@pytest.mark.rule("MCP-10")
@pytest.mark.parametrize("filters", [{}, {"query": "road"}, {"from_date": "2024-03-05"}])
@pytest.mark.parametrize("limit", [1, 7, 50])
def test_the_tool_pages_through_every_country_newest_first(
    market: PaidCaller, filters: dict[str, str], limit: int
) -> None:
    def one_country(country: str) -> list[dict[str, Any]]:
        rest = {"from": filters["from_date"]} if "from_date" in filters else filters
        rows: list[dict[str, Any]] = market.get(
            "/v1/tenders", country=country, limit="10000", detail="compact", **rest
        )["data"]
        return rows

    countries = ("ZA", "KE", "NG", "UG", "GB", "MX")
    rows = [row for country in countries for row in one_country(country)]
    assert len({row["country"] for row in rows}) > 1
    rows.sort(key=lambda row: (row["ocid"], row["release_id"], row["country"]))
    rows.sort(key=lambda row: row["release_date"].rstrip("Z"), reverse=True)
    paged = []
    for page in market.pages_by_tool("search_tenders", limit=limit, **filters):
        assert page["filters"]["country"] is None
        paged += page["data"]
        assert page["truncated"] == (page["next_cursor"] is not None)
    assert [(r["country"], r["ocid"], r["release_id"]) for r in paged] == [
        (r["country"], r["ocid"], r["release_id"]) for r in rows
    ]


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("roller", lambda n: n % 4 == 0),
        ("GRADER", lambda n: n % 4 != 0),
        ("maintenance road", lambda n: True),
        ("road 2 roller", lambda n: n % 3 == 2 and n % 4 == 0),
        ("Röad, (2)!", lambda n: n % 3 == 2),
        ("road snowplough", lambda n: False),
        ("roa", lambda n: False),
    ],
)
def test_a_search_finds_the_releases_that_have_every_word(
    market: PaidCaller, query: str, matches: Any
) -> None:
    failed, body = market.tool("search_tenders", query=query, limit=10000)
    assert not failed
    expected_ocids = {f"ocds-test-spread-{n:02}" for n in range(60) if matches(n)}
    ocids = [row["ocid"] for row in body["data"] if row["ocid"] != "ocds-test-complete"]
    assert set(ocids) == expected_ocids
    assert len(ocids) == len(expected_ocids)
    order = [row["ocid"] for row in market.tenders() if row["ocid"] in expected_ocids]
    assert ocids == order
    assert body["next_cursor"] is None


def test_a_query_without_any_word_finds_nothing_rather_than_everything(market: PaidCaller) -> None:
    failed, body = market.tool("search_tenders", query="?!")
    assert (failed and body["parameter"] == "query") or body["count"] == 0


@pytest.mark.rule("TEND-9")
def test_a_process_can_be_paged_and_its_cursor_is_bound_to_it(plain_desk: Desk) -> None:
    days = [f"2025-0{n}-01T00:00:00Z" for n in range(1, 6)]
    process = [release("long", day, id=f"long-{n}") for n, day in enumerate(days)]
    plain_desk.ingest("portal-za", "za.json", package(*process, release("other", "2025-03-02T00:00:00Z")))
    with plain_desk.publish_and_serve() as caller:
        key = caller.server.key("sample")
        pages = list(caller.server.pages("/v1/tenders?ocid=ocds-test-long&limit=2", key))
        other = caller.server.get(f"/v1/tenders?cursor={pages[0]['next_cursor']}", key)
        assert (other.status_code, other.json()["parameter"]) == (400, "cursor")
        ids = [row["release_id"] for page in pages for row in page["data"]]
        assert ids == [f"long-{n}" for n in (4, 3, 2, 1, 0)]


@pytest.mark.deep
@pytest.mark.rule("PAR-5")
def test_a_cursor_of_a_withdrawn_edition_leads_to_no_withdrawn_row(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(*SPREAD[:12]))
    desk.ingest("portal-za", "b.json", package(*SPREAD[12:24]))
    with desk.publish_and_serve() as caller:
        page = caller.get("/v1/tenders", limit=3)
        succeed(
            desk.home, "withdraw", "portal-za", "--file", "a.json", "--everywhere", "--reason", "court order"
        )
        wait_for_edition(caller, desk.publish())
        rest = caller.get("/v1/tenders", limit=100, cursor=page["next_cursor"])
        served = set(keys(page["data"]))
        assert keys(rest["data"]) == [one for one in expected(SPREAD[12:24]) if one not in served]


@pytest.mark.rule("SET-4")
def test_a_cursor_survives_a_restart(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(*SPREAD[:9]))
    with desk.publish_and_serve() as caller:
        page = caller.get("/v1/tenders", limit=4)
    with desk.serve() as caller:
        rest = caller.get("/v1/tenders", limit=10, cursor=page["next_cursor"])
        assert page["data"] + rest["data"] == caller.tenders()
