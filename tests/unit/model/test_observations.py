"""What identifies a series and an indicator."""

import pytest

from sankofa.model.observations import (
    SeriesKinds,
    indicator_code,
    quoted_in,
    series_key,
    series_name,
    series_type,
)
from tests.every import every


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
def test_what_is_no_key_is_refused(key: str) -> None:
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
def test_a_rate_is_of_the_country_whose_currency_it_is_quoted_in(series: str, country: str) -> None:
    assert quoted_in(series) == country


@pytest.mark.parametrize(
    ("series", "family", "frequency", "country", "name"),
    [
        ("FX.USD.ZAR.H10", "fx", "monthly", "ZA", "Rand (ZAR) for one US Dollar (USD), monthly (H10)"),
        ("WEO.NGDP_RPCH.GH", "weo", "annual", "GH", "Real GDP growth, Ghana (IMF WEO)"),
        ("WEO.NEW_CODE.GH", "weo", "annual", "GH", "IMF WEO: new code, Ghana, annual"),
        ("CPI.ZA.M", "cpi", "monthly", "ZA", "Consumer price index (CPI), South Africa, monthly"),
        ("COMMODITY.PALM-OIL", "commodity", "monthly", "", "Commodity price: palm oil, monthly"),
        ("COMMODITY.WHEAT-HRW", "commodity", "monthly", "", "Commodity price: wheat HRW, monthly"),
        ("POLICY-RATE.NG", "policy_rate", "monthly", "NG", "Policy rate, Nigeria, monthly"),
        ("TESTX.OWN", "gdp", "weekly", "", "GDP, weekly"),
    ],
)
def test_a_series_without_a_name_is_named_by_its_key(
    series: str, family: str, frequency: str, country: str, name: str
) -> None:
    assert series_name(series, family, frequency, country) == name


@pytest.mark.rule("MACRO-11")
def test_a_key_is_of_the_kind_that_became_public_first() -> None:
    given = [
        ("fx", "monthly", "2017-12-08"),
        ("fx", "daily", "2024-03-02"),
        ("fx", "monthly", "2026-01-01"),
        ("rates", "daily", "2017-12-08"),
    ]
    for rows in (given, given[::-1]):
        kinds = SeriesKinds()
        for row in rows:
            kinds.add(*row)
        assert kinds.one == ("rates", "daily")  # on one day, the finer frequency
