"""Locked views: a day that nobody can leave, by `/at/DAY/` or by a key (contract: LOCK-1 to LOCK-6)."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx
import pytest

from sankofa.access.records import IN_LOCKED_VIEWS, Position
from sankofa.access.tiers import Lock
from sankofa.client import Client
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.signals.contract import panels
from sankofa.model.identifiers import service_id
from sankofa.operations.paging import filters_digest
from tests.live import LiveServer, create_key, run
from tests.once import made_once
from tests.spec.register import lei
from tests.spec.two_ledgers import (
    BUYER,
    GONE,
    NAMES,
    NEW,
    NUMBERS,
    PARTIES,
    REGISTERED,
    RENAMED,
    publish_both,
)
from tests.torture import Trial, rounds

CUT: Final = date(2025, 3, 31)
FIRST: Final = date(2022, 6, 30)
BASE: Final = "http://sankofa.test"
ARROW: Final = "application/vnd.apache.arrow.stream"
TELLS_THE_TIME: Final = ("date", "x-request-id", "ratelimit", "x-ratelimit", "server")
REQUEST_ID: Final = re.compile(rb'request_id[\\]*":[\\]*"[0-9a-f]+|(?<=<code>)[0-9a-f]{20}(?=</code>)')


class Two(NamedTuple):
    """Servers on two ledgers that agree up to CUT, and a key that both know."""

    short: LiveServer
    long: LiveServer
    key: str


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, engine: dict[str, str]) -> Iterator[Two]:
    """The longer ledger is on the engine, the shorter one in files."""
    folder = tmp_path_factory.mktemp("locked")
    if engine:
        publish_both(made := tmp_path_factory.mktemp("two"), CUT.isoformat(), **engine)
    else:
        made = made_once(tmp_path_factory, "two-ledgers", lambda one: publish_both(one, CUT.isoformat()))
    homes = [Path(shutil.copytree(made / name, folder / name)) / "home" for name in ("short", "long")]
    key = create_key(homes[0], "professional", "--per-minute", "1000000", "--per-month", "10000000")
    shutil.rmtree(homes[1] / "keys", ignore_errors=True)
    for path in homes[0].glob("keys*"):
        target = homes[1] / path.name
        shutil.copytree(path, target, dirs_exist_ok=True) if path.is_dir() else shutil.copy(path, target)
    with _server(homes[0]) as short, _server(homes[1], **engine) as long:
        yield Two(short, long, key)


def _server(home: Path, datastore: str = "") -> LiveServer:
    settings = {"datastore": datastore} if datastore else {}
    visitors = {"per_minute_visitor": "1000000", "per_day_visitor": "1000000"}
    return LiveServer(home, workers=1, base_url=BASE, **visitors, **settings)


def told(answer: httpx.Response) -> tuple[int, list[tuple[str, str]], bytes]:
    """The whole answer, without the time and the id of the request."""
    headers = [(n, v) for n, v in answer.headers.items() if not n.startswith(TELLS_THE_TIME)]
    body = REQUEST_ID.sub(b"", answer.content)
    if body != answer.content:  # compressed, the id of a request may be longer or shorter
        headers = [(n, v) for n, v in headers if n != "content-length"]
    return answer.status_code, headers, body


class Asker:
    """Random questions about data that both ledgers have and data that only the longer one has."""

    def __init__(self, two: Two, chance: Random) -> None:
        self.chance = chance
        key = two.key

        def rows(path: str) -> list[dict[str, Any]]:
            body = two.long.get(path, key).json()
            return list(body.get("data") or body.get("observations") or ())

        self.ids = [row["service_id"] for row in rows("/v1/issuers?limit=100")]
        self.ids += [row["service_id"] for row in rows("/v1/tender-parties?limit=100") if row["service_id"]]
        self.series = [row["series"] for row in rows("/v1/series?limit=1000")]
        self.names = [row["legal_name"] for row in rows("/v1/issuers?limit=100")]
        self.names += [
            "Zebra Later",
            "Quagga",
            "Kgalagadi Sample Retail",
            "QUAGGA.INDEX",
            "sample",
            "limited",
            "Gone Sample Mills",
            "sample-late",
        ]
        self.series.append("GONE.INDEX")
        self.ocids = [row["ocid"] for row in rows("/v1/tenders?country=KE&limit=1000&detail=compact")]
        self.ocids.append("ocds-gone-1")
        self.ids += [service_id(f"lei:{BUYER}"), service_id(f"lei:{GONE}")]
        self.parties = [service_id(f"lei:{lei(stem)}") for stem in (*NAMES, "TWINTWO", "NEARTWO")]
        self.parties += [service_id(f"registry:KE-RCO:{n}") for n in ("PVT-NUMBERED1", *NUMBERS.values())]
        self.ids += self.parties
        self.names += PARTIES
        self.identifiers = [("lei", lei) for lei in (BUYER, NEW, RENAMED, GONE)]
        self.identifiers += [("ticker", f"NGX:{name}") for name in ("GONE", "ZEBRA")]
        numbers = ("2026/111111/07", "G-1", "Z-1", *NUMBERS.values(), *REGISTERED, "PVT-NUMBERED1")
        self.identifiers += [("registry", number) for number in numbers]
        for one in self.ids[:30]:
            self.identifiers += [
                (row["id_type"], row["id_value"]) for row in rows(f"/v1/crosswalk/{one}") if row["id_value"]
            ]

    def day(self) -> date:
        return FIRST + timedelta(days=self.chance.randrange((CUT - FIRST).days + 1))

    def path(self) -> str:
        some = self.chance.choice
        one, country = some(self.ids), some(("ZA", "KE", "NG", "GH", "EG"))
        id_type, id_value = some(self.identifiers)
        name = some(self.names)
        word = some(name.split())
        typed = some((name, word, word[:4], word[:-1] + "x"))
        paths = [
            f"/v1/fundamentals/{one}?limit=40",
            f"/v1/fundamentals/{one}?vintages=all&line_items=revenue,profit",
            f"/v1/fundamentals/{one}?vintages=as_reported&order=statement&limit=30",
            f"/v1/fundamentals/{one}?vintages={some(('all', 'latest', 'as_reported'))}",
            f"/v1/statements/{one}?shape={some(('long', 'wide'))}",
            f"/catalog.{some(('jsonld', 'ttl', 'croissant.json', 'datapackage.json'))}",
            f"/v1/entities/{one}",
            f"/v1/crosswalk/{one}",
            f"/v1/crosswalk?id_type={id_type}&id_value={id_value}",
            f"/v1/search?q={typed}",
            f"/v1/search?q={some((typed, id_value))}&country={country}",
            f"/v1/search?q={id_value}",
            f"/v1/search?q={some(self.series)}",
            f"/v1/issuers?country={country}",
            "/v1/issuers?limit=7",
            f"/v1/series?country={country}",
            f"/v1/series?q={some(self.series)}",
            f"/v1/series/{some(self.series)}/vintages",
            f"/v1/macro?series={some(self.series)}",
            f"/v1/macro?as_of={self.day()}&country={country}",
            f"/v1/macro?country={country}&indicator=SP.POP.TOTL",
            f"/v1/tenders?country={country}&limit=5",
            "/v1/tenders?limit=5&detail=compact",
            f"/v1/tenders?country=KE&ocid={some(self.ocids)}",
            f"/v1/tenders?country=KE&buyer={one}",
            f"/v1/tenders?country=KE&buyer={some((*self.parties, *PARTIES))}&limit=30",
            f"/v1/tenders?country=KE&supplier={some((*self.parties, *PARTIES))}&limit=30",
            f"/v1/shared/facts?entity_id={some(self.parties)}&dataset=AF-TENDER&limit=50",
            f"/v1/entities/{some(self.parties)}",
            f"/v1/flags?country=KE&supplier={some((*self.parties, *PARTIES))}",
            f"/v1/search?q={some(PARTIES)}",
            "/v1/signals/supplier-issuer-demand?limit=1000",
            "/v1/signals/procurement-demand?country=KE&limit=1000",
            f"/v1/flags?country=KE&buyer={one}",
            f"/v1/flags?indicator={some(('R003', 'R018,R028', 'R048'))}&limit={some((1, 50))}",
            f"/v1/tenders?country={country}&status=active&min_value=1&limit=5",
            f"/v1/contracts/{some(self.ocids)}",
            f"/v1/flags?{some((f'country={country}', f'ocid={some(self.ocids)}', f'as_of={self.day()}'))}",
            f"/v1/tenders?country={country}&query={some(('supply', 'road', 'cement', 'services'))}",
            f"/v1/tender-parties?country={country}",
            f"/v1/shared/facts?entity_id={one}",
            f"/v1/shared/facts?country={some(('ZAF', 'KEN', 'NGA'))}&dataset=AF-TENDER",
            f"/v1/signals/procurement-demand?country={country}",
            f"/v1/signals/{some(sorted(panels()))}?limit={some((5, 1000))}",
            f"/v1/metrics/{one}",
            "/v1/panel?metrics=net_margin&line_items=revenue&series=CPI.KE&every=quarter&from=2023-01-01&limit=20",
            f"/v1/screen?metric={some(slugs())}&order={some(('asc', 'desc'))}",
            f"/v1/entities/{one}/history?as_of={self.day()}",
            f"/v1/entities/{one}?as_of={self.day()}",
            f"/v1/crosswalk/{one}?as_of={self.day()}",
            f"/v1/restatements?{some(('limit=3', f'service_id={one}', f'country={country}'))}",
            f"/v1/series/{some(self.series)}/revisions",
            f"/fred/series?series_id={some(self.series)}",
            f"/fred/series/search?search_text={some((word, 'cpi', 'sample'))}",
            f"/fred/series/observations?series_id={some(self.series)}&units={some(('lin', 'pch'))}",
            f"/fred/series/observations?series_id={some(self.series)}&output_type={some((3, 4))}",
            f"/fred/series/vintagedates?series_id={some(self.series)}",
            f"/fred/series/search?search_text={word}",
            f"/fred/series/release?series_id={some(self.series)}",
            f"/worldbank/v2/country/all/indicator/{some(('SP.POP.TOTL', 'NY.GDP.MKTP.CD'))}",
            "/worldbank/v2/indicators",
            f"/sec/api/xbrl/companyfacts/CIK999990000{some((1, 2, 3))}.json",
            f"/sec/submissions/CIK999990000{some((1, 2, 3))}.json",
            "/sec/files/company_tickers.json",
            f"/sec/api/xbrl/frames/{some(('ifrs-full', 'us-gaap'))}/Assets/USD/CY2023Q4I.json",
            f"/v1/series/{some(self.series)}/matrix?from=2024-06-01&release={some(('all', 'first', 2))}",
            f"/v1/fundamentals/{one}/matrix?line_item=revenue&format={some(('json', 'csv', 'xlsx'))}",
            f"/feeds/company/{one}.atom",
            f"/feeds/restatements.atom?country={country}",
            "/v1/sources",
            f"/v1/coverage?country={country}",
            f"/v1/quality-metrics/{some(('AF-FUND', 'AF-TENDER', 'AF-MACRO'))}",
            "/v1/export",
            "/v1/changes",
            "/v1/status",
            "/v1/cross-rates?base=GBP&quote=ZAR",
            f"/v1/fundamentals/{id_value}",
            f"/v1/entities/{name}",
            "/v1/entities/DC000000000000000000000000",
            f"/v1/fundamentals/{one}?edition=20260101T000000Z-00001-0000000000",
            f"/v1/check?subject={quote(name)}&measure={some(('revenue', 'sales', 'net_margin'))}"
            f"&period={some(('FY2021', '2021-06-27', 'H1 2023', '2025'))}&value={some(('1234567', '37bn'))}",
            f"/v1/check?subject={id_value}&measure=revenue&period=2020/21&value=7654321",
            f"/v1/check?subject={some(self.series)}&period={some(('January 2022', '2026-03-31'))}&value=17",
            "/open/af-macro-series.parquet",
        ]
        return some(paths)

    def page(self) -> str:
        some = self.chance.choice
        name = some(self.names)
        return some(
            [
                "/",
                f"/company/{some(self.ids)}",
                f"/search?q={some(name.split())}",
                "/companies",
                "/restatements",
                "/macro",
                f"/macro/{some(self.series)}",
                "/tenders",
                "/tenders?country=KE",
                "/sources",
                "/coverage",
                "/quality",
                "/downloads",
                "/signals",
                "/country/ZA",
                "/editions",
                "/status",
            ]
        )

    def call(self) -> dict[str, Any]:
        some = self.chance.choice
        one = some(self.ids)
        name, arguments = some(
            [
                ("get_fundamentals", {"service_id": one, "line_items": ["revenue"]}),
                ("get_statement", {"service_id": one}),
                ("get_entity", {"service_id": one}),
                ("get_entity_history", {"service_id": one}),
                ("search_entities", {"query": some(self.names)}),
                ("list_issuers", {"country": "ZA"}),
                ("list_series", {"country": "KE"}),
                ("get_macro", {"series": some(self.series)}),
                ("search_tenders", {"country": "KE", "limit": 3}),
                ("get_coverage", {}),
                (
                    "check_claim",
                    {"subject": some(self.names), "measure": "revenue", "period": "2021", "value": "1234567"},
                ),
                ("lookup_identifier", {"id_type": "lei", "id_value": some((NEW, RENAMED))}),
            ]
        )
        params = {"name": name, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def same(two: Two, path: str, **headers: str) -> httpx.Response:
    """Compare both answers; returns that of the longer ledger."""
    short, long = (server.get(path, two.key, **headers) for server in (two.short, two.long))
    assert told(short) == told(long), path
    return long


@pytest.mark.both_engines
@pytest.mark.rule("LOCK-2", "LOCK-5")
def test_two_ledgers_that_agree_up_to_a_day_give_the_same_bytes(two: Two, trial: Trial) -> None:
    asker = Asker(two, trial.chance)
    for _ in range(rounds(400, 4_000, 10_000, here=100)):
        day, path = asker.day(), asker.path()
        accept = trial.chance.choice(("application/json", "text/csv", "*/*", ARROW))
        answer = same(two, f"/at/{day}{path}", accept=accept)
        trial.saw(answer.status_code)
        if path.startswith("/v1/") and "json" in answer.headers["content-type"] and answer.status_code == 200:
            cursor = answer.json().get("next_cursor")
            if cursor:
                same(two, f"/at/{day}{path}{'&' if '?' in path else '?'}cursor={cursor}")


@pytest.mark.ci
@pytest.mark.rule("LOCK-2")
def test_pages_show_nothing_of_later_days(two: Two, trial: Trial) -> None:
    asker = Asker(two, trial.chance)
    for _ in range(rounds(60, 600, 1_500, here=20)):
        day = asker.day()
        answer = same(two, f"/at/{day}{asker.page()}", accept="text/html")
        trial.saw(answer.status_code)
        assert answer.status_code in (200, 303, 404)
        if answer.status_code == 200:
            assert f"You are on {day}." in answer.text
            links = re.findall(r'(?:href|action|src)="(/[^"]*)"', answer.text)
            outside = [link for link in links if not link.startswith((f"/at/{day}/", "/assets/"))]
            assert not outside


@pytest.mark.rule("LOCK-3")
@pytest.mark.parametrize("day", [date(2024, 6, 30), CUT])
def test_sources_and_coverage_count_only_known_rows(two: Two, day: date) -> None:
    inside = f"/at/{day}/v1"
    covered = same(two, f"{inside}/coverage").json()["data"]
    pages = [same(two, f"{inside}/coverage?limit=3").json()]
    while pages[-1]["next_cursor"]:
        pages.append(same(two, f"{inside}/coverage?limit=3&cursor={pages[-1]['next_cursor']}").json())
    assert [row for page in pages for row in page["data"]] == covered

    def counted(sku: str, country: str, unit: str) -> int:
        key = sku, country, unit
        own = [row for row in covered if (row["sku"], row["country"], row["unit_of_count"]) == key]
        return sum(row["count"] for row in own)

    for country in ("KE", "ZA"):
        tenders = same(two, f"{inside}/tenders?country={country}&limit=1000&detail=compact").json()["data"]
        assert counted("AF-TENDER", country, "releases") == len(tenders)
        series = same(two, f"{inside}/series?country={country}&limit=1000").json()["data"]
        assert 0 < counted("AF-MACRO", country, "series") <= len(series)
    sources = same(two, f"{inside}/sources").json()["data"]
    assert {row["source_id"] for row in covered} <= {row["source_id"] for row in sources}
    for row in sources:
        assert row["captured_at"] is row["rejected"] is row["observed_at"] is None
        assert row["row_count"] > 0
        assert row["last_date"] is None or row["last_date"] <= str(day)
    figures = [row["count"] for row in covered if row["sku"] == "AF-FUND"]
    known = same(two, f"{inside}/issuers?limit=1000").json()["data"]
    assert max(figures) <= len(known) <= sum(figures)
    assert same(two, "/at/1990-01-01/v1/sources").json()["absent"]["reason"] == "nothing_known"


@pytest.mark.rule("LOCK-4")
def test_a_buyer_has_no_organisation_before_it_is_registered(two: Two) -> None:
    later = service_id(f"lei:{BUYER}")
    outside = get(two, f"/v1/tenders?country=KE&buyer={later}&limit=1000")["data"]
    assert {row["buyer_service_id"] for row in outside} == {later}
    for path in (f"tenders?country=KE&buyer={later}", f"flags?country=KE&buyer={later}", f"search?q={BUYER}"):
        assert same(two, f"/at/{CUT}/v1/{path}").json()["data"] == []
    inside = same(two, f"/at/{CUT}/v1/tenders?country=KE&limit=1000").json()["data"]
    unnamed = {row["buyer_service_id"] for row in inside if row["buyer_name"] == outside[0]["buyer_name"]}
    assert unnamed == {None}


@pytest.mark.rule("LOCK-2")
@pytest.mark.parametrize("day", ["2023-06-30", CUT.isoformat()])
def test_shared_tables_show_nothing_of_later_days(two: Two, day: str) -> None:
    tables = same(two, f"/at/{day}/delta-sharing/shares/sankofa/all-tables").json()["items"]
    assert len(tables) == 3
    for table in tables:
        path = (
            f"/at/{day}/delta-sharing/shares/sankofa/schemas/{table['schema']}/tables/{table['name']}/query"
        )
        files = []
        for server in (two.short, two.long):
            answer = server.http.post(path, json={}, headers={"X-API-Key": two.key})
            file = json.loads(answer.text.splitlines()[-1])["file"]
            inside = file["url"].removeprefix(BASE)
            files.append((file["id"], file["size"], file["stats"], server.http.get(inside).content))
        assert files[0] == files[1], table


@pytest.mark.rule("LOCK-2")
def test_tools_show_nothing_of_later_days(two: Two, trial: Trial) -> None:
    asker = Asker(two, trial.chance)
    headers = {
        "x-api-key": two.key,
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    for _ in range(rounds(60, 600, 1_500, here=20)):
        day, message = asker.day(), asker.call()
        short, long = (
            server.http.post(f"/at/{day}/mcp", json=message, headers=headers)
            for server in (two.short, two.long)
        )
        assert short.status_code == 200
        assert REQUEST_ID.sub(b"", short.content) == REQUEST_ID.sub(b"", long.content), (day, message)


DAY: Final = "2024-06-30"
KGALAGADI: Final = service_id(f"lei:{RENAMED}")
QUAGGA: Final = service_id(f"lei:{NEW}")


def get(two: Two, path: str, key: str | None = None) -> dict[str, Any]:
    return two.long.body(path, key or two.key)


def refused(two: Two, path: str, status: int, key: str | None = None) -> dict[str, Any]:
    answer = two.long.get(path, key or two.key)
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.rule("LOCK-1")
def test_as_of_defaults_to_the_locked_day_and_a_later_one_is_refused(two: Two) -> None:
    inside = get(two, f"/at/{DAY}/v1/fundamentals/{KGALAGADI}")
    outside = get(two, f"/v1/fundamentals/{KGALAGADI}?as_of={DAY}")
    assert inside["as_of"] == DAY
    keep = [{k: v for k, v in row.items() if k != "observed_at"} for row in outside["data"]]
    assert [{k: v for k, v in row.items() if k != "observed_at"} for row in inside["data"]] == keep
    problem = refused(two, f"/at/{DAY}/v1/fundamentals/{KGALAGADI}?as_of=2024-07-01", 400)
    assert problem["parameter"] == "as_of"
    assert problem["detail"] == f"as_of: later than {DAY}, the day that this view is locked to"
    earlier = get(two, f"/at/{DAY}/v1/fundamentals/{KGALAGADI}?as_of=2023-06-30")
    assert earlier["as_of"] == "2023-06-30"


@pytest.mark.rule("LOCK-1")
@pytest.mark.parametrize("day", ["2099-01-01", "2024-02-30", "yesterday", "20240630", ""])
def test_an_invalid_or_unfinished_day_is_a_404(two: Two, day: str) -> None:
    refused(two, f"/at/{day}/v1/coverage", 404)


@pytest.mark.rule("LOCK-3")
def test_a_locked_answer_shows_no_edition_capture_or_digest(two: Two) -> None:
    answer = two.long.get(f"/at/{DAY}/v1/macro?series=CPI.KE", two.key)
    body = answer.json()
    assert body["edition"] is None
    assert body["data"]
    assert {row["observed_at"] for row in body["data"]} == {None}
    assert not [row for row in body["data"] if "@" in row["source_ref"]]
    again = two.long.get(
        f"/at/{DAY}/v1/macro?series=CPI.KE", two.key, **{"if-none-match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    assert "last-modified" not in answer.headers


@pytest.mark.rule("LOCK-6")
def test_a_catalogue_asked_with_a_locked_key_names_no_file_of_today(two: Two) -> None:
    key = create_key(two.long.home, "starter", "--as-of-max", DAY)
    for name in ("jsonld", "ttl", "croissant.json", "datapackage.json"):
        assert ".parquet?edition=" not in two.long.get(f"/catalog.{name}", key).text
        assert ".parquet?edition=" in two.long.get(f"/catalog.{name}", None).text


@pytest.mark.rule("LOCK-3")
def test_measures_of_the_newest_data_say_why_they_have_no_rows(two: Two) -> None:
    for path in ("quality-metrics/AF-FUND", "export", "tender-parties"):
        body = get(two, f"/at/{DAY}/v1/{path}")
        assert body["data"] == []
        assert "a locked view" in body["absent"]["detail"], path


@pytest.mark.rule("LOCK-3")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/changes",
        "/v1/status",
        f"/v1/entities/{KGALAGADI}?edition=20260101T000000Z-00001-0000000000",
        "/open/af-macro-series.parquet",
        "/v1/export/files/af-fund-facts.parquet",
    ],
)
def test_endpoints_about_the_newest_data_are_404_in_a_locked_view(two: Two, path: str) -> None:
    refused(two, f"/at/{DAY}{path}", 404)


@pytest.mark.rule("LOCK-4")
def test_an_organisation_has_its_name_of_the_day_and_later_ones_are_unknown(two: Two) -> None:
    (now,) = get(two, f"/v1/entities/{KGALAGADI}")["data"]
    (then,) = get(two, f"/at/{DAY}/v1/entities/{KGALAGADI}")["data"]
    assert now["legal_name"] == "Zebra Later Stores Limited"
    assert then["legal_name"] == "Kgalagadi Sample Retail Holdings Limited"
    issuers = get(two, f"/at/{DAY}/v1/issuers?country=ZA")["data"]
    assert next(r for r in issuers if r["service_id"] == KGALAGADI)["legal_name"] == then["legal_name"]
    assert get(two, f"/at/{DAY}/v1/search?q=zebra")["data"] == []
    assert [r["id"] for r in get(two, f"/at/{DAY}/v1/search?q=kgalagadi")["data"]] == [KGALAGADI]
    assert KGALAGADI in [r["id"] for r in get(two, "/v1/search?q=kgalagadi+retail")["data"]]
    assert get(two, f"/v1/entities/{QUAGGA}")["data"]
    refused(two, f"/at/{DAY}/v1/entities/{QUAGGA}", 404)
    refused(two, f"/at/{DAY}/v1/fundamentals/{QUAGGA}", 404)
    assert get(two, f"/at/{DAY}/v1/crosswalk?id_type=lei&id_value={NEW}")["data"] == []


@pytest.mark.rule("LOCK-6")
def test_a_key_with_a_lock_cannot_see_beyond_its_day_on_any_surface(two: Two) -> None:
    home = two.long.home
    key = create_key(home, "professional", "--as-of-max", DAY)
    own = get(two, f"/v1/fundamentals/{KGALAGADI}", key)
    assert own["as_of"] == DAY
    assert own["data"] == get(two, f"/at/{DAY}/v1/fundamentals/{KGALAGADI}")["data"]
    assert refused(two, f"/v1/fundamentals/{KGALAGADI}?as_of=2024-07-01", 400, key)["parameter"] == "as_of"
    refused(two, "/v1/export/files/af-fund-facts.parquet", 404, key)
    refused(two, "/v1/status", 404, key)
    assert two.long.get("/status", key, accept="text/html").status_code == 404
    assert "locked to" in refused(two, "/open/macro-momentum.parquet", 404, key)["detail"]
    assert two.long.get("/open/macro-momentum.parquet", "no-such-key").status_code == 200
    # The narrower of key and path wins.
    assert get(two, f"/at/2025-01-31/v1/fundamentals/{KGALAGADI}", key)["as_of"] == DAY
    assert get(two, f"/at/2023-01-31/v1/fundamentals/{KGALAGADI}", key)["as_of"] == "2023-01-31"
    page = two.long.get("/companies", key, accept="text/html")
    assert f"You are on {DAY}." in page.text
    called = two.long.tool("get_fundamentals", key, {"service_id": KGALAGADI, "as_of": "2024-07-01"})
    assert called["parameter"] == "as_of"


@pytest.mark.rule("LOCK-6")
def test_a_lock_moves_forward_and_never_back(two: Two) -> None:
    home = two.long.home
    key = create_key(home, "starter", "--as-of-max", DAY, "--label", "contest")
    listed = json.loads(run(home, "keys", "list", "--json").stdout)
    (record,) = [one for one in listed if one["label"] == "contest"]
    moved = run(home, "keys", "lock", record["id"], "2024-12-31")
    assert (moved.returncode, moved.stdout) == (0, f"{record['id']} is locked to 2024-12-31\n")
    assert get(two, f"/v1/fundamentals/{KGALAGADI}", key)["as_of"] == "2024-12-31"
    back = run(home, "keys", "lock", record["id"], "2024-11-30")
    assert back.returncode == 1
    assert "a lock moves forward, never back" in back.stderr
    future = run(home, "keys", "lock", record["id"], "2099-01-01")
    assert future.returncode == 1
    assert get(two, f"/v1/fundamentals/{KGALAGADI}", key)["as_of"] == "2024-12-31"


@pytest.mark.rule("LOCK-6")
def test_a_schedule_moves_the_lock_forward_with_the_clock() -> None:
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    lock = Lock(date(2015, 1, 1), date(2015, 2, 1), begins.timestamp(), 2, 1.0)
    after = [lock.on(begins + timedelta(seconds=seconds)) for seconds in (0, 0.9, 1, 10, 10_000)]
    assert [day.isoformat()[5:] for day in after] == ["01-01", "01-01", "01-03", "01-21", "02-01"]
    endless = Lock(date(2025, 12, 31), None, begins.timestamp(), 1, 1.0)
    assert endless.on(begins + timedelta(seconds=60)) == date(2026, 1, 1)


@pytest.mark.rule("LOCK-6")
@pytest.mark.parametrize(
    "options",
    [
        ("--as-of-max", "2099-01-01"),
        ("--as-of-max", "2024-13-01"),
        ("--as-of-from", "2024-01-01", "--step", "90m"),
        ("--as-of-from", "2024-01-01", "--every", "0s"),
        ("--as-of-from", "2024-01-01", "--as-of-max", "2023-01-01"),
    ],
)
def test_an_invalid_lock_issues_no_key(two: Two, options: tuple[str, ...]) -> None:
    refusal = run(two.long.home, "keys", "create", "--tier", "starter", *options)
    assert refusal.returncode in (1, 2)
    assert not refusal.stdout


@pytest.mark.rule("LOCK-5")
def test_a_forged_cursor_of_a_locked_view_is_a_400_and_shows_nothing_later(two: Two) -> None:
    path = f"/at/{DAY}/v1/issuers?limit=2"
    cursor = get(two, path)["next_cursor"]
    outside = get(two, "/v1/issuers?limit=2")["next_cursor"]
    assert refused(two, f"{path}&cursor={outside}", 400)["parameter"] == "cursor"
    assert refused(two, f"/v1/issuers?limit=2&cursor={cursor}", 400)["parameter"] == "cursor"
    digest = filters_digest(("issuers", None, None))
    for after in ((date(2026, 1, 1).toordinal(), "ZA", "x"), (738_000, 5, 7), (738_000,), (-1, "", ""), ()):
        forged = IN_LOCKED_VIEWS.issue(Position("", digest, after))
        answer = two.long.get(f"{path}&cursor={forged}", two.key)
        assert answer.status_code in (200, 400), answer.text
        if answer.status_code == 200:
            assert answer.json()["as_of"] <= DAY


@pytest.mark.rule("LOCK-1")
def test_the_client_works_inside_a_locked_view(two: Two) -> None:
    with Client(two.key, f"{two.long.url}/at/{DAY}") as client:
        answer = client.get_fundamentals("JSE:SMPKG", limit=3)
        assert answer.edition is None
        assert str(answer.as_of) == DAY
        assert client.columns.get_fundamentals("JSE:SMPKG", limit=3).count == 3
        assert len(list(client.iter_issuers(limit=3))) > 3


@pytest.mark.rule("LOCK-1")
@pytest.mark.parametrize("path", ["/health", "/llms.txt", "/methodology/metrics-v1/net_margin", "/docs"])
def test_pages_without_data_exist_in_a_locked_view(two: Two, path: str) -> None:
    assert two.long.get(f"/at/{DAY}{path}", None).status_code == 200


@pytest.mark.rule("LOCK-1", "LOCK-2")
def test_the_description_of_a_locked_view_names_its_own_address_and_no_later_day(two: Two) -> None:
    description = two.long.get(f"/at/{DAY}/openapi.json", None)
    (server,) = description.json()["servers"]
    assert server["url"] == f"{BASE}/at/{DAY}"
    texts = [description.text]
    texts += [two.long.get(f"/at/{DAY}{path}", None).text for path in ("/docs", "/llms.txt")]
    for text in texts:
        days = re.findall(r"20\d\d-\d\d-\d\d", text)
        assert [day for day in days if day > DAY] == []


@pytest.mark.rule("LOCK-2")
def test_a_locked_view_has_as_known_values_only(two: Two) -> None:
    problem = refused(two, f"/at/{DAY}/v1/screen?metric=net_margin&basis=current", 400)
    assert problem["parameter"] == "basis"
    assert get(two, f"/at/{DAY}/v1/screen?metric=net_margin")["basis"] == "as_known"
