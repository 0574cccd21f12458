"""Countries and currencies by their ISO codes, in any case."""

from sankofa.model.countries import alpha2_of, alpha3_of, country, currency
from tests.every import every


@every("code", ["ZA", "za", "ZAF", "zaf", " Za "])
def test_a_country_is_known_by_either_code_in_any_case(code: str) -> None:
    assert country(code) == "ZA"


@every("code", ["", "XX", "ZZ", "EU", "AFE", "South Africa", "Z", "ZAR", "1A"])
def test_an_unknown_country_is_none(code: str) -> None:
    assert country(code) is None


def test_the_two_codes_lead_to_each_other() -> None:
    assert len(alpha3_of()) == len(alpha2_of()) > 240
    assert all(country(three) == two for two, three in alpha3_of().items())


@every("code", ["ZAR", "zar", "NGN", "XOF", "XAF", "MAD", "EGP", "GHS", "ZMW", "USD", "ZWG"])
def test_a_currency_in_use_is_known(code: str) -> None:
    assert currency(code) == code.upper()


@every("code", ["GHC", "ZMK", "MRO", "STD", "SLL", "ZWL", "DEM", "HRK", "VEF"])
def test_a_currency_of_older_filings_is_known(code: str) -> None:
    assert currency(code) == code


@every("code", ["", "shares", "pure", "USD/shares", "ZZZ", "R", "$", "BTC", "RAND"])
def test_what_is_no_currency_is_none(code: str) -> None:
    assert currency(code) is None
