"""Identifiers, their check digits, registers, names and keys of series."""

import re
import string

import pytest
import stdnum.isin
import stdnum.lei
from hypothesis import given
from hypothesis import strategies as st
from stdnum.iso7064 import mod_97_10

from sankofa.model.identifiers import (
    Identifier,
    _registers,
    cik,
    in_one_spelling,
    is_isin,
    is_lei,
    lookup_key_of_text,
    make_identifier,
    parse_identifier,
    register_code,
    service_id,
    stored_lookup_key,
)
from sankofa.model.observations import indicator_code, quoted_in, series_key, series_name, series_type
from sankofa.model.organisations.tables import registers
from sankofa.model.text import near_words, neighbourhood, search_form, slips_between, tolerated, words
from tests.every import every


@every(
    ("written", "canonical"),
    [
        ("lei:529900T8BM49AURSDO55", "lei:529900T8BM49AURSDO55"),
        ("LEI: 529900t8bm49aursdo55 ", "lei:529900T8BM49AURSDO55"),
        ("lei:5299 00T8 BM49 AURS DO55", "lei:529900T8BM49AURSDO55"),
        ("isin:ZAE000015228", "isin:ZAE000015228"),
        ("ticker:JSE:WHL", "ticker:JSE:WHL"),
        ("ticker:jse:whl", "ticker:JSE:WHL"),
        ("ticker:NYSE:BRK.B", "ticker:NYSE:BRK.B"),
        ("registry:ZA-CIPC:1929/001986/06", "registry:ZA-CIPC:1929/001986/06"),
        ("registry:RA000001:RC  999 006", "registry:RA000001:RC 999 006"),
        ("registry:us-sec-cik:1045810", "registry:US-SEC-CIK:0001045810"),
        ("registry:XX:a:b", "registry:XX:A:B"),
        ("aggregator:oc:za/1", "aggregator:OC:za/1"),
        ("figi:bbg000blnnh6", "figi:BBG000BLNNH6"),
    ],
)
def test_every_spelling_of_an_identifier_becomes_one(written: str, canonical: str) -> None:
    assert str(parse_identifier(written)) == canonical
    assert str(parse_identifier(canonical)) == canonical


@every(
    "written",
    [
        "", "WHL", "name:Woolworths", "lei:", "lei:529900T8BM49AURSDO56", "lei:529900T8BM49AURSDO5",
        "isin:ZAE000015229", "isin:", "ticker:WHL", "ticker:JSE:", "ticker::WHL", "registry:1929/001986/06",
        "registry:ZA CIPC:1", "registry:ZA-CIPC:", "registry:ZA-CIPC:" + "9" * 65, "registry:ZA-CIPC:a\0b",
        "registry:US-SEC-CIK:12345678901", "registry:US-SEC-CIK:abc", "registry:US-SEC-CIK:0", "figi:",
    ],
)  # fmt: skip
def test_a_malformed_identifier_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        parse_identifier(written)


@every("written", ["registry:US-SEC-CIK:Zorblatt", "lei:Zorblatt Quimbyson", "Zorblatt:x"])
def test_a_refusal_never_repeats_the_text_which_may_be_a_name(written: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]") as refusal:
        parse_identifier(written)
    assert "zorblatt" not in str(refusal.value).lower()


@pytest.mark.rule("ENT-6")
def test_a_cik_has_ten_digits() -> None:
    assert cik(1045810) == cik("0001045810") == Identifier("registry", "US-SEC-CIK", "0001045810")


@every("value", ["", "-1", "1.0", "٣", "1" * 11, "0000000000"])
def test_a_malformed_cik_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="CIK"):
        cik(value)


@pytest.mark.rule("ENT-1")
def test_the_service_id_of_an_identifier_is_the_same_everywhere_and_for_ever() -> None:
    # Written out: a change in how ids are made breaks every id that a client ever got.
    assert service_id("lei:999900SAMPLEZA000189") == "DC46AF1B1AAA424B58D1368176"
    assert service_id(parse_identifier("lei:999900sampleza000189")) == "DC46AF1B1AAA424B58D1368176"
    assert service_id(cik(1045810)) == "DC0C886484A395C430181D31BC"


@pytest.mark.rule("ENT-1")
@given(st.from_regex(r"[A-Z0-9]{1,12}", fullmatch=True), st.from_regex(r"[A-Z0-9]{1,12}", fullmatch=True))
def test_a_service_id_is_dc_and_24_hex_characters(one: str, other: str) -> None:
    ids = [service_id(make_identifier("ticker", ticker, "JSE")) for ticker in (one, other)]
    assert all(re.fullmatch(r"DC[0-9A-F]{24}", i) for i in ids)
    assert (ids[0] == ids[1]) == (one == other)


@every(
    ("id_type", "stored", "typed"),
    [
        ("lei", "lei:529900T8BM49AURSDO55", "5299 00t8-BM49 aursdo55"),
        ("ticker", "ticker:JSE:WHL", "jse:whl"),
        ("registry", "registry:RA000001:RC 999 006", "rc999 006"),
        ("registry", "registry:XX:A:B", "a:b"),
        ("isin", "isin:ZAE000015228", "zae000015228"),
    ],
)
def test_typed_identifiers_are_normalised_like_stored_ones(id_type: str, stored: str, typed: str) -> None:
    assert lookup_key_of_text(id_type, typed) == stored_lookup_key(stored)


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
def test_no_identifier_passes_that_stdnum_refuses(text: str) -> None:
    assert not is_isin(text) or stdnum.isin.is_valid(text)
    assert not is_lei(text) or stdnum.lei.is_valid(text)


@every("text", ["", "ZAE000015229", "zae000015228", "ZAE000015228\n", "ZAE00001522\u0668", "QQ0000000000"])
def test_other_spellings_are_left_to_stdnum(text: str) -> None:
    assert not is_isin(text)
    assert is_isin("ZAE000015228")
    assert not is_lei("529900t8bm49aursdo55")
    assert is_lei("529900T8BM49AURSDO55")


@every(
    ("scheme", "number", "stored"),
    [
        ("ZA-CIP", "1979/003231/06", "registry:ZA-CIPC:1979/003231/06"),
        ("ra000531", "1979-003231-06", "registry:ZA-CIPC:1979/003231/06"),
        ("cipc", "K2012/123456/07", "registry:ZA-CIPC:2012/123456/07"),
        ("NG-CAC", "rc 6971", "registry:NG-CAC:RC6971"),
        ("RA000469", "0006971", "registry:NG-CAC:RC6971"),
        ("Corporate  Affairs Commission", "RC-6971", "registry:NG-CAC:RC6971"),
        ("NG-CAC", "6971", "registry:NG-CAC:6971"),
        ("NG-CAC", "BN 6971", "registry:NG-CAC:BN 6971"),
        ("KE-BRS", "PVT/ABCD12", "registry:KE-RCO:PVT-ABCD12"),
        ("RA000585", "7211438", "registry:GB-COH:07211438"),
        ("GB-COH", "SC123456", "registry:GB-COH:SC123456"),
        ("RA990001", "1994/9990001/06", "registry:RA990001:1994/9990001/06"),
        ("US-SEC-CIK", "1045810", "registry:US-SEC-CIK:0001045810"),
    ],
)
def test_a_registry_number_has_one_stored_spelling(scheme: str, number: str, stored: str) -> None:
    assert str(make_identifier("registry", number, scheme)) == stored
    assert in_one_spelling(stored) == stored


def test_older_stored_numbers_are_read_in_the_spelling_of_today() -> None:
    assert in_one_spelling("registry:ZA-CIP:1979/003231/06") == "registry:ZA-CIPC:1979/003231/06"
    assert in_one_spelling("lei:529900T8BM49AURSDO55") == "lei:529900T8BM49AURSDO55"


def test_every_gleif_code_is_well_formed_and_every_code_spells_itself() -> None:
    codes = [name for name in _registers() if re.match(r"RA\d", name)]
    assert codes
    assert all(re.fullmatch(r"RA\d{6}", code) for code in codes)
    assert all(register_code(code) == code for code in {r.code for r in _registers().values()})


def test_every_register_of_the_gate_is_known_by_its_one_code() -> None:
    assert all(register_code(code) == code for code in registers())


WORD = st.text("abcde", min_size=0, max_size=8)


def test_accents_case_dots_and_punctuation_do_not_matter() -> None:
    assert search_form("Société  Échantillon du Cacao, S.A.") == "societe echantillon du cacao sa"
    assert search_form("O'Reilly & Sons (Pty) Ltd.") == "oreilly and sons pty ltd"


def test_legal_forms_are_dropped_where_something_else_is_left() -> None:
    assert words("Kgalagadi Sample Retail (Pty) Ltd") == words("KGALAGADI SAMPLE RETAIL PLC")
    assert words("Limited") == ["limited"]


def test_a_name_in_another_script_is_kept_without_its_marks() -> None:
    assert words("الدلتا للأدوية") == words("الدلتا للادوية") == ["الدلتا", "للادوية"]


def errors_between(word: str, other: str) -> int:
    """The distance by definition: letters inserted, deleted, replaced, or two neighbours swapped."""
    before, row = list[int](), list(range(len(other) + 1))
    for i, a in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and word[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


@given(WORD | st.text("ab", max_size=6), WORD | st.text("ab", max_size=6))
def test_the_number_of_slips_equals_the_edit_distance(one: str, other: str) -> None:
    near = not set(neighbourhood(one)).isdisjoint(neighbourhood(other))
    expected = errors_between(one, other) if near else None
    assert slips_between(one, other) == slips_between(other, one) == expected


@given(WORD | st.text("ab", max_size=6), st.lists(WORD | st.text("ab", max_size=6)))
def test_near_words_are_found_among_strangers(word: str, others: list[str]) -> None:
    distances = [(slips_between(word, other), other) for other in others]
    assert near_words(word, others) == [pair for pair in distances if pair[0] is not None]


@given(st.text(st.characters(max_codepoint=127)))
def test_a_name_without_accents_is_folded_as_one_with_them(name: str) -> None:
    assert f"{search_form(name)} e".split() == search_form(f"{name} é").split()


def test_short_words_must_match_exactly() -> None:
    assert [tolerated(w) for w in ("abc", "abcd", "abcdefghi")] == [0, 1, 2]


def test_keys_and_codes_are_in_upper_case_and_families_in_lower() -> None:
    assert series_key("fx.usd.zar") == "FX.USD.ZAR"
    assert series_key("Cpi.Za-1") == "CPI.ZA-1"
    assert series_key("FX.EUR.CYP") == "FX.EUR.CYP"  # a currency of history
    assert series_key("fx.usd.zar.h10") == "FX.USD.ZAR.H10"  # another source, another frequency
    assert indicator_code("ny.gdp.mktp.cd") == "NY.GDP.MKTP.CD"
    assert series_type("CPI") == "cpi"


@every(
    "key",
    [
        "",
        "A B",
        "A|B",
        "-A",
        "É",
        "A" * 65,
        "FX.USD",
        "FX.USD.ZAR.",
        "FX.USD.ZAR.H10.X",
        "FX.QQQ.ZAR",
        "FX.ZAR.ZAR",
    ],
)
def test_a_malformed_key_of_a_series_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="series: expected"):
        series_key(key)


@pytest.mark.rule("MACRO-8")
@every(
    ("series", "country"),
    [
        ("FX.EUR.ZAR", "ZA"),
        ("FX.USD.ZAR.H10", "ZA"),
        ("FX.ZAR.USD", "US"),
        ("FX.EUR.CYP", "CY"),
        ("FX.USD.EUR", ""),
        ("FX.EUR.XOF", ""),
        ("FX.EUR.XAU", ""),
        ("CPI.ZA", ""),
        ("CPI.EUR.ZAR", ""),
    ],
)
def test_a_rate_belongs_to_the_country_of_its_quote_currency(series: str, country: str) -> None:
    assert quoted_in(series) == country


@pytest.mark.parametrize(
    ("series", "family", "frequency", "country", "name"),
    [
        ("FX.USD.ZAR.H10", "fx", "monthly", "ZA", "Rand (ZAR) for one US Dollar (USD), monthly (H10)"),
        ("WEO.NGDP_RPCH.GH", "weo", "annual", "GH", "Real GDP growth, Ghana (IMF WEO)"),
        ("WEO.NEW_CODE.GH", "weo", "annual", "GH", "IMF WEO: new code, Ghana, annual"),
        ("CPI.ZA.M", "cpi", "monthly", "ZA", "Consumer price index (CPI), South Africa, monthly"),
        ("COMMODITY.PALM-OIL", "commodity", "monthly", "", "Commodity price: palm oil, monthly"),
        ("COMMODITY.BRENT", "commodity", "monthly", "", "Commodity price: crude oil, Brent, monthly"),
        ("COMMODITY.WHEAT-SRW", "commodity", "daily", "", "Commodity price: wheat SRW, daily"),
        ("POLICY-RATE.NG", "policy_rate", "monthly", "NG", "Policy rate, Nigeria, monthly"),
        ("TESTX.OWN", "gdp", "weekly", "", "GDP, weekly"),
    ],
)
def test_a_series_without_a_name_is_named_after_its_key(
    series: str, family: str, frequency: str, country: str, name: str
) -> None:
    assert series_name(series, family, frequency, country) == name
