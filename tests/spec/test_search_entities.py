"""The MCP tool search_entities."""

from typing import Any

import pytest

from tests.live import LiveServer
from tests.spec import register
from tests.spec.register import BANK, BREWER, HELD, PERSON, sid

live, sample, paid = register.live, register.sample, register.paid


def call(live: LiveServer, key: str, **arguments: Any) -> dict[str, Any]:
    """The result of the tool, as a client gets it."""
    return live.call("search_entities", key, arguments)


def hits(live: LiveServer, key: str, query: str, **arguments: Any) -> list[dict[str, Any]]:
    result = call(live, key, query=query, **arguments)
    assert not result.get("isError"), result
    rows: list[dict[str, Any]] = result["structuredContent"]["data"]
    return rows


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


@pytest.mark.parametrize("query", [PERSON, "Quentin Zebulon Marchbanks", "Marchbanks", "JSE:QZM", "42"])
def test_a_sole_proprietor_is_never_found(live: LiveServer, paid: str, query: str) -> None:
    assert "Marchbanks" not in str(hits(live, paid, query))
    assert sid(f"lei:{PERSON}") not in str(hits(live, paid, query))
