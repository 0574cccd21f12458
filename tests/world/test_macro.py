"""Annual tables, undated values and reference rates through the real ledger and edition, day by day."""

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sankofa.edition.format.keys import MACRO_ANNUAL, MACRO_SERIES, annual_key, series_list
from sankofa.edition.format.macro import DayRange
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.macro import read_series
from sankofa.ledger.ingest import Summary
from tests.live import columns_of
from tests.patience import wait
from tests.world.desk import Desk

FIRST, SECOND, THIRD, FOURTH = (date(2024, 1, 1) + timedelta(days=30 * n) for n in range(4))
TIDY = "Country Name,Country Code,Year,Value\n"
WIDE = "Country Name,Country Code,Indicator Name,Indicator Code,2020,2021,2022\n"
SERIES_CSV = "series,series_type,frequency,country,date,value,unit,release_date\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", FIRST)


def take(desk: Desk, day: date, source: str, name: str, content: str) -> Summary:
    desk.set_day(day)
    path = desk.inbox / name
    path.write_text(content)
    return desk.take(source, path)


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    assert summary.failures == []
    c = summary.counts
    assert c.read == c.appended + c.unchanged + c.rejected + c.skipped
    return c.read, c.appended, c.unchanged, c.rejected, c.skipped


def rows(edition: Edition, kind: str, listed: str, day: date = date(2030, 1, 1)) -> list[dict[str, Any]]:
    selection = wait(read_series(edition, kind, listed, DayRange(day.toordinal()), 10_000))
    decoded: list[dict[str, Any]] = json.loads(
        b"[" + selection.rows + b"]", parse_int=Decimal, parse_float=Decimal
    )
    return decoded


def annual(desk: Desk) -> list[tuple[Any, ...]]:
    return [
        (r["country"], r["year"], r["value"], r["vintage"])
        for r in rows(desk.publish(), MACRO_ANNUAL, annual_key("", ""))
    ]


def series(desk: Desk, day: date = date(2030, 1, 1)) -> list[tuple[Any, ...]]:
    names = ("date", "value", "unit", "available_at", "vintage")
    listed = rows(desk.publish(), MACRO_SERIES, series_list("", "", ""), day)
    return columns_of(listed, *names)


@pytest.mark.rule("VINT-3")
def test_a_table_changes_only_differing_values_and_a_return_is_a_vintage(desk: Desk) -> None:
    table = "Kenya,KEN,Exports (% of GDP),AA.BB,{},{},{}\n"
    tables = [
        table.format(1, 2, ""),
        table.format("1.0", 3, 4),
        table.format(1, 2, 4),
        table.format(1, 2, "4.00 "),
    ]
    counted = []
    for day, row in zip((FIRST, SECOND, THIRD, FOURTH), tables, strict=True):
        counted.append(counts(take(desk, day, "worldbank", f"{day}.csv", WIDE + row)))
    assert counted == [(2, 2, 0, 0, 0), (3, 2, 1, 0, 0), (3, 1, 2, 0, 0), (3, 0, 3, 0, 0)]
    assert annual(desk) == [("KE", 2022, 4, 1), ("KE", 2021, 2, 3), ("KE", 2020, 1, 1)]


def test_the_same_file_again_changes_nothing_even_after_another(desk: Desk) -> None:
    old, new = TIDY + "Kenya,KEN,2020,1\nKenya,KEN,2021,1\n", TIDY + "Kenya,KEN,2021,2\n"
    take(desk, FIRST, "worldbank", "aa.bb.csv", old)
    assert counts(take(desk, FIRST, "worldbank", "aa.bb.csv", old)) == (2, 0, 2, 0, 0)
    assert counts(take(desk, SECOND, "worldbank", "aa.bb.csv", new)) == (2, 2, 0, 0, 0), "2020 is no more"
    edition = desk.publish().id
    assert counts(take(desk, THIRD, "worldbank", "aa.bb.csv", old)) == (2, 0, 2, 0, 0)
    assert desk.publish().id == edition
    assert annual(desk) == [("KE", 2021, 2, 2)]


def test_a_page_withdraws_only_what_it_lists_and_an_unreadable_value_is_ignored(desk: Desk) -> None:
    point = {"indicator": {"id": "AA.BB", "value": "x"}, "country": {"id": "KE"}, "countryiso3code": "KEN"}

    def page(**values: object) -> str:
        return json.dumps([{"page": 1}, [{**point, "date": y[1:], "value": v} for y, v in values.items()]])

    take(desk, FIRST, "worldbank", "page.json", page(y2020=1, y2021=2, y2022=3))
    take(desk, SECOND, "worldbank", "page.json", page(y2021=None))
    assert annual(desk) == [("KE", 2022, 3, 1), ("KE", 2021, None, 2), ("KE", 2020, 1, 1)]
    rejected = take(desk, THIRD, "worldbank", "aa.bb.csv", TIDY + "Kenya,KEN,2022,n/a\nKenya,KEN,2020,1\n")
    assert counts(rejected) == (3, 1, 1, 1, 0)
    assert annual(desk) == [("KE", 2022, 3, 1), ("KE", 2020, 1, 1)], "2021 is not listed any more"


@pytest.mark.rule("ADP-7")
def test_a_rate_is_public_on_its_day_and_a_changed_one_from_its_capture(desk: Desk) -> None:
    assert counts(
        take(desk, FIRST, "ecb-fx", "h.csv", "Date,ZAR,USD\n2023-12-29,20.3,N/A\n2023-12-28,20.5,1.1\n")
    ) == ((3, 3, 0, 0, 0))
    changed = "Date,ZAR,USD\n2023-12-29,20.31,1.2\n2023-12-28,20.5,N/A\n"
    assert counts(take(desk, SECOND, "ecb-fx", "h.csv", changed)) == (4, 3, 1, 0, 0)
    zar = [row for row in series(desk, FIRST) if row[2] == "ZAR"]
    assert zar == [
        ("2023-12-29", Decimal("20.3"), "ZAR", "2023-12-29", 1),
        ("2023-12-28", Decimal("20.5"), "ZAR", "2023-12-28", 1),
    ]
    assert series(desk, date(2023, 12, 28)) == [
        ("2023-12-28", Decimal("1.1"), "USD", "2023-12-28", 1),
        ("2023-12-28", Decimal("20.5"), "ZAR", "2023-12-28", 1),
    ]
    assert series(desk, SECOND) == [
        ("2023-12-29", Decimal("1.2"), "USD", "2023-12-29", 1),
        ("2023-12-28", None, "USD", str(SECOND), 2),
        ("2023-12-29", Decimal("20.31"), "ZAR", str(SECOND), 2),
        ("2023-12-28", Decimal("20.5"), "ZAR", "2023-12-28", 1),
    ]


@pytest.mark.rule("ING-8")
def test_a_future_release_is_rejected_and_a_value_of_a_future_day_is_a_forecast(desk: Desk) -> None:
    text = SERIES_CSV + "A,cpi,daily,,2023-01-01,1,,2024-01-02\nA,cpi,daily,,2024-01-02,1,,2023-01-01\n"
    summary = take(desk, FIRST, "series", "s.csv", text + "A,cpi,daily,,2023-01-01,1,,2023-01-02\n")
    assert counts(summary) == (3, 1, 0, 1, 1)
    assert summary.rejects is not None
    assert json.loads(summary.rejects.read_text()) == {
        "file": "s.csv",
        "position": "s.csv row 2",
        "reason": "release_date is in the future",
    }


def test_a_source_of_one_country_gives_it_to_its_series(desk: Desk) -> None:
    desk.home.mkdir()
    (desk.home / "sources.toml").write_text(
        '[sources.stats-ke]\nadapter = "series-csv"\nsku = "AF-MACRO"\nlicense_class = "open-government"\n'
        'commercial_redistribution = true\ncountry = "KEN"\n'
    )
    take(
        desk,
        FIRST,
        "stats-ke",
        "s.csv",
        f"{SERIES_CSV}A,cpi,daily,,2023-01-01,1,,\nA,cpi,daily,ZA,2023-01-01,1,,\n",
    )
    served = rows(desk.publish(), MACRO_SERIES, series_list("", "", ""))
    assert [(row["country"], row["license_class"]) for row in served] == [
        ("KE", "open-government"),
        ("ZA", "open-government"),
    ]


def test_vintages_of_alfred_are_known_from_the_day_each_was_in_force(desk: Desk) -> None:
    spans = (
        ("2023-02-14", "2023-03-13", "2023-01-01", "299.170"),
        ("2023-03-14", "2023-12-31", "2023-01-01", "300.5"),
        ("2023-03-14", "9999-12-31", "2023-02-01", "301.648"),
    )
    names = ("realtime_start", "realtime_end", "date", "value")
    observations = [dict(zip(names, span, strict=True)) for span in spans]
    text = json.dumps({"realtime_end": "9999-12-31", "units": "lin", "observations": observations})
    assert counts(take(desk, FIRST, "alfred", "CPIAUCSL.json", text)) == (4, 4, 0, 0, 0)
    assert counts(take(desk, SECOND, "alfred", "CPIAUCSL.json", text)) == (4, 0, 4, 0, 0)
    first = ("2023-01-01", Decimal("299.17"), None, "2023-02-14", 1)
    revised = ("2023-01-01", Decimal("300.5"), None, "2023-03-14", 2)
    february = ("2023-02-01", Decimal("301.648"), None, "2023-03-14", 1)
    for day, expected in (
        ("2023-02-13", []),
        ("2023-02-14", [first]),
        ("2023-03-13", [first]),
        ("2023-03-14", [february, revised]),
        ("2023-12-31", [february, revised]),
        ("2024-01-01", [february, ("2023-01-01", None, None, "2024-01-01", 3)]),
    ):
        assert series(desk, date.fromisoformat(day)) == expected, day
