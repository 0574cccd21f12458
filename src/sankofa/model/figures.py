"""Exact figures: every digit of the source, never through a float (contract: FIG-1, FIG-3); and their units.
Claims about figures: a value and a period as people write them, and whether a figure supports one.

The World Bank writes unit and remark in parentheses after a name: "Unemployment, total (% of total labor
force) (modeled ILO estimate)". Other publishers use one field. `unit` is the unit, `note` is the remark.

A claim is rounded as it is written: 2.9bn is any figure that rounds to it. Zeros at the end of a whole number
count as rounding beyond three significant digits. A claim of one digit, other than a percentage, allows no
more than 5% (contract: CLM-2).
"""

import re
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, NamedTuple

from sankofa.model.countries import currency
from sankofa.model.days import parse_day
from sankofa.model.limits import limit

# Most figures are already in this form: a whole number, or a decimal without trailing zeros.
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?\Z")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]{1,3}(?:[. '\u00a0\u202f]?[0-9]{3})*+,[0-9]+|[-+]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[, '\u00a0\u202f][0-9]{3})++(?:\.[0-9]*)?")
_LARGEST_EXPONENT = limit(  # far beyond any amount of money; keeps "1e999999" from becoming a megabyte
    "size of a number", 60, "digits before or behind the point", "the row is rejected"
)


def exact(text: str) -> str:
    """The one way a figure is written: a plain decimal, no exponent, no trailing fraction zeros.

    Spellings of one figure ("5", "5.00", "5e0") become equal, so that repeating it is no restatement. Raises
    ValueError for anything but a finite number, and never repeats the text: it may be a misplaced name.
    """
    if len(text) <= _LARGEST_EXPONENT and _PLAIN.match(text):
        return "0" if text == "-0" else text
    try:
        number = Decimal(text)
    except InvalidOperation:
        if _DECIMAL_COMMA.fullmatch(text):
            raise ValueError(
                "not a number: a decimal comma; write a point and no separators, such as 1234.56"
            ) from None
        if _THOUSANDS.fullmatch(text):
            raise ValueError("not a number: separators of thousands; write 1234.56") from None
        raise ValueError("not a number") from None
    if not text.isascii() or "_" in text or not number.is_finite():
        raise ValueError("not a finite number")
    if abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("a number out of range")
    if number == 0:
        return "0"
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def figure_in(field: str, text: str) -> str:
    """The figure in a field of a file, empty for an empty field. Raises ValueError, which names the field."""
    try:
        return exact(text) if text else ""
    except ValueError as failure:
        raise ValueError(f"{field}: {failure}") from None


_GROUP = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\Z")
"""The parentheses at the end of a text, with one level inside them."""
_UNIT = re.compile(
    r"[%$€£=]|\b(?:per|percent|percentage|index|ratio|score|rank|scale|number|count|units?|currency"
    r"|LCU|SDRs?|[A-Z]{3} per [A-Z]{3}|U\.?S\.? dollars?|dollars?|euros?|rand"
    r"|years?|months?|weeks?|days?|hours?|minutes?|people|persons?|births|deaths|women|men|children"
    r"|thousands?|millions?|billions?|trillions?"
    r"|metric|tons?|tonnes?|kilotons?|kt|mt|kg|kilograms?|grams?|pounds?|bbl|barrels?|ounces?|oz"
    r"|km|kilometers?|meters?|metres?|mm|millimeters?|hectares?|ha|acres?|cubic|sq|liters?|litres?"
    r"|[kMG]?Wh?|watts?|joules?|TJ|BTU|mmbtu|degrees?|celsius|TEU|CO2)\b",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"(?:as|based on|excludes?|excluding|includes?|including|incl|excl|of which|from|according to|using)\b"
    r"|.*\b(?:estimates?|methodology|seasonally adjusted|unadjusted|not adjusted)\Z"
    r"|(?:annual |monthly |period )?average(?: of (?:the )?period)?\Z"
    r"|end[- ]of[- ](?:the )?(?:period|month|year)\Z"
    r"|(?:constant|current) prices\Z|provisional\Z|preliminary\Z|modeled\Z|modelled\Z",
    re.IGNORECASE,
)
_COUNTS_PEOPLE = re.compile(
    r"(?:(?:urban|rural|refugee) population|population|labou?r force|(?:international )?migrant stock"
    r"|net migration|armed forces personnel)\b(?!.*\b(?:growth|density|rate|ratio|share|index)\b)",
    re.IGNORECASE,
)
_PEOPLE_BY_CODE = re.compile(r"(?:SP\.(?:POP|URB|RUR)|SL\.TLF)\.TOTL(?:\.(?:FE|MA))?(?:\.IN)?\Z")
_WDI_CODE = re.compile(r"[A-Z]{2}\.[A-Z0-9]{3}\.")
_BY_CODE: Final = {
    "CD": "current US$",
    "KD": "constant US$",
    "CN": "current LCU",
    "KN": "constant LCU",
    "ZG": "annual %",
    "ZS": "%",
}
"""Units by the last parts of World Bank codes, such as CD in `NY.GDP.MKTP.CD`."""
PEOPLE: Final = "people"


class Unit(NamedTuple):
    """A unit and the publisher's remarks on the figures; empty if not given."""

    unit: str = ""
    note: str = ""


@lru_cache(maxsize=8192)
def read_unit(text: str) -> Unit:
    """Splits a publisher's unit field into unit and remarks: `percent change, period average`."""
    written = _split(text.strip())
    if written.unit or _REMARK.match(text):
        return written
    return Unit(text.strip())


@lru_cache(maxsize=8192)
def unit_of_indicator(name: str, code: str = "") -> Unit:
    """The unit of an indicator by its name, else by its code.

    The unit is in the last parentheses that hold one; text beside or after it is the note. A name without
    parentheses that counts people has the unit people.
    """
    notes: list[str] = []
    rest = name.strip()
    while group := _GROUP.search(rest):
        written = _split(group[1].strip())
        if written.unit:
            return Unit(written.unit, _joined(written.note, *notes))
        if not any(letter.isalpha() for letter in group[1]):  # a sign: "net borrowing (-)"
            break
        notes.insert(0, group[1].strip())
        rest = rest[: group.start()].rstrip()
    if _COUNTS_PEOPLE.match(rest) or _PEOPLE_BY_CODE.match(code):
        return Unit(PEOPLE, _joined(*notes))
    return Unit("" if name else _unit_of_code(code), _joined(*notes))


def _unit_of_code(code: str) -> str:
    if not _WDI_CODE.match(code):
        return ""
    parts = code.split(".")[2:]
    for at in range(len(parts) - 1, -1, -1):
        if unit := _BY_CODE.get(parts[at]):
            purchasing_power = at and parts[at - 1] == "PP"
            return unit.replace("US$", "international $") if purchasing_power else unit
    return ""


def _split(text: str) -> Unit:
    """A unit and the remarks before and after it; no unit if no part is one."""
    notes: list[str] = []
    while (group := _GROUP.search(text)) and group.start() and not _UNIT.search(group[1]):
        notes.insert(0, group[1].strip())
        text = text[: group.start()].rstrip()
    parts = text.split(", ")
    units = [at for at, part in enumerate(parts) if _UNIT.search(part) and not _REMARK.match(part)]
    if not units:
        return Unit("", _joined(text, *notes))
    first, end = units[0], len(parts)
    while end > first + 1 and _REMARK.match(parts[end - 1]):
        end -= 1
    return Unit(", ".join(parts[first:end]), _joined(*parts[:first], *parts[end:], *notes))


def _joined(*remarks: str) -> str:
    return "; ".join(filter(None, remarks))


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
            if unit == "ratio":
                return self._is_near(figure, -2)
            return self._is_near(figure, 0) if _is_percent(unit) else None
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
    """A year, a day, or a first and a last day."""

    year: int | None
    start: date | None
    end: date | None


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
    digits = match["point"] or match["comma"].translate({ord("."): None, ord(","): "."})
    whole, _, decimals = re.sub("[, ]", "", digits).partition(".")
    number = Decimal(f"{whole or 0}{'.' if decimals else ''}{decimals}")
    place = -len(decimals)
    if not decimals:  # zeros at the end may be rounding
        zeros = len(whole) - len(whole.rstrip("0"))
        place = max(min(zeros, len(whole) - _SIGNIFICANT), 0)
    number = number.scaleb(scale)
    is_percent = percent or (unit or "").lower() in _PERCENT
    tolerance = Decimal(5).scaleb(place - 1 + scale)
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
    """Reads a year, a day or START..END. Raises ValueError."""
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
    other = " ".join(name for name in names if name not in _SCALES)
    if len(scales) > 1 or (other and not _known_currency(other)):
        raise ValueError("expected k, m, bn, thousand, million, billion, trillion, % or a currency behind it")
    return _SCALES.get("".join(scales), 0), False, other


def _is_percent(unit: str | None) -> bool:
    words = (unit or "").lower()
    return "%" in words or "percent" in words


SIGNIFICANT_DIGITS: Final = 10
"""Derived values are exact until they are rounded here, half to even (contract: MET-4)."""
_ROUNDED = Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN)
_GUARD = 20
"""Extra decimal places that a root is computed to before it is rounded."""


def quotient(numerator: Decimal, denominator: Decimal) -> Decimal:
    """One exact figure divided by another."""
    return _ROUNDED.divide(numerator, denominator)


def rounded(value: Fraction) -> Decimal:
    """An exact value, written as a decimal."""
    return quotient(Decimal(value.numerator), Decimal(value.denominator))


def rounded_root(value: Fraction) -> Decimal:
    """The square root of an exact value that is not negative.

    Digits are cut off, not rounded, until the last step: a 1 stands for whatever was cut, so that
    a root close to the middle between two decimals is rounded to the right one.
    """
    top, bottom = value.numerator, value.denominator
    places = _GUARD + max(0, bottom.bit_length() - top.bit_length())
    scaled = top * 10 ** (2 * places)
    root = isqrt(scaled // bottom)
    digits = root * 10 + (root * root * bottom != scaled)
    return quotient(Decimal(digits), Decimal((0, (1,), places + 1)))


def relative_change(before: Decimal | None, after: Decimal | None) -> Decimal | None:
    """(after - before) / |before|; None if the first is 0 or one of them is not there."""
    if after is None or not before:
        return None
    return rounded((Fraction(after) - Fraction(before)) / abs(Fraction(before)))
