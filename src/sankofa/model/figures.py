"""Exact figures: every digit the source gave, never through a float (contract: FIG-1, FIG-3)."""

import re
from decimal import Decimal, InvalidOperation

from sankofa.model.limits import limit

# Most figures are written as they should be: a whole number, or a decimal whose last digit counts.
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?\Z")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]{1,3}(?:[. '\u00a0\u202f]?[0-9]{3})*+,[0-9]+|[-+]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[, '\u00a0\u202f][0-9]{3})++(?:\.[0-9]*)?")
_LARGEST_EXPONENT = limit(  # far beyond any amount of money; keeps "1e999999" from becoming a megabyte
    "size of a number", 60, "digits before or behind the point", "the row is rejected"
)


def exact(text: str) -> str:
    """The one way a figure is written: a plain decimal, no exponent, no trailing fraction zeros.

    Two spellings of one figure ("5", "5.00", "5e0") become equal, so that reporting it again is
    not mistaken for a restatement. Raises ValueError for what is not a finite number, without
    repeating it: in a row gone astray it may be a name.
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
    """The figure in a field of a file; empty where that is. Raises ValueError, which names the field."""
    try:
        return exact(text) if text else ""
    except ValueError as failure:
        raise ValueError(f"{field}: {failure}") from None
