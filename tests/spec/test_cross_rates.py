"""GET /v1/cross-rates: rates derived from two published ones, as known on a day."""

import os
import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.live import LiveServer
from tests.spec.ingesting import source_entry
from tests.spec.market import Desk, PaidCaller

DRAW = random.Random(int(os.environ.get("TEST_SEED", "5")))
HEAD = "series,series_type,frequency,country,date,value,unit,release_date\n"
FIRST = date(2024, 3, 4)
DAYS = [FIRST + timedelta(days=n) for n in range(9)]
TODAY = date(2024, 4, 1)
SOURCES = source_entry("bank-ng", "series-csv", license_class="open-government") + source_entry(
    "bank-ke", "series-csv"
)
Vintages = dict[tuple[str, date], list[tuple[date, str]]]
"""For each series and day: the days of release, and the value of each (empty: withdrawn)."""


def drawn(*series: str) -> Vintages:
    """Not every day has a value; some are revised days later, some withdrawn."""
    vintages: Vintages = {}
    for key in series:
        for day in DAYS:
            if DRAW.random() < 0.8:
                released = day
                vintages[key, day] = []
                for _ in range(DRAW.choice((1, 1, 2, 3))):
                    figure = str(Decimal(DRAW.randint(1, 10**9)).scaleb(-5))
                    value = "" if vintages[key, day] and DRAW.random() < 0.2 else figure
                    vintages[key, day].append((released, value))
                    released += timedelta(days=DRAW.randint(1, 4))
    return vintages


# The shilling is quoted the other way round against the euro.
NIGERIA = drawn("FX.USD.NGN", "FX.EUR.NGN")
KENYA = drawn("FX.USD.KES", "FX.KES.EUR")
EVERY = {**NIGERIA, **KENYA}


def as_csv(vintages: Vintages) -> str:
    rows = [
        f"{key},fx,daily,,{day},{value},{key},{released}\n"
        for (key, day), releases in vintages.items()
        for released, value in releases
    ]
    return HEAD + "".join(rows)


@pytest.fixture(scope="module")
def caller(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("cross"), SOURCES, **engine)
    desk.ingest("bank-ng", "ng.csv", as_csv(NIGERIA))
    monthly = "FX.USD.GHS,fx,monthly,,2024-03-04,12.5,GHS,2024-03-04\n"
    desk.ingest("bank-ke", "ke.csv", as_csv(KENYA) + monthly)
    with desk.publish_and_serve() as caller:
        yield caller


def value_on(series: str, day: date, as_of: date) -> tuple[Decimal, date] | None:
    """The value of a day as known on another, and the day it became public."""
    latest = None
    for released, value in EVERY.get((series, day), ()):
        if released <= as_of:
            latest = (value, released)
    return (Decimal(latest[0]), latest[1]) if latest and latest[0] else None


def expected(as_of: date) -> list[tuple[str, str, Decimal, str]]:
    """Shillings for one naira: (via, date, value, available_at)."""
    rows = []
    for via, naira, shilling in (("EUR", "FX.EUR.NGN", "FX.KES.EUR"), ("USD", "FX.USD.NGN", "FX.USD.KES")):
        for day in reversed(DAYS):
            one, other = value_on(naira, day, as_of), value_on(shilling, day, as_of)
            if day <= as_of and one and other:
                quote = 1 / Fraction(other[0]) if shilling == "FX.KES.EUR" else Fraction(other[0])
                exact = quote / Fraction(one[0])
                value = Context(prec=10, rounding=ROUND_HALF_EVEN).divide(
                    Decimal(exact.numerator), Decimal(exact.denominator)
                )
                rows.append((via, str(day), value, str(max(one[1], other[1]))))
    return rows


def rates_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["via"], row["date"], Decimal(row["value"]), row["available_at"]) for row in rows]


@pytest.mark.both_engines
@pytest.mark.rule("XR-1", "XR-2", "XR-3")
def test_a_rate_is_the_exact_quotient_of_both_rates_known_on_the_day(caller: PaidCaller) -> None:
    answers = 0
    for as_of in [FIRST - timedelta(days=1), *(FIRST + timedelta(days=n) for n in range(25))]:
        whole = caller.get("/v1/cross-rates", base="NGN", quote="KES", as_of=as_of, limit=1000)
        assert whole["as_of"] == str(as_of)
        assert rates_of(whole["data"]) == expected(as_of), as_of
        answers += whole["count"]
    assert answers > 100
    assert len({row[2] for day in DAYS for row in expected(day)}) > len(expected(TODAY))  # some were revised


@pytest.mark.rule("XR-1")
def test_each_row_says_that_it_is_derived_and_names_both_inputs(caller: PaidCaller) -> None:
    rows = caller.get("/v1/cross-rates", base="ngn", quote="kes", limit=1000)["data"]
    assert rows
    for row in rows:
        assert (row["base"], row["quote"], row["unit"]) == ("NGN", "KES", "KES per NGN")
        assert (row["method"], row["methodology_ref"]) == ("derived", "cross-rates-v1")
        base, quote = row["inputs"]
        assert (base["series"], quote["series"]) == {
            "EUR": ("FX.EUR.NGN", "FX.KES.EUR"),
            "USD": ("FX.USD.NGN", "FX.USD.KES"),
        }[row["via"]]
        for one in row["inputs"]:
            (published,) = [
                each
                for each in caller.get("/v1/macro", series=one["series"], limit=1000)["data"]
                if each["date"] == row["date"]
            ]
            assert one == {name: published[name] for name in one}
        assert row["source_ref"] == base["source_ref"]
        assert row["license_class"] == "open-government"  # the stricter of the two
        assert (base["license_class"], quote["license_class"]) == ("open-government", "cc-by")
        assert row["observed_at"] == max(one["observed_at"] for one in row["inputs"])
        assert row["available_at"] == max(one["available_at"] for one in row["inputs"])


@pytest.mark.rule("XR-1", "MACRO-7")
def test_no_derived_rate_is_ever_served_as_published(caller: PaidCaller) -> None:
    for pair in ("FX.NGN.KES", "FX.KES.NGN"):
        assert caller.get("/v1/macro", series=pair)["count"] == 0
    listed = {row["series"] for row in caller.get("/v1/series", limit=1000)["data"]}
    assert listed == {key for key, _ in EVERY} | {"FX.USD.GHS"}
    for alpha3 in ("NGA", "KEN"):
        facts = caller.get("/v1/shared/facts", entity_id=alpha3, limit=1000)["data"]
        assert {fact["measure"] for fact in facts} <= listed


@pytest.mark.rule("XR-2")
def test_averages_are_never_divided_and_a_pair_without_a_third_has_no_rows(caller: PaidCaller) -> None:
    assert caller.get("/v1/cross-rates", base="GHS", quote="KES")["count"] == 0
    assert caller.get("/v1/cross-rates", base="NGN", quote="XXX")["count"] == 0
    assert caller.get("/v1/cross-rates", base="NGN", quote="KES", via="GBP")["count"] == 0


@pytest.mark.rule("XR-4")
def test_days_and_a_third_currency_narrow_the_list(caller: PaidCaller) -> None:
    every = caller.get("/v1/cross-rates", base="NGN", quote="KES", limit=1000)["data"]
    dollars = caller.get("/v1/cross-rates", base="NGN", quote="KES", via="usd", limit=1000)["data"]
    assert dollars == [row for row in every if row["via"] == "USD"]
    since, until = str(DAYS[2]), str(DAYS[6])
    query = {"base": "NGN", "quote": "KES", "from": since, "to": until}
    within = caller.get("/v1/cross-rates", **query, limit=1000)["data"]
    assert within == [row for row in every if since <= row["date"] <= until]


@pytest.mark.rule("XR-4")
def test_a_malformed_pair_is_refused(caller: PaidCaller) -> None:
    for query, parameter in (
        ({"base": "NGN"}, "quote"),
        ({"quote": "NGN"}, "base"),
        ({"base": "NGN", "quote": "ngn"}, "quote"),
        ({"base": "NGN", "quote": "KES", "via": "KES"}, "via"),
        ({"base": "NAIRA", "quote": "KES"}, "base"),
        ({"base": "NGN", "quote": "KES", "from": "2024"}, "from"),
        ({"base": "NGN", "quote": "KES", "as_of": "2999-01-01"}, "as_of"),
    ):
        problem = caller.refused("/v1/cross-rates", **query)
        assert (problem["status"], problem["parameter"]) == (400, parameter), query


@pytest.mark.rule("XR-1", "XR-6")
def test_every_format_and_the_tool_give_the_pairs_of_the_sample_world(
    server: LiveServer, paid_key: str
) -> None:
    path = "/v1/cross-rates?base=GBP&quote=ZAR&as_of=2024-06-30&limit=5"
    body = server.body(path, paid_key)
    assert body["count"] == 5
    assert "European Central Bank" in body["_license"]
    arguments = {"base": "GBP", "quote": "ZAR", "as_of": "2024-06-30", "limit": 5}
    assert server.tool("get_cross_rates", paid_key, arguments) == body
    answer = server.http.get(path, headers={"x-api-key": paid_key, "accept": "text/csv"})
    lines = answer.text.splitlines()
    assert len(lines) == 6
    assert "derived" in lines[1]
    assert server.get(path.replace("limit=5", "limit=26"), server.key("sample")).status_code == 402
    explained = server.http.get("/methodology/cross-rates-v1")
    assert explained.status_code == 200
    assert "half-even" in explained.text
