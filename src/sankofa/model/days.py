"""Days: written YYYY-MM-DD, compared as text, counted as ordinals where arithmetic is needed.

`real_days` writes the calendar as a regular expression: many readers of `format: date` ignore leap years, so
a JSON schema needs the pattern to say which dates a parameter takes.
"""

import re
from calendar import isleap, monthrange
from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import Final

FOREVER = 2**31 - 1
"""The ordinal after every day: the open end of an interval."""
EARLIEST: Final = "1800-01-01"
"""The first day that a file may name."""
_YEARS_AHEAD: Final = 30

_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


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
    """Why a day in a field of a file is refused; None where it is not."""
    return None if in_range(day, latest) else f"{field}: {range_fault(latest)}"


def in_range(day: str, latest: str) -> bool:
    """Whether a file may name a day; `latest` is a `latest_day`."""
    return EARLIEST <= day <= latest


def range_fault(latest: str) -> str:
    """Why a day that is not in the range is refused."""
    return f"outside {EARLIEST} to {latest}"


@lru_cache(maxsize=65536)
def ordinal(iso_day: str) -> int:
    """The proleptic Gregorian ordinal of a day already known to be well formed."""
    return date.fromisoformat(iso_day).toordinal()


@lru_cache(maxsize=65536)
def iso_day(day: int) -> str:
    """The day of an ordinal, as it is written."""
    return date.fromordinal(day).isoformat()


def months_before(day: date, months: int) -> date:
    """The same day of the month, or the last one, so many months earlier; the first day of all at most."""
    year, month = divmod(12 * day.year + day.month - 1 - months, 12)
    if year < 1:
        return date.min
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def instant(moment: datetime) -> str:
    """An instant as RFC 3339 in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_COMMON_YEAR = 2001


@cache
def real_days() -> str:
    """An anchored pattern of the days of the calendar, written YYYY-MM-DD, and of nothing else.

    It holds neither lookarounds nor class escapes: every dialect of regular expressions reads it alike.
    """
    years = range(date.min.year, date.max.year + 1)
    first = date(_COMMON_YEAR, 1, 1)
    days = _matching(frozenset(str(first + timedelta(n))[5:] for n in range(365)))
    leap_years = [year for year in years if isleap(year)]
    return f"^(?:{_of_years(years)}-{days}|{_of_years(leap_years)}-02-29)$"


def _of_years(years: Collection[int]) -> str:
    return _matching(frozenset(f"{year:04}" for year in years))


def _matching(texts: frozenset[str]) -> str:
    """A pattern of exactly these texts, all of one length: heads that go on alike share one class."""
    if texts == {""}:
        return ""
    tails: dict[str, set[str]] = {}
    for text in texts:
        tails.setdefault(text[0], set()).add(text[1:])
    heads: dict[frozenset[str], str] = {}
    for head in sorted(tails):
        rest = frozenset(tails[head])
        heads[rest] = heads.get(rest, "") + head
    branches = [_one_of(alike) + _matching(rest) for rest, alike in heads.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _one_of(characters: str) -> str:
    if len(characters) == 1:
        return characters
    run = len(characters) > 2 and ord(characters[-1]) - ord(characters[0]) == len(characters) - 1
    return f"[{characters[0]}-{characters[-1]}]" if run else f"[{characters}]"
