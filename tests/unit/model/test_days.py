"""Days are written YYYY-MM-DD and nothing else."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.days import FOREVER, REAL_DAYS, instant, ordinal, parse_day
from tests.every import every


@given(st.dates())
def test_a_day_is_read_as_it_is_written(day: date) -> None:
    assert parse_day(day.isoformat()) == day
    assert re.fullmatch(REAL_DAYS, day.isoformat())
    assert ordinal(day.isoformat()) == day.toordinal() < FOREVER


@every(
    "text", ["0000-01-01", "1900-02-29", "2023-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-01-00"]
)
def test_the_pattern_of_days_has_no_day_that_the_calendar_has_not(text: str) -> None:
    assert not re.fullmatch(REAL_DAYS, text)


@every(
    "text",
    [
        *("", "2024", "2024-1-1", "20240101", "2024-W01-1", "2024-01-01T00:00:00", " 2024-01-01"),
        *("2024-01-01\n", "+2024-01-01", "\u0662\u0660\u0662\u0664-01-01", "2024/01/01", "01-01-2024"),
    ],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a date as YYYY-MM-DD"):
        parse_day(text)


@every("text", ["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "0000-01-01"])
def test_a_day_that_never_was_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no such day"):
        parse_day(text)


def test_an_instant_is_told_in_utc_to_the_second() -> None:
    moment = datetime(2024, 1, 1, 1, 2, 3, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert instant(moment) == "2023-12-31T23:02:03Z"
    assert datetime.fromisoformat(instant(moment)).tzinfo == UTC
