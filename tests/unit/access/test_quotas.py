"""Fixed UTC minutes and UTC calendar months, by a clock that is passed in."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from sankofa.access.tiers import Grant, Quotas, Usage
from sankofa.engines.keyvalue import Window
from sankofa.model.errors import RateLimited, StoreUnavailable
from tests.every import every

DAY = 86400


class Clock:
    def __init__(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Counters:
    """A KeyValue in memory, as far as counting needs one."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.kept: dict[str, int] = {}
        self.puts: list[tuple[str, bytes]] = []
        self.gets = 0

    async def get(self, name: str) -> bytes | None:
        self.gets += 1
        return dict(self.puts).get(name)

    async def put(self, name: str, value: bytes) -> None:
        self.puts.append((name, value))

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        for window in windows:
            self.counts[name, window.name] += 1
            self.kept[window.name] = window.seconds
        return tuple(self.counts[name, window.name] for window in windows)


def grant(per_minute: int = 2, per_month: int = 5) -> Grant:
    return Grant("id", "starter", 10, 10, per_minute, per_month, "https://upgrade.example")


class Counting:
    """Quotas over counters in memory."""

    def __init__(self, at: str) -> None:
        self.clock, self.counters = Clock(at), Counters()
        self._quotas = Quotas(self.counters, self.clock)  # type: ignore[arg-type]

    def count(self, of: Grant, times: int = 1) -> tuple[Usage, RateLimited | None]:
        """What the last of so many requests was told."""
        return [asyncio.run(self._quotas.count(of)) for _ in range(times)][-1]


@pytest.mark.rule("KEY-6")
def test_a_new_minute_begins_on_the_minute() -> None:
    counting = Counting("2026-11-15T10:20:59.999999")
    usage, refusal = counting.count(grant(), times=3)
    assert refusal is not None
    assert refusal.retry_after == 1
    counting.clock.now += timedelta(microseconds=1)
    usage, refusal = counting.count(grant())
    assert refusal is None
    assert usage.state.startswith('"minute";r=1;t=60')


def test_the_month_is_told_before_the_minute() -> None:
    counting = Counting("2026-11-15T10:20:30")
    _, refusal = counting.count(grant(), times=6)
    assert refusal is not None
    assert "month" in refusal.detail
    assert refusal.retry_after == (datetime(2026, 12, 1, tzinfo=UTC) - counting.clock.now).total_seconds()


@pytest.mark.rule("KEY-6")
@every(
    ("at", "days", "left"),
    [
        ("2026-11-15T00:00:00", 30, 16 * DAY),
        ("2026-12-31T23:59:59", 31, 1),
        ("2024-02-29T23:59:00", 29, 60),
        ("2026-02-01T00:00:00", 28, 28 * DAY),
        ("2027-01-01T00:00:00", 31, 31 * DAY),
    ],
)
def test_a_month_is_a_calendar_month(at: str, days: int, left: int) -> None:
    usage, _ = Counting(at).count(grant())
    assert usage.policy.endswith(f'"month";q=5;w={days * DAY}')
    assert usage.state.endswith(f'"month";r=4;t={left}')


def test_a_new_month_begins_with_the_whole_cap() -> None:
    counting = Counting("2026-12-31T23:59:59")
    _, refusal = counting.count(grant(per_minute=100), times=6)
    assert refusal is not None
    assert refusal.retry_after == 1
    counting.clock.now += timedelta(seconds=1)
    assert counting.count(grant(per_minute=100))[1] is None


def test_a_counter_is_kept_longer_than_its_window() -> None:
    counting = Counting("2026-12-01T00:00:00")
    counting.count(grant())
    minute, month = sorted(counting.counters.kept.values())
    assert minute >= 60
    assert month >= 31 * DAY


def test_the_day_of_last_use_is_written_once_a_day_by_the_first_process_that_sees_it() -> None:
    counting = Counting("2026-11-15T23:59:00")
    other = Quotas(counting.counters, counting.clock)  # type: ignore[arg-type]

    async def use(quotas: Quotas) -> None:
        await quotas.count(grant(1000, 1000))

    for _ in range(3):
        asyncio.run(use(counting._quotas))
        asyncio.run(use(other))
    assert counting.counters.puts == [("used:id", b"2026-11-15")]
    assert counting.counters.gets == 2, "each process looks once a day"
    counting.clock.now += timedelta(minutes=1)
    asyncio.run(use(counting._quotas))
    assert counting.counters.puts[1:] == [("used:id", b"2026-11-16")]


def test_a_store_that_takes_no_day_stops_no_request() -> None:
    counting = Counting("2026-11-15T12:00:00")

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("usage store")

    counting.counters.put = unavailable  # type: ignore[assignment, method-assign]
    assert asyncio.run(counting._quotas.count(grant()))[1] is None
