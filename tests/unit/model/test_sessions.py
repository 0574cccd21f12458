"""The bundled table of sessions against the calendars that it was written from."""

import random
from datetime import UTC, date, datetime, timedelta

import exchange_calendars  # type: ignore[import-untyped]
import pytest

from sankofa.model.days import sessions, tradable_from
from tests.every import every


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pandas.errors.PandasChangeWarning")
@every("mic", ["XJSE", "XNYS", "XLON", "XHKG"])
def test_sessions_are_those_of_exchange_calendars(mic: str) -> None:
    calendar = exchange_calendars.get_calendar(mic, start="2005-01-01", end="2026-12-31")
    own = sessions(mic)
    assert own is not None
    chance = random.Random(20260101)
    for _ in range(300):
        day = date(2005, 1, 10) + timedelta(days=chance.randrange(7890))
        assert own.after(day) == calendar.date_to_session(str(day + timedelta(days=1)), "next").date()
        at = datetime.combine(day, datetime.min.time(), UTC) + timedelta(minutes=chance.randrange(1440))
        assert own.after(date(2005, 1, 3), at) == calendar.next_open(at).tz_convert(calendar.tz).date()


def test_exchanges_are_known_by_their_names_and_codes() -> None:
    friday = date(2024, 5, 24)
    assert tradable_from("JSE", friday, None) == tradable_from("XJSE", friday, None) == date(2024, 5, 27)
    assert tradable_from("NASDAQ", friday, None) == tradable_from("NYSE", friday, None) == date(2024, 5, 28)
    assert tradable_from("EGX", friday, None) == date(2024, 5, 26)  # Sunday
    assert tradable_from("NOWHERE", friday, None) is None
    # Beside a holiday by the moon: declared in 2024, estimated in 2010.
    assert tradable_from("XNAI", date(2024, 4, 9), None) == date(2024, 4, 11)
    assert tradable_from("XNAI", date(2010, 9, 8), None) is None
    assert tradable_from("XNAI", date(2010, 9, 13), None) == date(2010, 9, 14)
    assert tradable_from("JSE", date(2050, 1, 1), None) is None
    assert tradable_from("JSE", date(1950, 1, 1), None) is None
