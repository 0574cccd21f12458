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
    "k": 3, "thousand": 3, "thousands": 3, "m": 6, "mn": 6, "mln": 6, "million": 6, "millions": 6,
    "b": 9, "bn": 9, "billion": 9, "billions": 9,
    "t": 12, "tn": 12, "trn": 12, "trillion": 12, "trillions": 12,
}  # fmt: skip
_PERCENT: Final = ("%", "percent", "per cent", "pct")
_VALUE: Final = re.compile(
    r"(?P<sign>[-\u2212(]?)(?P<code>[A-Za-z]{3} )?(?P<minus>[-\u2212]?)"
    r"(?P<digits>[0-9]{1,3}(?:[, ][0-9]{3})+|[0-9]{1,60})(?P<decimals>[.][0-9]{1,20})?"
    r"\)? ?(?P<word>%|[A-Za-z ]{0,20})"
)
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
    match = _VALUE.fullmatch(value.strip())
    if match is None:
        raise ValueError("expected a number such as 2.9bn, 291.9 million, 1,234.5 or 12%")
    scale, percent = _word(match["word"])
    unit, more, also_percent = _unit(unit)
    if match["code"]:
        code = currency(match["code"])
        if code is None or unit not in (None, code):
            raise ValueError("begins with another currency than `unit`, or with none")
        unit = code
    whole = re.sub("[, ]", "", match["digits"])
    decimals = (match["decimals"] or ".")[1:]
    number = Decimal(f"{whole}{'.' if decimals else ''}{decimals}")
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
    if match["sign"] or match["minus"]:
        number = -number
    return ClaimedValue(number, tolerance, is_percent, None if is_percent else unit)


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


def _word(word: str) -> tuple[int, bool]:
    name = " ".join(word.lower().split())
    if name in _PERCENT:
        return 0, True
    if name and name not in _SCALES:
        raise ValueError("expected k, m, bn, thousand, million, billion, trillion or % behind the number")
    return _SCALES.get(name, 0), False


def _unit(unit: str | None) -> tuple[str | None, int, bool]:
    """The unit without a scale behind it (`ZAR million`), the scale, and whether it is percent."""
    name = " ".join((unit or "").split())
    if name.lower() in _PERCENT:
        return None, 0, True
    *first, last = name.split() or [""]
    if last.lower() in _SCALES and (first or len(last) > 1):
        return " ".join(first) or None, _SCALES[last.lower()], False
    return name or None, 0, False


def _is_percent(unit: str | None) -> bool:
    words = (unit or "").lower()
    return "%" in words or "percent" in words
