"""Claims about figures: a value and a period as people write them, and whether a figure bears one out.

A claim is rounded as it is written: 2.9bn is any figure that rounds to it. Zeros at the end of a whole number
count as rounding beyond three significant digits. A claim of one digit, other than a
percentage, allows no more than 5% (contract: CLM-2).
"""

import re
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from sankofa.model.countries import currency
from sankofa.model.days import parse_day

_SCALES: Final = {
    "k": 3, "thousand": 3, "thousands": 3, "m": 6, "mn": 6, "mln": 6, "mio": 6, "million": 6, "millions": 6,
    "b": 9, "bn": 9, "bln": 9, "billion": 9, "billions": 9, "milliard": 9, "milliards": 9,
    "t": 12, "tn": 12, "trn": 12, "trillion": 12, "trillions": 12, "x": 0, "times": 0,
}  # fmt: skip
_PERCENT: Final = ("%", "percent", "per cent", "pct")
_SYMBOLS: Final = {
    "$": "USD", "us$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "r": "ZAR", "rand": "ZAR", "\u20a6": "NGN",
    "ksh": "KES", "kshs": "KES", "ush": "UGX", "tsh": "TZS", "gh\u20b5": "GHS", "\u20b5": "GHS", "r$": "BRL",
    "c$": "CAD", "a$": "AUD",
}  # fmt: skip
_VALUE: Final = re.compile(
    r"(?P<sign>[-\u2212+(]?)(?:(?P<code>[^\W\d_]{1,4}|[^\W\d_]{0,3}[$\u20ac\u00a3\u20a6\u20b5])\.? ?)?"
    r"(?P<minus>[-\u2212+]?)"
    r"(?:(?P<point>[0-9]{1,3}(?:[, ][0-9]{3})+(?:[.][0-9]{1,20})?|[0-9]{0,60}[.][0-9]{1,20}|[0-9]{1,60})"
    r"|(?P<comma>[0-9]{1,3}(?:[.][0-9]{3}){2,}(?:,[0-9]{1,20})?|[0-9]{1,3}(?:[. ][0-9]{3})+,[0-9]{1,20}"
    r"|[0-9]{1,60},[0-9]{1,20}))(?P<close>\)?) ?(?P<word>%|[^\d()%]{0,30})(?P<last>\)?)"
)
_SPACES: Final = re.compile("[\u00a0\u2009\u202f'\u2019]")
_SIGNIFICANT: Final = 3
_MOST_RELATIVE: Final = Decimal("0.05")


class ClaimedValue(NamedTuple):
    """A claimed value: the number, how far from it a figure may be, and the unit it was written with."""

    number: Decimal
    tolerance: Decimal
    percent: bool
    unit: str | None

    def bears_out(self, figure: Decimal, unit: str | None) -> bool | None:
        """Whether a figure is what is claimed; None if their units cannot be compared."""
        number, tolerance = self.number, self.tolerance
        if self.percent:
            if unit == "ratio":
                number, tolerance = number / 100, tolerance / 100
            elif not _is_percent(unit):
                return None
        elif self.unit is not None and self.unit.casefold() != (unit or "").casefold():
            return None
        return abs(figure - number) <= tolerance


class ClaimedPeriod(NamedTuple):
    """A year, a day, or a first and a last day."""

    year: int | None
    start: date | None
    end: date | None


def read_claim(value: str, unit: str | None) -> ClaimedValue:
    """Raises ValueError for what is no number as people write one."""
    match = _VALUE.fullmatch(_SPACES.sub(" ", value.strip()))
    if match is None or int(match["sign"] == "(") != len(match["close"] + match["last"]):
        raise ValueError("expected a number such as 2.9bn, 291.9 million, 1,234.5 or 12%")
    scale, percent, code = _word(match["word"])
    unit, more, also_percent = _unit(unit)
    for text in (match["code"], code):
        if text:
            unit = _same_currency(text, unit)
    digits = match["point"] or match["comma"].translate({ord("."): None, ord(","): "."})
    whole, _, decimals = re.sub("[, ]", "", digits).partition(".")
    number = Decimal(f"{whole or 0}{'.' if decimals else ''}{decimals}")
    place = -len(decimals)
    if not decimals:  # zeros at the end may be rounding
        zeros = len(whole) - len(whole.rstrip("0"))
        place = max(min(zeros, len(whole) - _SIGNIFICANT), 0)
    power = scale + more
    number = number.scaleb(power)
    is_percent = percent or also_percent
    tolerance = Decimal(5).scaleb(place - 1 + power)
    if not is_percent:
        tolerance = min(tolerance, number * _MOST_RELATIVE)
    if (match["sign"] + match["minus"]).strip("+"):
        number = -number
    return ClaimedValue(number, tolerance, is_percent, None if is_percent else unit)


def _same_currency(text: str, unit: str | None) -> str:
    """The code of a currency beside a number; it must be that of `unit`, which may be per share."""
    name = text.strip().rstrip(".").lower()
    code = _SYMBOLS.get(name) or currency(name)
    if code is None or (unit or code).split("/")[0].upper() != code:
        raise ValueError("names another currency than `unit`, or none that is known")
    return unit or code


def read_period(text: str) -> ClaimedPeriod:
    """Raises ValueError for what is no year, day or START..END."""
    text = text.strip()
    if re.fullmatch("[12][0-9]{3}", text):
        return ClaimedPeriod(int(text), None, None)
    start, dots, end = text.partition("..")
    try:
        return ClaimedPeriod(None, parse_day(start) if dots else None, parse_day(end if dots else start))
    except ValueError:
        raise ValueError("expected a year, a date as YYYY-MM-DD, or START..END") from None


def _word(word: str) -> tuple[int, bool, str]:
    """The power of ten, whether it is percent, and the currency of what follows a number."""
    names = word.lower().split()
    if " ".join(names) in _PERCENT:
        return 0, True, ""
    scales = [name for name in names if name in _SCALES]
    others = [name for name in names if name not in _SCALES]
    if len(scales) > 1 or len(others) > 1 or (others and not (others[0] in _SYMBOLS or currency(others[0]))):
        raise ValueError("expected k, m, bn, thousand, million, billion, trillion, % or a currency behind it")
    return _SCALES.get("".join(scales), 0), False, "".join(others)


def _unit(unit: str | None) -> tuple[str | None, int, bool]:
    """The unit without a scale beside it (`ZAR million`), the scale, and whether it is percent."""
    name = " ".join((unit or "").split())
    if name.lower() in _PERCENT:
        return None, 0, True
    names = name.split()
    for at in (-1, 0):
        if names and names[at].lower() in _SCALES and (len(names) > 1 or len(name) > 1):
            power = _SCALES[names.pop(at).lower()]
            return " ".join(names) or None, power, False
    return _SYMBOLS.get(name.lower(), name) or None, 0, False


def _is_percent(unit: str | None) -> bool:
    words = (unit or "").lower()
    return "%" in words or "percent" in words
