"""One key is one series with one frequency and one kind; any day can be repeated from the file."""

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spec.ingesting import source_entry
from tests.spec.market import Desk, PaidCaller

HEAD = "series,series_type,frequency,country,date,value,unit,release_date\n"
DAILY = HEAD + "".join(
    f"FX.USD.ZAR,fx,daily,ZA,2024-03-0{n},18.{n},ZAR per USD,2024-03-0{n}\n" for n in (4, 5)
)
MONTHLY = HEAD + "".join(
    f"FX.USD.ZAR,fx,monthly,ZA,2017-0{n}-01,13.{n},ZAR per USD,2017-12-08\n" for n in (1, 2)
)
PRICES = HEAD + "FX.USD.ZAR,cpi,daily,ZA,2025-01-01,1,index,2025-01-01\n"
SOURCES = "".join(source_entry(name, "series-csv") for name in ("one", "two", "three"))


def take(desk: Desk, source: str, text: str) -> dict[str, int]:
    desk.command("ingest", source, desk.write(f"{source}.csv", text))
    done = desk.command("ingest", source, desk.write(f"{source}.csv", text))
    words = done.stdout.replace(",", "").split()
    return {name: int(words[words.index(name) + 1]) for name in ("unchanged", "rejected")}


def served(desk: Desk) -> list[tuple[Any, ...]]:
    with desk.publish_and_serve() as caller:
        rows = caller.get("/v1/macro", series="FX.USD.ZAR", limit=100)["data"]
    return [
        (row["frequency"], row["series_type"], row["date"], row["value"], row["available_at"]) for row in rows
    ]


@pytest.mark.both_engines
@pytest.mark.rule("MACRO-11")
def test_the_kind_published_first_owns_the_key_in_any_order_of_ingestion(
    engine: dict[str, str], tmp_path: Path
) -> None:
    files = {"one": DAILY, "two": MONTHLY, "three": PRICES}
    answers = []
    for number, order in enumerate(itertools.islice(itertools.permutations(files), 0, 6, 2)):
        settings = engine if number == 0 else {}
        desk = Desk(tmp_path / str(number), SOURCES, **settings)
        for source in order:
            take(desk, source, files[source])
        answers.append(served(desk))
    assert answers[0] == answers[1] == answers[2]
    assert {row[:2] for row in answers[0]} == {("monthly", "fx")}


@pytest.mark.rule("MACRO-11")
def test_rows_of_another_kind_are_rejected_until_the_first_kind_is_withdrawn(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SOURCES)
    assert take(desk, "two", MONTHLY) == {"unchanged": 2, "rejected": 0}
    assert take(desk, "one", DAILY) == {"unchanged": 0, "rejected": 2}
    (reason,) = {row["reason"] for row in desk.rejects()}
    assert reason == (
        "series: FX.USD.ZAR is monthly fx, not daily fx: one key has one frequency and one series_type; "
        "use another key, such as FX.USD.ZAR.D"
    )
    assert take(desk, "one", DAILY.replace("FX.USD.ZAR", "FX.USD.ZAR.D")) == {"unchanged": 2, "rejected": 0}
    desk.succeed("withdraw", "two", "--reason", "a test")
    assert take(desk, "one", DAILY) == {"unchanged": 2, "rejected": 0}
    assert {row[:2] for row in served(desk)} == {("daily", "fx")}


@pytest.mark.rule("MACRO-11")
def test_one_file_with_two_kinds_of_a_key_keeps_the_one_that_was_public_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SOURCES)
    assert take(desk, "one", DAILY + MONTHLY.removeprefix(HEAD)) == {"unchanged": 2, "rejected": 2}
    assert {row[:2] for row in served(desk)} == {("monthly", "fx")}


WIDE = (
    '"Country Name","Country Code","Indicator Name","Indicator Code","2010","2011"\n'
    '"Nigeria","NGA","GDP (current US$)","NY.GDP.MKTP.CD","{0}","{1}"\n'
    '"Nigeria","NGA","Population, total","SP.POP.TOTL","160{0}","164{1}"\n'
    '"Nigeria","NGA","Total reserves (includes gold, current US$)","FI.RES.TOTL.CD","{1}","{0}"\n'
    '"Kenya","KEN","GDP (current US$)","NY.GDP.MKTP.CD","{0}",""\n'
)
CAPTURES = {"2012-09-20": (1, 2), "2013-06-28": (3, 2), "2018-08-01": (3, 4)}


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("repeated"), SOURCES)
    for day, values in CAPTURES.items():
        desk.ingest("worldbank", f"{day}-wdi.csv", WIDE.format(*values))
    more = 'CPI.NG,cpi,monthly,NG,2011-01-31,{},"index, as the country\'s own base",{}\n'
    desk.ingest("one", "cpi.csv", HEAD + more.format(7, "2012-01-01") + more.format(8, "2013-01-01"))
    desk.ingest("two", "rates.csv", MONTHLY)
    with desk.publish_and_serve() as caller:
        yield caller


@pytest.mark.rule("MACRO-12")
def test_remarks_go_to_the_note_and_not_to_the_unit(caller: PaidCaller) -> None:
    rows = caller.get("/v1/macro", country="NG", limit=100)["data"]
    units = {row["indicator"]: (row["unit"], row["note"]) for row in rows}
    assert units == {
        "NY.GDP.MKTP.CD": ("current US$", None),
        "SP.POP.TOTL": ("people", None),
        "FI.RES.TOTL.CD": ("current US$", "includes gold"),
    }
    for series, unit in {
        "WDI:FI.RES.TOTL.CD:NGA": ("current US$", "includes gold"),
        "CPI.NG": ("index", "as the country's own base"),
    }.items():
        (row, *_) = caller.get("/v1/macro", series=series)["data"]
        assert (row["unit"], row["note"]) == unit
        catalogue = caller.get("/v1/series", country="NG", limit=100)["data"]
        (listed,) = [one for one in catalogue if one["series"] == series]
        assert (listed["unit"], listed["note"]) == unit


@pytest.mark.rule("MACRO-13")
@pytest.mark.parametrize("code", ["NG", "NGA", "nga"])
def test_an_indicator_with_a_country_gives_its_series_as_of_a_day(caller: PaidCaller, code: str) -> None:
    for day in ("2012-09-19", "2012-09-20", "2013-06-28"):
        by_key = caller.get("/v1/macro", series="WDI:NY.GDP.MKTP.CD:NGA", as_of=day)
        by_country = caller.get("/v1/macro", series="ny.gdp.mktp.cd", country=code, as_of=day)
        assert by_country["data"] == by_key["data"]
    by_day = {"series": "NY.GDP.MKTP.CD", "country": code, "as_of": "2020-01-01"}
    whole = caller.get("/v1/macro", **by_day)["data"]
    assert [(row["series"], row["value"]) for row in whole] == [
        ("WDI:NY.GDP.MKTP.CD:NGA", 4),
        ("WDI:NY.GDP.MKTP.CD:NGA", 3),
    ]
    page = caller.get("/v1/macro", **by_day, limit=1)
    rest = caller.get("/v1/macro", **by_day, limit=1, cursor=page["next_cursor"])
    assert page["data"] + rest["data"] == whole


@pytest.mark.rule("MACRO-4", "MACRO-13")
def test_an_indicator_under_as_of_is_refused_with_the_series_to_ask_for(caller: PaidCaller) -> None:
    answer = caller.server.get("/v1/macro?indicator=NY.GDP.MKTP.CD&country=NG&as_of=2013-06-28", caller.key)
    assert answer.status_code == 400
    assert answer.json()["parameter"] == "indicator"
    assert "series=WDI:NY.GDP.MKTP.CD:NGA" in answer.json()["detail"]


@pytest.mark.rule("MACRO-9", "EXP-4")
def test_any_day_can_be_repeated_from_the_file_alone(caller: PaidCaller) -> None:
    (file,) = [f for f in caller.get("/v1/export")["data"] if f["name"] == "af-macro-series.parquet"]
    table = pq.read_table(
        io.BytesIO(caller.server.http.get(file["url"], headers={"X-API-Key": caller.key}).content)
    )
    rows = table.to_pylist()
    keys = [row["series"] for row in rows]
    assert keys == sorted(keys)
    for day in "2011-12-31 2012-01-01 2012-09-20 2013-06-27 2013-06-28 2018-08-01 2026-01-01".split():
        valid = [
            row for row in rows
            if max(str(row["available_at"]), str(row["date"])) <= day
            and (row["superseded_at"] is None or str(row["superseded_at"]) > day)
        ]  # fmt: skip
        answer = caller.get("/v1/macro", as_of=day, limit=1000)["data"]
        names = ("series", "series_type", "frequency", "country", "unit", "note", "vintage", "source_ref")
        repeated = {
            (*(row[name] for name in names), str(row["date"]), str(row["available_at"])): row["value"]
            for row in valid
        }
        served_values = {
            (*(row[name] for name in names), row["date"], row["available_at"]): row["value"] for row in answer
        }
        assert repeated.keys() == served_values.keys(), day
        assert [float(value) for value in repeated.values()] == [
            float(served_values[key]) for key in repeated
        ]


@pytest.mark.rule("LOCK-2")
def test_a_value_released_before_its_own_date_is_known_from_that_date(tmp_path: Path) -> None:
    desk = Desk(tmp_path, SOURCES)
    take(desk, "one", HEAD + "FX.USD.GHS,fx,daily,GH,2024-06-30,15.1,GHS per USD,2024-03-01\n")
    with desk.publish_and_serve() as caller:
        for day, keys in (("2024-04-01", []), ("2024-06-30", ["FX.USD.GHS"])):
            assert [row["id"] for row in caller.get("/v1/search", q="FX.USD.GHS", as_of=day)["data"]] == keys
            listed = caller.get(f"/at/{day}/v1/series", q="FX.USD.GHS")["data"]
            assert [row["series"] for row in listed] == keys
