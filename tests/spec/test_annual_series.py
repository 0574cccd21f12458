"""Annual tables with the day of their capture in the file name are series too, known from that day."""

import os
import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.spec import market
from tests.spec.market import Desk, PaidCaller

plain_desk = market.plain_desk

DRAW = random.Random(int(os.environ.get("TEST_SEED", "3")))
HEAD = '"Country Name","Country Code","Indicator Name","Indicator Code",'
YEARS = range(2007, 2012)
COUNTRIES = {"NGA": "Nigeria", "KEN": "Kenya"}
CAPTURES = [date(2012, 9, 20), date(2013, 6, 28), date(2015, 8, 16), date(2018, 8, 1)]
Table = dict[tuple[str, int], str]


def drawn() -> Table:
    """Few values, so that many return; None is an empty cell."""
    return {(iso3, year): DRAW.choice(("", "1.5", "2", "3.25")) for iso3 in COUNTRIES for year in YEARS}


TABLES = {day: drawn() for day in CAPTURES}


def as_csv(table: Table) -> str:
    lines = [HEAD + ",".join(f'"{year}"' for year in YEARS)]
    for iso3, name in COUNTRIES.items():
        cells = ",".join(f'"{table[iso3, year]}"' for year in YEARS)
        lines.append(f'"{name}","{iso3}","GDP (current US$)","NY.GDP.MKTP.CD",{cells}')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def caller(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("annual"), **engine)
    for day in CAPTURES:
        desk.ingest("worldbank", f"{day}-gdp.csv", as_csv(TABLES[day]))
    desk.ingest("worldbank", "inflation.csv", as_csv(drawn()).replace("NY.GDP.MKTP.CD", "FP.CPI.TOTL.ZG"))
    with desk.publish_and_serve() as caller:
        yield caller


def expected_rows(iso3: str, day: date) -> list[tuple[str, Decimal | None, str, int]]:
    """(date, value, available_at, vintage), newest first, by hand."""
    rows = []
    for year in reversed(YEARS):
        current, since, vintage = "", None, 0
        for captured in CAPTURES:
            value = TABLES[captured][iso3, year]
            if captured <= day and value != current and (value or vintage):
                current, since, vintage = value, captured, vintage + 1
        if since is not None:
            rows.append((f"{year}-12-31", Decimal(current) if current else None, str(since), vintage))
    return rows


def macro_rows(caller: PaidCaller, query: str) -> list[dict[str, Any]]:
    return list(caller.get("/v1/macro", **dict(pair.split("=") for pair in query.split("&")))["data"])


@pytest.mark.rule("MACRO-9")
@pytest.mark.both_engines
def test_a_value_is_known_from_the_first_capture_that_shows_it(caller: PaidCaller) -> None:
    for iso3 in COUNTRIES:
        for captured in CAPTURES:
            for day in (captured - timedelta(1), captured, captured + timedelta(1)):
                rows = macro_rows(caller, f"series=WDI:NY.GDP.MKTP.CD:{iso3}&as_of={day}")
                assert [
                    (row["date"], row["value"], row["available_at"], row["vintage"]) for row in rows
                ] == expected_rows(iso3, day), (iso3, day)
                assert {row["frequency"] for row in rows} <= {"annual"}
                for row in rows:
                    assert row["source_ref"].startswith(f"worldbank:{row['available_at']}-gdp.csv@")


@pytest.mark.rule("PIT-8", "MACRO-9")
def test_tables_ingested_newest_first_give_the_same_series(plain_desk: Desk) -> None:
    """Also if an undated table, or one with the same bytes, gave the values before."""
    captures = {"2012-09-20": "1.5", "2013-06-28": "2", "2015-08-16": "2", "2018-08-01": "1.5"}
    plain_desk.ingest(
        "worldbank", "undated.csv", HEAD + '"2010"\n"Kenya","KEN","GDP","NY.GDP.MKTP.CD","1.5"\n'
    )
    for day, value in reversed(captures.items()):
        line = f'"Kenya","KEN","GDP (current US$)","NY.GDP.MKTP.CD","{value}"\n'
        plain_desk.ingest("worldbank", f"{day}_gdp.csv", HEAD + f'"2010"\n{line}')
    plain_desk.publish()
    expected = {
        "2012-09-19": [],
        "2015-08-16": [("2", "2013-06-28", 2)],
        "2018-08-01": [("1.5", "2018-08-01", 3)],
    }
    expected["2013-06-27"] = [("1.5", "2012-09-20", 1)]
    with plain_desk.serve() as caller:
        for day, values in expected.items():
            rows = macro_rows(caller, f"series=WDI:NY.GDP.MKTP.CD:KEN&as_of={day}")
            assert [(str(row["value"]), row["available_at"], row["vintage"]) for row in rows] == values, day


@pytest.mark.rule("ADP-5")
def test_a_tidy_file_name_may_put_the_day_before_its_indicator(plain_desk: Desk) -> None:
    table = "Country Name,Country Code,Year,Value\nNigeria,NGA,2014,176400000\n"
    plain_desk.ingest("worldbank", "2016-03-01-sp.pop.totl.csv", table)
    with plain_desk.publish_and_serve() as caller:
        (row,) = macro_rows(caller, "country=NG&indicator=SP.POP.TOTL")
        assert (row["year"], row["value"]) == (2014, 176400000)
        (row,) = macro_rows(caller, "series=WDI:SP.POP.TOTL:NGA")
        assert (row["date"], row["available_at"]) == ("2014-12-31", "2016-03-01")


def test_an_annual_series_is_listed_with_its_country_and_family(caller: PaidCaller) -> None:
    rows = macro_rows(caller, "country=NG&as_of=2018-08-01&series_type=wdi&frequency=annual")
    assert rows == macro_rows(caller, "series=wdi:ny.gdp.mktp.cd:nga&as_of=2018-08-01")
    assert rows


def test_a_table_without_a_day_in_its_name_is_not_a_series(caller: PaidCaller) -> None:
    assert macro_rows(caller, "series=WDI:FP.CPI.TOTL.ZG:NGA") == []
    assert macro_rows(caller, "country=NG&indicator=FP.CPI.TOTL.ZG")


def test_annual_mode_and_shared_facts_do_not_change(caller: PaidCaller) -> None:
    newest = TABLES[CAPTURES[-1]]
    rows = macro_rows(caller, "country=NG&indicator=NY.GDP.MKTP.CD")
    assert {row["year"]: row["value"] for row in rows if row["value"] is not None} == {
        year: Decimal(newest["NGA", year]) for year in YEARS if newest["NGA", year]
    }
    assert all(row["available_at"] is None for row in rows)
    facts = caller.get("/v1/shared/facts", dataset="AF-MACRO", country="NGA", limit=1000)["data"]
    assert {fact["measure"] for fact in facts} == {"NY.GDP.MKTP.CD", "FP.CPI.TOTL.ZG"}


@pytest.mark.rule("SEARCH-1")
def test_a_search_finds_an_annual_series_by_its_key(caller: PaidCaller) -> None:
    first = caller.get("/v1/search", q="wdi:ny.gdp.mktp.cd:nga")["data"][0]
    assert (first["type"], first["id"], first["country"]) == ("series", "WDI:NY.GDP.MKTP.CD:NGA", "NG")
    assert caller.get("/v1/search", q=first["id"], type="series", country="KE")["data"] == []


@pytest.mark.rule("ABS-2", "SER-4", "SER-5")
@pytest.mark.parametrize(
    "path", ["/v1/macro?series={}&", "/v1/series/{}/revisions?", "/v1/series/{}/matrix?"]
)
def test_on_a_day_before_its_first_capture_a_series_is_not_yet_known(caller: PaidCaller, path: str) -> None:
    question = path.format("WDI:NY.GDP.MKTP.CD:NGA")
    body = caller.server.body(f"{question}as_of={CAPTURES[0] - timedelta(1)}", caller.key)
    assert (body["count"], body["absent"]["reason"]) == (0, "not_yet_known")
    assert body["absent"]["first"] == str(CAPTURES[0])
    assert [one["arguments"].get("as_of") for one in body["absent"]["try"]] == [str(CAPTURES[0]), None]


@pytest.mark.rule("SER-4")
def test_the_mean_of_revisions_that_cancel_has_all_its_digits(plain_desk: Desk) -> None:
    """Two thirds up and two thirds minus 1e-7 down: rounded one by one they would leave 3.33e-8."""
    table = dict.fromkeys(((iso3, year) for iso3 in COUNTRIES for year in YEARS), "")
    first = table | {("NGA", year): "3" for year in (2007, 2008, 2009)}
    later = first | {("NGA", 2007): "4", ("NGA", 2008): "4", ("NGA", 2009): "1.0000003"}
    for day, own in ((CAPTURES[0], first), (CAPTURES[1], later)):
        plain_desk.ingest("worldbank", f"{day}-gdp.csv", as_csv(own))
    with plain_desk.publish_and_serve() as caller:
        (row,) = caller.get("/v1/series/WDI:NY.GDP.MKTP.CD:NGA/revisions")["data"]
    assert str(row["mean_revision"]) == "3.333333333E-8"
    assert str(row["mean_absolute_revision"]) == "0.4444444111"
