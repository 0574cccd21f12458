"""Tenders walked page by page while editions come and go, each from a HOME of its own."""

import pytest

from tests.live import succeed
from tests.spec.market import Desk, package, release
from tests.spec.market import desk as desk
from tests.spec.market import plain_desk as plain_desk
from tests.spec.tender_market import SPREAD, expected, keys, wait_for_edition


@pytest.mark.rule("TEND-9")
def test_a_process_is_walked_page_by_page_and_its_cursor_is_bound_to_it(plain_desk: Desk) -> None:
    days = [f"2025-0{n}-01T00:00:00Z" for n in range(1, 6)]
    process = [release("long", day, id=f"long-{n}") for n, day in enumerate(days)]
    plain_desk.ingest("portal-za", "za.json", package(*process, release("other", "2025-03-02T00:00:00Z")))
    plain_desk.publish()
    with plain_desk.serve() as asked:
        key = asked.server.key("sample")
        found, address = [], "/v1/tenders?ocid=ocds-test-long&limit=2"
        body = asked.server.get(address, key).json()
        other = asked.server.get(f"/v1/tenders?cursor={body['next_cursor']}", key)
        assert (other.status_code, other.json()["parameter"]) == (400, "cursor")
        while True:
            found += [row["release_id"] for row in body["data"]]
            if body["next_cursor"] is None:
                break
            body = asked.server.get(f"{address}&cursor={body['next_cursor']}", key).json()
        assert found == [f"long-{n}" for n in (4, 3, 2, 1, 0)]


@pytest.mark.rule("PAR-4")
def test_a_limit_above_the_paid_ceiling_gives_the_ceiling(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(*SPREAD[:8]))
    desk.publish()
    with desk.serve(rows_paid="5") as asked:
        page = asked.get("/v1/tenders", limit=100000)
        assert (page["count"], page["truncated"]) == (5, True)
        assert len(asked.get("/v1/tenders", limit=100000, cursor=page["next_cursor"])["data"]) == 3


@pytest.mark.deep
@pytest.mark.rule("PAR-5")
def test_a_cursor_of_a_withdrawn_edition_leads_to_no_withdrawn_row(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(*SPREAD[:12]))
    desk.ingest("portal-za", "b.json", package(*SPREAD[12:24]))
    desk.publish()
    with desk.serve() as asked:
        page = asked.get("/v1/tenders", limit=3)
        succeed(
            desk.home, "withdraw", "portal-za", "--file", "a.json", "--everywhere", "--reason", "court order"
        )
        wait_for_edition(asked, desk.publish())
        rest = asked.get("/v1/tenders", limit=100, cursor=page["next_cursor"])
        served = set(keys(page["data"]))
        assert keys(rest["data"]) == [one for one in expected(SPREAD[12:24]) if one not in served]


@pytest.mark.rule("SET-4")
def test_a_cursor_outlives_a_restart(plain_desk: Desk) -> None:
    desk = plain_desk
    desk.ingest("portal-za", "a.json", package(*SPREAD[:9]))
    desk.publish()
    with desk.serve() as asked:
        page = asked.get("/v1/tenders", limit=4)
    with desk.serve() as asked:
        rest = asked.get("/v1/tenders", limit=10, cursor=page["next_cursor"])
        assert page["data"] + rest["data"] == asked.tenders()
