"""Identifiers in canonical form, and the service_id made from one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model.identifiers import (
    Identifier,
    cik,
    lookup_key_of_text,
    make_identifier,
    parse_identifier,
    service_id,
    stored_lookup_key,
)
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
def test_what_is_no_identifier_is_refused(written: str) -> None:
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
def test_what_is_no_cik_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="CIK"):
        cik(value)


@pytest.mark.rule("ENT-1")
def test_the_service_id_of_an_identifier_is_the_same_everywhere_and_for_ever() -> None:
    # Written out: whoever changes how ids are made breaks every id that was ever given to a client.
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
def test_what_a_person_types_is_looked_up_as_what_is_stored(id_type: str, stored: str, typed: str) -> None:
    assert lookup_key_of_text(id_type, typed) == stored_lookup_key(stored)
