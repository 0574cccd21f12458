"""The MCP tool search_entities."""

from typing import Any

import pytest

from tests.live import LiveServer
from tests.spec import register
from tests.spec.register import BANK, BREWER, HELD, MINER, PERSON, sid

live, sample, paid = register.live, register.sample, register.paid


def call(live: LiveServer, key: str, **arguments: Any) -> dict[str, Any]:
    """The result of the tool, as a client gets it."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_entities", "arguments": arguments},
    }
    headers = {
        "x-api-key": key,
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    answer = live.http.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


def hits(live: LiveServer, key: str, query: str, **arguments: Any) -> list[dict[str, Any]]:
    result = call(live, key, query=query, **arguments)
    assert not result.get("isError"), result
    rows: list[dict[str, Any]] = result["structuredContent"]["data"]
    return rows


@pytest.mark.rule("MCP-6")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Thornveld Breweries", BREWER),
        ("thornveld breweries pty ltd", BREWER),
        ("THORNVELD BREWERIES PLC", BREWER),
        ("breweries thornveld", BREWER),
        ("Thornvled Breweries", BREWER),  # two letters swapped
        ("Thornveld Brweries", BREWER),  # one left out
        ("Societe Miniere du Fouta Djallon", MINER),
        ("Société minière du Fouta-Djallon SARL", MINER),
        ("fouta gold", MINER),  # another of its names
        ("marula bank", BANK),
        ("First Marulla Bank", BANK),
    ],
)
def test_a_name_is_found_however_it_is_written(
    live: LiveServer, sample: str, query: str, expected: str
) -> None:
    first = hits(live, sample, query)[0]
    assert first["service_id"] == sid(f"lei:{expected}")
    assert first["match"]["on"] in ("legal_name", "other_name")
    assert 0 < first["match"]["score"] < 1
    assert first["match"]["value"] in (first["legal_name"], *first["other_names"])


def test_hits_come_best_first_and_carry_their_provenance(live: LiveServer, sample: str) -> None:
    rows = hits(live, sample, "Shared Number 7")
    scores = [row["match"]["score"] for row in rows]
    assert rows[0]["legal_name"] == "Shared Number 7 Plc"
    assert scores == sorted(scores, reverse=True)
    assert all(row["source_ref"] and row["license_class"] and row["observed_at"] for row in rows)


@pytest.mark.rule("MCP-6")
@pytest.mark.parametrize(
    ("query", "on", "expected"),
    [
        (BREWER.lower(), "lei", BREWER),
        ("JSE:THV", "ticker", BREWER),
        ("xjse:thv", "ticker", BREWER),
        ("thv", "ticker", BREWER),
        (sid(f"lei:{BANK}"), "service_id", BANK),
    ],
)
def test_an_exact_identifier_wins(live: LiveServer, sample: str, query: str, on: str, expected: str) -> None:
    first = hits(live, sample, query)[0]
    assert (first["service_id"], first["match"]["on"]) == (sid(f"lei:{expected}"), on)
    assert first["match"]["score"] > 0.98


@pytest.mark.rule("MCP-6")
@pytest.mark.parametrize(("query", "on"), [(HELD, "isin"), ("RC 4411", "registry")])
def test_paid_identifiers_are_searched_on_paid_tiers_only(
    live: LiveServer, sample: str, paid: str, query: str, on: str
) -> None:
    assert hits(live, paid, query)[0]["match"]["on"] == on
    assert all(row["match"]["on"] != on for row in hits(live, sample, query))


def test_country_narrows_the_hits(live: LiveServer, sample: str) -> None:
    assert {row["country"] for row in hits(live, sample, "Shared Number", country="ke")} == {"KE"}
    assert hits(live, sample, "Thornveld Breweries", country="KE") == []
    assert hits(live, sample, "JSE:THV", country="NG") == []


@pytest.mark.rule("PAR-6", "MCP-9")
def test_a_cursor_goes_on_behind_the_hits_before(live: LiveServer, paid: str, sample: str) -> None:
    whole = {row["id"] for row in hits(live, paid, "Shared Number", limit=100)}
    walked: list[str] = []
    arguments: dict[str, Any] = {"query": "Shared Number", "limit": 4}
    while True:
        page = call(live, paid, **arguments)["structuredContent"]
        walked += [row["id"] for row in page["data"]]
        if page["next_cursor"] is None:
            break
        arguments |= {"cursor": page["next_cursor"], "limit": 7}
    assert len(walked) == len(whole) > 11
    assert set(walked) == whole
    refused = call(live, paid, **{**arguments, "query": "Shared"})
    assert '"parameter":"cursor"' in refused["content"][0]["text"]
    assert call(live, sample, query="Shared Number", limit=4)["structuredContent"]["next_cursor"] is None


def test_limit_and_caps_are_those_of_every_tool(live: LiveServer, sample: str, paid: str) -> None:
    result = call(live, sample, query="Shared Number Plc", limit=3)["structuredContent"]
    assert (result["count"], result["truncated"]) == (3, True)
    refused = call(live, sample, query="Shared", limit=26)
    assert refused["isError"]
    assert '"status":402' in refused["content"][0]["text"]
    assert call(live, paid, query="Shared Number", limit=26)["structuredContent"]["count"] == 25


@pytest.mark.parametrize("query", [PERSON, "Quentin Zebulon Marchbanks", "Marchbanks", "JSE:QZM", "42"])
def test_a_sole_proprietor_is_never_found(live: LiveServer, paid: str, query: str) -> None:
    assert "Marchbanks" not in str(hits(live, paid, query))
    assert sid(f"lei:{PERSON}") not in str(hits(live, paid, query))


@pytest.mark.parametrize("query", ["zzzzzz qqqqq", "%%%", "…", "\u0627\u0644", "a" * 200])
def test_what_nobody_is_called_finds_nobody(live: LiveServer, sample: str, query: str) -> None:
    assert hits(live, sample, query) == []


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": "x" * 201}, {"query": "x", "country": "ZAF"}]
)
def test_a_malformed_search_is_a_tool_error_400(
    live: LiveServer, sample: str, arguments: dict[str, Any]
) -> None:
    result = call(live, sample, **arguments)
    assert result["isError"]
    assert '"status":400' in result["content"][0]["text"]
