"""Real days as a regular expression, so that a JSON schema can say which dates a parameter takes.

`format: date` knows neither which years are leap years nor which days are still to come, and a
client (or a test) that goes by the schema must be able to tell both.
"""

from calendar import isleap
from collections.abc import Collection
from datetime import date, timedelta
from functools import lru_cache

_COMMON_YEAR = 2001


@lru_cache(maxsize=8)
def pattern_until(last: date = date.max) -> str:
    """An anchored pattern of the days from 0001-01-01 to `last`, written YYYY-MM-DD, and of nothing else.

    It holds neither lookarounds nor class escapes: every dialect of regular expressions reads it alike.
    """
    whole_years = range(1, last.year + (last == date(last.year, 12, 31)))
    leap_years = [year for year in whole_years if isleap(year)]
    parts = []
    if whole_years:
        parts.append(f"{_of_years(whole_years)}-{_of_days(_COMMON_YEAR, date(_COMMON_YEAR, 12, 31))}")
    if leap_years:
        parts.append(f"{_of_years(leap_years)}-02-29")
    if last.year not in whole_years:
        parts.append(f"{last.year:04}-{_of_days(last.year, last)}")
    return f"^(?:{'|'.join(parts)})$"


def _of_years(years: Collection[int]) -> str:
    return _matching(frozenset(f"{year:04}" for year in years))


def _of_days(year: int, last: date) -> str:
    """The days of a year up to `last`, as MM-DD."""
    first = date(year, 1, 1)
    return _matching(frozenset(str(first + timedelta(n))[5:] for n in range((last - first).days + 1)))


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
