"""The client retries when the service says that this may help, and gives up in the end."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sankofa.client import AsyncClient, Client, ConnectionFailed, QuotaExceeded, Retries, Unavailable
from sankofa.client.exchange import retry_after
from tests.client.conftest import Scripted

ANSWER = (
    200,
    {"Content-Type": "application/json"},
    b'{"data":[],"count":0,"_license":"","edition":"e","truncated":false}',
)


def refused(status: int, after: str | None = None) -> tuple[int, dict[str, str], bytes]:
    headers = {} if after is None else {"Retry-After": after}
    return status, headers, b'{"detail":"not now"}'


@pytest.mark.parametrize("status", [429, 503])
def test_the_client_waits_as_long_as_retry_after_says(scripted: Scripted, status: int) -> None:
    scripted.answers = [refused(status, "7"), ANSWER]
    waited: list[float] = []
    with Client("k", scripted.url, sleep=waited.append) as client:
        assert client.get_export().count == 0
    assert waited == [7.0]
    assert [path for path, _ in scripted.requests] == ["/v1/export"] * 2


def test_the_async_client_waits_too(scripted: Scripted) -> None:
    scripted.answers = [refused(503, "3"), None, ANSWER]
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def ask() -> int:
        async with AsyncClient("k", scripted.url, sleep=sleep) as client:
            return (await client.get_export()).count

    assert asyncio.run(ask()) == 0
    assert waited == [3.0, 1.0]


def test_a_broken_connection_is_retried_with_growing_pauses(scripted: Scripted) -> None:
    scripted.answers = [None, None, None, ANSWER]
    waited: list[float] = []
    with Client("k", scripted.url, sleep=waited.append) as client:
        assert client.get_export().count == 0
    assert waited == [0.5, 1.0, 2.0]


def test_attempts_are_bounded(scripted: Scripted) -> None:
    scripted.answers = [refused(503, "1")] * 3
    waited: list[float] = []
    retries = Retries(attempts=3)
    with (
        Client("k", scripted.url, retries=retries, sleep=waited.append) as client,
        pytest.raises(Unavailable, match="not now") as raised,
    ):
        client.get_export()
    assert (waited, scripted.answers) == ([1.0, 1.0], [])
    assert raised.value.retry_after == 1.0


def test_a_retry_after_above_the_longest_wait_fails_at_once(scripted: Scripted) -> None:
    scripted.answers = [refused(429, "50"), refused(429, "50")]
    waited: list[float] = []
    with Client("k", scripted.url, sleep=waited.append) as client, pytest.raises(QuotaExceeded) as raised:
        client.get_export()
    assert (waited, raised.value.retry_after) == ([50.0], 50.0)


def test_connecting_times_out(scripted: Scripted) -> None:
    scripted.answers = [None, None]
    retries = Retries(attempts=2)
    with (
        Client("k", scripted.url, retries=retries, sleep=lambda _: None) as client,
        pytest.raises(ConnectionFailed),
    ):
        client.get_export()


@pytest.mark.parametrize("status", [400, 401, 402, 404, 410, 500])
def test_permanent_errors_are_not_retried(scripted: Scripted, status: int) -> None:
    scripted.answers = [refused(status)]
    with Client("k", scripted.url) as client, pytest.raises(Exception, match="not now"):
        client.get_export()
    assert len(scripted.requests) == 1


def test_a_degraded_status_is_an_answer(scripted: Scripted) -> None:
    scripted.answers = [(503, {"Retry-After": "1"}, b'{"status":"degraded"}')]
    with Client(None, scripted.url) as client:
        assert client.get_status() == {"status": "degraded"}
    assert "x-api-key" not in scripted.requests[0][1]


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    in_a_minute = format_datetime(now + timedelta(seconds=60), usegmt=True)
    assert retry_after({"retry-after": "5"}, now) == 5.0
    assert retry_after({"retry-after": in_a_minute}, now) == 60.0
    assert retry_after({"retry-after": format_datetime(now - timedelta(days=1), usegmt=True)}, now) == 0.0
    assert retry_after({"retry-after": "soon"}, now) is None
    assert retry_after({}, now) is None
