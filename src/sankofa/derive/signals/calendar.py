"""Months and quarters as numbers, and when one is closed.

A period is closed on its last day: its rows use nothing dated later. An edition holds a period only where
releases were captured on that day or after; a month captured half-way is not closed by the calendar alone.
"""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Final, NamedTuple

from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import ordinal

MONTHS_IN_A_QUARTER: Final = 3


class CalendarPeriod(NamedTuple):
    """A month or a quarter as rows name it."""

    name: str
    last_day: date


def month_number(day: str) -> int:
    """The month of a day or instant that begins YYYY-MM; months that follow each other differ by one."""
    return int(day[:4]) * 12 + int(day[5:7]) - 1


def quarter_number(day: str) -> int:
    """The quarter of a day or instant that begins YYYY-MM."""
    return month_number(day) // MONTHS_IN_A_QUARTER


@cache
def month(number: int) -> CalendarPeriod:
    year, index = divmod(number, 12)
    last = date(year, index + 1, monthrange(year, index + 1)[1])
    return CalendarPeriod(f"{year:04d}-{index + 1:02d}", last)


@cache
def quarter(number: int) -> CalendarPeriod:
    year, index = divmod(number, 4)
    last = month(number * MONTHS_IN_A_QUARTER + MONTHS_IN_A_QUARTER - 1).last_day
    return CalendarPeriod(f"{year:04d}-Q{index + 1}", last)


def captured_until(captures: Iterable[CaptureInfo]) -> int:
    """The last day on which any of these captures was made; 0 where there is none."""
    return ordinal(max((capture.observed_at[:10] for capture in captures), default="0001-01-01"))
