"""Sessions of stock exchanges: the first day on which one could trade on something that became public.

The table `sessions.toml` is written by tools/sessions.py from published calendars. Each entry names its
source.
"""

import tomllib
from bisect import bisect_right
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final
from zoneinfo import ZoneInfo

from sankofa.model.identifiers import market_codes

_DAY: Final = timedelta(days=1)


class Sessions:
    """The sessions of one market."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self._zone = ZoneInfo(entry["zone"])
        self._first: date = entry["first"]
        self._last: date = entry["last"]
        self._weekdays = frozenset(entry["weekdays"])
        self._opens = [(date.fromisoformat(day), time.fromisoformat(clock)) for day, clock in entry["open"]]
        self._unusual = frozenset((*_days(entry["closed"]), *_days(entry["extra"])))

    def after(self, day: date, instant: datetime | None = None) -> date | None:
        """The first session that opens after an instant, on its day of publication or later; without an
        instant, the first session of a later day. None outside of the days that the table has."""
        session = day + _DAY if instant is None else max(day, instant.astimezone(self._zone).date())
        if session < self._first:
            return None
        while session <= self._last:
            if self._is_session(session) and (instant is None or self._opening(session) > instant):
                return session
            session += _DAY
        return None

    def _is_session(self, day: date) -> bool:
        return (day.weekday() in self._weekdays) != (day in self._unusual)

    def _opening(self, day: date) -> datetime:
        number = bisect_right(self._opens, day, key=lambda one: one[0]) - 1
        return datetime.combine(day, self._opens[number][1], self._zone)


def _days(written: str) -> list[date]:
    years = (year.split() for year in written.split(";") if written)
    return [date(int(year), int(day[:2]), int(day[2:])) for year, *days in years for day in days]


@cache
def _table() -> dict[str, dict[str, Any]]:
    """The entry of each market, under every code that it stands for."""
    entries = tomllib.loads(files("sankofa.model").joinpath("sessions.toml").read_text("utf-8"))
    return {code: entry for mic, entry in entries.items() for code in (mic, *entry.get("also", ()))}


@cache
def sessions(exchange: str) -> Sessions | None:
    """The sessions of an exchange by its name or code; None where the table has none."""
    known = next((code for code in market_codes(exchange) if code in _table()), None)
    return None if known is None else Sessions(_table()[known])


@lru_cache(maxsize=65536)
def tradable_from(exchange: str, day: date, instant: str | None) -> date | None:
    """The first session of an exchange after something became public; None where that is not known."""
    calendar = sessions(exchange)
    if calendar is None:
        return None
    return calendar.after(day, None if instant is None else datetime.fromisoformat(instant))
