"""When the largest part of a page is on the screen, in Chromium: the wait of a visitor.

    python -m bench.paint [--visits 7] [--home HOME]

Each visit starts with an empty cache. `warm` visits request a page that another visitor had before; for the
`first` visit the service renders the page. `nothing` is a page of one line that comes from no server: the
time that the browser itself needs on this machine.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from bench.history import report
from bench.load import HOST
from bench.peers import commands
from bench.world import CACHE, SANKOFA, environment_of

_TARGET_MS = 300
_LARGEST_HOME = 100_000
_LARGEST_PAINT = """() => new Promise(resolve => new PerformanceObserver(
  list => resolve(list.getEntries().at(-1).startTime)
).observe({type: "largest-contentful-paint", buffered: true}))"""
_NOTHING = "data:text/html,<h1>nothing</h1>"
PAGES = {
    "home": "/",
    "company": "/company/DC91D49F08F903ABF0D2E95294",
    "macro": "/macro/series/WDI:NY.GDP.MKTP.CD:NGA?as_of=2013-06-30",
    "tenders": "/tenders?country=ZA",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.paint")
    parser.add_argument("--visits", type=int, default=7)
    parser.add_argument("--home", type=Path, default=CACHE / "web-starter", help="with the starter world")
    options = parser.parse_args()
    browser_path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser_path is None:
        sys.exit("no Chromium in PATH")
    command = [SANKOFA, "starter", "--if-empty"]
    subprocess.run(command, env=environment_of(options.home), check=True, capture_output=True)
    with commands.sankofa(options.home) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        _visit(browser, _NOTHING)  # the browser itself starts only once
        floor = statistics.median(_visit(browser, _NOTHING)[0] for _ in range(options.visits))
        print(f"nothing  {floor:.0f} ms")
        for name, address in PAGES.items():
            visits = [_visit(browser, f"http://{HOST}:{server.port}{address}") for _ in range(options.visits)]
            first, warm = visits[0][0], statistics.median(paint for paint, _ in visits[1:])
            size = visits[0][1]
            print(f"{name:8} first {first:6.0f} ms  warm {warm:6.0f} ms  {size:>8,} bytes of HTML")
            report(f"{name}, largest contentful paint", warm, unit="ms", most=_TARGET_MS)
            if name == "home":
                report("home, HTML before compression", size, unit="bytes", most=_LARGEST_HOME)
        browser.close()


def _visit(browser: Browser, address: str) -> tuple[float, int]:
    """The largest contentful paint in milliseconds, and the size of the page before compression."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    try:
        page = context.new_page()
        response = page.goto(address)
        if response is None:  # of a data: address
            return float(page.evaluate(_LARGEST_PAINT)), 0
        if response.status != 200:
            sys.exit(f"{address}: {response.status}")
        return float(page.evaluate(_LARGEST_PAINT)), len(response.body())
    finally:
        context.close()


if __name__ == "__main__":
    main()
