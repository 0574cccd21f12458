"""The pattern of days against the calendar itself, day by day."""

import re
from datetime import date, timedelta
from itertools import product

import pytest

from sankofa.model.days import real_days


def test_pattern_matches_exactly_the_days_there_are() -> None:
    """Every MM-DD that can be written, real or not, in every year near a century or a leap year."""
    matches = re.compile(real_days()).fullmatch
    years = {0, 1, 3, 4, 5, 99, 100, 400, 1899, 1900, 1999, 2000, 2023, 2024, 2025, 2100, 9996, 9999}
    for year, month, day in product(sorted(years), range(14), range(33)):
        expected = _is_day(year, month, day)
        assert bool(matches(f"{year:04}-{month:02}-{day:02}")) is expected, (year, month, day)


def test_pattern_matches_every_day_of_three_centuries() -> None:
    matches = re.compile(real_days()).fullmatch
    assert all(matches((date(1850, 1, 1) + timedelta(n)).isoformat()) for n in range(110_000))


def test_pattern_knows_every_leap_year() -> None:
    matches = re.compile(real_days()).fullmatch
    for year in range(10_000):
        assert bool(matches(f"{year:04}-02-29")) is _is_day(year, 2, 29)
        assert bool(matches(f"{year:04}-12-31")) is _is_day(year, 12, 31)


@pytest.mark.parametrize("text", ["", "2024-1-01", "2024-01-1", "02024-01-01", "2024-01-01 ", "٢٠٢٤-01-01"])
def test_pattern_refuses_other_writings(text: str) -> None:
    assert not re.fullmatch(real_days(), text)


def test_pattern_stays_small_enough_to_print() -> None:
    assert len(real_days()) < 700


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
