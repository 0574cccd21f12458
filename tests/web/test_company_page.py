"""A company's page: key facts, rounded figures, two days in one table, restatements, what changed."""

import csv
import io
import re
from decimal import Decimal
from pathlib import Path

import pytest

from sankofa.web.languages import language
from tests.live import LiveServer
from tests.web.site import COMPANY, ISSUER, ZEBRA_ID, Html, publish_hostile_world


def test_key_facts_come_first_with_the_figures_of_the_statement_and_a_rank(server: LiveServer, paid_key: str):
    page = server.http.get(f"{COMPANY}?as_of=2024-06-01").text
    assert page.index('id="facts-h"') < page.index('id="st-h"')
    facts = Html.of(
        page[
            page.index('<section class="card" aria-labelledby="facts-h"') : page.index('id="st-h"')
        ].rpartition("<section")[0]
    )
    rows = server.get(f"/v1/statements/{ISSUER}?period_type=FY&line_items=revenue&as_of=2024-06-01", paid_key)
    newest, before = (row["value_reported"] for row in rows.json()["data"][:2])
    assert facts.all("data")[0].attributes["value"] == str(newest)
    assert f">{language('en').signed_share(newest / before - 1)}<" in page
    country = server.get(f"/v1/entities/{ISSUER}", paid_key).json()["data"][0]["country"]
    path = f"/v1/screen?metric=net_margin&country={country}&as_of=2024-06-01&basis=as_known"
    screen = server.get(path, paid_key)
    ranked = {row["service_id"]: row["rank"] for row in screen.json()["data"]}
    assert f"{ranked[ISSUER]} of {len(ranked)}" in page


def test_statement_figures_are_rounded_with_every_digit_on_hover_and_in_the_download(
    server: LiveServer, paid_key: str
) -> None:
    path = f"{COMPANY}?as_of=2024-06-01&kind=income"
    headers = {"X-API-Key": paid_key}
    page = server.http.get(path, headers=headers).text
    cells = re.findall(r'<data value="([^"]+)" title="([^"]+)">([^<]+)</data></a>', page)
    assert len(cells) > 10
    assert all(Decimal(title.split()[0].replace(",", "")) == Decimal(value) for value, title, _ in cells)
    assert max(len(text) for _, _, text in cells) < max(len(title) for _, title, _ in cells)
    table = server.http.get(f"{path}&chart=statement&format=csv", headers=headers).text
    rows = list(csv.DictReader(io.StringIO(table)))
    assert sorted(row["value_reported"] for row in rows) == sorted(value for value, _, _ in cells)
    assert all(row["source_ref"] for row in rows)


def test_two_days_are_side_by_side_in_one_table(server: LiveServer, paid_key: str) -> None:
    days = ("2023-04-30", "2024-06-01")
    page = server.http.get(f"{COMPANY}?as_of={days[0]}&beside={days[1]}", headers={"X-API-Key": paid_key})
    (table,) = re.findall(r'<table class="statement beside">.*?</table>', page.text, re.DOTALL)
    by_day = []
    for day in days:
        path = f"/v1/statements/{ISSUER}?period_type=FY&line_items=profit&as_of={day}"
        rows = server.get(path, paid_key).json()["data"]
        by_day.append({row["period_end"]: str(row["value_reported"]) for row in rows})
    line = next(
        row for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL) if "Profit for the period" in row
    )
    cells = [re.findall(r'value="([^"]+)"', cell) for cell in re.findall(r"<td.*?</td>", line, re.DOTALL)]
    ends = sorted({*by_day[0], *by_day[1]}, reverse=True)[:3]
    assert cells == [[one[end]] if end in one else [] for end in ends for one in by_day]
    differing = [end for end in ends if end in by_day[0] and by_day[0][end] != by_day[1][end]]
    assert line.count("differs") == len(differing) > 0


def test_search_separates_companies_with_figures_from_bare_records(server: LiveServer, paid_key: str) -> None:
    page = server.http.get("/search?q=sample").text
    with_figures, _, bare = page.partition('id="organisation-h"')
    ids = {part: re.findall(r'href="/company/(DC\w+)"', part) for part in (with_figures, bare)}
    assert ids[with_figures]
    for part, is_reporting in ((with_figures, True), (bare, False)):
        for one in ids[part]:
            rows = server.get(f"/v1/fundamentals/{one}?limit=1", paid_key).json()["data"]
            assert bool(rows) == is_reporting, one


@pytest.mark.rule("WEB-1")
def test_the_changes_of_an_edition_are_listed_for_a_paid_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish_hostile_world(home)
    with LiveServer(home) as live:
        key = live.key("starter")
        path = f"/company/{ZEBRA_ID}/changes"
        before = re.findall(r'<option value="([^"]+)"', live.http.get(path).text)
        assert len(before) == 1
        page = live.http.get(f"{path}?since={before[0]}", headers={"X-API-Key": key})
        assert 'value="1300000"' in page.text
        assert 'value="1200000"' not in page.text
        assert "1300000" not in live.http.get(f"{path}?since={before[0]}").text
        assert live.http.get(
            f"{path}?since=20200101T000000Z-00001-0000000000", headers={"X-API-Key": key}
        ).status_code in (404, 410)
        assert live.http.get(f"/at/2026-01-01{path}").status_code == 404


def test_a_record_without_figures_says_what_is_missing_and_where_to_look(server: LiveServer, paid_key: str):
    issuers = {row["service_id"] for row in server.get("/v1/issuers?limit=1000", paid_key).json()["data"]}
    parties = server.get("/v1/tender-parties?limit=1000", paid_key).json()["data"]
    bare = next(
        row["service_id"] for row in parties if row["service_id"] and row["service_id"] not in issuers
    )
    page = server.get(f"/company/{bare}", paid_key).text
    assert "identifiers but no figures" in page
    assert 'id="st-h"' not in page
    assert "identifiers but no figures" not in server.get(COMPANY, paid_key).text
