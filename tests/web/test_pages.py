"""The pages as a client without a browser sees them: statuses, keys, and the same figures as the API."""

import base64
import csv
import hashlib
import io
import os
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from sankofa.derive.metrics.contract import metrics, slugs
from sankofa.derive.signals.contract import panels
from sankofa.model.line_items import LINE_ITEMS
from sankofa.web.documents import documents
from sankofa.web.labels import LABELS, label
from sankofa.web.languages import language as language_of
from sankofa.web.pages.signals import NOT_SHOWN
from tests.live import LiveServer
from tests.web.site import (
    HOSTILE_NAME,
    HOSTILE_TITLE,
    ISSUER,
    PAGES,
    ZEBRA_ID,
    Html,
    figures,
    publish_hostile_world,
    tender_walk,
)

BROWSER = {"accept": "text/html,application/xhtml+xml"}
COMPANY = f"/company/{ISSUER}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    home: Path = tmp_path_factory.mktemp("hostile") / "home"
    publish_hostile_world(home)
    with LiveServer(home) as server:
        yield server


@pytest.mark.rule("WEB-1")
@pytest.mark.parametrize("address", PAGES)
def test_every_page_exists_without_a_script_and_has_none_of_its_own(server: LiveServer, address: str) -> None:
    answer = server.http.get(address, headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    page = Html.of(answer.text)
    assert len(page.all("h1")) == 1
    assert all(script.attributes["src"].startswith("/assets/") for script in page.all("script"))
    for element in page.elements:
        if element.name == "style":  # one that the policy names by its digest
            digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert not [name for name in element.attributes if name == "style" or name.startswith("on")]
        for attribute in ("src", "action", "formaction"):
            assert element.attributes.get(attribute, "/").startswith("/")
    assert len(answer.content) < (200_000 if address == "/docs/api" else 100_000)


@pytest.mark.rule("WEB-1")
def test_the_first_page_is_drawn_without_asking_for_anything_else(server: LiveServer) -> None:
    page = Html.of(server.http.get("/", headers=BROWSER).text)
    assert "svg.chart" in page.all("style")[0].text
    assert not page.all("link", rel="stylesheet")
    assert not page.all("img")
    assert all("defer" in script.attributes for script in page.all("script"))


@pytest.mark.rule("WEB-2")
def test_the_day_is_in_the_address_and_in_the_control(server: LiveServer) -> None:
    page = Html.of(server.get(f"{COMPANY}?as_of=2024-06-01").text)
    (slider,) = page.all("input", type="range")
    (calendar,) = page.all("input", type="date")
    assert slider.attributes["aria-valuetext"] == "2024-06-01"
    assert (calendar.attributes["name"], calendar.attributes["value"]) == ("as_of", "2024-06-01")
    assert any("as_of=2024-06-01" in link.attributes["href"] for link in page.all("a"))


@pytest.mark.rule("WEB-3")
def test_a_statement_shows_what_the_api_gives_on_fifty_random_days(server: LiveServer, paid_key: str) -> None:
    """Values digit by digit, and the mark exactly where the figure replaced an earlier one."""
    seed = int(os.environ.get("TEST_SEED") or random.randrange(1 << 30))
    draw = random.Random(seed)
    first = date(2020, 1, 1)
    marks = 0
    for _ in range(50):
        day = first + timedelta(days=draw.randrange((date(2025, 12, 31) - first).days))
        kind = draw.choice(("income", "balance", "cash"))
        answer = server.get(f"{COMPANY}?as_of={day}&kind={kind}&part=statements", paid_key)
        assert answer.status_code == 200
        assert len(answer.content) < 30_000
        rows = server.get(f"/v1/statements/{ISSUER}?as_of={day}&kind={kind}&period_type=FY", paid_key).json()
        newest = sorted({row["period_end"] for row in rows["data"]}, reverse=True)[:6]
        expected = {
            (row["line_item"], row["period_end"], row["period_start"] or ""): (
                Decimal(str(row["value_reported"])),
                row["restated"],
            )
            for row in rows["data"]
            if row["period_end"] in newest
        }
        shown = {place: (Decimal(value), mark) for place, (value, mark) in figures(answer.text).items()}
        assert shown == expected, f"{kind} on {day} (TEST_SEED={seed})"
        marks += sum(mark for _, mark in shown.values())
    assert marks


@pytest.mark.rule("WEB-3")
def test_the_mark_of_a_restated_figure_appears_on_its_day_and_not_before(
    server: LiveServer, paid_key: str
) -> None:
    place = ("profit", "2022-12-31", "2022-01-01")
    seen = [
        figures(server.get(f"{COMPANY}?as_of={day}&part=statements", paid_key).text)[place]
        for day in ("2023-04-06", "2024-03-24", "2024-03-25", "2025-03-31", "2025-04-01")
    ]
    assert [marked for _, marked in seen] == [False, False, True, True, True]
    assert len({value for value, _ in seen}) == 3


@pytest.mark.rule("WEB-4")
def test_an_error_is_a_page_with_its_status(server: LiveServer, tmp_path: Path) -> None:
    for address, status in (
        ("/no-such-page", 404),
        ("/company/DC00000000000000000000AAAA", 404),
        ("/company/DC00000000000000000000AAAA/figure?line_item=revenue", 404),
        ("/macro/series/NO.SUCH", 404),
        ("/tender/ZA/no-such-ocid", 404),
        ("/docs/no-such-document", 404),
        (f"{COMPANY}?as_off=2024-06-01", 400),
        (f"{COMPANY}?as_of=2999-01-01", 400),
        (f"{COMPANY}?as_of=yesterday", 400),
        ("/screen?metric=no_such", 400),
        ("/?lang=xx", 400),
        ("/tenders?limit=1000", 402),
        ("/?edition=20200101T000000Z-00001-0000000000", 404),
    ):
        answer = server.http.get(address, headers=BROWSER)
        assert answer.status_code == status, address
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = Html.of(answer.text)
        assert page.all("h1")
        assert answer.headers["x-request-id"] in answer.text
        if status == 402:
            assert any(a.attributes["href"] == "https://sankofa.example/upgrade" for a in page.all("a"))
    assert server.http.post("/tenders", headers=BROWSER).status_code == 405
    assert server.get("/no-such-page").headers["content-type"] == "application/problem+json"


@pytest.mark.rule("WEB-4")
def test_a_visitor_at_the_cap_or_without_an_edition_reads_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with LiveServer(home, per_minute_sample="2") as server:
        early = server.http.get("/", headers=BROWSER)
        assert (early.status_code, early.headers["retry-after"]) == (503, "2")
        assert "try again" in Html.of(early.text).all("main")[0].text
        answers = [server.http.get("/", headers=BROWSER) for _ in range(4)]
        (refused, *_) = [a for a in answers if a.status_code == 429]
        assert int(refused.headers["retry-after"]) > 0
        assert "https://sankofa.example/upgrade" in refused.text
        assert server.http.get("/docs", headers=BROWSER).status_code == 200  # needs no key
        assert server.http.get("/status", headers=BROWSER).status_code == 503


@pytest.mark.rule("WEB-5")
def test_a_page_is_one_request_of_the_visitors_key(server: LiveServer) -> None:
    key = server.key("starter")

    def left(address: str) -> int:
        answer = server.get(address, key)
        (found,) = re.findall(r'"minute";r=(\d+)', answer.headers["ratelimit"])
        return int(found)

    before = left("/quality")
    if left(COMPANY) > before:  # a new minute began
        before = left("/quality") + 1
    assert left("/v1/screen?metric=net_margin") == before - 2
    assert "ratelimit" not in server.get("/docs", key).headers


@pytest.mark.rule("WEB-6")
def test_the_key_of_a_visitor_is_a_cookie_of_the_session_that_the_api_does_not_read(
    server: LiveServer, paid_key: str
) -> None:
    with httpx.Client(base_url=server.url, verify=False) as visitor:  # noqa: S501 - no TLS here
        assert "sample" in Html.of(visitor.get("/key").text).all("main")[0].text
        kept = visitor.post("/key", data={"key": paid_key})
        assert (kept.status_code, kept.headers["location"]) == (303, "/key")
        cookie = kept.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Max-Age" not in cookie
        assert "Expires" not in cookie
        page = visitor.get("/key")
        assert "starter" in Html.of(page.text).all("main")[0].text
        assert paid_key not in page.text
        assert visitor.get("/tenders?limit=1000").status_code == 200
        assert visitor.get("/v1/screen?metric=net_margin").status_code == 401
        foreign = visitor.post("/key", data={"key": "x"}, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        wrong = visitor.post("/key", data={"key": "sk_wrong"})
        assert wrong.status_code == 401
        visitor.post("/key", data={"action": "forget"})
        assert visitor.get("/tenders?limit=1000").status_code == 402
        visitor.cookies.set("sankofa_key", "sk_revoked")
        assert visitor.get("/").status_code == 401


@pytest.mark.rule("WEB-7")
def test_names_and_titles_that_are_markup_are_shown_as_text(hostile: LiveServer) -> None:
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
        assert len(page.all("script")) <= 1, address
        assert not [n for e in page.elements for n in e.attributes if n.startswith("on")], address
    assert HOSTILE_NAME in Html.of(hostile.get(f"/company/{ZEBRA_ID}").text).all("h1")[0].text
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
def test_the_parties_of_a_process_lead_to_the_organisations_they_are_resolved_to(
    server: LiveServer, paid_key: str, sample_key: str
) -> None:
    """As `/v1/tender-parties` resolves them; whoever is withheld is counted."""
    rows = server.get("/v1/tender-parties?limit=1000", paid_key).json()["data"]
    resolved = {(row["name"], (row["identifier"] or {}).get("id", "")): row["service_id"] for row in rows}
    releases = server.get("/v1/tenders?country=KE&limit=1000", paid_key).json()["data"]
    named: dict[str, set[tuple[str, str]]] = defaultdict(set)
    withheld: dict[str, int] = defaultdict(int)
    for row in releases:
        withheld[row["ocid"]] = max(withheld[row["ocid"]], row["withheld_parties"])
        for party in row["release"].get("parties", []):
            if "name" in party:  # one that is withheld has none
                named[row["ocid"]].add((party["name"], (party.get("identifier") or {}).get("id", "")))
    with_links = [ocid for ocid, parties in named.items() if any(resolved[party] for party in parties)]
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
            filter(None, (resolved[party] for party in named[ocid]))
        )
        assert all(server.get(a.attributes["href"], paid_key).status_code == 200 for a in links)
        assert (f"{withheld[ocid]} parties are withheld" in main) == bool(withheld[ocid])
        linked_in_sandbox += server.get(f"/tender/KE/{ocid}", sample_key).text.count(
            'class="t" href="/company/'
        )
    assert linked_in_sandbox


def test_what_a_publication_changed_is_counted_for_everybody_and_told_row_by_row_to_a_paid_key(
    hostile: LiveServer,
) -> None:
    listing = Html.of(hostile.get("/editions").text)
    (address,) = [a.attributes["href"] for a in listing.all("a") if a.text == "what it changed"]
    sandbox = Html.of(hostile.get(address).text)
    assert "+1" in sandbox.all("main")[0].text
    assert "https://sankofa.example/upgrade" in [a.attributes["href"] for a in sandbox.all("a")]
    assert not [row for row in sandbox.all("tr") if "data-key" in row.attributes]
    key = hostile.key("starter")
    paid = Html.of(hostile.get(address, key).text)
    shown = [row.attributes["data-key"] for row in paid.all("tr") if "data-key" in row.attributes]
    since, edition = re.findall(r"(?:since|edition)=([^&]+)", address)
    rows = hostile.get(f"/v1/changes?since={since}&edition={edition}", key).json()["data"]
    assert shown == [" | ".join(row["key"]) for row in rows]
    assert shown


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


def test_a_screen_beside_another_day_says_who_moved_because_of_what(
    server: LiveServer, paid_key: str
) -> None:
    asked = "/screen?metric=net_margin&as_of=2025-12-31&beside=2024-12-31"
    page = Html.of(server.get(asked, paid_key).text)
    rows = [row for row in page.all("tr") if "tbody" in row.inside and row.text.strip()[:1].isdigit()]
    now, then = (
        {
            row["service_id"]: row
            for row in server.get(f"/v1/screen?metric=net_margin&as_of={day}", paid_key).json()["data"]
        }
        for day in ("2025-12-31", "2024-12-31")
    )
    assert len(rows) == len(now)
    moved = sum(now[one]["rank"] != then[one]["rank"] for one in now.keys() & then.keys())
    newer = sum(now[one]["period_end"] != then[one]["period_end"] for one in now.keys() & then.keys())
    assert newer
    assert f"{moved} of {len(now)} have another rank" in page.all("main")[0].text
    assert len([mark for mark in page.all("span") if mark.text == "newer year"]) == newer


@pytest.mark.rule("WEB-8")
def test_every_chart_has_its_figures_as_csv_and_its_picture_as_svg(server: LiveServer, paid_key: str) -> None:
    page = Html.of(server.get(f"{COMPANY}?as_of=2024-06-01", paid_key).text)
    links = [a.attributes["href"] for a in page.all("a") if "chart=" in a.attributes["href"]]
    assert len(links) == 2
    for address in links:
        answer = server.get(address, paid_key)
        assert "attachment" in answer.headers["content-disposition"]
        if "format=csv" in address:
            rows = list(csv.DictReader(io.StringIO(answer.text)))
            every = server.get(f"/v1/fundamentals/{ISSUER}?vintages=all", paid_key).json()["data"]
            assert sum(int(row["figures"]) for row in rows) == len(every)
            assert sum(int(row["restated"]) for row in rows) == sum(row["vintage"] > 1 for row in every)
        else:
            assert answer.headers["content-type"] == "image/svg+xml"
            assert answer.text.startswith("<?xml")


@pytest.mark.rule("WEB-9")
def test_the_pages_of_tenders_give_what_the_api_walks(server: LiveServer, paid_key: str) -> None:
    address, shown = "/tenders?country=KE", []
    while address:
        page = Html.of(server.get(address, paid_key).text)
        shown += [li.attributes["data-release"] for li in page.all("li") if "data-release" in li.attributes]
        following = page.all("a", rel="next")
        address = following[0].attributes["href"] if following else ""
    assert shown == tender_walk(server, paid_key, "KE")


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


def test_a_pinned_edition_stays_in_every_link(server: LiveServer) -> None:
    edition = server.get("/v1/status").json()["edition"]
    page = Html.of(server.get(f"/companies?edition={edition}").text)
    links = [a.attributes["href"] for a in page.all("a") if a.attributes["href"].startswith("/company/")]
    assert links
    assert all(f"edition={edition}" in link for link in links)
    assert server.get(links[0]).status_code == 200


def test_the_api_calls_on_a_page_answer(server: LiveServer) -> None:
    for address in PAGES:
        if address.startswith("/docs"):
            continue
        text = Html.of(server.get(address).text)
        for block in text.all("pre"):
            found = re.match(r"curl -H 'X-API-Key: ([^']+)' 'http://[^/]+(/v1/[^']+)'$", block.text)
            if found and "{" not in found[2]:
                assert server.get(found[2], found[1]).status_code == 200, (address, found[2])


def test_a_page_that_did_not_change_is_not_sent_again(server: LiveServer) -> None:
    first = server.get(COMPANY)
    again = server.get(COMPANY, if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")


def test_every_link_within_the_documentation_leads_somewhere(server: LiveServer) -> None:
    known = documents()
    assert len(known) > 60
    for document in known.values():
        page = Html.of(f"<main>{document.html}</main>")
        for link in page.all("a"):
            target = unquote(link.attributes["href"])
            if target.startswith("/docs/") and not target.startswith("/docs/pictures/"):
                name = target.removeprefix("/docs/").partition("#")[0]
                assert name in known or name == "api", (document.name, target)


def test_the_documentation_is_searched_by_its_words(server: LiveServer) -> None:
    page = Html.of(server.get("/docs?q=superseded+vintage").text)
    links = [a.attributes["href"] for a in page.all("a") if a.attributes.get("class") == "t"]
    assert any("architecture" in link for link in links)
