"""A repeated question is answered from memory: same bytes, only for those who may have them (ENV-5)."""

import httpx
import pytest

from sankofa.operations.contract import Operation
from tests.every import every
from tests.live import LiveServer
from tests.spec.mcp_messages import RETAILER, REVISIONS, call, used
from tests.spec.test_formats import SERVED, questions
from tests.torture import ALL_ROUNDS

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
TIMES = 4
"""The first is made, the second is kept, the others are taken from memory."""
OF_THE_MOMENT = ("ratelimit", "x-request-id", "date", "content-length")


def body_and_headers(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in OF_THE_MOMENT}
    body = answer.content if answer.status_code == 200 else b""  # a problem names the request
    return answer.status_code, body, headers


@pytest.mark.rule("ENV-5")
@every("operation", SERVED if ALL_ROUNDS else SERVED[::3])
def test_every_answer_is_the_same_when_it_is_asked_again(
    server: LiveServer, paid_key: str, sample_key: str, operation: Operation
) -> None:
    """Two tiers and three forms in turns, each of which has an answer of its own."""
    forms = [
        (key, {"accept": accept, "accept_encoding": encoding})
        for key in (paid_key, sample_key)
        for accept, encoding in (("*/*", "identity"), ("text/csv", "identity"), ("*/*", "gzip"))
    ]
    for path in questions(operation):
        first = [body_and_headers(server.get(path, key, **fields)) for key, fields in forms]
        for _ in range(TIMES - 1):
            again = [body_and_headers(server.get(path, key, **fields)) for key, fields in forms]
            assert again == first


def test_an_answer_from_memory_counts_and_is_refused_like_any_other(server: LiveServer) -> None:
    key = server.key("starter", "--per-minute", "3", "--per-month", "3")
    statuses = [server.get(ISSUER, key).status_code for _ in range(TIMES)]
    assert statuses == [200, 200, 200, 429]


def test_a_path_with_an_encoded_slash_is_another_question(server: LiveServer, paid_key: str) -> None:
    """Decoded they are the same path: the vintages of a series, and a series of that name."""
    plain, encoded = "/v1/series/CPI.ZA/vintages", "/v1/series/CPI.ZA%2Fvintages"
    assert [server.get(plain, paid_key).status_code for _ in range(TIMES)] == [200] * TIMES
    assert [server.get(encoded, paid_key).status_code for _ in range(TIMES)] == [404] * TIMES


def test_head_of_an_answer_from_memory_has_no_body(server: LiveServer, paid_key: str) -> None:
    whole = [server.get(ISSUER, paid_key, accept_encoding="identity") for _ in range(TIMES)]
    head = server.http.head(ISSUER, headers={"X-API-Key": paid_key, "Accept-Encoding": "identity"})
    assert head.content == b""
    assert head.headers["Content-Length"] == str(len(whole[-1].content))
    assert head.headers["ETag"] == whole[0].headers["ETag"]


@every("revision", REVISIONS)
def test_a_tool_gives_each_tier_its_own_answer_again_and_counts_it(server: LiveServer, revision: str) -> None:
    keys = [server.key(tier, "--per-month", "1000") for tier in ("starter", "sample")]
    arguments = {"service_id": RETAILER, "line_items": ["revenue"]}
    first = [call(server, "get_fundamentals", arguments, revision, key).json()["result"] for key in keys]
    for _ in range(TIMES - 1):
        again = [call(server, "get_fundamentals", arguments, revision, key).json()["result"] for key in keys]
        assert again == first
    assert [used(server, key, 1000) for key in keys] == [TIMES, TIMES]
