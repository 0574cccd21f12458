"""The pages of tenders and of their parties, and of a world with hostile names."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import LiveServer
from tests.web.site import BROWSER, HOSTILE_NAME, HOSTILE_TITLE, ZEBRA_ID, Html, publish_hostile_world


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    home: Path = tmp_path_factory.mktemp("hostile") / "home"
    publish_hostile_world(home)
    with LiveServer(home) as server:
        yield server


@pytest.mark.rule("WEB-7")
def test_markup_in_names_and_titles_is_shown_as_text(hostile: LiveServer) -> None:
    listing = hostile.get("/tenders").text
    (process,) = {
        a.attributes["href"] for a in Html.of(listing).all("a") if "/tender/" in a.attributes["href"]
    }
    for address in (
        f"/company/{ZEBRA_ID}",
        f"/company/{ZEBRA_ID}/figure?line_item=revenue&period_end=2024-12-31",
        f"/company/{ZEBRA_ID}/figure?line_item=revenue&period_end=2024-12-31&part=figure",
        "/companies",
        "/tenders",
        process,
        "/search?q=zebra",
        "/search?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/screen?metric=revenue_growth",
        "/signals/fundamentals-revisions",
        "/docs?q=%22%3E%3Cimg%20src=x%3E",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        answer = hostile.http.get(address, headers=BROWSER)
        assert answer.status_code in (200, 404), address
        page = Html.of(answer.text)
        assert not [e for e in page.elements if e.name in ("img", "i", "b")], address
        scripts = [e for e in page.all("script") if e.attributes.get("type") != "application/ld+json"]
        assert len(scripts) <= 1, address
        assert not [n for e in page.elements for n in e.attributes if n.startswith("on")], address
    company = Html.of(hostile.get(f"/company/{ZEBRA_ID}").text)
    assert HOSTILE_NAME in company.all("h1")[0].text
    (block,) = company.all("script", type="application/ld+json")
    assert json.loads(block.text)["name"] == HOSTILE_NAME
    assert HOSTILE_TITLE in Html.of(hostile.get(process).text).all("h1")[0].text


@pytest.mark.rule("WEB-9")
def test_a_process_shows_its_releases_in_time_and_what_each_changed(hostile: LiveServer) -> None:
    page = Html.of(hostile.get("/tender/ZA/ocds-zebra-1").text)
    days = [time.attributes["datetime"][:10] for time in page.all("time") if "ol" in time.inside]
    assert days == ["2025-07-01", "2025-06-01"]
    (changed,) = [table for table in page.all("table") if "ol" in table.inside]
    assert "status" in changed.text
    assert "active" in changed.text
    assert hostile.http.get("/tender/ZA/ocds-zebra-2", headers=BROWSER).status_code == 404


@pytest.mark.rule("WEB-9")
def test_the_parties_of_a_process_link_to_their_organisations(
    server: LiveServer, paid_key: str, sample_key: str
) -> None:
    """Parties are resolved as in `/v1/tender-parties`; withheld ones are counted."""
    rows = server.get("/v1/tender-parties?limit=1000", paid_key).json()["data"]
    resolved = {(row["name"], (row["identifier"] or {}).get("id", "")): row["service_id"] for row in rows}
    releases = server.get("/v1/tenders?country=KE&limit=1000", paid_key).json()["data"]
    names: dict[str, set[tuple[str, str]]] = defaultdict(set)
    withheld: dict[str, int] = defaultdict(int)
    for row in releases:
        withheld[row["ocid"]] = max(withheld[row["ocid"]], row["withheld_parties"])
        for party in row["release"].get("parties", []):
            if "name" in party:  # a withheld one has no name
                names[row["ocid"]].add((party["name"], (party.get("identifier") or {}).get("id", "")))
    with_links = [ocid for ocid, parties in names.items() if any(resolved[party] for party in parties)]
    with_people = [ocid for ocid, count in withheld.items() if count]
    assert len(with_links) > 5
    assert with_people
    linked_in_sandbox = 0
    for ocid in {*with_links[:4], with_people[0]}:
        main = (
            server.get(f"/tender/KE/{ocid}", paid_key)
            .text.partition("<main")[2]
            .partition("</section></div>")[0]
        )
        parties = main.partition('class="entries parties"')[2]
        links = Html.of(f"<ul {parties.partition('</ul>')[0]}</ul>").all("a")
        assert sorted(a.attributes["href"].removeprefix("/company/") for a in links) == sorted(
            filter(None, (resolved[party] for party in names[ocid]))
        )
        assert all(server.get(a.attributes["href"], paid_key).status_code == 200 for a in links)
        assert (f"{withheld[ocid]} parties are withheld" in main) == bool(withheld[ocid])
        linked_in_sandbox += server.get(f"/tender/KE/{ocid}", sample_key).text.count(
            'class="t" href="/company/'
        )
    assert linked_in_sandbox


def test_changes_of_a_publication_are_counted_for_all_and_listed_for_a_paid_key(hostile: LiveServer) -> None:
    listing = Html.of(hostile.get("/editions").text)
    (address,) = [a.attributes["href"] for a in listing.all("a") if a.text == "what it changed"]
    sandbox = Html.of(hostile.get(address).text)
    assert "+1" in sandbox.all("main")[0].text
    assert "/key" in [a.attributes["href"] for a in sandbox.all("a")]
    assert not [row for row in sandbox.all("tr") if "data-key" in row.attributes]
    key = hostile.key("starter")
    paid = Html.of(hostile.get(address, key).text)
    listed = [row.attributes["data-key"] for row in paid.all("tr") if "data-key" in row.attributes]
    since, edition = re.findall(r"(?:since|edition)=([^&]+)", address)
    rows = hostile.get(f"/v1/changes?since={since}&edition={edition}", key).json()["data"]
    assert listed == [" | ".join(row["key"]) for row in rows]
    assert listed


@pytest.mark.rule("WEB-9")
def test_the_pages_of_tenders_list_the_rows_of_the_api(server: LiveServer, paid_key: str) -> None:
    address, listed = "/tenders?country=KE", []
    while address:
        page = Html.of(server.get(address, paid_key).text)
        listed += [li.attributes["data-release"] for li in page.all("li") if "data-release" in li.attributes]
        following = page.all("a", rel="next")
        address = following[0].attributes["href"] if following else ""
    pages = server.pages("/v1/tenders?country=KE", paid_key)
    assert listed == [row["release_id"] for page in pages for row in page["data"]]


@pytest.mark.rule("WEB-18")
def test_a_buyer_and_a_supplier_page_sum_the_awards_of_the_latest_releases(server: LiveServer, paid_key: str):
    checked = 0
    for country in ("KE", "NG", "ZA"):
        releases = server.get(f"/v1/tenders?country={country}&limit=1000", paid_key).json()["data"]
        latest = {row["ocid"]: row for row in reversed(releases)}.values()
        for role in ("buyer", "supplier"):
            expected: dict[str, dict[tuple[str, str], Decimal]] = {}
            for row in latest:
                for award in row["release"].get("awards", []):
                    value, year = award.get("value") or {}, (award.get("date") or row["release_date"])[:4]
                    sides = [row["buyer_name"]] if role == "buyer" else _names(award)
                    for name in sides:
                        if name and value.get("amount") is not None:
                            sums = expected.setdefault(name, {})
                            key = year, value["currency"]
                            sums[key] = sums.get(key, Decimal()) + Decimal(str(value["amount"]))
            for name, sums in sorted(expected.items())[:3]:
                text = server.get(f"/{role}/{country}/{quote(name)}", paid_key).text
                cells = re.findall(
                    r'<th scope="row">(\d{4})</th><td>([A-Z]{3})</td><td class="n"><data value="([^"]+)"',
                    text,
                )
                assert {(year, currency): Decimal(value) for year, currency, value in cells} == sums, name
                others = "supplier" if role == "buyer" else "buyer"
                links = re.findall(rf'href="(/{others}/{country}/[^"]+)"', text)
                assert all(server.get(unescape(link), paid_key).status_code == 200 for link in links[:2])
                checked += bool(links)
    assert checked
    assert server.get("/buyer/KE/Nobody", paid_key).status_code == 404


def _names(award: dict[str, Any]) -> set[str]:
    return {party["name"] for party in award.get("suppliers", []) if party.get("name")}


@pytest.mark.rule("WEB-9")
def test_a_process_shows_its_state_on_the_day(server: LiveServer) -> None:
    address = "/tender/ZA/ocds-999sza-00134"
    for day, state in {
        "2025-12-26": "closes Jan 22, 2026 (days left: 27)",
        "2026-02-05": "closes Feb 5, 2026 (today)",  # extended since
        "2026-02-10": "closed Feb 5, 2026",
        "2026-02-16": "awarded",
    }.items():
        for page in (f"{address}?as_of={day}", f"/at/{day}{address}"):
            answer = server.http.get(page, headers=BROWSER)
            assert answer.status_code == 200, page
            (element,) = [e for e in Html.of(answer.text).elements if "data-state" in e.attributes]
            assert element.text == state, page
    whole = Html.of(server.http.get(address, headers=BROWSER).text).all("main")[0].text
    for text in ("Duineveld Sample Civils (Pty) Ltd", "ZA00134-A1", "ZAR 29,350,000", "What changed"):
        assert text in whole
    assert "Cannot be computed" in whole
    before = server.http.get(f"{address}?as_of=2020-01-01", headers=BROWSER)
    assert before.status_code == 200
    assert "Nothing of this process was public" in before.text


@pytest.mark.rule("WEB-9", "SEARCH-5")
def test_tenders_are_listed_by_buyer_and_those_that_close_this_week_come_first(
    server: LiveServer, paid_key: str
) -> None:
    rows = server.get("/v1/tenders?country=ZA&buyer_query=treasury&limit=400", paid_key).json()["data"]
    assert rows
    assert all("Treasury" in row["buyer_name"] for row in rows)
    page = Html.of(server.get("/tenders?country=ZA&buyer=treasury&limit=400", paid_key).text)
    listed = [li.attributes["data-release"] for li in page.all("li") if "data-release" in li.attributes]
    assert listed == [row["release_id"] for row in rows]
    links = [a.attributes["href"] for a in Html.of(server.get("/search?q=treasury", paid_key).text).all("a")]
    processes = [href for href in links if href.startswith("/tender/")]
    assert len(processes) == len(set(processes)) > 3
    awards = [award for row in rows for award in row["release"].get("awards", ())]
    supplier = next(one["name"] for award in awards for one in award["suppliers"] if one.get("name"))
    found = Html.of(server.get(f"/search?q={quote(supplier.lower())}", paid_key).text).all("a")
    assert supplier in [a.text for a in found if a.attributes["href"].startswith("/supplier/ZA/")]
    locked = server.http.get("/at/2025-12-20/tenders?country=ZA", headers=BROWSER).text
    assert locked.index("Closing this week") < locked.index("data-release")
    assert "closes Dec 27, 2025" in locked.partition("data-release")[0]


@pytest.mark.rule("WEB-9")
@pytest.mark.parametrize("sort", ["value", "closing"])
def test_a_sorted_list_of_processes_keeps_its_order_and_filters_across_pages(
    server: LiveServer, paid_key: str, sort: str
) -> None:
    day = "2025-12-20"
    rows = server.get(f"/at/{day}/v1/tenders?country=ZA&limit=1000", paid_key).json()["data"]
    newest = {row["ocid"]: row for row in reversed(rows)}

    def sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
        if sort == "value":
            return row["value_amount"] is None, -(row["value_amount"] or 0)
        closing = (row["closing_date"] or "0001-01-01")[:10]
        is_open = closing >= day
        return not is_open, closing if is_open else [-ord(letter) for letter in closing]

    address, listed = f"/at/{day}/tenders?country=ZA&sort={sort}", []
    while address:
        page = Html.of(server.get(address, paid_key).text)
        listed += [li.attributes["data-release"] for li in page.all("li") if "data-release" in li.attributes]
        following = page.all("a", rel="next")
        address = following[0].attributes["href"] if following else ""
        assert not address or ("country=ZA" in address and f"sort={sort}" in address)
    by_release = {row["release_id"]: row for row in newest.values()}
    assert sorted(listed) == sorted(by_release)
    assert len(listed) > 25
    sort_keys = [sort_key(by_release[release]) for release in listed]
    assert sort_keys == sorted(sort_keys)
    assert server.http.get("/tenders?sort=name", headers=BROWSER).status_code == 400
    assert server.http.get(f"/tenders?sort={sort}&page=0", headers=BROWSER).status_code == 400
