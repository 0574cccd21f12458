"""The pattern of days against the calendar itself, day by day."""

import re
from datetime import date, timedelta
from itertools import product

import pytest

from sankofa.model.day_patterns import pattern_until

BOUNDS = [
    date(1, 1, 1),
    date(1, 12, 31),
    date(2, 1, 1),
    date(4, 2, 28),
    date(4, 2, 29),
    date(1900, 2, 28),
    date(2000, 2, 29),
    date(2024, 2, 28),
    date(2024, 2, 29),
    date(2024, 12, 30),
    date(2024, 12, 31),
    date(2025, 1, 1),
    date(2026, 10, 10),
    date(2100, 3, 1),
    date.max,
]


@pytest.mark.parametrize("last", BOUNDS, ids=str)
def test_pattern_matches_exactly_the_days_until_its_bound(last: date) -> None:
    """Every MM-DD that can be written, real or not, in every year near a bound, a century or a leap year."""
    matches = re.compile(pattern_until(last)).fullmatch
    near = {last.year + n for n in range(-2, 5)} | {0, 1, 4, 100, 400, 1900, 2000, 2100, 9999}
    for year, month, day in product(sorted(y for y in near if 0 <= y <= 9999), range(14), range(33)):
        expected = _is_day(year, month, day) and date(year, month, day) <= last
        assert bool(matches(f"{year:04}-{month:02}-{day:02}")) is expected, (year, month, day)


def test_pattern_matches_every_day_from_the_first_to_its_bound_and_none_of_the_year_after() -> None:
    last = date(2026, 10, 10)
    matches = re.compile(pattern_until(last)).fullmatch
    days = (last - date.min).days + 1
    assert all(matches((date.min + timedelta(n)).isoformat()) for n in range(days))
    assert not any(matches((last + timedelta(n)).isoformat()) for n in range(1, 400))


def test_pattern_without_a_bound_knows_every_leap_year() -> None:
    matches = re.compile(pattern_until()).fullmatch
    for year in range(10_000):
        assert bool(matches(f"{year:04}-02-29")) is _is_day(year, 2, 29)
        assert bool(matches(f"{year:04}-12-31")) is _is_day(year, 12, 31)


@pytest.mark.parametrize("text", ["", "2024-1-01", "2024-01-1", "02024-01-01", "2024-01-01 ", "٢٠٢٤-01-01"])
def test_pattern_refuses_other_writings(text: str) -> None:
    assert not re.fullmatch(pattern_until(), text)


def test_pattern_stays_small_enough_to_print() -> None:
    assert all(len(pattern_until(last)) < 700 for last in BOUNDS)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
