"""Quotas: every authenticated request counts once (contract: KEY-5, KEY-6)."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection

import httpx
import pytest

from tests.every import every
from tests.live import Copies, LiveServer
from tests.patience import PATIENCE, in_one_minute
from tests.wire import exchange, request

ID = "DC46AF1B1AAA424B58D1368176"
ISSUER = f"/v1/fundamentals/{ID}"
ENTITY = f"/v1/entities/{ID}"
NOBODY = "/v1/entities/DC000000000000000000000000"
POLICY = re.compile(r'"minute";q=(\d+);w=60, "month";q=(\d+);w=(\d+)')
STATE = re.compile(r'"minute";r=(\d+);t=(\d+), "month";r=(\d+);t=(\d+)')
DAY = 86400


def at_once(server: LiveServer, key: str, times: int) -> list[tuple[int, str]]:
    """Status and RateLimit of that many requests, sixteen at a time, each on its own connection."""

    def ask(_: int) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", ENTITY, headers={"X-API-Key": key})
        answer = connection.getresponse()
        connection.close()
        return answer.status, answer.headers["RateLimit"]

    with ThreadPoolExecutor(16) as clients:
        return list(clients.map(ask, range(times)))


def state(answer: httpx.Response | str) -> tuple[int, int, int, int]:
    """The rest of the minute's quota and when it starts again, and the same for the month."""
    match = STATE.fullmatch(answer if isinstance(answer, str) else answer.headers["RateLimit"])
    assert match
    minute, minute_ends, month, month_ends = map(int, match.groups())
    return minute, minute_ends, month, month_ends


def month_left(server: LiveServer, key: str) -> int:
    """The rest of a key's monthly quota, from the answer to a request that counts too."""
    return state(server.get(ENTITY, key))[2]


@pytest.mark.rule("KEY-6")
@in_one_minute
def test_exactly_the_quota_is_admitted_across_workers(copy_sample: Copies) -> None:
    quota, requests = 40, 100
    with LiveServer(copy_sample(), workers=4) as live:
        for position, window in ((0, "minute"), (2, "month")):
            key = live.key("starter", f"--per-{window}", str(quota))
            answers = at_once(live, key, requests)
            assert Counter(status for status, _ in answers) == {200: quota, 429: requests - quota}
            admitted = sorted(state(limit)[position] for status, limit in answers if status == 200)
            assert admitted == list(range(quota))
            assert {state(limit)[position] for status, limit in answers if status == 429} == {0}
            assert live.get(ENTITY, key).status_code == 429


@pytest.mark.rule("ENV-5")
def test_the_policy_states_the_quota_of_each_window(server: LiveServer) -> None:
    key = server.key("starter", "--per-minute", "7", "--per-month", "9")
    match = POLICY.fullmatch(server.get(ENTITY, key).headers["RateLimit-Policy"])
    assert match
    minute, month, length = map(int, match.groups())
    assert (minute, month) == (7, 9)
    assert length in {28 * DAY, 29 * DAY, 30 * DAY, 31 * DAY}


@pytest.mark.rule("KEY-14")
@every(("tier", "minute", "month"), [("starter", 300, 100_000), ("professional", 1_200, 2_000_000)])
def test_each_tier_has_its_own_quota(server: LiveServer, tier: str, minute: int, month: int) -> None:
    policy = server.get(ENTITY, server.key(tier)).headers["RateLimit-Policy"]
    assert policy.startswith(f'"minute";q={minute};w=60, "month";q={month};')


@in_one_minute
def test_the_state_counts_down_to_the_end_of_each_window(server: LiveServer) -> None:
    key = server.key("starter", "--per-minute", "5", "--per-month", "50")
    before = datetime.now(UTC)
    states = [state(server.get(ENTITY, key)) for _ in range(3)]
    after = datetime.now(UTC)
    assert [(minute, month) for minute, _, month, _ in states] == [(4, 49), (3, 48), (2, 47)]
    next_month = datetime(before.year + before.month // 12, before.month % 12 + 1, 1, tzinfo=UTC)
    for _, minute_ends, _, month_ends in states:
        assert 60 - after.second <= minute_ends <= 60 - before.second
        assert (next_month - after).total_seconds() - 1 <= month_ends
        assert month_ends <= (next_month - before).total_seconds() + 1


@pytest.mark.rule("KEY-6")
@in_one_minute
def test_a_429_says_when_to_retry(server: LiveServer) -> None:
    minute = server.key("starter", "--per-minute", "1")
    month = server.key("starter", "--per-month", "1")
    for key in (minute, month):
        assert server.get(ENTITY, key).status_code == 200
    refused = server.get(ENTITY, minute)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) == state(refused)[1]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    refused = server.get(ENTITY, month)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) == state(refused)[3]


COUNTED = {
    "an answer": ISSUER,
    "a bad parameter": f"{ISSUER}?as_of=x",
    "an unknown parameter": f"{ENTITY}?x=1",
    "an unknown record": NOBODY,
    "a malformed id": "/v1/fundamentals/no-such-id",
}
"""With `If-None-Match: *`, so that the answer is a 304."""
NOT_COUNTED = "/nothing /v1/fundamentals /health /v1/status /openapi.json /problems/not-found".split()


@pytest.fixture(scope="module")
def counting_key(server: LiveServer) -> str:
    return server.key("professional")


@pytest.mark.rule("KEY-5")
@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_authenticated_request_counts_once_whatever_its_outcome(
    server: LiveServer, counting_key: str, name: str, method: str
) -> None:
    before = month_left(server, counting_key)
    fields = {"X-API-Key": counting_key, "If-None-Match": "*"}
    answer = server.http.request(method, COUNTED[name], headers=fields)
    assert (answer.status_code == 304) is (name == "an answer")
    assert state(answer)[2] == before - 1
    assert month_left(server, counting_key) == before - 2


@in_one_minute
def test_a_429_counts_too(server: LiveServer) -> None:
    key = server.key("starter", "--per-minute", "1", "--per-month", "100")
    answers = [server.get(ENTITY, key) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 429, 429, 429]
    assert [state(answer)[2] for answer in answers] == [99, 98, 97, 96]


@every("path", NOT_COUNTED)
def test_open_paths_do_not_count(server: LiveServer, counting_key: str, path: str) -> None:
    before = month_left(server, counting_key)
    assert "RateLimit" not in server.get(path, counting_key).headers
    assert month_left(server, counting_key) == before - 1


def test_wrong_methods_and_refused_keys_do_not_count(server: LiveServer, counting_key: str) -> None:
    before = month_left(server, counting_key)
    for method in ("POST", "DELETE", "OPTIONS"):
        answer = server.http.request(method, ENTITY, headers={"X-API-Key": counting_key})
        assert answer.status_code in (204, 405)
    exchange(server.port, request(ENTITY, "Host: x", f"X-API-Key: {counting_key}", "X-API-Key: x"))
    assert month_left(server, counting_key) == before - 1


def test_the_count_survives_a_restart(copy_sample: Copies) -> None:
    with LiveServer(copy_sample()) as live:
        key = live.key("starter", "--per-month", "3")
        assert [live.get(ENTITY, key).status_code for _ in range(2)] == [200, 200]
        live.stop()
        live.start()
        assert [live.get(ENTITY, key).status_code for _ in range(2)] == [200, 429]
