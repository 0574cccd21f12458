"""Claims about figures: a value and a period as people write them, and whether a figure supports one.

A claim is rounded as it is written: 2.9bn is any figure that rounds to it. Zeros at the end of a whole number
count as rounding beyond three significant digits. A claim of one digit, other than a percentage, allows no
more than 5% (contract: CLM-2).
"""

import re
from calendar import monthrange
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from sankofa.model.countries import currency
from sankofa.model.days import parse_day

_SCALES: Final = {
    "k": 3, "thousand": 3, "thousands": 3, "m": 6, "mm": 6, "mn": 6, "mln": 6, "mio": 6, "million": 6,
    "millions": 6,
    "b": 9, "bn": 9, "bln": 9, "billion": 9, "billions": 9, "milliard": 9, "milliards": 9,
    "t": 12, "tn": 12, "trn": 12, "trillion": 12, "trillions": 12, "x": 0, "times": 0,
}  # fmt: skip
_RATIOS: Final = ("ratio", "pure")
_PERCENT: Final = ("%", "percent", "per cent", "pct")
_SYMBOLS: Final = {
    "$": "USD", "us$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "r": "ZAR", "rand": "ZAR", "\u20a6": "NGN",
    "ksh": "KES", "kshs": "KES", "ush": "UGX", "tsh": "TZS", "gh\u20b5": "GHS", "\u20b5": "GHS", "r$": "BRL",
    "c$": "CAD", "a$": "AUD", "n": "NGN", "n$": "NAD",
}  # fmt: skip
_VALUE: Final = re.compile(
    r"(?P<sign>[-\u2212+(]?)(?:(?P<code>[^\W\d_]{1,4}|[^\W\d_]{0,3}[$\u20ac\u00a3\u20a6\u20b5])\.? ?)?"
    r"(?P<minus>[-\u2212+]?)"
    r"(?:(?P<mantissa>[0-9]{1,3}(?:[.,][0-9]{1,20})?)[eE](?P<power>[+-]?[0-9]{1,2})"
    r"|(?P<point>[0-9]{1,3}(?:[, ][0-9]{3})+(?:[.][0-9]{1,20})?|[0-9]{0,60}[.][0-9]{1,20}|[0-9]{1,60})"
    r"|(?P<comma>[0-9]{1,3}(?:[.][0-9]{3}){2,}(?:,[0-9]{1,20})?|[0-9]{1,3}(?:[. ][0-9]{3})+,[0-9]{1,20}"
    r"|[0-9]{1,60},[0-9]{1,20}))(?P<close>\)?) ?(?P<word>%|[^\d()%]{0,30})(?P<last>\)?)"
)
_SPACES: Final = re.compile("[\u00a0\u2009\u202f'\u2019]")
_CURRENCY_NAMES: Final = _SYMBOLS | {
    "us dollar": "USD", "us dollars": "USD", "u.s. dollars": "USD", "current us$": "USD", "euros": "EUR",
    "rands": "ZAR", "naira": "NGN",
}  # fmt: skip
_PER: Final = re.compile(r" ?/ ?| per ")
_GLUED_SCALE: Final = re.compile(r"(?P<unit>[^\s']{1,4}) ?(?P<scale>'?000s?|k|m|mn|mln|bn)", re.IGNORECASE)
_SIGNIFICANT: Final = 3
_MOST_RELATIVE: Final = Decimal("0.05")


class ClaimedValue(NamedTuple):
    """A claimed value: the number, the tolerance for a figure, and the units it was written with."""

    number: Decimal
    tolerance: Decimal
    percent: bool
    scaled: bool
    """Whether the number has a word such as `bn`."""
    currency: str | None
    """The currency written with the number."""
    unit: str | None

    def bears_out(self, figure: Decimal, unit: str | None) -> bool | None:
        """Whether a figure supports the claim; None if their units cannot be compared."""
        if self.percent:
            if self.unit is not None and self.unit.lower() not in (*_PERCENT, (unit or "").lower()):
                return None
            if unit in _RATIOS:
                return self._is_near(figure, -2)
            words = (unit or "").lower()
            return self._is_near(figure, 0) if "%" in words or "percent" in words else None
        if self.unit is not None and self.unit.casefold() == (unit or "").casefold():
            return self._is_near(figure, 0)
        power, own = _scale_of_figures(unit or "")
        more = 0
        if self.unit is not None:
            more, name = _scale_of_claim(self.unit)
            if name and _comparable(name) != _comparable(own):
                return None
        elif self.currency not in (None, _currency_of(own)):
            return None
        if self.unit is None and self.currency is None and not self.scaled and self._is_near(figure, 0):
            return True
        return self._is_near(figure, more - power)

    def _is_near(self, figure: Decimal, power: int) -> bool:
        return abs(figure - self.number.scaleb(power)) <= self.tolerance.scaleb(power)


class ClaimedPeriod(NamedTuple):
    """A year or a part of it, a day, or a first and a last day."""

    year: int | None
    start: date | None
    end: date | None
    part: str | None = None
    """Q1 to Q4, H1, H2 or 9M of the year."""
    begins: int | None = None
    """The calendar year in which the year begins, if it is written: 2019/20."""


_PART_NAMES: Final = {
    "first quarter": "q1", "second quarter": "q2", "third quarter": "q3", "fourth quarter": "q4",
    "first half": "h1", "second half": "h2", "first nine months": "9m", "nine months": "9m",
}  # fmt: skip
_PART_WORDS: Final = re.compile("|".join(_PART_NAMES))
_PART: Final = "q[1-4]|[1-4]q|h[12]|[12]h|9m"
_DIGITS: Final = "[12][0-9]{3}|[0-9]{2}"
_FISCAL: Final = "(?:fy|fiscal(?: year)?|financial year)"
_YEAR: Final = re.compile(
    rf"(?:(?P<before>{_PART})(?: of)?[ -]?)?(?P<fiscal>{_FISCAL} ?)?"
    rf"(?P<year>{_DIGITS})(?:/(?P<next>{_DIGITS}))?(?:[ -]?(?P<after>{_PART}))?"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = re.compile(
    r"(?P<year>[12][0-9]{3})-(?P<number>[0-9]{2})"
    r"|(?:(?P<day>[0-9]{1,2}) )?(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?"
    r"|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?(?: (?P<at>[0-9]{1,2}),)?"
    r" (?P<of>[12][0-9]{3})"
)
_NO_PERIOD: Final = (
    "expected a year (2019, FY2019, 2019/20), a part of one (Q3 2019, H1 2019, 9M 2019), "
    "a month (June 2019), a date as YYYY-MM-DD, or START..END"
)
_PIVOT: Final = 70
"""FY69 is 2069, FY70 is 1970."""


def read_claim(value: str, unit: str | None) -> ClaimedValue:
    """Reads a number as people write it. Raises ValueError."""
    match = _VALUE.fullmatch(_SPACES.sub(" ", value.strip()))
    if match is None or int(match["sign"] == "(") != len(match["close"] + match["last"]):
        raise ValueError("expected a number such as 2.9bn, 291.9 million, 1,234.5 or 12%")
    scale, percent, code = _word(match["word"])
    unit = " ".join((unit or "").split()) or None
    currencies = {_known_currency(text) for text in (match["code"], code) if text}
    if unit and (own := _scale_of_claim(unit)[1]):
        currencies.add(_currency_of(own))
    if len(currencies) > 1 or (None in currencies and (match["code"] or code)):
        raise ValueError("its currency is unknown or differs from `unit`")
    if match["mantissa"]:  # 3.59E+08, as spreadsheets write it
        digits = match["mantissa"].replace(",", ".")
    else:
        digits = match["point"] or match["comma"].translate({ord("."): None, ord(","): "."})
    whole, _, decimals = re.sub("[, ]", "", digits).partition(".")
    number = Decimal(f"{whole or 0}{'.' if decimals else ''}{decimals}")
    exponent = -len(decimals)
    if not decimals:  # zeros at the end may be rounding
        zeros = len(whole) - len(whole.rstrip("0"))
        exponent = max(min(zeros, len(whole) - _SIGNIFICANT), 0)
    power = scale + int(match["power"] or 0)
    number = number.scaleb(power)
    is_percent = percent or (unit or "").lower() in _PERCENT
    tolerance = Decimal(5).scaleb(exponent - 1 + power)
    if not is_percent:
        tolerance = min(tolerance, number * _MOST_RELATIVE)
    if (match["sign"] + match["minus"]).strip("+"):
        number = -number
    beside = _known_currency(match["code"] or code)
    return ClaimedValue(number, tolerance, is_percent, scale > 0, beside, unit)


def _known_currency(text: str) -> str | None:
    """The code of a currency as people write it: `usd`, `US$`, `rand`, `US dollars`."""
    name = text.strip().rstrip(".").lower()
    return _CURRENCY_NAMES.get(name) or currency(name)


def _currency_of(unit: str) -> str | None:
    """The currency of a unit, which may be per something: `USD/shares`, `US dollars per person`."""
    return _known_currency(_PER.split(unit, maxsplit=1)[0])


def _comparable(unit: str) -> str:
    """One spelling of a unit: `USD per share` and `USD/shares`, `current US$` and `USD`."""
    parts = [_known_currency(part) or part.casefold().removesuffix("s") for part in _PER.split(unit)]
    return "/".join(parts)


def _scale_of_claim(unit: str) -> tuple[int, str]:
    """The power of ten in the unit of a claim, and the unit without it: `ZAR million`, `$m`, `R'000`."""
    power, name = _scale_of_figures(unit)
    if power or not name:
        return power, name
    glued = _GLUED_SCALE.fullmatch(unit)
    if glued and _known_currency(glued["unit"]):
        return _SCALES.get(glued["scale"].lower(), 3), glued["unit"]
    first, _, rest = unit.partition(" ")
    return (_SCALES[first.lower()], rest) if first.lower() in _SCALES and _currency_of(rest) else (0, unit)


def _scale_of_figures(unit: str) -> tuple[int, str]:
    """The power of ten in a unit, and the unit without it: `billion US dollars`."""
    names = unit.split()
    for at in (0, -1):
        if names and len(names[at]) > 1 and names[at].lower() in _SCALES:
            power = _SCALES[names.pop(at).lower()]
            return power, " ".join(names).removeprefix("of ")
    return 0, unit


def read_period(text: str) -> ClaimedPeriod:
    """Reads a year, a part of a year, a month, a day or START..END. Raises ValueError."""
    text = " ".join(text.lower().split())
    if match := _YEAR.fullmatch(_PART_WORDS.sub(lambda word: _PART_NAMES[word[0]], text)):
        return _year_or_part(match)
    if match := _MONTH.fullmatch(text):
        return _month_or_day(match)
    start, dots, end = text.partition("..")
    try:
        return ClaimedPeriod(None, parse_day(start) if dots else None, parse_day(end if dots else start))
    except ValueError:
        raise ValueError(_NO_PERIOD) from None


def _year_or_part(match: re.Match[str]) -> ClaimedPeriod:
    digits, following = match["year"], match["next"]
    parts = {_part(text) for text in (match["before"], match["after"]) if text}
    part = next(iter(parts), None)
    is_short = len(digits) == 2
    if len(parts) > 1 or (is_short and not (part or match["fiscal"])) or (part and following):
        raise ValueError(_NO_PERIOD)
    year = int(digits) + (2000 if int(digits) < _PIVOT else 1900) if is_short else int(digits)
    if following is None:
        return ClaimedPeriod(year, None, None, part)
    if following not in (f"{year + 1}", f"{year + 1}"[2:]):
        raise ValueError(_NO_PERIOD)
    return ClaimedPeriod(year + 1, None, None, begins=year)


def _part(text: str) -> str:
    """`Q3` of `q3` or `3q`; `9M` of `9m`."""
    return "9M" if "m" in text else "".join(sorted(text, reverse=True)).upper()


def _month_or_day(match: re.Match[str]) -> ClaimedPeriod:
    year = int(match["year"] or match["of"])
    month = int(match["number"]) if match["number"] else 1 + _MONTHS.index(match["name"][:3])
    try:
        if day := match["day"] or match["at"]:
            return ClaimedPeriod(None, None, date(year, month, int(day)))
        return ClaimedPeriod(None, date(year, month, 1), date(year, month, monthrange(year, month)[1]))
    except ValueError:
        raise ValueError(_NO_PERIOD) from None


def _word(word: str) -> tuple[int, bool, str]:
    """The power of ten, whether it is percent, and the currency of what follows a number."""
    names = word.lower().split()
    if " ".join(names) in _PERCENT:
        return 0, True, ""
    scales = [name for name in names if name in _SCALES]
    other = " ".join(name for name in names if name not in _SCALES)
    if len(scales) > 1 or (other and not _known_currency(other)):
        raise ValueError("expected k, m, bn, thousand, million, billion, trillion, % or a currency behind it")
    return _SCALES.get("".join(scales), 0), False, other
