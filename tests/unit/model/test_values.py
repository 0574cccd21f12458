"""Values: days, figures, texts, countries, exchanges, sessions and units."""

import csv
import random
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import exchange_calendars  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.model import text
from sankofa.model.countries import alpha2_of, alpha3_of, country, currency
from sankofa.model.days import FOREVER, REAL_DAYS, instant, ordinal, parse_day, sessions, tradable_from
from sankofa.model.figures import exact, read_unit, unit_of_indicator
from sankofa.model.identifiers import _CODES, _EXCHANGES, exchange, exchange_of_figi
from tests.every import every


@given(st.dates())
def test_a_day_is_read_as_it_is_written(day: date) -> None:
    assert parse_day(day.isoformat()) == day
    assert re.fullmatch(REAL_DAYS, day.isoformat())
    assert ordinal(day.isoformat()) == day.toordinal() < FOREVER


@every(
    "text",
    [
        *("", "2024", "2024-1-1", "20240101", "2024-W01-1", "2024-01-01T00:00:00", " 2024-01-01"),
        *("2024-01-01\n", "+2024-01-01", "\u0662\u0660\u0662\u0664-01-01", "2024/01/01", "01-01-2024"),
    ],
)
def test_another_format_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a date as YYYY-MM-DD"):
        parse_day(text)


@every(
    "text", ["0000-01-01", "1900-02-29", "2023-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-01-00"]
)
def test_an_impossible_day_is_refused_and_does_not_match_the_pattern(text: str) -> None:
    assert not re.fullmatch(REAL_DAYS, text)
    with pytest.raises(ValueError, match="no such day"):
        parse_day(text)


def test_an_instant_is_written_in_utc_to_the_second() -> None:
    moment = datetime(2024, 1, 1, 1, 2, 3, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert instant(moment) == "2023-12-31T23:02:03Z"
    assert datetime.fromisoformat(instant(moment)).tzinfo == UTC


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
def test_a_number_that_is_not_finite_is_refused(text: str) -> None:
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


@every("unfit", ["a\0b", "a\nb", "a\x85b", "a\udc80b", "a\ufffeb", "a\uffffb"])
def test_text_that_cannot_be_stored_everywhere_is_refused(unfit: str) -> None:
    assert not text.fit(unfit)
    assert text.name(unfit) == "a b"


@every("name", ["Société", "A\u200fB", "株式会社", "O'Neil & Sons (Pty) Ltd"])
def test_letters_and_marks_of_every_script_are_accepted(name: str) -> None:
    assert text.fit(name)
    assert text.name(name) == name


def test_a_name_is_one_line_and_never_empty() -> None:
    assert text.name("  ACME \t HOLDINGS\u00a0 LTD ") == "ACME HOLDINGS LTD"
    assert text.name(" \0 ") is None


@every("code", ["ZA", "za", "ZAF", "zaf", " Za "])
def test_a_country_is_known_by_either_code_in_any_case(code: str) -> None:
    assert country(code) == "ZA"


@every("code", ["", "XX", "ZZ", "EU", "AFE", "South Africa", "Z", "ZAR", "1A"])
def test_an_unknown_country_is_none(code: str) -> None:
    assert country(code) is None


def test_the_two_codes_lead_to_each_other() -> None:
    assert len(alpha3_of()) == len(alpha2_of()) > 240
    assert all(country(three) == two for two, three in alpha3_of().items())


@every("code", "ZAR zar NGN XOF MAD EGP USD ZWG GHC ZMK MRO STD SLL ZWL DEM HRK VEF".split())
def test_a_currency_in_use_or_of_older_filings_is_known(code: str) -> None:
    assert currency(code) == code.upper()


@every("code", ["", "shares", "pure", "USD/shares", "ZZZ", "R", "$", "BTC", "RAND"])
def test_an_unknown_currency_is_none(code: str) -> None:
    assert currency(code) is None


@every("code", ["JSE", "jse", " XJSE ", "altx", "JNB"])
def test_every_code_of_an_exchange_leads_to_its_name(code: str) -> None:
    assert exchange(code) == "JSE"


def test_exchanges_with_the_same_letters_are_distinguished() -> None:
    assert [exchange(code) for code in ("XPAR", "SJ", "anything")] == ["XPAR", "SJ", "ANYTHING"]
    assert [exchange(mic) for mic in ("XNSE", "XNAI", "XNSA")] == ["NSE", "NSE-KE", "NGX"]
    assert [exchange(mic) for mic in ("XBOM", "XBOT")] == ["BSE", "BSE-BW"]


def test_no_code_means_two_exchanges() -> None:
    codes = [code for name, codes in _CODES.items() for code in {name, *codes}]
    assert len(codes) == len(set(codes))
    of_figi = [code for one in _EXCHANGES.values() for code in one.get("figi", "").split()]
    assert len(of_figi) == len(set(of_figi))


@every(("code", "name"), [("SJ", "JSE"), ("bg", "BSE-BW"), ("ZL", "LUSE"), ("AU", "ASX"), ("UQ", "NASDAQ")])
def test_a_code_of_the_figi_standard_names_its_exchange(code: str, name: str) -> None:
    assert exchange_of_figi(code) == name


@every("code", ["US", "B3", "XT", "XJSE", "JSE", ""])
def test_composites_platforms_and_other_codes_are_not_exchanges_of_the_figi_standard(code: str) -> None:
    assert exchange_of_figi(code) is None


def test_every_mic_is_one_of_iso_10383(shared_data: Path) -> None:
    with (shared_data / "identifiers" / "mic.csv").open(encoding="utf-8-sig", newline="") as stream:
        active = {row["mic"] for row in csv.DictReader(stream) if row["status"] == "active"}
    assert {mic for codes in _CODES.values() for mic in codes} - active == {"JNB"}


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pandas.errors.PandasChangeWarning")
@every("mic", ["XJSE", "XNYS", "XLON", "XHKG"])
def test_sessions_are_those_of_exchange_calendars(mic: str) -> None:
    calendar = exchange_calendars.get_calendar(mic, start="2005-01-01", end="2026-12-31")
    own = sessions(mic)
    assert own is not None
    chance = random.Random(20260101)
    for _ in range(300):
        day = date(2005, 1, 10) + timedelta(days=chance.randrange(7890))
        assert own.after(day) == calendar.date_to_session(str(day + timedelta(days=1)), "next").date()
        at = datetime.combine(day, datetime.min.time(), UTC) + timedelta(minutes=chance.randrange(1440))
        assert own.after(date(2005, 1, 3), at) == calendar.next_open(at).tz_convert(calendar.tz).date()


def test_exchanges_are_known_by_their_names_and_codes() -> None:
    friday = date(2024, 5, 24)
    assert tradable_from("JSE", friday, None) == tradable_from("XJSE", friday, None) == date(2024, 5, 27)
    assert tradable_from("NASDAQ", friday, None) == tradable_from("NYSE", friday, None) == date(2024, 5, 28)
    assert tradable_from("EGX", friday, None) == date(2024, 5, 26)  # Sunday
    assert tradable_from("NOWHERE", friday, None) is None
    # Near a lunar holiday: declared in 2024, estimated in 2010.
    assert tradable_from("XNAI", date(2024, 4, 9), None) == date(2024, 4, 11)
    assert tradable_from("XNAI", date(2010, 9, 8), None) is None
    assert tradable_from("XNAI", date(2010, 9, 13), None) == date(2010, 9, 14)
    assert tradable_from("JSE", date(2050, 1, 1), None) is None
    assert tradable_from("JSE", date(1950, 1, 1), None) is None


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
@every(("name", "expected"), NAMES.items())
def test_a_name_gives_the_unit_and_the_note(name: str, expected: tuple[str, str]) -> None:
    assert unit_of_indicator(name) == expected


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
def test_a_code_gives_the_unit_if_there_is_no_name(code: str, unit: str) -> None:
    assert unit_of_indicator("", code) == (unit, "")


@pytest.mark.rule("MACRO-12")
@every(
    ("text", "expected"),
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
def test_a_unit_is_separated_from_its_remarks(text: str, expected: tuple[str, str]) -> None:
    assert read_unit(text) == expected
