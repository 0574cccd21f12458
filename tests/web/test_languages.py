"""The pages in each language."""

import re

import httpx
import pytest

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.derive.signals.contract import panels
from sankofa.model.line_items import LINE_ITEMS
from sankofa.web.languages import LABELS, label
from sankofa.web.languages import language as language_of
from sankofa.web.pages.signals import NOT_SHOWN
from tests.live import LiveServer
from tests.web.site import COMPANY, Html


def test_every_line_item_metric_and_panel_has_a_name_in_every_language() -> None:
    names = [*LINE_ITEMS, *slugs(), *panels()]
    assert [name for name in names if name not in LABELS] == []
    for code in ("fr", "pt", "ar", "sw"):
        same = {name for name in LINE_ITEMS if label(language_of(code), name) == LABELS[name]}
        assert same == set(), code
        said = [metric.summary for metric in metrics()] + [panel.summary for panel in panels().values()]
        assert [words for words in said if language_of(code).text(words) == words] == [], code
        columns = {name for panel in panels().values() for name in panel.row.__struct_fields__}
        assert columns - LABELS.keys() <= set(NOT_SHOWN)


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
