"""The pages in each language."""

import re
import subprocess
import sys
from decimal import Decimal

import httpx
import pytest

from sankofa.model.line_items import LINE_ITEMS
from sankofa.web.languages import LABELS, label, measure
from sankofa.web.languages import language as language_of
from tests.live import PATIENCE, LiveServer
from tests.services import REPOSITORY
from tests.web.site import COMPANY, Html


def test_every_line_item_has_a_name_in_every_language() -> None:
    assert [name for name in LINE_ITEMS if name not in LABELS] == []
    for code in ("fr", "pt", "ar", "sw"):
        same = {name for name in LINE_ITEMS if label(language_of(code), name) == LABELS[name]}
        assert same == set(), code


def test_every_message_is_translated_into_every_language() -> None:
    """In a separate process: other tests register metrics."""
    command = (sys.executable, "tools/catalogues.py", "--check")
    checked = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize("code", ["en", "fr", "ar"])
def test_a_new_metric_panel_or_text_is_shown_in_english_until_it_is_translated(code: str) -> None:
    language = language_of(code)
    assert label(language, "brand_new_ratio") == "Brand new ratio"
    assert language.text("A text that no catalogue has.") == "A text that no catalogue has."


def test_the_name_of_a_series_is_translated_with_its_country_and_its_frequency() -> None:
    french, arabic = language_of("fr"), language_of("ar")
    assert french.series("GDP (current US$)", "NG") == "PIB (US$ courants)"
    name = "Current account balance, US dollars, Congo, The Democratic Republic of the (IMF WEO)"
    assert (
        french.series(name, "CD")
        == "Solde du compte courant, dollars des États-Unis, Congo-Kinshasa (IMF WEO)"
    )
    assert arabic.series("Policy rate, Angola, monthly", "AO") == "سعر الفائدة الأساسي، أنغولا، شهري"
    assert french.series("Naira (NGN) for one US Dollar (USD), daily", "NG").endswith(", quotidien")
    rand = arabic.series("Rand (ZAR) for one US Dollar (USD), monthly (H10)", "ZA")
    assert rand == "راند جنوب أفريقيا مقابل دولار أمريكي واحد، شهري (H10)"
    assert french.series("A name of its own, monthly", "NG") == "A name of its own, monthly"
    assert language_of("en").series(name, "CD") == name
    assert (french.series(""), french.text("")) == ("", "")  # gettext stores its header under the empty text


def test_measures_of_panels_are_read_as_changes_shares_or_numbers() -> None:
    french = language_of("fr")
    assert measure(french, "revision_size", Decimal("0.09825")) == "+9,8\N{NO-BREAK SPACE}%"
    assert measure(french, "revision_size", Decimal("0.000002742")) == "<0,1\N{NO-BREAK SPACE}%"
    assert measure(french, "category_share", Decimal("0.002375")) == "0,2\N{NO-BREAK SPACE}%"
    assert measure(french, "buyer_hhi", Decimal("0.00001234567")) == "0,00001235"


def test_figures_follow_the_language(server: LiveServer) -> None:
    for code, revenue, point, percent in (
        ("fr", "Chiffre d&#39;affaires", ",", "\N{NO-BREAK SPACE}%"),
        ("ar", "الإيرادات", ".", "%"),
    ):
        headers = {"accept-language": code}  # ?lang= would be remembered
        text = server.http.get(f"{COMPANY}?as_of=2024-06-01", headers=headers).text
        assert revenue in text
        margins = re.findall(rf'<data value="0\.\d+" title="[^"]+">(\d+.\d){percent}', text)
        assert margins
        assert {value[-2] for value in margins} == {point}


def test_long_figures_and_units_are_shortened_and_named_as_cldr_says() -> None:
    written = {code: language_of(code).short(-45_500_000_000) for code in ("en", "fr", "pt", "ar", "sw")}
    assert written == {
        "en": "\N{MINUS SIGN}45.5B",
        "fr": "\N{MINUS SIGN}45,5\N{NO-BREAK SPACE}Md",
        "pt": "\N{MINUS SIGN}45,5\N{NO-BREAK SPACE}bi",
        "ar": "\N{MINUS SIGN}45.5\N{NO-BREAK SPACE}مليار",
        "sw": "\N{MINUS SIGN}45.5B",
    }
    assert language_of("sw").short(45_500) == "elfu\N{NO-BREAK SPACE}45.5"
    assert language_of("fr").unit("ZAR") == "rands sud-africains"
    assert language_of("en").unit("NGN per USD") == "Nigerian nairas for one US dollar"
    assert language_of("fr").unit("percent of GDP") == "pourcentage du PIB"
    assert language_of("fr").unit("furlongs") == "furlongs"


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (0.312, "+31%"),
        (-0.0523, "\N{MINUS SIGN}5.2%"),
        (0.00002, "<0.1%"),
        (0, "0.0%"),
        (-1, "\N{MINUS SIGN}100%"),
        (999_999, "\N{MULTIPLICATION SIGN}1,000,000"),
        (-0.999, "\N{DIVISION SIGN}1,000"),
        (10.0**30, "\N{MULTIPLICATION SIGN}1" + 10 * ",000"),
    ],
)
def test_a_change_is_written_so_that_its_size_can_be_read(change: float, written: str) -> None:
    assert language_of("en").signed_share(change) == written


def test_a_figure_of_any_size_is_rounded_for_reading() -> None:
    assert language_of("en").reading(Decimal(10**60)) == "1" + 20 * ",000"
    assert language_of("en").reading(Decimal("0.0012345")) == "0.00123"
    assert language_of("en").reading(Decimal("-0.0300")) == "\N{MINUS SIGN}0.03"


def test_an_arabic_day_has_one_order_everywhere() -> None:
    arabic = language_of("ar")
    assert arabic.day("2024-06-01") == "01/06/2024"
    assert "\N{RIGHT-TO-LEFT MARK}" not in arabic.instant("2024-06-01T10:00:00Z")


@pytest.mark.rule("WEB-10")
def test_the_interface_has_five_languages_with_their_number_formats(server: LiveServer) -> None:
    for language, direction, grouped in (
        ("en", "ltr", "3,056"),
        ("fr", "ltr", "3\N{NARROW NO-BREAK SPACE}056"),
        ("pt", "ltr", "3.056"),
        ("ar", "rtl", "3,056"),
        ("sw", "ltr", "3,056"),
    ):
        with httpx.Client(base_url=server.url, verify=False) as visitor:  # noqa: S501 - no TLS here
            answer = visitor.get("/", headers={"accept-language": f"{language}-XX,en;q=0.3"})
            (html,) = Html.of(answer.text).all("html")
            assert (html.attributes["lang"], html.attributes["dir"]) == (language, direction)
            assert grouped in answer.text, language
            assert 'lang="pt"' in visitor.get("/?lang=pt").text
            assert '<html lang="pt"' in visitor.get("/").text, "the choice is remembered"


@pytest.mark.rule("WEB-10")
def test_english_names_are_marked_as_english_on_translated_pages(server: LiveServer) -> None:
    (heading,) = Html.of(server.http.get("/macro/series/CPI.ZA?lang=fr").text).all("h1")
    assert heading.text.startswith("Indice des prix"), heading.text
    for address in ("/macro?country=ZA&lang=ar", "/docs/api?lang=pt"):
        page = Html.of(server.http.get(address, headers={"accept": "text/html"}).text)
        english = [one.text for one in page.elements if one.attributes.get("lang") == "en"]
        assert any("main" in one.inside for one in page.elements if one.text in english), address
