"""The owner of an installation: a key in HOME without quotas, and a signed-in browser (contract: WEB-16)."""

import re
import shutil
import stat
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.live import LiveServer, run, succeed
from tests.publisher import Publisher
from tests.web.site import BROWSER, COMPANY

SERIES = "/macro/series/CPI.ZA"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, sample_home: Path) -> Iterator[LiveServer]:
    fresh = shutil.ignore_patterns("keys*", "usage*")
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("own") / "home", ignore=fresh))
    with LiveServer(home, access_log="json") as live:
        yield live


def address(live: LiveServer, *arguments: str) -> str:
    """The path and query that `sankofa open` prints."""
    printed = succeed(live.home, "open", "--print", *arguments)
    line = printed.stdout.strip()
    assert line.startswith(f"{live.url}/sign-in?code="), "the address where the server listens"
    return line.removeprefix(live.url)


def key_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
    return cookie.removeprefix("sankofa_key=")


@pytest.mark.rule("WEB-16")
def test_a_code_signs_the_owner_in_once(own: LiveServer) -> None:
    path = address(own, f"{COMPANY}?as_of=2024-06-01")
    assert own.http.head(path).status_code == 405
    for foreign in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"referer": "https://elsewhere.example/page"},
        {"host": "rebound.example"},
        {"sec-purpose": "prefetch"},
    ):
        refused = own.http.get(path, headers=foreign)
        assert (refused.status_code, refused.headers.get("set-cookie")) == (403, None), foreign
    assert own.get(f"/at/2024-01-01{path}", **BROWSER).status_code == 404
    signed_in = own.get(path, sec_fetch_site="none")
    assert signed_in.headers["location"] == f"{COMPANY}?as_of=2024-06-01"
    assert signed_in.headers["cache-control"] == "no-store"
    key = key_of(signed_in)
    again = own.get(path)
    assert (again.status_code, again.headers.get("set-cookie")) == (401, None)
    assert own.get("/sign-in?code=guess").status_code == 401
    assert own.get(address(own) + "&next=//elsewhere.example").headers["location"] == "/"
    file = own.home / "owner-key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() == key
    code = path.partition("code=")[2].partition("&")[0]
    assert key not in own.log
    assert code not in own.log


@pytest.mark.rule("WEB-16")
def test_the_owner_sees_all_of_a_page_and_visitors_a_part(own: LiveServer) -> None:
    key = key_of(own.get(address(own)))
    (usage,) = own.get("/v1/usage", key).json()["data"]
    assert (usage["tier"], usage["minute_limit"], usage["month_limit"]) == ("professional", None, None)
    assert usage["month_used"] >= 1
    cookie = {"cookie": f"sankofa_key={key}"}
    for page in (SERIES, "/key", "/companies"):
        whole = own.get(page, **cookie).text
        assert "The sandbox shows" not in whole, page
        assert "Upgrade" not in whole, "no address is configured"
    cut = own.get(SERIES).text
    assert "The sandbox shows the first 25 rows" in cut
    assert "Upgrade" not in cut
    assert "The sandbox shows" not in own.get("/macro/series/POLICY.ZA").text, "it has fewer rows"
    download = f"{SERIES}?chart=series&format=csv"
    whole_rows = own.get(download, **cookie).text.splitlines()
    first, header, *rows = own.get(download).text.splitlines()
    assert first == f"# first 25 of {len(whole_rows) - 1} rows"
    assert (header, len(rows)) == (whole_rows[0], 25)


@pytest.mark.rule("WEB-16")
def test_a_revoked_owner_key_is_refused_and_the_next_code_issues_another(own: LiveServer) -> None:
    key, unused = key_of(own.get(address(own))), address(own)
    succeed(own.home, "keys", "revoke", key)
    assert own.get("/v1/usage", key).status_code == 401
    assert own.get("/companies", cookie=f"sankofa_key={key}").status_code == 401
    assert own.get(unused).status_code == 401, "a code of a revoked key"
    other = key_of(own.get(address(own)))
    assert other != key
    assert own.get("/v1/usage", other).status_code == 200
    assert run(own.home, "keys", "rotate", other).returncode == 1


@pytest.mark.limit("sign-in code of the owner")
def test_a_code_expires_and_a_ninth_one_replaces_the_oldest(own: LiveServer) -> None:
    first, *_, last = [address(own) for _ in range(9)]
    assert own.get(first).status_code == 401
    key_of(own.get(last))


@pytest.mark.rule("WEB-19")
def test_only_the_owner_sees_the_operators_page_and_can_start_commands(own: LiveServer) -> None:
    key = key_of(own.get(address(own)))
    cookie = {"cookie": f"sankofa_key={key}"}
    page = own.get("/operator", **cookie)
    assert page.status_code == 200
    for text in ("Rejected rows", "<code>sankofa publish</code>", "owner", "ledger.sqlite", "worldbank"):
        assert text in page.text, text
    assert key not in page.text
    other = own.key("professional")
    assert own.get("/operator", **BROWSER).status_code == 404
    assert own.get("/operator", other, **BROWSER).status_code == 404
    assert own.get("/operator/events", other).status_code == 404
    assert own.get("/operator/events").status_code == 401
    form, foreign = {"command": "publish"}, {"sec-fetch-site": "cross-site"}
    assert own.http.post("/operator", data=form, headers={"x-api-key": other}).status_code == 404
    assert own.http.post("/operator", data=form, headers={**cookie, **foreign}).status_code == 403
    assert own.http.post("/operator", data={"command": "backup"}, headers=cookie).status_code == 400
    assert not (own.home / "operator").exists(), "nothing was begun"
    started = own.http.post("/operator", data=form, headers=cookie)
    assert (started.status_code, started.headers["location"]) == (303, "/operator#log")
    events = own.get("/operator/events", **cookie)
    assert events.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "data: exit 0\n" in events.text, events.text
    assert events.text.endswith("event: end\ndata:\n\n")
    assert "exit 0" in own.get("/operator", **cookie).text


def test_the_operators_page_says_when_a_source_was_collected_last(own: LiveServer) -> None:
    cookie = {"cookie": f"sankofa_key={key_of(own.get(address(own)))}"}
    with Publisher() as publisher:
        publisher.put("/bank.csv", "Country Name,Country Code,Year,Value\nSouth Africa,ZAF,2000,1\n")
        (own.home / "sources.toml").write_text(
            '[sources.bank]\nadapter = "worldbank"\nsku = "AF-MACRO"\nlicense_class = "cc-by"\n'
            "commercial_redistribution = true\n[sources.bank.collect]\nallow_private = true\n"
            f'urls = ["{publisher.url}/bank.csv"]\n'
        )
        assert _collected_last(own, cookie) == "never"
        succeed(own.home, "collect", "bank")
    assert _collected_last(own, cookie).endswith(" UTC")


def _collected_last(own: LiveServer, cookie: dict[str, str]) -> str:
    row = own.get("/operator", **cookie).text.partition('<code class="small">bank</code>')[2]
    cells: list[str] = re.findall(r"<td>([^<]*)</td>", row)
    return cells[1]


@pytest.mark.rule("WEB-16")
def test_the_owner_makes_a_link_for_exactly_the_question_of_a_page(own: LiveServer) -> None:
    key = key_of(own.get(address(own)))
    signed_in = {"cookie": f"sankofa_key={key}", "sec-fetch-site": "same-origin"}
    page = own.http.get(SERIES, headers=signed_in).text
    path = unescape(re.findall(r'name="path" value="([^"]+)"', page)[0])
    created = own.http.post("/links", data={"path": path}, headers={**signed_in, **BROWSER})
    assert (created.status_code, created.headers["cache-control"]) == (201, "no-store")
    link = unescape(re.findall(r'id="l-address"[^>]*>([^<]+)<', created.text)[0]).removeprefix(own.url)
    opened = own.http.get(link)
    assert opened.headers["content-type"].startswith("text/csv")
    assert opened.text == own.get(path, key).text
    assert own.http.get(link.replace("CPI.ZA", "CPI.KE")).status_code == 401
    assert "/links" not in own.http.get(SERIES).text
    assert "/links" not in own.http.get(f"/at/2024-01-01{SERIES}", headers=signed_in).text
    other = own.key("professional")
    for headers, status in (
        ({}, 401),
        ({"x-api-key": "sankofa-sandbox"}, 404),
        ({"cookie": f"sankofa_key={other}"}, 404),
        ({**signed_in, "sec-fetch-site": "cross-site"}, 403),
    ):
        assert own.http.post("/links", data={"path": path}, headers=headers).status_code == status, headers
    for wrong in ("", "/operator", "//v1/macro", "https://elsewhere.example/v1/macro", f"{path}&link=lk_x"):
        refused = own.http.post("/links", data={"path": wrong}, headers=signed_in)
        assert refused.status_code == 400, wrong


@pytest.mark.limit("links of a key that are made on pages and by clients")
def test_a_key_makes_no_more_than_a_hundred_links(own: LiveServer) -> None:
    headers = {"x-api-key": own.key("starter", "--per-minute", "1000")}
    for number in range(100):
        created = own.http.post("/links", data={"path": f"/v1/search?q=a{number}"}, headers=headers)
        assert created.status_code == 201, created.text
    refused = own.http.post("/links", data={"path": "/v1/search?q=more"}, headers=headers)
    assert refused.status_code == 400
    assert "100 links" in refused.text
