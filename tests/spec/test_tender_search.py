"""Words in /v1/tenders and the tool search_tenders."""

from typing import Any

import pytest

from tests.spec.market import Asked
from tests.spec.tender_market import market as market


@pytest.mark.rule("MCP-10")
@pytest.mark.parametrize("filters", [{}, {"query": "road"}, {"from_date": "2024-03-05"}])
@pytest.mark.parametrize("limit", [1, 7, 50])
def test_the_tool_walks_the_tenders_of_every_country_newest_first(
    market: Asked, filters: dict[str, str], limit: int
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
    walked = []
    for page in market.walk_with_tool("search_tenders", limit=limit, **filters):
        assert page["filters"]["country"] is None
        walked += page["data"]
        assert page["truncated"] == (page["next_cursor"] is not None)
    assert [(r["country"], r["ocid"], r["release_id"]) for r in walked] == [
        (r["country"], r["ocid"], r["release_id"]) for r in rows
    ]


@pytest.mark.parametrize(
    ("query", "found"),
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
def test_a_search_finds_the_releases_that_have_every_word(market: Asked, query: str, found: Any) -> None:
    failed, body = market.tool("search_tenders", query=query, limit=10000)
    assert not failed
    expected_ocids = {f"ocds-test-spread-{n:02}" for n in range(60) if found(n)}
    ocids = [row["ocid"] for row in body["data"] if row["ocid"] != "ocds-test-complete"]
    assert set(ocids) == expected_ocids
    assert len(ocids) == len(expected_ocids)
    order = [row["ocid"] for row in market.tenders() if row["ocid"] in expected_ocids]
    assert ocids == order
    assert body["next_cursor"] is None


def test_a_cursor_of_a_search_is_bound_to_its_words(market: Asked) -> None:
    _, page = market.tool("search_tenders", query="road", limit=2)
    for other in ({"query": "roller"}, {}, {"query": "road", "country": "KE"}):
        failed, problem = market.tool("search_tenders", limit=2, cursor=page["next_cursor"], **other)
        assert (failed, problem["status"], problem["parameter"]) == (True, 400, "cursor")


def test_a_query_without_any_word_finds_nothing_rather_than_everything(market: Asked) -> None:
    failed, body = market.tool("search_tenders", query="?!")
    assert (failed and body["parameter"] == "query") or body["count"] == 0
