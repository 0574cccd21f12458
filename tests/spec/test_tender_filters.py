"""The filters of /v1/tenders and search_tenders; each pair is compared with a simple reference."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from tests.spec.market import (
    BREWER,
    CITY,
    ENTITIES,
    Desk,
    Json,
    PaidCaller,
    identified,
    package,
    party,
    release,
)
from tests.spec.tender_market import keys

BEER = "Thornveld Breweries (Pty) Ltd"
ROADS = "Thornveld Roads  (Pty) Ltd"
AMOUNTS = (0, 999.99, 1000, "1000.0000000000000001", 123456789012345678, "16777217.5", 0.1)


def _release(n: int) -> Json:
    supplier = party(
        "s", ROADS if n % 3 else BEER, "supplier", **(identified("XI-LEI", BREWER) if n % 3 == 0 else {})
    )
    buyer = party(
        "b", CITY["name"] if n % 4 else BEER, "buyer", **({} if n % 4 else identified("XI-LEI", BREWER))
    )
    tender: Json = {
        "id": "t",
        "title": f"Road {n % 3} maintenance",
        "description": "Hire of a grader. " * (n % 30),
        "category": ("Services: Civil", "SERVICES: civil", "Supplies")[n % 3],
        "status": ("active", "complete", "Active", None)[n % 4],
        "procurementMethod": ("open", "limited", None)[n % 3],
        "value": {"amount": AMOUNTS[n % 7], "currency": "ZAR"},
    }
    if n % 5:
        tender["tenderPeriod"] = {"endDate": f"2025-0{1 + n % 6}-{1 + n % 28:02}T23:30:00-02:00"}
    awards = [{"id": "a", "suppliers": [{"id": "s", "name": supplier["name"]}]}] if n % 2 else []
    day = f"2024-{1 + n % 12:02}-{1 + n % 28:02}T{n % 24:02}:00:00Z"
    return release(
        f"f-{n:02}",
        day,
        tender=tender,
        awards=awards,
        parties=[buyer, supplier],
        buyer={"id": "b", "name": buyer["name"]},
    )


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("filters"))
    desk.records(*ENTITIES)
    releases = [_release(n) for n in range(84)]
    desk.ingest("portal-za", "za.json", package(*releases[:60]))
    desk.ingest("portal-ke", "ke.json", package(*releases[60:]))
    with desk.publish_and_serve() as caller:
        yield caller


def _suppliers(row: Json) -> set[str]:
    awards = row["release"].get("awards") or []
    return {" ".join(one["name"].split()).casefold() for award in awards for one in award["suppliers"]}


def _closing(row: Json) -> Any:
    return row["closing_date"] and row["closing_date"][:10]


FILTERS: dict[str, list[tuple[str, Callable[[Json], bool]]]] = {
    "from": [("2024-04-05", lambda row: row["release_date"][:10] >= "2024-04-05")],
    "to": [("2024-09-10", lambda row: row["release_date"][:10] <= "2024-09-10")],
    "closing_from": [("2025-02-03", lambda row: (_closing(row) or "") >= "2025-02-03")],
    "closing_to": [("2025-05-04", lambda row: (_closing(row) or "9") <= "2025-05-04")],
    "buyer": [
        (CITY["name"].upper(), lambda row: row["buyer_name"] == CITY["name"]),
        ("", lambda row: row["buyer_service_id"] is not None),
    ],
    "supplier": [
        ("thornveld roads (PTY) ltd", lambda row: "thornveld roads (pty) ltd" in _suppliers(row)),
        ("", lambda row: BEER.casefold() in _suppliers(row)),
    ],
    "category": [("services: civil", lambda row: row["category"].casefold() == "services: civil")],
    "status": [("active", lambda row: (row["status"] or "").casefold() == "active")],
    "method": [("OPEN", lambda row: row["procurement_method"] == "open")],
    "min_value": [
        ("1000", lambda row: row["value_amount"] is not None and row["value_amount"] >= 1000),
        (
            "16777217.6",
            lambda row: row["value_amount"] is not None and row["value_amount"] >= Decimal("16777217.6"),
        ),
    ],
    "buyer_query": [("thornveld CITY", lambda row: row["buyer_name"] == CITY["name"])],
    "supplier_query": [("PTY thornveld roads", lambda row: "thornveld roads (pty) ltd" in _suppliers(row))],
    "query": [("road 1", lambda row: "Road 1" in row["title"])],
}
CASES = [(name, value, passes) for name, cases in FILTERS.items() for value, passes in cases]


@pytest.mark.rule("TEND-11")
def test_every_pair_of_filters_matches_a_simple_reference(market: PaidCaller) -> None:
    every = {country: market.tenders(country=country) for country in ("ZA", "KE")}
    ids = {row["buyer_service_id"] for row in every["ZA"]} - {None}
    assert len(ids) == 1
    matched = 0
    for (name, value, passes), (other, second, also) in combinations(CASES, 2):
        if name == other:
            continue
        query = {name: value or min(ids).lower(), other: second or min(ids)}
        for country, rows in every.items():
            expected = [row for row in rows if passes(row) and also(row)]
            body = market.get("/v1/tenders", country=country, limit=10000, **query)
            assert body["data"] == expected, query
            assert {name: body["filters"][name] for name in query} == query
            matched += bool(expected)
    assert matched > 70


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize(
    "filters",
    [
        {"to": "2024-10-01", "min_value": "1000"},
        {"closing_from": "2025-02-01", "status": "ACTIVE"},
        {"supplier": ROADS, "query": "road"},
    ],
)
def test_pages_of_a_filtered_list_add_up_to_the_list(market: PaidCaller, filters: Json, limit: int) -> None:
    whole = market.tenders(**filters)
    pages = list(market.pages(limit=limit, **filters))
    assert [row for page in pages for row in page["data"]] == whole
    assert len(whole) > 2
    other = market.refused("/v1/tenders", limit=1, cursor=pages[0]["next_cursor"])
    assert (other["status"], other["parameter"]) == (400, "cursor")
    renamed = {{"to": "to_date"}.get(name, name): value for name, value in filters.items()}
    renamed |= {"min_value": 1000} if "min_value" in filters else {}
    tool_pages = market.pages_by_tool("search_tenders", limit=limit, **renamed)
    both = [row for country in ("ZA", "KE") for row in market.tenders(country=country, **filters)]
    assert sorted(keys([row for page in tool_pages for row in page["data"]])) == sorted(keys(both))


@pytest.mark.rule("TEND-7")
def test_a_compact_row_has_its_deadline_and_the_beginning_of_its_description(market: PaidCaller) -> None:
    full = market.tenders()
    compact = market.tenders(detail="compact")
    assert [{k: v for k, v in row.items() if k != "release"} for row in full] == compact
    for row in full:
        tender = row["release"]["tender"]
        assert row["description"] == (tender["description"][:300] or None)
        ends = tender.get("tenderPeriod", {}).get("endDate")
        assert (row["closing_date"] is None) == (ends is None)
    ends, closing = next(
        (row["release"]["tender"]["tenderPeriod"]["endDate"], row["closing_date"])
        for row in full
        if row["closing_date"] and row["closing_date"].startswith("2025-02-03")
    )
    assert (ends, closing) == ("2025-02-02T23:30:00-02:00", "2025-02-03T01:30:00Z")


def test_a_locked_view_filters_only_earlier_releases(market: PaidCaller) -> None:
    for filters in ({"status": "active"}, {"to": "2024-12-31", "min_value": "1"}, {"buyer": CITY["name"]}):
        served = market.get("/at/2024-06-10/v1/tenders", limit=10000, **filters)["data"]
        expected = [row for row in market.tenders(**filters) if row["release_date"][:10] <= "2024-06-10"]
        assert keys(served) == keys(expected)
        assert served


def test_a_filter_without_matches_says_so(market: PaidCaller) -> None:
    body = market.get("/v1/tenders", supplier="Nobody of that name Ltd")
    assert (body["data"], body["absent"]["reason"]) == ([], "no_match")
    assert "`supplier`" in body["absent"]["detail"]
