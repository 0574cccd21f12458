"""Check digits by table, held against python-stdnum."""

import string

import stdnum.isin
import stdnum.lei
from hypothesis import given
from hypothesis import strategies as st
from stdnum.iso7064 import mod_97_10

from sankofa.model.identifiers import is_isin, is_lei
from tests.every import every

ALPHABET = string.digits + string.ascii_uppercase
COUNTRIES = st.sampled_from(["ZA", "NG", "US", "XS", "EU", "AN", "QQ", "A1"]) | st.text(
    string.ascii_uppercase, min_size=2, max_size=2
)


@given(COUNTRIES, st.text(ALPHABET, min_size=9, max_size=9), st.sampled_from(ALPHABET))
def test_an_isin_is_judged_as_stdnum_judges_it(country: str, number: str, other: str) -> None:
    right = country + number + stdnum.isin.calc_check_digit(country + number)
    assert is_isin(right) == stdnum.isin.is_valid(right)
    wrong = right[:-1] + other
    assert is_isin(wrong) == stdnum.isin.is_valid(wrong)


@given(st.text(ALPHABET, min_size=18, max_size=18), st.text(string.digits, min_size=2, max_size=2))
def test_an_lei_is_judged_as_stdnum_judges_it(base: str, other: str) -> None:
    right = base + mod_97_10.calc_check_digits(base)
    assert is_lei(right)
    assert stdnum.lei.is_valid(right)
    assert is_lei(base + other) == stdnum.lei.is_valid(base + other)


@given(st.text(max_size=24) | st.text(ALPHABET + " -_", min_size=11, max_size=21))
def test_nothing_passes_that_stdnum_refuses(text: str) -> None:
    assert not is_isin(text) or stdnum.isin.is_valid(text)
    assert not is_lei(text) or stdnum.lei.is_valid(text)


@every(
    "text",
    [
        "",
        "ZAE000015229",
        "zae000015228",
        "ZAE000015228\n",
        " ZAE000015228",
        "ZAE00001522\u0668",
        "QQ0000000000",
    ],
)
def test_what_is_not_an_isin_in_canonical_form_is_left_to_stdnum(text: str) -> None:
    assert not is_isin(text)
    assert is_isin("ZAE000015228")


@every(
    "text",
    ["", "529900T8BM49AURSDO56", "529900t8bm49aursdo55", "529900T8BM49AURSDO55\n", "529900T8BM49AURSDO5"],
)
def test_what_is_not_an_lei_in_canonical_form_is_left_to_stdnum(text: str) -> None:
    assert not is_lei(text)
    assert is_lei("529900T8BM49AURSDO55")
