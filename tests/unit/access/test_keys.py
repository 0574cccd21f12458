"""Keys: only a hash is stored, and the store's current record counts."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.access.keys import Keys
from sankofa.access.records import Cursors, Position, SealedRecords
from sankofa.access.tiers import BUCKETS, Addresses, Grant, Quotas, RateState, Usage
from sankofa.engines.keyvalue import Window
from sankofa.model.errors import InvalidParameter, OperatorError, RateLimited, StoreUnavailable, Unauthorized
from sankofa.settings import Settings
from tests.every import every
from tests.patience import wait


class Values:
    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.down = False

    async def get(self, name: str) -> bytes | None:
        if self.down:
            raise StoreUnavailable("key store")
        return self.stored.get(name)

    async def put(self, name: str, value: bytes) -> None:
        self.stored[name] = value

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        if self.stored.get(name) != expected:
            return False
        self.stored[name] = value
        return True

    async def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.stored if name.startswith(prefix))

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        raise AssertionError("keys are not counted here")

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        raise AssertionError("keys are not counted here")

    async def ping(self) -> None: ...

    async def probe_counting(self) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture
def values() -> Values:
    return Values()


@pytest.fixture
def keys(values: Values) -> Keys:
    return Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: datetime(2026, 1, 1, tzinfo=UTC))


def test_a_revoked_sandbox_key_stays_revoked(keys: Keys) -> None:
    granted = asyncio.run(keys.authenticate("sankofa-sandbox"))
    asyncio.run(keys.revoke(granted.key_id))
    with pytest.raises(Unauthorized):
        asyncio.run(keys.authenticate("sankofa-sandbox"))


def test_the_sandbox_key_can_be_turned_off(values: Values) -> None:
    keys = Keys(
        SealedRecords(values, [b"secret"]), Settings(sandbox_key=""), lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    for key in ("", "sankofa-sandbox"):
        with pytest.raises(Unauthorized):
            asyncio.run(keys.authenticate(key))


def test_an_expired_key_is_refused_from_the_next_day_with_the_reason(values: Values) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: now[0])
    key = asyncio.run(keys.create("starter", last_day=date(2026, 3, 31)))
    assert asyncio.run(keys.authenticate(key)).expires_at == "2026-03-31T23:59:59Z"
    now[0] = datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    asyncio.run(keys.authenticate(key))
    now[0] = datetime(2026, 4, 1, tzinfo=UTC)
    with pytest.raises(Unauthorized, match="expired at 2026-03-31T23:59:59Z"):
        asyncio.run(keys.authenticate(key))
    with pytest.raises(Unauthorized) as failure:
        asyncio.run(keys.authenticate(key + "x"))
    assert "expired" not in failure.value.detail
    with pytest.raises(OperatorError, match="is over"):
        asyncio.run(keys.create("starter", last_day=date(2026, 3, 31)))


def test_a_replaced_key_ends_after_the_overlap_and_never_later_than_it_would_have(values: Values) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: now[0])

    async def rotate(key: str, overlap: timedelta) -> tuple[str, str | None]:
        new_key, old, new = await keys.replace(key)
        return new_key, (await keys.expire(old, new, overlap)).expires_at

    key = asyncio.run(keys.create("starter", "a desk", per_month=7, last_day=date(2026, 1, 20)))
    second, ended = asyncio.run(rotate(key, timedelta(days=7)))
    assert ended == "2026-01-08T00:00:00Z"
    with pytest.raises(OperatorError, match="was replaced by"):
        asyncio.run(keys.replace(key))
    third, ended = asyncio.run(rotate(second, timedelta(days=70)))
    assert ended == "2026-01-20T23:59:59Z"
    grants = [asyncio.run(keys.authenticate(one)) for one in (key, second, third)]
    assert {grant.counter for grant in grants} == {f"use:{grants[0].key_id}"}
    assert {(grant.tier, grant.per_month) for grant in grants} == {("starter", 7)}
    now[0] = datetime(2026, 1, 9, tzinfo=UTC)
    with pytest.raises(Unauthorized, match="expired"):
        asyncio.run(keys.authenticate(key))
    assert asyncio.run(keys.authenticate(third)).expires_at == "2026-01-20T23:59:59Z"


class Interrupted(Values):
    """Something else changes the record between reading and writing it."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []

    async def get(self, name: str) -> bytes | None:
        stored = await super().get(name)
        if name.startswith("key:") and self.meanwhile:
            await self.meanwhile.pop()()
        return stored


@every("command", ["reseal", "expire", "revoke"])
def test_a_revocation_survives_a_concurrent_change(command: str) -> None:
    values = Interrupted()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    before = Keys(SealedRecords(values, [b"old"]), Settings(), lambda: now)
    after = Keys(SealedRecords(values, [b"new", b"old"]), Settings(), lambda: now + timedelta(days=1))

    async def scene() -> None:
        key = await before.create("starter")
        record = await before.find(key)
        _, old, new = await before.replace(key)
        values.meanwhile = [lambda: before.revoke(record.id)]
        changes = {
            "reseal": after.sealed.reseal,
            "expire": lambda: after.expire(old, new, timedelta(hours=1)),
            "revoke": lambda: after.revoke(key),
        }
        await changes[command]()
        assert not values.meanwhile
        record_after = await after.find(key)
        assert record_after.revoked_at == "2026-01-01T00:00:00Z"
        assert (record_after.replaced_by == new.id) == (command == "expire")
        with pytest.raises(Unauthorized):
            await after.authenticate(key)

    asyncio.run(scene())


POSITION = Position("20260101T000000Z-0123456789", "country=ZA", (20240630, "ocds-1", 7))
CURSORS = Cursors([b"secret"])
ISSUED = CURSORS.issue(POSITION)


def test_a_cursor_is_opaque_and_safe_in_a_url() -> None:
    assert ISSUED.replace("-", "").replace("_", "").isalnum()
    assert "country" not in ISSUED


@every("at", range(len(ISSUED)))
def test_an_altered_cursor_is_refused(at: int) -> None:
    other = "A" if ISSUED[at] != "A" else "B"
    with pytest.raises(InvalidParameter) as refused:
        CURSORS.read(ISSUED[:at] + other + ISSUED[at + 1 :], POSITION.filters)
    assert refused.value.parameter == "cursor"


@every(
    "cursor",
    [
        "",
        "=",
        "a",
        "====",
        ISSUED[:-1],
        ISSUED + "A",
        ISSUED + "=",
        ISSUED + "\n",
        " " + ISSUED,
        ISSUED * 2,
        "\xe9",
        "a b",
    ],
)
def test_a_cursor_that_was_never_issued_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParameter):
        CURSORS.read(cursor, POSITION.filters)


@given(st.text(max_size=200))
def test_any_text_as_a_cursor_is_just_refused(cursor: str) -> None:
    with pytest.raises(InvalidParameter):
        CURSORS.read(cursor, POSITION.filters)


def test_rotating_secrets_does_not_break_paging() -> None:
    rotated = Cursors([b"new", b"secret"])
    assert rotated.read(ISSUED, POSITION.filters) == POSITION
    issued = rotated.issue(POSITION)
    assert Cursors([b"new"]).read(issued, POSITION.filters) == POSITION
    with pytest.raises(InvalidParameter):
        CURSORS.read(issued, POSITION.filters)
    with pytest.raises(InvalidParameter):
        Cursors([b"new"]).read(ISSUED, POSITION.filters)


DAY = 86400


class Clock:
    def __init__(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Counters:
    """A KeyValue in memory that only counts."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.seconds_kept: dict[str, int] = {}
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
            self.seconds_kept[window.name] = window.seconds
        return tuple(self.counts[name, window.name] for window in windows)


def grant(per_minute: int = 2, per_month: int = 5) -> Grant:
    return Grant("id", "starter", 10, 10, per_minute, per_month, "https://upgrade.example")


class Counting:
    """Quotas over counters in memory."""

    def __init__(self, at: str) -> None:
        self.clock, self.counters = Clock(at), Counters()
        self._quotas = Quotas(self.counters, self.clock)  # type: ignore[arg-type]

    def count(self, of: Grant, times: int = 1) -> tuple[Usage, RateLimited | None]:
        """The answer to the last of so many requests."""
        return [asyncio.run(self._quotas.count(of)) for _ in range(times)][-1]


def rate_limit_of(counted: RateState) -> str:
    return dict(counted.headers)[b"ratelimit"].decode()


@pytest.mark.rule("KEY-6")
def test_a_new_minute_begins_on_the_minute() -> None:
    counting = Counting("2026-11-15T10:20:59.999999")
    usage, refusal = counting.count(grant(), times=3)
    assert refusal is not None
    assert refusal.retry_after == 1
    counting.clock.now += timedelta(microseconds=1)
    usage, refusal = counting.count(grant())
    assert refusal is None
    assert rate_limit_of(usage).startswith('"minute";r=1;t=60')


def test_the_month_is_reported_before_the_minute() -> None:
    counting = Counting("2026-11-15T10:20:30")
    _, refusal = counting.count(grant(), times=6)
    assert refusal is not None
    assert "month" in refusal.detail
    assert refusal.retry_after == (datetime(2026, 12, 1, tzinfo=UTC) - counting.clock.now).total_seconds()


@pytest.mark.rule("KEY-6")
@every(
    ("at", "days", "seconds_left"),
    [
        ("2026-11-15T00:00:00", 30, 16 * DAY),
        ("2026-12-31T23:59:59", 31, 1),
        ("2024-02-29T23:59:00", 29, 60),
        ("2026-02-01T00:00:00", 28, 28 * DAY),
        ("2027-01-01T00:00:00", 31, 31 * DAY),
    ],
)
def test_a_month_is_a_calendar_month(at: str, days: int, seconds_left: int) -> None:
    usage, _ = Counting(at).count(grant())
    assert usage.policy.endswith(f'"month";q=5;w={days * DAY}')
    assert rate_limit_of(usage).endswith(f'"month";r=4;t={seconds_left}')


def test_a_counter_is_kept_longer_than_its_window() -> None:
    counting = Counting("2026-12-01T00:00:00")
    counting.count(grant())
    minute, month = sorted(counting.counters.seconds_kept.values())
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


def test_a_store_that_cannot_write_the_day_stops_no_request() -> None:
    counting = Counting("2026-11-15T12:00:00")

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("usage store")

    counting.counters.put = unavailable  # type: ignore[assignment, method-assign]
    assert asyncio.run(counting._quotas.count(grant()))[1] is None


PER_MINUTE, PER_DAY = 3, 7
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
ADDRESSES = (
    "192.0.2.1",
    "192.0.2.2",
    "2001:db8::1",
    "2001:db8::ffff:1",
    "2001:db8:0:1::1",
    "::ffff:192.0.2.1",
    "",
)
"""The third and fourth share a /64, the first and the sixth are one."""


def subscriber(address: str) -> str:
    """The network that an address counts as, computed differently than in the code."""
    if not address:
        return ""
    parsed: IPv4Address | IPv6Address = ip_address(address)
    if address.startswith("::ffff:"):
        return address.removeprefix("::ffff:")
    return parsed.exploded[:19] if isinstance(parsed, IPv6Address) else address


def visitors(clock: Clock, store: Counters, secret: bytes = b"secret") -> Addresses:
    return Addresses(store, clock, secret, PER_MINUTE, PER_DAY)  # type: ignore[arg-type]


@pytest.mark.rule("WEB-14")
@given(st.lists(st.tuples(st.sampled_from(ADDRESSES), st.integers(0, 40_000)), max_size=60))
def test_each_subscriber_gets_its_pages_a_minute_and_a_day_whatever_the_others_do(
    visits: list[tuple[str, int]],
) -> None:
    clock, store = Clock(MIDNIGHT.replace(tzinfo=None).isoformat()), Counters()
    counted = visitors(clock, store)
    in_minute: Counter[tuple[str, int]] = Counter()
    in_day: Counter[tuple[str, int]] = Counter()
    for address, later in visits:
        clock.now += timedelta(seconds=later % 90 if later % 7 else later)
        now = int(clock.now.timestamp())
        minute, day = (subscriber(address), now // 60), (subscriber(address), now // 86_400)
        in_minute[minute] += 1
        in_day[day] += 1
        state, refusal = wait(counted.visit(address))
        assert (refusal is None) == (in_minute[minute] <= PER_MINUTE and in_day[day] <= PER_DAY)
        assert f'"minute";r={max(PER_MINUTE - in_minute[minute], 0)};t={60 - now % 60}' in rate_limit_of(
            state
        )
        if refusal is not None:
            ends = 86_400 - now % 86_400 if in_day[day] > PER_DAY else 60 - now % 60
            assert refusal.retry_after == ends
            assert "without a key" in refusal.detail


@given(st.lists(st.ip_addresses(), min_size=1, max_size=50), st.binary(min_size=1, max_size=40))
def test_no_address_makes_a_counter_beyond_the_buckets(
    addresses: list[IPv4Address | IPv6Address], secret: bytes
) -> None:
    store = Counters()
    for address in addresses:
        wait(visitors(Clock("2026-03-01"), store, secret).visit(str(address)))
    names = {name for name, _ in store.counts}
    assert all(0 <= int(name.removeprefix("visitor:")) < BUCKETS for name in names)
    assert not any(str(address) in name for name in names for address in addresses if address.version == 6)


def test_shared_counters_cannot_be_predicted_without_the_secret() -> None:
    names = set()
    for secret in (b"one", b"two", b"three"):
        store = Counters()
        wait(visitors(Clock("2026-03-01"), store, secret).visit("192.0.2.1"))
        names |= {name for name, _ in store.counts}
    assert len(names) == 3
