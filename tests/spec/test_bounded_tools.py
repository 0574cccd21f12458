"""Every answer of a tool fits its budget; what does not fit is a cursor away."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sankofa.model.line_items import LINE_ITEMS
from tests.live import LiveServer

BUDGET = 61_440
SMALL = 6_000
SANDBOX = "sankofa-sandbox"
RETAILER = "DC46AF1B1AAA424B58D1368176"
LISTS: list[tuple[str, dict[str, Any]]] = [
    ("get_fundamentals", {"service_id": RETAILER, "vintages": "all"}),
    ("get_fundamentals", {"service_id": RETAILER, "limit": 10_000}),
    ("get_macro", {"limit": 10_000}),
    ("get_macro", {"series": "FX.EUR.ZAR", "limit": 10_000}),
    ("search_tenders", {"limit": 10_000}),
    ("search_tenders", {"country": "KE", "detail": "full", "limit": 100}),
    ("get_resolved_parties", {"limit": 10_000}),
    ("get_metrics", {"service_id": RETAILER}),
    ("screen_issuers", {"metric": "net_margin"}),
    ("get_signal", {"signal_key": "macro-momentum", "limit": 10_000}),
    ("get_procurement_demand", {"limit": 10_000}),
    ("get_quality_metrics", {"sku": "AF-MACRO"}),
]


class Tools(NamedTuple):
    """The tools of a server, and a key."""

    server: LiveServer
    key: str

    def call(
        self, name: str, arguments: dict[str, Any], key: str | None = None
    ) -> tuple[dict[str, Any], int]:
        """The structured answer, and the bytes of one copy of it on the wire."""
        result = self.server.call(name, key or self.key, arguments)
        assert result["isError"] is False, result
        (content,) = result["content"]
        body: dict[str, Any] = result["structuredContent"]
        assert json.loads(content["text"]) == body
        return body, len(content["text"].encode())


@pytest.fixture(scope="module")
def default(server: LiveServer, paid_key: str) -> Tools:
    return Tools(server, paid_key)


@pytest.fixture(scope="module")
def small(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """A server whose answers have room for a few rows."""
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("bounded") / "home"))
    with LiveServer(
        home, mcp_answer_bytes=str(SMALL), per_minute_starter="100000", per_minute_sample="100000"
    ) as server:
        yield Tools(server, server.key("starter"))


def rows_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = body["data"] if "data" in body else body["observations"]
    return rows


@pytest.mark.rule("MCP-9")
@pytest.mark.parametrize(("name", "arguments"), LISTS, ids=lambda part: str(part))
@pytest.mark.limit("SANKOFA_MCP_ANSWER_BYTES")
def test_no_answer_is_larger_than_61_440_bytes_by_default(
    default: Tools, name: str, arguments: dict[str, Any]
) -> None:
    body, size = default.call(name, arguments)
    assert size <= BUDGET
    assert rows_of(body)
    assert body["truncated"] == (body["next_cursor"] is not None)
    if "hint" in body:
        assert body["truncated"] is True
        assert size > BUDGET - 4_000, "as many rows as fit"


@pytest.mark.rule("MCP-9")
@pytest.mark.parametrize(("name", "arguments"), LISTS, ids=lambda part: str(part))
def test_a_walk_of_bounded_answers_gives_every_row_once_in_order(
    small: Tools, default: Tools, name: str, arguments: dict[str, Any]
) -> None:
    expected: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    whole = (
        {**arguments, "order": "statement"}
        if name == "get_fundamentals" and "limit" not in arguments
        else arguments
    )
    while len(expected) < 60:
        body, _ = default.call(name, {**whole, **cursor})
        expected += rows_of(body)
        if body["next_cursor"] is None:
            break
        cursor = {"cursor": body["next_cursor"]}
    walked: list[dict[str, Any]] = []
    cursor = {}
    while len(walked) < min(len(expected), 60):
        body, size = small.call(name, {**arguments, **cursor})
        assert size <= SMALL
        assert rows_of(body), "at least one row, or the walk would stand still"
        walked += rows_of(body)
        if body["next_cursor"] is None:
            break
        assert "next_cursor" in body["hint"]
        cursor = {"cursor": body["next_cursor"]}
    shared = min(len(walked), len(expected))
    ids = [{k: v for k, v in row.items() if k != "observed_at"} for row in expected[:shared]]
    assert [{k: v for k, v in row.items() if k != "observed_at"} for row in walked[:shared]] == ids
    assert shared >= min(len(expected), 60)


@pytest.mark.rule("MCP-9", "FUND-8")
def test_where_not_all_figures_fit_the_core_line_items_of_the_newest_period_come_first(default: Tools):
    body, _ = default.call("get_fundamentals", {"service_id": RETAILER})
    assert body["truncated"] is True
    assert "`line_items`" in body["hint"]
    assert body["hint"].count(". ") == 0
    rows = body["data"]
    everything = default.server.get(f"/v1/fundamentals/{RETAILER}", default.key).json()["data"]
    assert all(row in everything for row in rows)
    core = [row["line_item"] in LINE_ITEMS for row in rows]
    assert core == sorted(core, reverse=True)
    assert core[0]
    ends = [row["period_end"] for row in rows if row["line_item"] in LINE_ITEMS]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == everything[0]["period_end"]
    newest = [row["line_item"] for row in rows if row["period_end"] == ends[0] and row["period_type"] == "FY"]
    assert newest[:3] == sorted(newest[:3], key=LINE_ITEMS.index)


@pytest.mark.rule("MCP-9", "KEY-10")
def test_a_sample_key_is_given_no_cursor_it_cannot_use_but_the_way_up(small: Tools) -> None:
    body, size = small.call("get_metrics", {"service_id": RETAILER}, SANDBOX)
    assert size <= SMALL
    assert (body["truncated"], body["next_cursor"]) == (True, None)
    assert "paid key" in body["hint"]
    assert "`metric`" in body["hint"]
    tenders, _ = small.call("search_tenders", {}, SANDBOX)
    assert tenders["next_cursor"] is not None
    following, _ = small.call("search_tenders", {"cursor": tenders["next_cursor"]}, SANDBOX)
    assert following["data"][0] not in tenders["data"]


@pytest.mark.rule("MCP-9")
def test_a_row_that_alone_is_too_large_comes_without_its_release_and_says_where_it_is(
    sample_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))
    with LiveServer(home, mcp_answer_bytes="1650") as server:
        tools = Tools(server, server.key("starter"))
        body, size = tools.call("search_tenders", {"country": "ZA", "detail": "full"})
        (row,) = body["data"]
        assert size <= 1650
        assert "release" not in row
        assert f"country=ZA&from={row['release_date'][:10]}" in body["hint"]
        following, _ = tools.call(
            "search_tenders", {"country": "ZA", "detail": "full", "cursor": body["next_cursor"]}
        )
        assert following["data"][0]["ocid"] != row["ocid"] or following["data"][0] != row
