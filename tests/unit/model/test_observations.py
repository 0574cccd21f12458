"""What identifies a series and an indicator, and what a name says of its unit."""

import pytest

from sankofa.model.observations import indicator_code, quoted_in, series_key, series_type, unit_of


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("GDP (current US$)", "current US$"),
        ("Inflation, consumer prices (annual %)", "annual %"),
        ("Population, total", ""),
        ("Official exchange rate (LCU per US$, period average)", "LCU per US$, period average"),
        ("GDP per capita, PPP (constant 2021 international $)", "constant 2021 international $"),
        ("Access (total) to electricity (% of population)", "% of population"),
        (
            "Prevalence of HIV, total (% of population ages 15-49 (modeled))",
            "% of population ages 15-49 (modeled)",
        ),
        ("Something (in the middle) of it", ""),
        ("", ""),
        ("()", ""),
    ],
)
def test_the_unit_is_what_stands_in_parentheses_at_the_end_of_the_name(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_keys_and_codes_are_in_upper_case_and_families_in_lower() -> None:
    assert series_key("fx.usd.zar") == "FX.USD.ZAR"
    assert series_key("Cpi.Za-1") == "CPI.ZA-1"
    assert series_key("FX.EUR.CYP") == "FX.EUR.CYP"  # a currency of history
    assert indicator_code("ny.gdp.mktp.cd") == "NY.GDP.MKTP.CD"
    assert series_type("CPI") == "cpi"


@pytest.mark.parametrize(
    "key", ["", "A B", "A|B", "-A", "É", "A" * 65, "FX.USD", "FX.USD.ZAR.X", "FX.QQQ.ZAR", "FX.ZAR.ZAR"]
)
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="series: expected"):
        series_key(key)


@pytest.mark.rule("MACRO-8")
@pytest.mark.parametrize(
    ("series", "country"),
    [
        ("FX.EUR.ZAR", "ZA"),
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
