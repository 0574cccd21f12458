"""Pages of a past day: a later filing or release changes nothing on them (contract: PIT-9)."""

import re
from pathlib import Path

import pytest

from tests.live import LiveServer, succeed
from tests.patience import until
from tests.spec.register import lei
from tests.web.site import Html

ISSUER = lei("PASTDAY")
_SOURCES = """
[sources.reports]
adapter = "filings-csv"
sku = "AF-FUND"
license_class = "statutory-filing"
commercial_redistribution = true

[sources.prices]
adapter = "series-csv"
sku = "AF-MACRO"
license_class = "cc-by"
commercial_redistribution = true
"""
_FILINGS = (
    "entity,legal_name,country,line_item,value,currency,period_start,period_end,available_at,"
    "document,location\n"
)
_SERIES = "series,series_type,frequency,country,date,value,unit,release_date\n"


def _filing(year: int, value: int) -> str:
    period, available = f"{year}-01-01,{year}-12-31", f"{year + 1}-03-31"
    return f"lei:{ISSUER},Past Day Ltd,ZA,revenue,{value},ZAR,{period},{available},afs-{year},p. 1\n"


@pytest.mark.rule("PIT-9")
def test_a_later_filing_or_release_changes_nothing_on_the_page_of_a_past_day(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "sources.toml").write_text(_SOURCES)
    reports, prices = tmp_path / "reports.csv", tmp_path / "prices.csv"
    reports.write_text(_FILINGS + _filing(2022, 1000) + _filing(2023, 1100))
    prices.write_text(
        _SERIES + "CPI.ZA,cpi,annual,ZA,2022-12-31,150,2015 = 100,2023-02-01\n"
        "CPI.ZA,cpi,annual,ZA,2023-12-31,160,2015 = 100,2024-02-01\n"
    )
    _publish(home, reports, prices)
    with LiveServer(home) as server:
        key = server.key("starter")
        first = server.get("/v1/status").json()["edition"]
        company = server.get("/v1/search?q=past%20day", key).json()["data"][0]["id"]
        figure = f"/company/{company}/figure?line_item=revenue&as_of=2024-06-30"
        never = f"/company/{company}/figure?line_item=revenue&as_of=2022-06-30"
        series = "/macro/series/CPI.ZA?as_of=2024-06-30"

        def headings() -> list[str]:
            heads = [Html.of(server.get(page, key).text).all("h1")[0].text for page in (figure, never)]
            part = server.get(f"{series}&part=series", key).text
            return [*heads, re.findall(r'<p class="lead">(.*?)</p>', part)[0]]

        before = headings()
        assert "2023" in before[0]
        assert "2022" in before[1]
        assert before[2] == "2015 = 100"
        reports.write_text(_FILINGS + _filing(2024, 1200))
        prices.write_text(
            _SERIES + "CPI.ZA,cpi,annual,ZA,2022-12-31,94,2023 = 100,2025-02-01\n"
            "CPI.ZA,cpi,annual,ZA,2023-12-31,100,2023 = 100,2025-02-01\n"
        )
        _publish(home, reports, prices)
        until(lambda: server.get("/v1/status").json()["edition"] != first)
        assert headings() == before
        page_now = server.get(series, key).text
        assert "2023 = 100" in page_now
        assert "not compared" in page_now
        assert "Revision sizes" not in page_now


def _publish(home: Path, reports: Path, prices: Path) -> None:
    for command in (("ingest", "reports", reports), ("ingest", "prices", prices), ("publish",)):
        succeed(home, *command)
