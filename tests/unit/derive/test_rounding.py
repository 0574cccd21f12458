"""Rounding: what is exact stays so to the last of ten digits."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.derive.rounding import rounded, rounded_root
from sankofa.model.provenance import LICENSE_CLASSES, strictest
from tests.every import every

TEN = Context(prec=10, rounding=ROUND_HALF_EVEN)
fractions = st.fractions(min_value=0, max_value=10**30)


@every(
    ("value", "written"),
    [
        (Fraction(1, 3), "0.3333333333"),
        (Fraction(2, 3), "0.6666666667"),
        (Fraction(-1, 4), "-0.25"),
        (Fraction(10000000005, 10), "1000000000"),
        (Fraction(10000000015, 10), "1000000002"),
    ],
)
def test_ten_digits_are_kept_and_a_half_goes_to_the_even_one(value: Fraction, written: str) -> None:
    assert rounded(value) == Decimal(written)


@every(
    ("value", "root"),
    [
        (Fraction(0), "0"),
        (Fraction(4, 9), "0.6666666667"),
        (Fraction(2), "1.414213562"),
        (Fraction(1, 10**40), "1E-20"),
        (Fraction(10000000005**2, 100), "1000000000"),  # an exact half: to the even digit
        (Fraction(10000000005**2 * 10**60 + 1, 10**62), "1000000001"),  # a hair above it
    ],
)
def test_a_root_is_rounded_from_all_its_digits(value: Fraction, root: str) -> None:
    assert rounded_root(value) == Decimal(root)


@given(fractions)
def test_a_root_is_the_decimal_next_to_it(value: Fraction) -> None:
    """Checked by squaring the midpoints on either side of it: no root is taken here."""
    root = rounded_root(value)
    if not value:
        assert root == 0
        return
    below, above = (Fraction(TEN.next_minus(root)), Fraction(TEN.next_plus(root)))
    exact = Fraction(root)
    assert ((below + exact) / 2) ** 2 <= value <= ((above + exact) / 2) ** 2


@pytest.mark.rule("PROV-10")
def test_what_is_derived_is_held_under_the_strictest_class_of_its_inputs() -> None:
    assert strictest(["cc-by", "public-domain"]) == "cc-by"
    assert strictest(reversed(LICENSE_CLASSES)) == "licensed-redistribution"
