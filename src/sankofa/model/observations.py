"""Observations: annual indicators of countries, and dated series; the columns they travel in; their names.

Adapters, the ledger and the edition builder handle whole columns, not single values: a table of two million
values has only some hundred thousand columns.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from sankofa.model.countries import alpha3_of, country, country_name, currency, currency_name
from sankofa.model.limits import limit
from sankofa.model.text import toml_table

FREQUENCIES: Final = ("daily", "weekly", "monthly", "quarterly", "annual")
SERIES_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
INDICATOR_PATTERN: Final = SERIES_PATTERN
ASKED_SERIES_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._:-]*$"
"""Series keys in requests. Keys for annual tables have colons: `WDI:<indicator>:<alpha-3>`."""
TABLED: Final = "WDI:"
"""Prefix of series keys for annual tables; no published series has a colon in its key."""
SERIES_TYPE_PATTERN: Final = "^[a-z][a-z0-9_]*$"
LONGEST_CODE: Final = limit("series key or indicator code", 64, "characters", "the row is rejected; 400")
LONGEST_TYPE: Final = limit("series_type", 32, "characters", "the row is rejected; 400")

_CODE = re.compile(r"[A-Z0-9][A-Z0-9._-]{0,63}\Z")
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")
_QUALIFIER = re.compile(r"[A-Z0-9][A-Z0-9_-]*\Z")


class AnnualColumn(NamedTuple):
    """One indicator of one country in one table."""

    indicator: str
    country: str
    """Alpha-2."""
    document: str
    values: Mapping[str, str]
    """By year; empty if the table lists the year without one."""
    covers: frozenset[str] | None
    """The years the table lists; a listed year without a value is withdrawn. None if the table lists only
    years with a value; then a missing year is withdrawn."""
    name: str = ""
    """The indicator in words, if the table names it."""
    unread: frozenset[str] = frozenset()
    """Years with an unreadable value; they are neither set nor withdrawn."""


class ReportedValue(NamedTuple):
    """One value of a series in one release."""

    date: str
    release: str
    """The day the source evidences as publication; empty if it evidences none."""
    value: str
    """Empty if the release withdraws it."""
    unit: str
    location: str
    """Location in the document; empty if the date gives it."""
    evidenced: bool = True
    """False if the day of capture replaces an unknown day of publication."""


class SeriesColumn(NamedTuple):
    """The values of one series in one document, in document order."""

    series: str
    series_type: str
    frequency: str
    country: str
    """Alpha-2; empty if the series has no single country."""
    document: str
    values: list[ReportedValue]
    on_its_day: bool = False
    """True if new values are public on their own date, as reference rates are."""


class SeriesInfo(NamedTuple):
    """A publisher's metadata of a series or an indicator."""

    code: str
    name: str
    """Empty if the metadata have none."""
    unit: str
    """Empty if the metadata have none."""


class SeriesKinds:
    """The kinds that rows give one key. The key gets one of them: one series_type and one frequency.

    The kind that became public first wins, then the finer frequency, then the family in alphabetical order.
    So the order of ingestion does not matter, and a kind that became public later changes nothing known
    before.
    """

    def __init__(self) -> None:
        self._first_public: dict[tuple[str, str], str] = {}

    def add(self, series_type: str, frequency: str, public: str) -> None:
        """Adds a row of this kind that became public on a day."""
        kind = (series_type, frequency)
        self._first_public[kind] = min(public, self._first_public.get(kind, public))

    @property
    def one(self) -> tuple[str, str]:
        """The series_type and the frequency of the key."""
        return min(
            self._first_public,
            key=lambda kind: (self._first_public[kind], FREQUENCIES.index(kind[1]), kind[0]),
        )

    def refusal(self, series: str, series_type: str, frequency: str) -> str:
        """Why a row of another kind is rejected."""
        own_type, own_frequency = self.one
        return (
            f"series: {series} is {own_frequency} {own_type}, not {frequency} {series_type}: one key has "
            f"one frequency and one series_type; use another key, such as {series}.{frequency[0].upper()}"
        )


def series_key(text: str) -> str:
    """A series' key in upper case. Raises ValueError.

    A rate is FX.<base>.<quote>, or FX.<base>.<quote>.<source> where another source has the pair at another
    frequency (`FX.USD.ZAR.H10`).
    """
    key = text.upper()
    if not _CODE.match(key):
        raise ValueError(f"series: expected up to {LONGEST_CODE} letters, digits, dots and dashes")
    if key.split(".")[0] == "FX" and not currency_pair(key):
        raise ValueError("series: expected FX.<base>.<quote> with two ISO 4217 codes, or .<source> after it")
    return key


def tabled_series(indicator: str, country_code: str) -> str:
    """The series key for an annual indicator of a country (alpha-2)."""
    return f"{TABLED}{indicator}:{alpha3_of().get(country_code, country_code)}"


def currency_pair(series: str) -> tuple[str, str] | None:
    """The base and the quote currency of a rate; None for other series."""
    family, *parts = series.split(".")
    if family != "FX" or len(parts) not in (2, 3) or not all(map(_QUALIFIER.match, parts)):
        return None
    base, quote = parts[:2]
    return (base, quote) if currency(base) and currency(quote) and base != quote else None


def quoted_in(series: str) -> str:
    """The country (alpha-2) of a rate's quoted currency; empty for other series.

    For FX.EUR.ZAR it is ZA: an ISO 4217 code begins with its country. Currencies of several countries (EUR,
    XOF) have none.
    """
    pair = currency_pair(series)
    return country(pair[1][:2]) or "" if pair else ""


def indicator_code(text: str) -> str:
    """An indicator's code in upper case. Raises ValueError."""
    code = text.upper()
    if not _CODE.match(code):
        raise ValueError(f"indicator: expected up to {LONGEST_CODE} letters, digits, dots and dashes")
    return code


def series_type(text: str) -> str:
    """A family in lower case. Raises ValueError."""
    family = text.lower()
    if not _TYPE.match(family):
        raise ValueError("series_type: expected a family such as fx, cpi or gdp")
    return family


_VOWELS: Final = frozenset("AEIOUY")


@cache
def _names() -> dict[str, dict[str, str]]:
    """Families, and subjects of the IMF's World Economic Outlook, in words."""
    return toml_table("sankofa.model", "series_names")


def series_name(series: str, family: str, frequency: str, country: str) -> str:
    """A series in words, from its key, family, frequency and country.

    `WEO.NGDP_RPCH.GH` is "Real GDP growth, Ghana (IMF WEO)", `COMMODITY.PALM-OIL` "Commodity price: palm oil,
    monthly".
    """
    if pair := currency_pair(series):
        base, quote = (f"{currency_name(code)} ({code})" if currency_name(code) else code for code in pair)
        source = ".".join(series.split(".")[3:])
        return f"{quote} for one {base}, {frequency}" + (f" ({source})" if source else "")
    words = _names()["families"].get(family) or (
        family.upper() if len(family) <= 4 else family.replace("_", " ").capitalize()
    )
    first, *rest = series.split(".")
    suffixes = (country, frequency[0].upper())
    codes = (
        [part for part in rest if part not in suffixes] if first.replace("-", "_").lower() == family else []
    )
    country_label = country_name(country) if country else ""
    if family == "weo" and codes and codes[0] in _names()["weo"]:
        return ", ".join(filter(None, (_names()["weo"][codes[0]], country_label))) + f" ({words})"
    named = _names()["commodity"].get(".".join(codes)) if family == "commodity" else None
    detail = named or " ".join(
        _word(word) for code in codes for word in code.replace("_", "-").split("-") if word
    )
    return ", ".join(filter(None, (f"{words}: {detail}" if detail else words, country_label, frequency)))


def also_called(family: str) -> str:
    """Words that people search a family of series by, beside those of its name."""
    return _names()["also"].get(family, "")


def usual_name(series: str, family: str) -> str:
    """What people call a series, if that is not its name; empty for most series."""
    return _names()["called"].get(series.partition(".")[2] if family == "commodity" else family, "")


def _word(code: str) -> str:
    """A part of a key as a word; countries (`ZA`) and abbreviations without a vowel (`HRW`) stay."""
    return code if len(code) == 2 or _VOWELS.isdisjoint(code) else code.lower()
