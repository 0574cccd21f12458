"""The head of every page in the longest language, from a phone to a desk."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.live import LiveServer
from tests.web.chromium import chromium, visitor


@pytest.mark.deep
@pytest.mark.rule("WEB-1")
def test_the_head_fits_in_french_and_a_phone_has_a_menu(server: LiveServer) -> None:
    with chromium() as browser:
        with visitor(browser, server.url, locale="fr", viewport={"width": 1120, "height": 800}) as window:
            window.go("/macro")
            links = window.page.locator(".head nav a")
            tops = {box["y"] for link in links.all() if (box := link.bounding_box()) is not None}
            assert len(tops) == 1
            search = window.page.locator(".head .find").bounding_box()
            assert search is not None
            assert search["y"] < min(tops) + 20, "the search stands beside the links"
        options: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "java_script_enabled": False}
        with visitor(browser, server.url, locale="fr", **options) as window:
            window.go("/compare?measure=revenue&a=kilimani&b=riftline&scale=log")
            expect(window.page.locator(".head nav")).to_be_hidden()
            window.page.get_by_label("Menu").check(force=True)
            for link in window.page.locator(".head nav a").all():
                box = link.bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= 390
                assert box["height"] >= 24
            window.page.get_by_role("link", name="Comparer").first.click()
            assert window.page.url.endswith("/compare")
