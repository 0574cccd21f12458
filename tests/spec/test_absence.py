"""An answer without rows says why, and what to ask instead."""

import json
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from sankofa.client import Client
from sankofa.model.errors import ABSENCES
from sankofa.model.identifiers import service_id
from sankofa.operations.contract import endpoints
from sankofa.rest.openapi import describe
from sankofa.settings import Settings
from tests.every import every
from tests.live import LiveServer
from tests.spec import market
from tests.spec.market import Desk, package, release

plain_desk = market.plain_desk

RETAILER = service_id("lei:999900SAMPLEZA000189")
UNKNOWN = "DC" + "0" * 24
NO_FIGURES = "DC0734D8E2C2D1133C00301C26"
"""A supplier that only tenders name."""
BEFORE_RESTATED = "2024-09-02"


class Question(NamedTuple):
    path: str
    reason: str
    words: str
    first: str | None = ""
    leads_on: bool = True
    """Whether there is another question to ask: every question of `try` has rows."""


QUESTIONS = [
    Question(f"/v1/fundamentals/{RETAILER}?line_items=sales", "unknown_line_item", "did you mean `revenue`"),
    Question(
        f"/v1/restatements?service_id={RETAILER}&line_item=sales", "unknown_line_item", "`revenue`", "", False
    ),
    Question(f"/v1/fundamentals/{RETAILER}?as_of=2010-06-30", "not_yet_known", "2021-08-30", "2021-08-30"),
    Question(f"/v1/metrics/{RETAILER}?as_of=2010-06-30", "not_yet_known", "2021-08-30", "2021-08-30", False),
    Question(f"/v1/fundamentals/{RETAILER}?line_items=deposits", "not_reported", "`deposits`", "2021-08-30"),
    Question(f"/v1/metrics/{UNKNOWN}", "unknown_organisation", UNKNOWN, None, False),
    Question("/v1/macro?series=CPI.ZA&as_of=2010-06-30", "not_yet_known", "2022-02-17", "2022-02-17"),
    Question("/v1/macro?series=FX.EUR.ZAR&as_of=1980-01-01", "not_yet_known", "Not known on 1980-01-01"),
    Question("/v1/macro?series=CPI.ZAF", "unknown_code", "CPI.ZA"),
    Question("/v1/macro?indicator=NY.GDP.MKTP.CX", "unknown_code", "NY.GDP.MKTP.CD"),
    Question("/v1/macro?series=NY.GDP.MKTP.CD&as_of=2015-06-30&country=NG", "annual_indicator", "annual"),
    Question("/v1/series/NY.GDP.MKTP.CD/vintages", "annual_indicator", "WDI:NY.GDP.MKTP.CD:"),
    Question("/v1/macro?indicator=CPI.ZA", "dated_series", "is a series"),
    Question("/v1/macro?indicator=NY.GDP.MKTP.CD&country=NG&to=1950", "outside_dates", "2015", "2015-12-31"),
    Question("/v1/macro?indicator=NY.GDP.MKTP.CD&country=FR", "not_covered", "France", None),
    Question("/v1/issuers?country=FR", "not_covered", "No issuers with figures of France", None, False),
    Question("/v1/issuers?as_of=1990-01-01", "not_yet_known", "2020-03-25", "2020-03-25"),
    Question("/v1/tenders?country=MU", "not_covered", "No tenders of Mauritius", None),
    Question("/v1/shared/facts?country=FRA&dataset=AF-MACRO", "not_covered", "No series of France", None),
    Question("/v1/macro?series=EURZAR", "unknown_code", "nearest: FX.EUR.ZAR", None),
    Question("/v1/macro?series=ZAR-EUR", "unknown_code", "nearest: FX.EUR.ZAR", None),
    Question("/v1/series?q=kenya+qqqzzzqqq", "no_match", "words", None),
    Question("/v1/tenders?country=ZA&from=2040-01-01", "outside_dates", "2026-06-28", "2023-10-01"),
    Question("/v1/search?q=qqqzzzqqq", "no_match", "words", None, False),
    Question(f"/v1/fundamentals/{RETAILER}/matrix?line_item=deposits", "not_reported", "`deposits`"),
    Question("/v1/series/CPI.ZA/matrix?from=2040-01-01", "outside_dates", "2025-07-31"),
    Question(
        f"/v1/metrics/{RETAILER}?metric=net_margin&max_age=1", "left_out", "net_margin is left out", None
    ),
    Question(
        f"/v1/metrics/{RETAILER}?metric=net_margin&as_of={BEFORE_RESTATED}", "left_out", "revised later", None
    ),
    Question("/v1/macro?series=FX.ZAR.EUR", "unknown_code", "nearest: FX.EUR.ZAR", None),
    Question("/v1/tenders?country=KE&query=qqqzzzqqq", "no_match", "words", None, False),
    Question("/v1/tenders?country=KE&supplier=Nobody", "no_match", "Nothing matches `supplier`"),
    Question(f"/v1/restatements?service_id={RETAILER}&since=2026-01-01", "outside_dates", "known from"),
    Question(f"/v1/restatements?service_id={NO_FIGURES}", "no_figures", "no figures", None),
    Question("/v1/entities/" + RETAILER + "?as_of=1990-01-01", "no_match", "1990-01-01", None),
    Question(
        "/v1/panel?metrics=net_margin&from=2023-01-02&to=2023-01-09",
        "outside_dates",
        "No month ends",
        None,
        False,
    ),
    Question(
        f"/v1/panel?metrics=net_margin&from=2010-01-02&to=2012-12-31&issuers={RETAILER}",
        "not_yet_known",
        "2021-08-30",
        "2021-08-30",
    ),
    Question(
        f"/v1/panel?metrics=net_margin&from=2023-01-02&issuers={UNKNOWN}",
        "unknown_organisation",
        UNKNOWN,
        None,
        False,
    ),
]


@pytest.mark.rule("ABS-1", "ABS-2")
@every("question", QUESTIONS, ids=[one.path for one in QUESTIONS])
def test_an_empty_answer_gives_a_reason_and_a_next_step(
    server: LiveServer, paid_key: str, question: Question
):
    body = server.body(question.path, paid_key)
    assert body["count"] == 0
    absent = body["absent"]
    assert set(absent) == {"reason", "detail", "first", "last", "try"}
    assert absent["reason"] == question.reason
    assert question.words in absent["detail"]
    if question.first != "":
        assert absent["first"] == question.first
    counts = []
    for one in absent["try"]:
        assert set(one) == {"path", "arguments", "why"}
        led = server.get(f"{one['path']}?{urlencode(one['arguments'])}", paid_key)
        assert led.status_code == 200, (one, led.text)
        counts.append(led.json()["count"])
    assert all(counts), absent["try"]
    assert counts or not question.leads_on


@pytest.mark.rule("ABS-2")
@pytest.mark.parametrize("country", ["ZA", "KE", "NG"])
def test_a_day_before_a_country_has_anything_public_is_not_yet_known(
    server: LiveServer, paid_key: str, country: str
) -> None:
    """Days of publication count: a figure or a value is about a day long before."""
    issuers = server.rows(f"/v1/issuers?country={country}&limit=100", paid_key)
    figures = min(row["first_available"] for row in issuers)
    series = [row["series"] for row in server.rows(f"/v1/series?country={country}", paid_key)]
    released = [
        row["release_date"]
        for one in series
        for row in server.rows(f"/v1/series/{one}/vintages?limit=10000", paid_key)
        if row["country"] == country
    ]
    for path, first in (
        ("/v1/issuers", figures),
        ("/v1/screen", figures),
        ("/v1/macro", min(released)),
    ):
        before = date.fromisoformat(first) - timedelta(days=1)
        metric = "net_margin" if path == "/v1/screen" else None
        absent = server.body(path, paid_key, country=country, as_of=before, metric=metric)["absent"]
        assert (absent["reason"], absent["first"]) == ("not_yet_known", first), path
        for one in absent["try"]:
            assert server.body(one["path"], paid_key, **one["arguments"])["count"], one


@pytest.mark.rule("ABS-2")
def test_words_that_nothing_has_together_are_suggested_alone(server: LiveServer, paid_key: str) -> None:
    buyer = next(row["buyer_name"] for row in server.rows("/v1/tenders?country=KE", paid_key))
    word = max(buyer.split(), key=len)
    absent = server.body("/v1/tenders", paid_key, country="KE", query=f"{word} qqqzzzqqq")["absent"]
    suggestion = {"country": "KE", "buyer_query": word}
    assert suggestion in [one["arguments"] for one in absent["try"]]
    covered = server.body("/v1/tenders?country=MU", paid_key)["absent"]["try"]
    assert {"sku": "AF-TENDER"} in [one["arguments"] for one in covered]


@pytest.mark.rule("ABS-2")
def test_a_search_that_its_filters_leave_empty_leads_to_one_without_them(
    server: LiveServer, paid_key: str
) -> None:
    (name,) = [row["legal_name"] for row in server.rows(f"/v1/entities/{RETAILER}", paid_key)]
    for narrowing in ({"country": "FR"}, {"type": "series"}, {"as_of": "1990-01-01"}):
        absent = server.body("/v1/search", paid_key, q=name, **narrowing)["absent"]
        assert absent["detail"].startswith(f"Nothing that matches `{next(iter(narrowing))}` has these words")
        assert {"q": name} in [one["arguments"] for one in absent["try"]]


@pytest.mark.rule("ABS-2")
def test_a_process_of_another_country_leads_to_that_country(server: LiveServer, paid_key: str) -> None:
    ocid = server.rows("/v1/tenders?country=KE", paid_key)[0]["ocid"]
    for path in ("/v1/tenders", "/v1/flags"):
        body = server.body(path, paid_key, ocid=ocid, country="ZA")
        assert body["count"] == 0
        assert body["absent"]["detail"] == "The process is of Kenya, not of South Africa."
        (other,) = body["absent"]["try"]
        assert (other["path"], other["arguments"]) == (path, {"ocid": ocid, "country": "KE"})


@pytest.mark.rule("ABS-2")
def test_a_part_of_a_buyers_name_leads_to_the_buyers_that_have_it(server: LiveServer, paid_key: str) -> None:
    buyer = next(row["buyer_name"] for row in server.rows("/v1/tenders?country=KE", paid_key))
    word = max(buyer.split(), key=len)
    for path in ("/v1/tenders", "/v1/flags"):
        absent = server.body(path, paid_key, country="KE", buyer=word)["absent"]
        arguments = {"country": "KE", "buyer_query": word}
        assert ("/v1/tenders", arguments) in [(one["path"], one["arguments"]) for one in absent["try"]]


@pytest.mark.rule("ABS-2")
def test_an_unknown_name_in_place_of_a_service_id_says_where_to_look(server: LiveServer, paid_key: str):
    for path in ("/v1/fundamentals/Kgalagadi", "/v1/entities/Nobody", f"/v1/entities/{UNKNOWN}"):
        answer = server.get(path, paid_key)
        assert answer.status_code == 404
        suggests_search = "Search for its name: /v1/search?q=" in answer.json()["detail"]
        assert suggests_search is (UNKNOWN not in path)


@pytest.mark.rule("ABS-1")
def test_the_description_lists_the_member_and_its_reasons() -> None:
    schemas = describe(Settings())["components"]["schemas"]
    answers = [schema for schema in schemas.values() if "_license" in schema["properties"]]
    assert len(answers) >= len(endpoints())
    assert all("absent" in schema["properties"] for schema in answers)
    assert all(f'"{code}"' in json.dumps(schemas) for code in ABSENCES)


@pytest.mark.rule("ABS-1")
def test_an_answer_with_rows_has_null(server: LiveServer, paid_key: str) -> None:
    for path in (
        f"/v1/fundamentals/{RETAILER}",
        "/v1/macro?series=CPI.ZA",
        "/v1/issuers",
        "/v1/sources",
        "/v1/usage",
        "/v1/export",
        "/v1/signals/macro-momentum",
    ):
        assert server.body(path, paid_key)["absent"] is None


@pytest.mark.rule("ABS-3")
def test_tools_columns_client_and_pages_give_the_same_reason(server: LiveServer, paid_key: str) -> None:
    path = f"/v1/fundamentals/{RETAILER}?as_of=2010-06-30"
    absent = server.body(path, paid_key)["absent"]
    by_tool = server.tool("get_fundamentals", paid_key, {"service_id": RETAILER, "as_of": "2010-06-30"})
    assert by_tool["absent"] == absent
    table = server.http.get(path, headers={"X-API-Key": paid_key, "Accept": "text/csv"})
    assert json.loads(table.headers["x-absent"]) == absent
    with Client(paid_key, server.url) as client:
        answer = client.get_fundamentals(RETAILER, as_of="2010-06-30")
    assert answer.absent == absent
    assert absent["detail"] in repr(answer)
    page = server.http.get("/restatements?country=FR")
    assert "No issuers with figures of France" in page.text


@pytest.mark.rule("SEARCH-4", "ABS-1")
@every(
    ("words", "detail", "led_to"),
    [
        ("federal republic of nigeria qqqzzz", "Nothing has these words", {"country": "NG"}),
        ("gdp dr congo", "no series of DR Congo", None),
        ("Russia GDP", "no series of Russia", None),
    ],
)
def test_words_that_name_a_country_lead_to_its_series_or_say_that_it_has_none(
    server: LiveServer, paid_key: str, words: str, detail: str, led_to: dict[str, str] | None
) -> None:
    absent = server.body(f"/v1/search?{urlencode({'q': words})}", paid_key)["absent"]
    assert detail in absent["detail"]
    series = [one["arguments"] for one in absent["try"] if one["path"] == "/v1/series"]
    assert series == ([led_to] if led_to else [])


@pytest.mark.rule("SEARCH-4")
@every(("words", "language"), [("Nigeria", "en"), ("gdp of nigeria", "en"), ("Nigéria", "fr")])
def test_the_search_page_leads_to_the_country_that_words_name(
    server: LiveServer, words: str, language: str
) -> None:
    page = server.http.get(f"/search?{urlencode({'q': words})}", headers={"Accept-Language": language}).text
    assert 'href="/country/NG"' in page


@pytest.mark.rule("SEARCH-5")
def test_the_search_page_lists_a_process_once_and_leaves_out_the_word_tender(
    server: LiveServer, paid_key: str
) -> None:
    rows = server.body("/v1/tenders?country=ZA&limit=1000", paid_key)["data"]
    ocids = [row["ocid"] for row in rows]
    (several, *_) = [one for one in ocids if ocids.count(one) > 1]
    title = next(row["title"] for row in rows if row["ocid"] == several)
    page = server.http.get(f"/search?{urlencode({'q': title + ' tender'})}").text
    assert page.count(f"/tender/ZA/{several}") == 1


def test_a_panel_of_tenders_says_whether_categories_or_closed_months_are_missing(plain_desk: Desk) -> None:
    goods = release("b", "2025-05-09T10:00:00Z", tender={"mainProcurementCategory": "goods"})
    plain_desk.ingest("portal-za", "za.json", package(release("a", "2025-05-09T10:00:00Z")))
    plain_desk.ingest("portal-ke", "ke.json", package(goods))
    with plain_desk.publish_and_serve() as caller:

        def absent(query: str) -> tuple[str, str, str | None]:
            body = caller.server.body(f"/v1/signals/procurement-demand?{query}", caller.key)
            return body["absent"]["reason"], body["absent"]["detail"], body["absent"]["first"]

        assert absent("country=ZA") == (
            "no_match",
            "No release of ZA in a closed month names a category.",
            None,
        )
        assert absent("country=KE&as_of=2025-05-20") == (
            "not_yet_known",
            "No month was closed on 2025-05-20: the first, 2025-05, ends on 2025-05-31.",
            "2025-05-31",
        )
        assert absent("country=NG")[0] == "not_covered"
        assert absent("country=KE&category=works")[0] == "no_match"


@pytest.mark.rule("ABS-2")
def test_the_page_of_an_unknown_series_names_the_nearest(server: LiveServer) -> None:
    for prefix in ("", "/at/2024-06-30"):
        page = server.get(f"{prefix}/macro/series/EURZAR", accept="text/html")
        assert page.status_code == 404
        assert "Nearest: FX.EUR.ZAR" in page.text
