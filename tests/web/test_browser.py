"""The pages in a real browser: the day control, figures, and accessibility."""

import base64
import os
import random
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.depth import deep_after
from tests.live import LiveServer
from tests.services import REPOSITORY
from tests.torture import ALL_ROUNDS, rounds
from tests.web.chromium import Visitor, chromium, visitor
from tests.web.site import COMPANY, ISSUER, PAGES, SOME_PAGES, figures

IN_OTHER_FRAMES = (f"/at/2024-06-01{COMPANY}", "/embed/macro/series/CPI.ZA?as_of=2023-05-31")
PHONE = {"width": 390, "height": 844}
PAPER = {"width": 703, "height": 1015}
"""A4 within its margins, in pixels of CSS."""
PICTURES = REPOSITORY / "docs" / "pictures"
GOLD_FIELDS = "/company/DC91D49F08F903ABF0D2E95294"
PICTURED = {
    "home": "/",
    "company": f"{GOLD_FIELDS}?as_of=2020-06-30&kind=balance",
    "macro": "/macro/series/WDI:NY.GDP.MKTP.CD:NGA?as_of=2013-06-30",
    "tender": "/tenders?country=ZA",
}
_NEW_RULES = {"target-size": {"enabled": True}, "label-content-name-mismatch": {"enabled": True}}
_RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "rules": _NEW_RULES,
    "resultTypes": ["violations"],
}
_ALL_BUT_COLOURS = {**_RULES, "rules": {**_NEW_RULES, "color-contrast": {"enabled": False}}}
_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}
_MARK_NEW_TEXTS = """(seen) => {
  const known = new Set(seen), found = [];
  const colours = ["class", "style", "fill", "disabled", "aria-current", "aria-sort"];
  const own = (it) => it.tagName + colours.map((name) => it.getAttribute(name)).join("|");
  for (const it of document.body.querySelectorAll("*")) {
    if (![...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    const kind = [];
    for (let at = it; at !== document.documentElement; at = at.parentElement) kind.push(own(at));
    const text = kind.join(" ");
    if (known.has(text)) continue;
    known.add(text);
    found.push(text);
    it.setAttribute("data-new-text", "");
  }
  return found;
}"""
"""Marks the first text of each kind, and returns the kinds: what has the same elements around it, of the same
classes, has the same colours. To measure every cell of every table takes most of a minute."""
_CUT_WHAT_REPEATS = """(most) => {
  const valued = ["class", "role", "scope", "type", "style", "rel", "disabled", "aria-current", "aria-sort"];
  const shapes = new Map();
  const shape = (it) => {
    const own = [...it.attributes].map((a) => a.name + (valued.includes(a.name) ? "=" + a.value : ""));
    const texts = [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const said = `${it.tagName}[${own}]${texts}(${[...it.children].map(shape)})`;
    shapes.set(it, said);
    return said;
  };
  shape(document.body);
  for (const parent of document.body.querySelectorAll("*")) {
    const met = new Map();
    for (const it of [...parent.children]) {
      const count = (met.get(shapes.get(it)) || 0) + 1;
      met.set(shapes.get(it), count);
      if (count > most) it.remove();
    }
  }
}"""
"""Keeps only the first few rows, entries and marks with the same elements, attributes and classes: axe
reports the same for each."""
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def starter(starter_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The world that a first visitor sees."""
    home = Path(shutil.copytree(starter_home, tmp_path_factory.mktemp("starter") / "home"))
    with LiveServer(home) as live:
        yield live


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def violations(window: Visitor, options: dict[str, Any], part: str = "html") -> list[str]:
    """Axe's findings on the current page, within the elements of a selector."""
    if not window.page.evaluate("'axe' in window"):
        window.page.evaluate(_AXE)
    results = window.page.evaluate("([part, options]) => axe.run(part, options)", [part, options])
    broken_rules = results["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in broken_rules for node in one["nodes"][:3]]


def has_no_sideways_scrolling(window: Visitor) -> bool:
    return bool(window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.ci
@pytest.mark.rule("WEB-1")
def test_every_page_is_accessible_in_both_themes_and_fits_a_phone(browser: Browser, server: LiveServer):
    """Without a violation of axe, an error in the console or a request to another host."""
    failures = []
    checked_texts: list[str] = []
    # The cut page is also measured for the colours of one theme.
    rules = _ALL_BUT_COLOURS if ALL_ROUNDS else _RULES
    themes: list[Literal["light", "dark"]] = ["light", "dark"] if ALL_ROUNDS else ["dark"]
    with visitor(browser, server.url, viewport={"width": 1200, "height": 900}) as window:
        for address in (*(PAGES if ALL_ROUNDS else SOME_PAGES), *IN_OTHER_FRAMES):
            assert window.go(address) == 200, address
            window.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
            if not has_no_sideways_scrolling(window):
                failures.append(f"{address}: scrolls sideways at 390 px")
            window.page.set_viewport_size({"width": 1200, "height": 900})
            if not ALL_ROUNDS:
                window.page.evaluate(_CUT_WHAT_REPEATS, 2)
            window.page.emulate_media(color_scheme="light")
            failures += [f"{address}: {one}" for one in violations(window, rules)]
            new = window.page.evaluate(_MARK_NEW_TEXTS, [] if ALL_ROUNDS else checked_texts)
            checked_texts += new
            for theme in themes if new else ():
                window.page.emulate_media(color_scheme=theme)
                texts = "[data-new-text]"
                failures += [f"{address} {theme}: {one}" for one in violations(window, _COLOURS, texts)]
    assert failures == [], "\n".join(failures)


_READ = """() => [document.title, document.body.innerText, ...Array.from(document.links, ({ href }) => {
    const address = new URL(href);
    address.searchParams.sort();
    return address.href;
})]"""
"""The text of a page and the targets of its links."""


@pytest.mark.rule("WEB-2", "WEB-3", "WEB-17")
def test_the_slider_shows_the_same_as_the_api_on_its_day(
    browser: Browser, server: LiveServer, paid_key: str
) -> None:
    draw = random.Random(os.environ.get("TEST_SEED"))
    first = date(2021, 6, 1)
    with visitor(browser, server.url, key=paid_key) as window:
        window.go(COMPANY)
        slider = window.page.get_by_role("slider")
        urls: list[str] = []
        window.page.on("request", lambda request: urls.append(request.url))
        for _ in range(rounds(4, 12, 50)):
            day = first + timedelta(days=draw.randrange(1500))
            urls.clear()
            slider.evaluate(
                "(it, day) => { it.value = day; it.dispatchEvent(new Event('input', {bubbles: true})) }",
                day.toordinal() - date(1970, 1, 1).toordinal(),
            )
            expect(window.page.locator("#statements")).to_have_attribute("data-day", day.isoformat())
            expect(slider).to_have_attribute("aria-valuetext", day.isoformat())
            assert [url for url in urls if "/assets/" not in url] == [
                f"{server.url}{COMPANY}?as_of={day}&part=statements"
            ]
            assert f"as_of={day}" in window.page.url
            cells = figures(window.page.locator("#statements").inner_html())
            body = server.get(
                f"/v1/statements/{ISSUER}?as_of={day}&kind=income&period_type=FY", paid_key
            ).json()
            expected = {
                (row["line_item"], row["period_end"], row["period_start"] or ""): (
                    Decimal(str(row["value_reported"])),
                    row["restated"],
                )
                for row in body["data"]
            }
            assert {cell: (Decimal(value), mark) for cell, (value, mark) in cells.items()} == expected
        window.page.locator("input[name=as_of]").first.fill("2000-01-01")
        expect(window.page.locator("#statements")).to_have_attribute("data-day", "2000-01-01")
        moved = window.page.evaluate(_READ)
        assert "No record named it on Jan 1, 2000" in moved[1]
        window.go(window.page.url.removeprefix(server.url))
        assert window.page.evaluate(_READ) == moved


@pytest.mark.deep
def test_a_figure_opens_its_vintages_over_the_page_and_closes_again(browser: Browser, server: LiveServer):
    with visitor(browser, server.url) as window:
        window.go(f"{COMPANY}?as_of=2024-06-01")
        link = window.page.locator("mark a").first
        link.click()
        dialog = window.page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        expect(dialog.locator("svg.chart")).to_be_visible()
        expect(dialog.get_by_text("synthetic").first).to_be_visible()
        assert violations(window, _RULES) == []
        window.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(link).to_be_focused()


@pytest.mark.deep
def test_a_chart_is_saved_as_pixels(browser: Browser, server: LiveServer, tmp_path: Path) -> None:
    with visitor(browser, server.url) as window:
        window.go("/macro/series/CPI.ZA?as_of=2023-05-31")
        buttons = window.page.get_by_role("button", name="PNG")
        assert buttons.count() >= 2
        for button in buttons.all():
            with window.page.expect_download() as download:
                button.click()
            path = tmp_path / "chart.png"
            download.value.save_as(path)
            assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.deep
def test_clicking_a_heading_sorts_the_table(browser: Browser, server: LiveServer) -> None:
    with visitor(browser, server.url) as window:
        window.go("/screen?metric=net_margin&as_of=2024-12-31")
        values = "[...document.querySelectorAll('table.sortable tbody data')].map(it => Number(it.value))"
        ranked = window.page.evaluate(values)
        assert len(ranked) > 3
        heading = window.page.get_by_role("columnheader", name="Value")
        heading.get_by_role("button").focus()
        window.page.keyboard.press("Enter")
        expect(heading).to_have_attribute("aria-sort", "ascending")
        assert window.page.evaluate(values) == sorted(ranked)
        window.page.keyboard.press("Enter")
        expect(heading).to_have_attribute("aria-sort", "descending")
        assert window.page.evaluate(values) == sorted(ranked, reverse=True)


@pytest.mark.deep
@pytest.mark.rule("WEB-10")
def test_arabic_reads_from_right_to_left(browser: Browser, server: LiveServer) -> None:
    with visitor(browser, server.url, locale="ar", viewport=PHONE) as window:
        for address in ("/", f"{COMPANY}?as_of=2024-06-01", "/tenders?country=KE"):
            window.go(address)
            assert window.page.evaluate("getComputedStyle(document.body).direction") == "rtl"
            assert has_no_sideways_scrolling(window)
        window.go("/")
        assert violations(window, _RULES) == []
        brand = window.page.locator(".brand").bounding_box()
        assert brand is not None
        assert brand["x"] > PHONE["width"] / 2


@pytest.mark.deep
def test_a_visitor_enters_a_key_pages_through_tenders_and_forgets_the_key(
    browser: Browser, server: LiveServer, paid_key: str
) -> None:
    with visitor(browser, server.url) as window:
        window.go("/key")
        window.page.get_by_label("API key").fill(paid_key)
        window.page.get_by_role("button", name="Use this key").click()
        expect(window.page.get_by_text("starter").first).to_be_visible()
        window.go("/tenders?country=ZA")
        before = window.page.locator("[data-release]").first.get_attribute("data-release")
        window.page.get_by_role("link", name="Older releases").click()
        expect(window.page.locator(f'[data-release="{before}"]')).to_have_count(0)
        window.page.locator("[data-release] a.t").first.click()
        expect(window.page.get_by_role("heading", name="Releases in time")).to_be_visible()
        window.go("/key")
        window.page.get_by_role("button", name="Forget my key").click()
        expect(window.page.get_by_text("the public sandbox key").first).to_be_visible()


@pytest.mark.deep
def test_the_reference_can_try_an_endpoint(browser: Browser, server: LiveServer) -> None:
    with visitor(browser, server.url) as window:
        window.go("/docs/api")
        window.page.get_by_role("link", name="/v1/screen", exact=True).click()
        form = window.page.locator('form[data-path="/v1/screen"]')
        form.get_by_role("button", name="Try").click()
        expect(form.locator("output")).to_contain_text('"omitted"')


@pytest.mark.rule("WEB-13")
@pytest.mark.parametrize(
    "address",
    deep_after(
        1,
        [f"{COMPANY}?as_of=2024-06-01", "/macro/series/CPI.ZA?as_of=2023-05-31", "/screen?metric=net_margin"],
    ),
)
def test_a_page_prints_dark_on_white_without_controls(
    browser: Browser, server: LiveServer, address: str
) -> None:
    """Also with a dark theme; no table is cut off at the edge of the paper."""
    with visitor(browser, server.url, color_scheme="dark", viewport=PAPER) as window:
        window.go(address)
        assert window.page.evaluate(_BACKGROUND) != "rgb(255, 255, 255)"
        window.page.emulate_media(media="print")
        assert window.page.evaluate(_BACKGROUND) == "rgb(255, 255, 255)"
        for name in ("nav", ".day", ".fields", ".downloads", ".api", "summary:text('as a table')", ".links"):
            for control in window.page.locator(name).all():
                assert not control.is_visible(), name
        expect(window.page.locator("main th:visible").first).to_be_visible()
        assert all(heading.inner_text().strip() for heading in window.page.locator("main thead th").all())
        assert window.page.evaluate(_PALE) == []
        assert has_no_sideways_scrolling(window)
        assert window.page.evaluate(_CLIPPED) == []


_BACKGROUND = "getComputedStyle(document.body).backgroundColor"
_PALE = """() => [...document.querySelectorAll("main :is(td, th, text, h1, p, .line)")].filter(it => {
  const style = getComputedStyle(it);
  const ink = it.closest("svg") ? (it.matches("text") ? style.fill : style.stroke) : style.color;
  const [red, green, blue] = ink.match(/[0-9.]+/g).map(Number);
  return it.getClientRects().length && 0.2126 * red + 0.7152 * green + 0.0722 * blue > 128;
}).map(it => it.outerHTML.slice(0, 80))"""
"""Elements that would be pale on white paper."""
_CLIPPED = """() => [...document.querySelectorAll("main table, main svg, main pre")].filter(it =>
  it.getClientRects().length && it.getBoundingClientRect().right > innerWidth + 1
).map(it => it.outerHTML.slice(0, 80))"""


@pytest.mark.deep
@pytest.mark.parametrize("name", PICTURED)
def test_a_page_looks_like_its_picture_in_the_documentation(browser: Browser, starter: LiveServer, name: str):
    """UPDATE_PICTURES=1 writes them again. Fonts differ between machines, so only the whole is compared."""
    picture = PICTURES / f"{name}.png"
    size = {"width": 1100, "height": 760}
    with visitor(browser, starter.url, viewport=size) as window:
        window.go(PICTURED[name])
        screenshot = window.page.screenshot()
        if os.environ.get("UPDATE_PICTURES") == "1":
            picture.write_bytes(screenshot)
        images = [base64.b64encode(content).decode() for content in (picture.read_bytes(), screenshot)]
    with visitor(browser, "about:blank") as window:
        window.page.goto("about:blank")
        assert float(window.page.evaluate(_DIFFERENCE, images)) < 10, (
            "UPDATE_PICTURES: docs/how-to/testing.md"
        )


_DIFFERENCE = """async (pictures) => {
  const grey = async (encoded) => {
    const image = new Image();
    image.src = "data:image/png;base64," + encoded;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 32;
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0, 32, 32);
    const data = pen.getImageData(0, 0, 32, 32).data;
    return Array.from({length: 1024}, (_, i) => (data[4 * i] + data[4 * i + 1] + data[4 * i + 2]) / 3);
  };
  const [kept, taken] = await Promise.all(pictures.map(grey));
  return kept.reduce((sum, value, i) => sum + Math.abs(value - taken[i]), 0) / kept.length;
}"""
