"""Rounding, in one place: derived values are exact until here, then 10 significant digits, half to even.

See contract: MET-4.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from math import isqrt

SIGNIFICANT_DIGITS = 10
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
