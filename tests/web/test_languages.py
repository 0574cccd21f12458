"""The pages in each language."""

import re

import httpx
import pytest

from sankofa.model.line_items import LINE_ITEMS
from sankofa.web.languages import LABELS, label
from sankofa.web.languages import language as language_of
from tests.live import LiveServer
from tests.web.site import COMPANY, Html
from tools.catalogues import messages


def test_every_line_item_has_a_name_in_every_language() -> None:
    assert [name for name in LINE_ITEMS if name not in LABELS] == []
    for code in ("fr", "pt", "ar", "sw"):
        same = {name for name in LINE_ITEMS if label(language_of(code), name) == LABELS[name]}
        assert same == set(), code


def test_nearly_every_message_is_translated_into_every_language() -> None:
    wanted = messages()
    for code in ("fr", "pt", "ar", "sw"):
        missing = [text for text in wanted if text not in language_of(code)._messages]
        assert len(missing) <= len(wanted) // 50, (code, missing)


@pytest.mark.parametrize("code", ["en", "fr", "ar"])
def test_a_new_metric_panel_or_text_is_shown_in_english_until_it_is_translated(code: str) -> None:
    language = language_of(code)
    assert label(language, "brand_new_ratio") == "Brand new ratio"
    assert language.text("A text that no catalogue has.") == "A text that no catalogue has."


def test_figures_are_written_as_the_language_writes_them(server: LiveServer) -> None:
    for code, revenue, percent in (("fr", "Chiffre d&#39;affaires", ","), ("ar", "الإيرادات", ".")):
        headers = {"accept-language": code}  # ?lang= would be remembered
        text = server.http.get(f"{COMPANY}?as_of=2024-06-01", headers=headers).text
        assert revenue in text
        margins = re.findall(r'<data value="0\.\d+" title="[^"]+">(\d+.\d)\N{NO-BREAK SPACE}%', text)
        assert margins
        assert {value[-2] for value in margins} == {percent}


def test_an_arabic_day_has_its_parts_in_one_order_wherever_it_stands() -> None:
    arabic = language_of("ar")
    assert arabic.day("2024-06-01") == "01/06/2024"
    assert "\N{RIGHT-TO-LEFT MARK}" not in arabic.instant("2024-06-01T10:00:00Z")


@pytest.mark.rule("WEB-10")
def test_the_interface_speaks_five_languages_and_writes_figures_as_each_does(server: LiveServer) -> None:
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
