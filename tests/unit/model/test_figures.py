"""Figures keep every digit, and one figure has one spelling."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.figures import exact
from tests.every import every


@every(
    ("text", "figure"),
    [
        *(("0", "0"), ("-0", "0"), ("0.000", "0"), ("-0.0", "0"), ("5", "5"), ("5.00", "5"), ("5e0", "5")),
        *(("+5", "5"), ("007", "7"), ("50", "50"), ("500.50", "500.5"), ("-0.10", "-0.1"), ("1e3", "1000")),
        *(("1E-3", "0.001"), (".5", "0.5"), ("5.", "5"), (" 5 ", "5")),
        ("9007199254740993", "9007199254740993"),
        ("8123456789012345.67", "8123456789012345.67"),
        ("123456789012345678901234567890.123456789", "123456789012345678901234567890.123456789"),
    ],
)
def test_a_figure_is_written_plainly_with_every_digit(text: str, figure: str) -> None:
    assert exact(text) == figure


@pytest.mark.rule("FIG-3")
@every(
    "text",
    [
        "",
        "NaN",
        "nan",
        "sNaN",
        "inf",
        "-Infinity",
        "1,000",
        "1 000",
        "1_000",
        "١٢",
        "five",
        "0x10",
        "1e999999",
        "1e-99",
        "--1",
        "1e",
    ],
)
def test_what_is_not_a_finite_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        exact(text)


def test_a_refusal_never_repeats_the_text_which_may_be_a_name() -> None:
    with pytest.raises(ValueError, match="number") as refusal:
        exact("Zorblatt Quimbyson")
    assert "Zorblatt" not in str(refusal.value)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40, places=12))
def test_the_value_never_changes_and_the_spelling_is_stable(number: Decimal) -> None:
    written = exact(str(number))
    assert Decimal(written) == number
    assert exact(written) == written
    assert "e" not in written.lower()


@given(st.integers(-(10**58), 10**58))
def test_an_integer_of_any_size_is_itself(number: int) -> None:
    assert exact(str(number)) == str(number)
    assert exact(f"{number}.0000") == str(number)
