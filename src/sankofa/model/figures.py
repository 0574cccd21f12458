"""Exact figures: every digit of the source, never through a float (contract: FIG-1, FIG-3); and their units.

The World Bank writes unit and remark in parentheses after a name: "Unemployment, total (% of total labor
force) (modeled ILO estimate)". Other publishers use one field. `unit` is the unit, `note` is the remark.
"""

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, NamedTuple

from sankofa.model.limits import limit

# Most figures are already in this form: a whole number, or a decimal without trailing zeros.
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?\Z")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]{1,3}(?:[. '\u00a0\u202f]?[0-9]{3})*+,[0-9]+|[-+]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[, '\u00a0\u202f][0-9]{3})++(?:\.[0-9]*)?")
_LARGEST_EXPONENT = limit(  # far beyond any amount of money; keeps "1e999999" from becoming a megabyte
    "size of a number", 60, "digits before or behind the point", "the row is rejected"
)

_MOST_SHARES: Final = 1000
"""Old shares in a split, at most."""


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
    digits_kept = _GUARD + max(0, bottom.bit_length() - top.bit_length())
    scaled = top * 10 ** (2 * digits_kept)
    root = isqrt(scaled // bottom)
    digits = root * 10 + (root * root * bottom != scaled)
    return quotient(Decimal(digits), Decimal((0, (1,), digits_kept + 1)))


def relative_change(before: Decimal | None, after: Decimal | None) -> Decimal | None:
    """(after - before) / |before|; None if the first is 0 or one of them is not there."""
    if after is None or not before:
        return None
    return rounded((Fraction(after) - Fraction(before)) / abs(Fraction(before)))


def split_in_words(ratio: Decimal) -> str:
    """New shares for old ones: `4:1`, `3:2`, `1:10`."""
    shares = Fraction(ratio).limit_denominator(_MOST_SHARES)
    return f"{shares.numerator}:{shares.denominator}"
