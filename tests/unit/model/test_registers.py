"""One register under several spellings is one scheme."""

import re

from sankofa.model.identifiers import (
    _registers,
    in_one_spelling,
    make_identifier,
    register_code,
)
from sankofa.model.organisations.tables import registers
from tests.every import every


@every(
    ("scheme", "number", "kept"),
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
def test_a_number_is_kept_in_one_way(scheme: str, number: str, kept: str) -> None:
    assert str(make_identifier("registry", number, scheme)) == kept
    assert in_one_spelling(kept) == kept


def test_what_was_stored_before_is_read_as_it_would_be_today() -> None:
    assert in_one_spelling("registry:ZA-CIP:1979/003231/06") == "registry:ZA-CIPC:1979/003231/06"
    assert in_one_spelling("lei:529900T8BM49AURSDO55") == "lei:529900T8BM49AURSDO55"


def test_every_gleif_code_is_well_formed_and_every_code_spells_itself() -> None:
    codes = [name for name in _registers() if re.match(r"RA\d", name)]
    assert codes
    assert all(re.fullmatch(r"RA\d{6}", code) for code in codes)
    assert all(register_code(code) == code for code in {r.code for r in _registers().values()})


def test_every_register_of_the_gate_is_known_by_its_one_code() -> None:
    assert all(register_code(code) == code for code in registers())
