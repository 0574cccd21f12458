"""The envelope says whether rows were left out, and which day gives the same rows again."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from sankofa.operations.contract import Operation, endpoints, operations
from tests.live import Copies, LiveServer
from tests.spec.questions import QUESTIONS, address, arguments_of
from tests.torture import ALL_ROUNDS

UNBOUNDED = "100000000"
"""Bytes of a tool's answer: no row is left out for want of room."""
CEILING = 40
"""The row ceiling of paid tiers; the sample world has more rows everywhere."""


@pytest.fixture(scope="module")
def live(copy_sample: Copies) -> Iterator[LiveServer]:
    with LiveServer(
        copy_sample(), rows_paid=str(CEILING), rows_default="10", mcp_answer_bytes=UNBOUNDED
    ) as low:
        yield low


@pytest.fixture(scope="module")
def paid(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")


@pytest.fixture(scope="module")
def sample(live: LiveServer) -> str:
    return live.key("sample", "--per-minute", "100000")


def test_every_operation_has_a_question() -> None:
    assert {operation.name for operation in operations()} == set(QUESTIONS)


def ask(live: LiveServer, key: str, operation: Operation, question: dict[str, str], **more: str) -> Any:
    path, query = address(operation, {**question, **more})
    return live.body(path, key, **query)


def tool(live: LiveServer, key: str, operation: Operation, question: dict[str, str], **more: Any) -> Any:
    result = live.call(operation.tool or "", key, arguments_of(operation, {**question, **more}))
    assert not result.get("isError"), result
    return result["structuredContent"]


@pytest.fixture(scope="module")
def everything(live: LiveServer) -> Iterator[LiveServer]:
    """The same keys without the limits."""
    with LiveServer(live.home, rows_paid="1000000", mcp_answer_bytes=UNBOUNDED) as whole:
        yield whole


CASES = [
    pytest.param(operation, question, id=f"{operation.name}-{number}")
    for operation in endpoints()
    for number, question in enumerate(QUESTIONS[operation.name])
]
AS_OF_CASES = [
    pytest.param(operation, question, id=f"{operation.name}-{number}")
    for operation in endpoints()
    if "as_of" in operation.parameters
    for number, question in enumerate(QUESTIONS[operation.name])
]
TOOLS = [
    pytest.param(operation, question, id=f"{operation.tool}-{number}")
    for operation in operations()
    if operation.tool
    for number, question in enumerate(QUESTIONS[operation.name])
]


def most(operation: Operation, limit: int) -> int:
    """The largest limit that the operation takes: a lookup gives 20 matches at most."""
    return min(limit, 20) if operation.path == "/v1/crosswalk" else limit


def limits(total: int) -> list[int]:
    """Around the count, around the maximum, and far above both."""
    values = {1, total, CEILING + 1}
    if ALL_ROUNDS:
        values |= {2, total - 1, total + 1, CEILING - 1, CEILING, 10 * CEILING, 10**9}
    return sorted(limit for limit in values if limit > 0)


@pytest.mark.rule("ENV-2")
@pytest.mark.parametrize(("operation", "question"), CASES)
def test_an_answer_is_truncated_exactly_when_rows_were_left_out(
    live: LiveServer,
    everything: LiveServer,
    paid: str,
    sample: str,
    operation: Operation,
    question: dict[str, str],
) -> None:
    no_limit = {"limit": str(most(operation, 1_000_000))} if "limit" in operation.query else {}
    whole = ask(everything, paid, operation, question, **no_limit)
    every = whole[operation.rows_under]
    while cursor := whole.get("next_cursor"):
        whole = ask(everything, paid, operation, question, **no_limit, cursor=cursor)
        every += whole[operation.rows_under]
    total = len(every)
    assert whole["truncated"] is False
    assert total, "a question without an answer shows nothing"
    answers = [ask(live, paid, operation, question)]
    preview: Any = None
    if operation.name not in (
        "find_by_identifier",
        "get_changes",
        "get_panel",
    ):  # the sample tier would have to pay for it
        preview = ask(live, sample, operation, question)
        answers.append(preview)
    if "limit" in operation.query:
        for limit in [n for n in limits(total) if n <= most(operation, n)]:
            answer = ask(live, paid, operation, question, limit=str(limit))
            assert answer["count"] == min(limit, CEILING, total)
            answers.append(answer)
    for answer in answers:
        assert answer["truncated"] is (answer["count"] < total)
        if operation.name not in (
            "get_crosswalk",
            "get_entity_history",
            "get_export",
            "get_usage",
        ):  # free ones first; each server has its own address; it contains the time
            assert answer[operation.rows_under] == every[: answer["count"]]
        if answer is preview and operation.name != "search_tenders":
            assert answer.get("next_cursor") is None, "a sample key walks tenders only"
        elif "next_cursor" in answer:
            assert answer["truncated"] is (answer["next_cursor"] is not None)


@pytest.mark.rule("ENV-2")
@pytest.mark.parametrize(("operation", "question"), TOOLS)
def test_a_tool_says_whether_rows_were_left_out(
    live: LiveServer, everything: LiveServer, paid: str, operation: Operation, question: dict[str, str]
) -> None:
    if "limit" not in operation.parameters:
        assert tool(live, paid, operation, question)["truncated"] is False
        return
    total = tool(everything, paid, operation, question, limit=most(operation, 100_000))["count"]
    for limit in [n for n in limits(total) if n <= most(operation, n)]:
        answer = tool(live, paid, operation, question, limit=limit)
        assert (answer["count"], answer["truncated"]) == (
            min(limit, CEILING, total),
            min(limit, CEILING) < total,
        )


@pytest.mark.rule("ENV-2", "PAR-6", "PAR-12")
@pytest.mark.parametrize("operation", [o for o in endpoints() if "cursor" in o.query], ids=lambda o: o.name)
def test_pages_add_up_to_one_answer_and_all_but_the_last_are_truncated(
    everything: LiveServer, paid: str, operation: Operation
) -> None:
    question = QUESTIONS[operation.name][0]
    pages = [ask(everything, paid, operation, question, limit="7")]
    while (cursor := pages[-1]["next_cursor"]) and len(pages) < 500:
        limit = "40" if len(pages) < 20 else "1500"
        pages.append(ask(everything, paid, operation, question, limit=limit, cursor=cursor))
    for page, following in pairwise(pages):
        assert page["truncated"] is True
        assert following["count"] > 0, "rows were said to be left out"
    assert pages[-1]["truncated"] is False
    whole = ask(everything, paid, operation, question, limit=str(most(operation, 1_000_000)))
    if not whole["truncated"] and operation.name != "get_crosswalk":  # the free identifiers come first
        assert [row for page in pages for row in page[operation.rows_under]] == whole[operation.rows_under]


def test_a_search_without_a_match_for_all_words_is_not_truncated(live: LiveServer, paid: str):
    (operation,) = [o for o in operations() if o.name == "search_tenders"]
    hits = tool(live, paid, operation, {"query": "road maintenance"})
    none = tool(live, paid, operation, {"query": "road zzyzx"})
    assert hits["count"]
    assert (none["count"], none["truncated"], none["next_cursor"]) == (0, False, None)


@pytest.mark.rule("PIT-7")
@pytest.mark.parametrize(("operation", "question"), AS_OF_CASES)
def test_the_day_of_the_envelope_sent_back_gives_the_same_rows(
    live: LiveServer, paid: str, operation: Operation, question: dict[str, str]
) -> None:
    first = ask(live, paid, operation, question)
    assert "as_of" in first
    if first["as_of"] is None:
        rows = first[operation.rows_under]
        assert any(row["available_at"] is None for row in rows), "only annual values have no such day"
        return
    again = ask(live, paid, operation, {**question, "as_of": first["as_of"]})
    for answer in (first, again):
        answer.pop("next_cursor", None)  # dated facts of a country are a separate list
    assert again == first
    assert question.get("as_of", first["as_of"]) == first["as_of"]


@pytest.mark.rule("PIT-7")
def test_annual_macro_has_no_day(live: LiveServer, paid: str) -> None:
    body = live.get("/v1/macro?country=ZA", paid).json()
    assert body["data"]
    assert body["as_of"] is None
    assert live.get("/v1/macro?country=ZA&limit=1&indicator=NOTHING.SUCH", paid).json()["as_of"] is None
    shared = live.get("/v1/shared/facts?entity_id=ZAF&measure=NY.GDP.MKTP.CD", paid).json()
    assert shared["data"]
    assert shared["as_of"] is None


def measures(live: LiveServer, key: str, sku: str) -> dict[str, Any]:
    rows = live.get(f"/v1/quality-metrics/{sku}", key).json()["data"]
    return {row["measure"]: row["value"] for row in rows}


@pytest.mark.rule("QUAL-2")
def test_quality_counts_the_facts_and_releases_that_are_served(everything: LiveServer, paid: str) -> None:
    pages = everything.pages("/v1/changes?dataset=entities&limit=1000", paid)
    entities = {row["key"][0] for page in pages for row in page["data"]}
    facts = sum(
        everything.get(f"/v1/fundamentals/{service_id}?vintages=all", paid).json()["count"]
        for service_id in entities
    )
    by_measure = measures(everything, paid, "AF-FUND")
    assert by_measure["facts"] == facts
    assert by_measure["facts_in_ledger"] > facts, "comparatives repeat, and one is of low confidence"
    releases = sum(
        everything.get(f"/v1/tenders?country={country}&limit=100000", paid).json()["count"]
        for country in ("ZA", "KE", "NG")
    )
    by_measure = measures(everything, paid, "AF-TENDER")
    assert by_measure["releases"] == releases
    assert by_measure["releases_in_ledger"] == releases + 1, "one was corrected"
