"""Real days as a regular expression, so that a JSON schema can say which dates a parameter takes.

To many readers `format: date` knows nothing of leap years, and a client (or a test) that goes by the schema
must be able to tell. Which days are still to come no schema can say: it would be another one each day.
"""

from calendar import isleap
from collections.abc import Collection
from datetime import date, timedelta
from functools import cache

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
