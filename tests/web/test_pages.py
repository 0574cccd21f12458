"""The pages as a client without a browser sees them: statuses, keys, and the figures of the API."""

import base64
import csv
import hashlib
import io
import json
import os
import random
import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from sankofa.web.documents import documents
from tests.live import LiveServer
from tests.patience import in_one_minute
from tests.web.site import BROWSER, COMPANY, ISSUER, PAGES, Html, figures


@pytest.mark.rule("WEB-1")
@pytest.mark.parametrize("address", PAGES)
def test_every_page_works_without_scripts_and_has_no_inline_one(server: LiveServer, address: str) -> None:
    answer = server.http.get(address, headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    page = Html.of(answer.text)
    assert len(page.all("h1")) == 1
    scripts = [one for one in page.all("script") if one.attributes.get("type") != "application/ld+json"]
    assert all(script.attributes["src"].startswith("/assets/") for script in scripts)
    for element in page.elements:
        if element.name == "style":  # one that the policy names by its digest
            digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert not [name for name in element.attributes if name == "style" or name.startswith("on")]
        for attribute in ("src", "action", "formaction"):
            assert element.attributes.get(attribute, "/").startswith("/")
    assert len(answer.content) < 100_000


@pytest.mark.rule("WEB-1")
def test_the_first_page_needs_no_other_request(server: LiveServer) -> None:
    page = Html.of(server.http.get("/", headers=BROWSER).text)
    assert "svg.chart" in page.all("style")[0].text
    assert not page.all("link", rel="stylesheet")
    assert not page.all("img")
    assert all("defer" in script.attributes for script in page.all("script"))


@pytest.mark.rule("WEB-2")
def test_the_day_is_in_the_address_and_in_the_control(server: LiveServer) -> None:
    page = Html.of(server.get(f"{COMPANY}?as_of=2024-06-01").text)
    (slider,) = page.all("input", type="range")
    (calendar,) = [one for one in page.all("input", type="date") if one.attributes["name"] == "as_of"]
    assert slider.attributes["aria-valuetext"] == "2024-06-01"
    assert (calendar.attributes["name"], calendar.attributes["value"]) == ("as_of", "2024-06-01")
    assert any("as_of=2024-06-01" in link.attributes["href"] for link in page.all("a"))


@pytest.mark.ci
@pytest.mark.rule("WEB-3")
def test_a_statement_equals_the_api_on_fifty_random_days(server: LiveServer, paid_key: str) -> None:
    """Every digit of each value, and the mark exactly where the figure replaced an earlier one."""
    seed = int(os.environ.get("TEST_SEED") or random.randrange(1 << 30))
    draw = random.Random(seed)
    first = date(2020, 1, 1)
    marks = 0
    for _ in range(50):
        day = first + timedelta(days=draw.randrange((date(2025, 12, 31) - first).days))
        kind = draw.choice(("income", "balance", "cash"))
        answer = server.get(f"{COMPANY}?as_of={day}&kind={kind}&part=statements", paid_key)
        assert answer.status_code == 200
        assert len(answer.content) < 75_000
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
        cells = {cell: (Decimal(value), mark) for cell, (value, mark) in figures(answer.text).items()}
        assert cells == expected, f"{kind} on {day} (TEST_SEED={seed})"
        marks += sum(mark for _, mark in cells.values())
    assert marks


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
            assert not any(a.attributes["href"].endswith("/upgrade") for a in page.all("a")), (
                "none is configured"
            )
    assert server.http.post("/tenders", headers=BROWSER).status_code == 405
    assert server.get("/no-such-page").headers["content-type"] == "application/problem+json"


@pytest.mark.rule("WEB-4")
def test_a_visitor_at_the_cap_or_without_an_edition_gets_an_explanation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with LiveServer(home, upgrade_url="https://shop.example/more") as server:
        key = server.key("starter", "--per-minute", "2")
        early = server.http.get("/", headers=BROWSER)
        assert (early.status_code, early.headers["retry-after"]) == (503, "2")
        assert "try again" in Html.of(early.text).all("main")[0].text
        answers = [server.get("/", key, **BROWSER) for _ in range(5)]
        (refused, *_) = [a for a in answers if a.status_code == 429]
        assert int(refused.headers["retry-after"]) > 0
        assert "https://shop.example/more" in refused.text
        assert server.http.get("/docs", headers=BROWSER).status_code == 200  # needs no key
        assert server.http.get("/status", headers=BROWSER).status_code == 503


@pytest.mark.rule("WEB-5")
@in_one_minute
def test_a_page_counts_as_one_request_of_the_visitors_key(server: LiveServer) -> None:
    key = server.key("starter")

    def requests_left(address: str) -> int:
        answer = server.get(address, key)
        (remaining,) = re.findall(r'"minute";r=(\d+)', answer.headers["ratelimit"])
        return int(remaining)

    before = requests_left("/quality")
    requests_left(COMPANY)
    assert requests_left("/v1/screen?metric=net_margin") == before - 2
    assert "ratelimit" not in server.get("/docs", key).headers


@pytest.mark.rule("WEB-15")
def test_a_page_shows_at_most_100_rows(server: LiveServer, paid_key: str) -> None:
    for page in ("/signals/macro-momentum", "/screen", "/tenders", "/parties"):
        text = server.get(f"{page}?limit=10000", paid_key).text
        assert "limit=100" in text, page  # in the call of the API that it shows
        assert server.get(f"{page}?limit=10000").status_code == 402


@pytest.mark.rule("WEB-6")
def test_a_visitors_key_is_a_session_cookie_that_the_api_ignores(server: LiveServer, paid_key: str) -> None:
    with httpx.Client(base_url=server.url, verify=False) as visitor:  # noqa: S501 - no TLS here
        assert "sample" in Html.of(visitor.get("/key").text).all("main")[0].text
        signed_in = visitor.post("/key", data={"key": paid_key})
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/key")
        cookie = signed_in.headers["set-cookie"]
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


def test_comparing_a_screen_with_another_day_says_who_moved_and_why(server: LiveServer, paid_key: str):
    path = "/screen?metric=net_margin&as_of=2025-12-31&beside=2024-12-31"
    page = Html.of(server.get(path, paid_key).text)
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
    links = [a.attributes["href"] for a in page.all("a") if "chart=known" in a.attributes["href"]]
    assert len(links) == 2
    for address in links:
        answer = server.get(address, paid_key)
        assert "attachment" in answer.headers["content-disposition"]
        if "format=csv" in address:
            rows = list(csv.DictReader(io.StringIO(answer.text)))
            every = server.get(f"/v1/fundamentals/{ISSUER}?vintages=all&as_of=2024-06-01", paid_key).json()[
                "data"
            ]
            assert sum(int(row["figures"]) for row in rows) == len(every)
            assert sum(int(row["restated"]) for row in rows) == sum(row["vintage"] > 1 for row in every)
        else:
            assert answer.headers["content-type"] == "image/svg+xml"
            assert answer.text.startswith("<?xml")


def test_a_pinned_edition_stays_in_every_link(server: LiveServer) -> None:
    edition = server.get("/v1/status").json()["edition"]
    page = Html.of(server.get(f"/companies?edition={edition}").text)
    links = [a.attributes["href"] for a in page.all("a") if a.attributes["href"].startswith("/company/")]
    assert links
    assert all(f"edition={edition}" in link for link in links)
    assert server.get(links[0]).status_code == 200


def test_the_api_calls_on_a_page_work(server: LiveServer) -> None:
    for address in PAGES:
        if address.startswith("/docs"):
            continue
        text = Html.of(server.get(address).text)
        for block in text.all("code"):
            if block.text.startswith("GET /v1/"):
                call = block.text.removeprefix("GET ")
                assert server.get(call, "sankofa-sandbox").status_code == 200, (address, call)


def test_a_page_that_did_not_change_is_not_sent_again(server: LiveServer) -> None:
    first = server.get(COMPANY)
    again = server.get(COMPANY, if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.ci
@pytest.mark.rule("WEB-1")
def test_every_page_of_the_documentation_is_below_100_kb_and_lists_the_others(server: LiveServer):
    long = {name for name, document in documents().items() if len(document.pages) > 1}
    assert {"contract", "reference/api", "reference/line-items"} <= long
    for name, document in documents().items():
        count = len(document.pages)
        for number in range(1, count + 1):
            answer = server.get(f"/docs/{name}?page={number}")
            assert len(answer.content) < 100_000, (name, number)
            assert ('rel="next"' in answer.text) == (number < count)
            page = Html.of(answer.text)
            assert [h.text for h in page.all("h1")] == [document.title], (name, number)
            pages = [
                link.text
                for link in page.all("a")
                if link.attributes["href"].startswith(f"/docs/{name}?page=")
            ]
            assert all(first in " ".join(pages) for first in document.firsts[1:])
            assert "&lt;!--" not in answer.text
            assert "</code>&lt;br&gt;" not in answer.text
        assert server.get(f"/docs/{name}?page={count + 1}").status_code == 400
    assert documents()["reference/line-items"].title == "Line items"


def test_the_call_on_the_page_of_an_endpoint_is_answered_with_rows(server: LiveServer) -> None:
    for address in re.findall(r"/docs/api/\w+", server.get("/docs/api").text):
        page = Html.of(server.get(address).text)
        (call,) = re.findall(r"'([^']+)'$", page.all("output")[0].text)
        answer = server.get(call.removeprefix(server.url), "sankofa-sandbox")
        assert answer.status_code in (200, 402), call
        assert answer.status_code == 402 or answer.json().get("count") != 0, call


def test_the_documentation_is_searched_by_its_words(server: LiveServer) -> None:
    page = Html.of(server.get("/docs?q=superseded+vintage").text)
    links = [a.attributes["href"] for a in page.all("a") if a.attributes.get("class") == "t"]
    assert any("architecture" in link for link in links)


@pytest.mark.rule("WEB-17")
def test_a_company_page_shows_only_its_day(server: LiveServer) -> None:
    for day in ("2023-06-30", "2024-06-01"):
        for part in ("", "&part=statements"):
            page = Html.of(server.get(f"{COMPANY}?as_of={day}{part}").text)
            calls = [code.text for code in page.all("code") if code.text.startswith("GET /v1/")]
            assert any(f"/v1/metrics/{ISSUER}" in call and "basis=as_known" in call for call in calls)
            assert all(f"as_of={day}" in call for call in calls), calls
            (fixed,) = {a.attributes["href"] for a in page.all("a") if "edition=" in a.attributes["href"]}
            assert f"as_of={day}" in fixed
    today = server.http.get(COMPANY).text
    assert "basis=as_known" not in today
    assert "as_of=" in re.findall(r'href="([^"]*edition=[^"]*)"', today)[0]


@pytest.mark.rule("WEB-17")
def test_a_problem_is_a_page_for_a_browser_and_text_for_a_program(server: LiveServer) -> None:
    page = server.get("/problems/upgrade-required", **BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Upgrade required" in Html.of(page.text).all("h1")[0].text
    text = server.get("/problems/upgrade-required")
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "Accept" in text.headers["vary"]
    assert server.get("/problems/none", **BROWSER).status_code == 404
    method = server.get("/methodology/metrics-v1/net_margin", **BROWSER)
    assert method.headers["location"] == "/docs/methodology/metrics-v1/net_margin"


@pytest.mark.rule("WEB-17")
def test_the_code_examples_of_a_call_work_unchanged(server: LiveServer) -> None:
    path = f"/v1/statements/{ISSUER}?as_of=2024-06-01&kind=income"
    page = Html.of(server.get(f"/use?call={quote(path)}").text)
    lines = {pre.attributes["id"]: pre.text for pre in page.all("pre")}
    assert set(lines) >= {"u-pandas", "u-r", "u-excel", "u-stata", "u-duckdb", "u-code", "u-claude", "u-curl"}
    (address,) = re.findall(r"'http://[^/]+(/v1/[^']+)'$", lines["u-curl"])
    assert address == path
    rows = server.get(f"{address}&format=csv", "sankofa-sandbox")
    assert rows.status_code == 200
    for name in ("u-pandas", "u-r", "u-excel", "u-stata", "u-duckdb"):
        assert f"{server.url}{path}&format=csv" in lines[name]
    assert json.loads(lines["u-code"])["servers"]["sankofa"]["url"] == f"{server.url}/mcp"
    edition = server.get("/v1/sources", "sankofa-sandbox").json()["edition"]
    assert server.get(f"/use?call={quote(f'/v1/issuers?edition={edition}')}").status_code == 200
    hostile_text = quote("a'$(x)`\"")
    hostile = server.get(f"/use?call={quote(f'/v1/search?q={hostile_text}')}").text
    assert "$(x)" not in hostile
    assert "%27" in hostile
    for wrong in ("/v1/nothing", "/v1/search?nothing=1", "//elsewhere.example/v1/search", "/v1/entities/"):
        assert server.get(f"/use?call={quote(wrong)}").status_code == 400, wrong


@pytest.mark.parametrize("address", ["/macro/series/CPI.ZA", COMPANY, "/signals/fundamentals-revisions"])
def test_a_page_describes_itself_as_a_dataset_with_licence_and_attribution(
    server: LiveServer, paid_key: str, address: str
) -> None:
    (block,) = Html.of(server.get(address).text).all("script", type="application/ld+json")
    described = json.loads(block.text)
    assert described["@type"] == "Dataset"
    sources = server.get("/v1/sources", paid_key).json()["data"]
    cited = [one for one in sources if one["attribution"] and one["attribution"] in described["creditText"]]
    assert cited
    assert {one["licence_url"] or one["licence"] for one in cited} <= set(described["license"])
    (download,) = described["distribution"]
    assert server.get(download["contentUrl"].removeprefix(server.url), paid_key).status_code == 200


@pytest.mark.rule("LOCK-1")
def test_every_page_except_those_of_today_exists_in_a_locked_view(server: LiveServer, paid_key: str) -> None:
    of_today = ("/editions", "/status", "/macro/indicator/NY.GDP.MKTP.CD")  # annual tables have no day
    for address in PAGES:
        answer = server.get(f"/at/2024-12-31{address}", paid_key)
        assert answer.status_code == (404 if address in of_today else 200), address
        assert not any(f'href="/at/2024-12-31{path}"' in answer.text for path in of_today), address


def test_an_error_keeps_its_address_in_every_language(server: LiveServer) -> None:
    page = Html.of(server.get("/at/2024-12-31/company/DC00?as_of=2024-06-01", accept="text/html").text)
    links = [a.attributes["href"] for a in page.all("a") if a.attributes.get("hreflang") == "fr"]
    assert links == ["/at/2024-12-31/company/DC00?as_of=2024-06-01&lang=fr"]
