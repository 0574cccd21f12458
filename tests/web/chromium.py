"""A real Chromium for the tests, one for each test file; it records every error of a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.services import missing

_PATIENCE_MS = 30_000
expect.set_options(timeout=_PATIENCE_MS)  # a busy machine is slow, not wrong

_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str:
    """The path of Chromium. Skips the test with a message if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        missing("a browser (no chromium in PATH)")
    return path


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), headless=True, args=list(_SWITCHES)
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visitor:
    """A window of the browser on the site, and the errors in it."""

    page: Page
    context: BrowserContext
    url: str
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> int:
        """Open an address of the site; returns its status."""
        response = self.page.goto(self.url + address)
        assert response is not None
        return response.status


@contextmanager
def visitor(browser: Browser, url: str, *, key: str | None = None, **options: Any) -> Iterator[Visitor]:
    """A window with its own cookies. It fails on exit if a page logged an error or contacted another host."""
    context = browser.new_context(**options)
    context.set_default_timeout(_PATIENCE_MS)
    if key is not None:
        context.add_cookies([{"name": "sankofa_key", "value": key, "url": url}])
    page = context.new_page()
    window = Visitor(page, context, url)
    page.on("console", lambda message: _note(window, message.type, message.text))
    page.on("pageerror", lambda failure: window.complaints.append(str(failure)))
    page.on("request", lambda request: _check_host(window, request.url))
    try:
        yield window
        assert window.complaints == []
    finally:
        context.close()


def _note(window: Visitor, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        window.complaints.append(f"{kind}: {text}")


def _check_host(window: Visitor, address: str) -> None:
    if not address.startswith((window.url, "blob:", "data:")):
        window.complaints.append(f"asked another host: {address}")
