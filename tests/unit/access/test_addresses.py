"""What is counted by address, by a clock that is passed in."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.access.tiers import BUCKETS, AddressCounters, Visitors
from tests.loop import wait
from tests.unit.access.test_quotas import Clock, Counters

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
    """Who an address counts as, said in another way than the code does."""
    if not address:
        return ""
    parsed: IPv4Address | IPv6Address = ip_address(address)
    if address.startswith("::ffff:"):
        return address.removeprefix("::ffff:")
    return parsed.exploded[:19] if isinstance(parsed, IPv6Address) else address


def visitors(clock: Clock, store: Counters, secret: bytes = b"secret") -> Visitors:
    return Visitors(AddressCounters(store, clock, secret), PER_MINUTE, PER_DAY)  # type: ignore[arg-type]


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
        state, refusal = wait(counted.count(address))
        assert (refusal is None) == (in_minute[minute] <= PER_MINUTE and in_day[day] <= PER_DAY)
        assert f'"minute";r={max(PER_MINUTE - in_minute[minute], 0)};t={60 - now % 60}' in state.state
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
        wait(visitors(Clock("2026-03-01"), store, secret).count(str(address)))
    names = {name for name, _ in store.counts}
    assert all(0 <= int(name.removeprefix("visitor:")) < BUCKETS for name in names)
    assert not any(str(address) in name for name in names for address in addresses if address.version == 6)


def test_nobody_can_tell_without_the_secret_who_shares_a_counter() -> None:
    names = set()
    for secret in (b"one", b"two", b"three"):
        store = Counters()
        wait(visitors(Clock("2026-03-01"), store, secret).count("192.0.2.1"))
        names |= {name for name, _ in store.counts}
    assert len(names) == 3
