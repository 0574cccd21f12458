"""Which words are the unit, and which are a remark about it."""

import pytest

from sankofa.model.figures import read_unit, unit_of_indicator
from tests.every import every

NAMES = {
    "GDP (current US$)": ("current US$", ""),
    "Inflation, consumer prices (annual %)": ("annual %", ""),
    "Population, total": ("people", ""),
    "Labor force, total": ("people", ""),
    "Urban population": ("people", ""),
    "Population growth (annual %)": ("annual %", ""),
    "Population density (people per sq. km of land area)": ("people per sq. km of land area", ""),
    "Official exchange rate (LCU per US$, period average)": ("LCU per US$", "period average"),
    "Total reserves (includes gold, current US$)": ("current US$", "includes gold"),
    "External debt stocks, public (PPG) (DOD, current US$)": ("current US$", "DOD"),
    "Unemployment, total (% of total labor force) (modeled ILO estimate)": (
        "% of total labor force",
        "modeled ILO estimate",
    ),
    "Employment to population ratio, 15+, total (%) (modeled ILO estimate)": ("%", "modeled ILO estimate"),
    "Total debt service (% of exports of goods, services and primary income)": (
        "% of exports of goods, services and primary income",
        "",
    ),
    "Prevalence of HIV, total (% of population ages 15-49 (modeled))": (
        "% of population ages 15-49",
        "modeled",
    ),
    "Net lending (+) / net borrowing (-) (% of GDP)": ("% of GDP", ""),
    "Net lending (+) / net borrowing (-)": ("", ""),
    "Terms of trade index (2015 = 100)": ("2015 = 100", ""),
    "Strength of legal rights index (0=weak to 12=strong)": ("0=weak to 12=strong", ""),
    "Something (in the middle) of it": ("", ""),
    "Listed domestic companies, total": ("", ""),
    "": ("", ""),
    "()": ("", ""),
}


@pytest.mark.rule("MACRO-12")
@every(("name", "told"), NAMES.items())
def test_a_name_tells_the_unit_and_the_note(name: str, told: tuple[str, str]) -> None:
    assert unit_of_indicator(name) == told


@pytest.mark.rule("MACRO-12")
@every(
    ("code", "unit"),
    [
        ("SP.POP.TOTL", "people"),
        ("NY.GDP.MKTP.CD", "current US$"),
        ("NY.GDP.PCAP.PP.CD", "current international $"),
        ("BX.KLT.DINV.CD.WD", "current US$"),
        ("NY.GDP.DEFL.KD.ZG", "annual %"),
        ("NE.EXP.GNFS.ZS", "%"),
        ("FR.INR.LEND", ""),
        ("MY.CD", ""),
    ],
)
def test_a_code_tells_the_unit_where_there_is_no_name(code: str, unit: str) -> None:
    assert unit_of_indicator("", code) == (unit, "")


@pytest.mark.rule("MACRO-12")
@every(
    ("text", "told"),
    [
        ("ZAR per USD", ("ZAR per USD", "")),
        ("percent change, period average", ("percent change", "period average")),
        ("index, as the country's own base", ("index", "as the country's own base")),
        ("US dollars, per mt", ("US dollars, per mt", "")),
        ("Percent, Seasonally Adjusted", ("Percent", "Seasonally Adjusted")),
        ("% of total (modeled ILO estimate)", ("% of total", "modeled ILO estimate")),
        ("index (2015=100)", ("index (2015=100)", "")),
        ("modeled ILO estimate", ("", "modeled ILO estimate")),
        ("points", ("points", "")),
        ("bags, sewn", ("bags, sewn", "")),
        ("", ("", "")),
    ],
)
def test_a_unit_is_told_from_its_remarks(text: str, told: tuple[str, str]) -> None:
    assert read_unit(text) == told
