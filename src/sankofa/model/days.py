"""Days: written YYYY-MM-DD, compared as text, counted as ordinals where arithmetic is needed; and the
sessions of stock exchanges.

`REAL_DAYS` is the calendar as a regular expression: many readers of `format: date` ignore leap years, so a
JSON schema needs the pattern to say which dates a parameter takes.

The table `sessions.toml` is written by tools/sessions.py from published calendars. Each entry names its
source.
"""

import re
from bisect import bisect_right
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from sankofa.model.identifiers import market_codes
from sankofa.model.text import toml_table

FOREVER = 2**31 - 1
"""The ordinal after every day: the open end of an interval."""
EARLIEST: Final = "1800-01-01"
"""The first day that a file may name."""
_YEARS_AHEAD: Final = 30

_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


@lru_cache(maxsize=4096)
def parse_day(text: str) -> date:
    """The date of `YYYY-MM-DD`, ASCII digits only. Raises ValueError for anything else."""
    if not _ISO_DAY.match(text):
        raise ValueError("expected a date as YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("no such day in the calendar") from None


@lru_cache(maxsize=65536)
def day_in(field: str, text: str) -> str:
    """The day in a field of a file, as it is written. Raises ValueError, which names the field."""
    try:
        return parse_day(text).isoformat()
    except ValueError as failure:
        raise ValueError(f"{field}: {failure}") from None


@lru_cache(maxsize=1024)
def latest_day(today: str) -> str:
    """The last day that a file read today may name."""
    day = "02-28" if today[5:] == "02-29" else today[5:]
    return f"{int(today[:4]) + _YEARS_AHEAD}-{day}"


def out_of_range(field: str, day: str, latest: str) -> str | None:
    """Why a day in a field of a file is rejected; None if it is accepted."""
    fault = range_fault(day, latest)
    return f"{field}: {fault}" if fault else None


def range_fault(day: str, latest: str) -> str:
    """Why a file may not name a day, empty if it may; `latest` is a `latest_day`."""
    return "" if EARLIEST <= day <= latest else f"outside {EARLIEST} to {latest}"


@lru_cache(maxsize=65536)
def ordinal(iso_day: str) -> int:
    """The proleptic Gregorian ordinal of a day already known to be well formed."""
    return date.fromisoformat(iso_day).toordinal()


@lru_cache(maxsize=65536)
def iso_day(day: int) -> str:
    """The day of an ordinal, as it is written."""
    return date.fromordinal(day).isoformat()


def months_before(day: date, months: int) -> date:
    """The same day of the month, or the month's last, that many months earlier; never before the first
    day."""
    year, month = divmod(12 * day.year + day.month - 1 - months, 12)
    if year < 1:
        return date.min
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def instant(moment: datetime) -> str:
    """An instant as RFC 3339 in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_DATED_NAME: Final = re.compile(
    r"(?:.*/)?([0-9]{4})([0-9]{2})([0-9]{2})-(?:([01][0-9]|2[0-3])([0-5][0-9])-)?[^/]*\Z"
)


def file_instant(file_name: str, latest: str) -> str:
    """The instant that the name of a file begins with (`20190105-0800-...`); empty if after `latest`."""
    dated = _DATED_NAME.match(file_name)
    try:
        day = parse_day("-".join(dated.groups()[:3])).isoformat() if dated else ""
    except ValueError:  # no day of the calendar
        return ""
    if dated is None or day > latest:
        return ""
    return f"{day}T{dated[4] or '00'}:{dated[5] or '00'}:00Z"


_DAY_IN_NAME: Final = re.compile(r"(?:.*/)?([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9A-Za-z])")


@lru_cache(maxsize=1024)
def day_of_name(file_name: str) -> str:
    """The day that the name of a file begins with (`2018-08-01-wdi.csv`); empty if it begins with none."""
    dated = _DAY_IN_NAME.match(file_name)
    try:
        return parse_day(dated[1]).isoformat() if dated else ""
    except ValueError:  # no day of the calendar
        return ""


REAL_DAYS: Final = (
    "^(?:(?:0(?:0(?:0[1-9]|[1-9][0-9])|[1-9][0-9][0-9])|[1-9][0-9][0-9][0-9])-"
    "(?:0(?:[13578]-(?:0[1-9]|[12][0-9]|3[01])|2-(?:0[1-9]|1[0-9]|2[0-8])|[469]-(?:0[1-9]|[12][0-9]|30))"
    "|1(?:[02]-(?:0[1-9]|[12][0-9]|3[01])|1-(?:0[1-9]|[12][0-9]|30)))"
    "|(?:0(?:[01235679](?:0[48]|[13579][26]|[2468][048])|[48](?:[02468][048]|[13579][26]))"
    "|[13579](?:[01345789](?:0[48]|[13579][26]|[2468][048])|[26](?:[02468][048]|[13579][26]))"
    "|[2468](?:[048](?:[02468][048]|[13579][26])|[1235679](?:0[48]|[13579][26]|[2468][048])))-02-29)$"
)
"""A pattern of the days of the calendar, written YYYY-MM-DD, and of nothing else.

It has neither lookarounds nor class escapes: every dialect of regular expressions reads it alike.
"""


_DAY: Final = timedelta(days=1)


class Sessions:
    def __init__(self, entry: dict[str, Any]) -> None:
        self._zone = ZoneInfo(entry["zone"])
        self._first: date = entry["first"]
        self._last: date = entry["last"]
        self._weekdays = frozenset(entry["weekdays"])
        self._opens = [(date.fromisoformat(day), time.fromisoformat(clock)) for day, clock in entry["open"]]
        self._unusual = frozenset((*_days(entry["closed"]), *_days(entry["extra"])))
        self._unsure = frozenset(_days(entry.get("unsure", "")))

    def after(self, day: date, instant: datetime | None = None) -> date | None:
        """The first session that opens after an instant, on the day of publication or later; without an
        instant, the first session of a later day. None outside the table's days, or if it depends on an
        estimated holiday."""
        session = day + _DAY if instant is None else max(day, instant.astimezone(self._zone).date())
        if session < self._first:
            return None
        while session <= self._last and session not in self._unsure:
            is_open = (session.weekday() in self._weekdays) != (session in self._unusual)
            if is_open and (instant is None or self._opening(session) > instant):
                return session
            session += _DAY
        return None

    def _opening(self, day: date) -> datetime:
        number = bisect_right(self._opens, day, key=lambda one: one[0]) - 1
        return datetime.combine(day, self._opens[number][1], self._zone)


def _days(written: str) -> list[date]:
    years = (year.split() for year in written.split(";") if written)
    return [date(int(year), int(day[:2]), int(day[2:])) for year, *days in years for day in days]


@cache
def _table() -> dict[str, dict[str, Any]]:
    """The sessions of each market, by every code of the market."""
    entries = toml_table("sankofa.model", "sessions")
    return {code: entry for mic, entry in entries.items() for code in (mic, *entry.get("also", ()))}


@cache
def sessions(exchange: str) -> Sessions | None:
    """The sessions of an exchange by its name or code; None if the table has none."""
    known = next((code for code in market_codes(exchange) if code in _table()), None)
    return None if known is None else Sessions(_table()[known])


@lru_cache(maxsize=65536)
def tradable_from(exchange: str, day: date, instant: str | None) -> date | None:
    """The first session of an exchange after a publication; None if unknown."""
    calendar = sessions(exchange)
    if calendar is None:
        return None
    return calendar.after(day, None if instant is None else datetime.fromisoformat(instant))
