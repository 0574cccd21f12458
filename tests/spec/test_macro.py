"""GET /v1/macro and the tool get_macro: annual indicators, and series as they were known on a day."""

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, columns_of, run, succeed
from tests.spec.macro_world import ANNUAL_FIELDS, GDP, SERIES_FIELDS, SERIES_ROWS, ask, rows
from tests.spec.macro_world import key as key
from tests.spec.macro_world import live as live

# Annual mode


@pytest.mark.rule("MACRO-5")
def test_annual_rows_have_every_field_and_their_provenance(live: LiveServer, key: str) -> None:
    body = ask(live, key)
    assert body["count"] == 8
    assert body["as_of"] is None
    for row in body["data"]:
        assert set(row) == ANNUAL_FIELDS
        assert row["available_at"] is None
        assert row["license_class"] == "cc-by"
        assert row["source_ref"].endswith(f"#{row['indicator']} {row['country']} {row['year']}")


@pytest.mark.rule("VINT-9")
def test_the_last_captured_table_is_served_and_vintages_count_changed_values(
    live: LiveServer, key: str
) -> None:
    served = rows(live, key, f"country=ZA&indicator={GDP}")
    assert [(r["year"], r["value"], r["vintage"]) for r in served] == [
        (2023, 380699000000, 1),
        (2022, 405270000000, 2),
        (2021, 420886900000, 1),  # the same value in another spelling: nothing new
        (2020, None, 2),  # listed without a value: withdrawn
    ]


def test_aggregates_and_other_non_countries_are_never_served(live: LiveServer, key: str) -> None:
    assert {r["country"] for r in rows(live, key)} == {"KE", "NG", "ZA"}
    for code in ("SSF", "WLD", "XKX", "ZG"):
        assert rows(live, key, f"country={code}") == []


@pytest.mark.rule("PAR-3", "MACRO-2")
@pytest.mark.parametrize("code", ["ZA", "za", "ZAF", "zaf", "zAf"])
def test_a_country_may_have_two_or_three_letters_in_any_case(live: LiveServer, key: str, code: str):
    served = rows(live, key, f"country={code}&indicator={GDP.lower()}")
    assert {(r["country"], r["country_iso3"]) for r in served} == {("ZA", "ZAF")}
    assert len(served) == 4


@pytest.mark.rule("ENV-3")
def test_annual_rows_come_in_the_documented_order_and_filters_keep_it(live: LiveServer, key: str) -> None:
    every = rows(live, key)
    order = [(r["country"], r["indicator"], -r["year"]) for r in every]
    assert order == sorted(order)
    for name in ("country", "indicator"):
        for value in {row[name] for row in every}:
            assert rows(live, key, f"{name}={value}") == [r for r in every if r[name] == value]


@pytest.mark.rule("MACRO-3")
@pytest.mark.parametrize(
    ("query", "years"),
    [
        ("from=2022", {2022, 2023}),
        ("from=2022-06-30", {2022, 2023}),
        ("to=2021", {2020, 2021}),
        ("to=2021-01-01", {2020, 2021}),
        ("from=2021&to=2022-12-31", {2021, 2022}),
        ("from=2024", set()),
        ("from=2022&to=2021", set()),
    ],
)
def test_annual_mode_takes_a_year_or_a_date(live: LiveServer, key: str, query: str, years: set[int]) -> None:
    assert {r["year"] for r in rows(live, key, f"country=ZA&{query}")} == years
    assert {r["year"] for r in rows(live, key, query)} == years


# Series mode


def reference(day: str, **filters: str) -> list[tuple[Any, ...]]:
    """The rows known on a day, from a replay of what was public by then; no product code."""
    stories: defaultdict[tuple[str, ...], list[tuple[str, str, int, str, str]]] = defaultdict(list)
    for position, row in enumerate(SERIES_ROWS):
        document = "a.csv" if position < len(SERIES_ROWS) // 2 else "b.csv"
        if row.date <= day and row.release <= day and all(getattr(row, k) == v for k, v in filters.items()):
            stories[row[:5]].append((row.release, document, position, row.value, row.unit))
    expected = []
    for (series, family, frequency, country, observed), story in stories.items():
        figures: list[tuple[str, str, str]] = []
        for release, _, _, value, unit in sorted(story):
            figure = (release, value, unit if value else "")
            if (figures or value) and (not figures or figures[-1][1:] != figure[1:]):
                figures.append(figure)
        if figures:
            release, value, unit = figures[-1]
            expected.append(
                (
                    *(series, family, frequency, country or None, observed),
                    *(Decimal(value) if value else None, release, len(figures)),
                )
            )
    newest_first = sorted(expected, key=lambda row: row[4], reverse=True)
    return sorted(newest_first, key=lambda row: (*row[:3], row[3] or ""))


@pytest.mark.rule("PIT-5")
def test_every_release_date_and_its_neighbours_match_a_replay_of_the_rules(
    live: LiveServer, key: str
) -> None:
    names = ("series", "series_type", "frequency", "country", "date", "value", "available_at", "vintage")
    events = {date.fromisoformat(text) for row in SERIES_ROWS for text in (row.date, row.release)}
    days = sorted({day + timedelta(days=n) for day in events for n in (-1, 0, 1)})
    for day in days:
        body = ask(live, key, f"as_of={day}&limit=10000")
        assert body["as_of"] == str(day)
        assert not body["truncated"]
        assert columns_of(body["data"], *names) == reference(str(day)), day


def test_from_and_to_cut_by_the_date_of_the_observation(live: LiveServer, key: str) -> None:
    for series in ("FX.USD.ZAR", "CPI.ZA", "GDP.ZA"):
        every = rows(live, key, f"series={series}&limit=10000")
        days = sorted({row["date"] for row in every})
        for since in (days[0], days[3], "1990-01-01", "2090-01-01"):
            for until in (days[-1], days[5], "1990-01-01", "2090-01-01"):
                served = rows(live, key, f"series={series}&from={since}&to={until}&limit=10000")
                assert served == [row for row in every if since <= row["date"] <= until]


@pytest.mark.rule("MACRO-6")
def test_series_rows_have_every_field_and_the_key_may_be_in_any_case(live: LiveServer, key: str) -> None:
    served = rows(live, key, "series=fx.usd.zar")
    assert served == rows(live, key, "series=FX.USD.ZAR")
    for row in served:
        assert set(row) == SERIES_FIELDS
        assert row["country"] == "ZA"
        assert row["license_class"] == "licensed-redistribution"
        assert row["source_ref"].partition("#")[2].startswith("row ")


# Limits and errors


@pytest.mark.rule("PAR-1", "MACRO-1", "MACRO-3", "MACRO-4")
@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("series_type=cpi", "series_type"),
        ("frequency=daily", "frequency"),
        ("country=ZA&series_type=cpi&from=2020", "series_type"),
        (f"indicator={GDP}&as_of=2024-01-01", "indicator"),
        (f"indicator={GDP}&series=FX.USD.ZAR", "indicator"),
        ("series=FX.USD.ZAR&from=2023", "from"),
        ("series=FX.USD.ZAR&to=2023", "to"),
        ("as_of=2024-01-01&to=2023", "to"),
    ],
)
def test_a_parameter_of_the_other_mode_is_a_400_that_names_it(
    live: LiveServer, key: str, query: str, parameter: str
) -> None:
    refused = live.get(f"/v1/macro?{query}", key)
    assert (refused.status_code, refused.json().get("parameter")) == (400, parameter)
    assert parameter in refused.json()["detail"]


# The tool


@pytest.mark.rule("MCP-7")
def test_the_tool_names_the_wrong_parameter_as_the_tool_calls_it(live: LiveServer, key: str) -> None:
    faults = {
        "from_date": {"series": "FX.USD.ZAR", "from_date": "2023"},
        "to_date": {"to_date": "soon"},
        "indicator": {"as_of": "2024-01-01", "indicator": GDP},
        "frequency": {"frequency": "daily"},
        "from": {"from": "2023"},
    }
    for parameter, arguments in faults.items():
        problem = live.tool("get_macro", key, arguments)
        assert (problem["status"], problem["parameter"]) == (400, parameter)
        assert problem["detail"].startswith(f"{parameter}: ")


# Real files


def test_a_databank_download_in_utf_16_is_read_with_its_names_and_units(shared_data: Path, tmp_path: Path):
    home, download = tmp_path / "home", shared_data / "macro" / "wdi-download-utf16" / "time_series_data.txt"
    assert "appended 8741" in succeed(home, "ingest", "worldbank", download).stdout
    succeed(home, "publish")
    with LiveServer(home) as server:
        values = rows(server, server.key("starter"), "country=ZMB&from=2020&limit=10000")
    assert {(row["indicator_name"], row["unit"]) for row in values} == {
        ("Inflation, consumer prices (annual %)", "annual %")
    }


def test_a_file_of_another_format_is_an_error_and_stores_nothing(shared_data: Path, tmp_path: Path):
    for name in ("macro/fx-yearly-vintages", "fx/currency-api", "cpi", "fx/za_zar_per_usd_monthly.csv"):
        for source in ("worldbank", "ecb-fx", "alfred", "series"):
            done = run(tmp_path / "home", "ingest", source, shared_data / name)
            assert done.returncode != 0
            assert "expected" in done.stderr
            assert f"{source}: read 0, appended 0" in done.stdout
