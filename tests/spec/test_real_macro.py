"""Real tables and rates as their publishers ship them, through the command line and HTTP."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pycountry
import pytest

from tests.live import LiveServer, create_key, run, succeed
from tests.real_inputs import rates_of
from tests.torture import ALL_ROUNDS

ISO3 = {country.alpha_3 for country in pycountry.countries}
CURRENCIES = ("ZAR", "USD", "CYP", "BGN")
Table = dict[tuple[str, int], Decimal]


def table(path: Path) -> Table:
    """The values of a tidy table by country and year, without aggregates, parsed as simply as possible."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {
        (row["Country Code"], int(row["Year"])): Decimal(row["Value"])
        for row in rows
        if row["Country Code"] in ISO3 and row["Value"]
    }


def rows(server: LiveServer, key: str, query: str) -> list[dict[str, Any]]:
    body = server.exact(f"/v1/macro?{query}&limit=10000", key)
    assert not body["truncated"]
    return list(body["data"])


def ingest(home: Path, source: str, *paths: Path) -> str:
    done = succeed(home, "ingest", source, *paths)
    return done.stdout


@pytest.fixture(scope="module")
def served(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, str]]:
    """Two captures of six indicators eight years apart, and the history of ECB rates."""
    folder = tmp_path_factory.mktemp("real")
    home = folder / "home"
    for capture in ("2018-08-01", "2026-07-01"):
        ingest(home, "worldbank", shared_data / "macro" / "wdi" / capture)
    rates = shared_data / "fx" / "ecb"
    if not ALL_ROUNDS:
        (path,) = rates.iterdir()
        rates = rates_of(path, folder / "rates", CURRENCIES)
    ingest(home, "ecb-fx", rates)
    succeed(home, "publish")
    with LiveServer(home) as server:
        yield server, create_key(home, "professional", "--per-minute", "100000")


@pytest.mark.deep
def test_every_value_of_the_last_captured_table_is_served_with_every_digit(
    served: tuple[LiveServer, str], shared_data: Path
) -> None:
    server, key = served
    revised = 0
    for path in sorted((shared_data / "macro" / "wdi" / "2026-07-01").iterdir()):
        old, new = table(shared_data / "macro" / "wdi" / "2018-08-01" / path.name), table(path)
        served_rows: dict[tuple[str, int], dict[str, Any]] = {}
        for since, until in ((1900, 1989), (1990, 2030)):  # an answer holds at most 10,000 rows
            for row in rows(server, key, f"indicator={path.stem}&from={since}&to={until}"):
                served_rows[row["country_iso3"], row["year"]] = row
        assert {country_and_year: row["value"] for country_and_year, row in served_rows.items()} == new
        for country_and_year, row in served_rows.items():
            assert row["vintage"] == (
                1 if country_and_year not in old or old[country_and_year] == new.get(country_and_year) else 2
            )
            assert row["indicator"] == path.stem.upper()
            revised += row["vintage"] > 1
    assert revised > 10_000


@pytest.mark.deep
def test_every_rate_of_the_history_is_known_from_its_day(served: tuple[LiveServer, str], shared_data: Path):
    server, key = served
    (path,) = (shared_data / "fx" / "ecb").iterdir()
    with path.open(newline="") as stream:
        days = list(csv.DictReader(stream))
    for currency in CURRENCIES:
        quoted = {day["Date"]: Decimal(day[currency]) for day in days if day[currency] != "N/A"}
        for as_of in ("2015-08-11", "2004-02-29", "1999-01-04", "1999-01-03"):
            rates = rows(server, key, f"series=FX.EUR.{currency}&as_of={as_of}")
            assert {row["date"]: row["value"] for row in rates} == {
                day: rate for day, rate in quoted.items() if day <= as_of
            }
            assert all(row["available_at"] == row["date"] for row in rates)


def test_a_databank_download_in_utf_16_is_read_with_its_names_and_units(shared_data: Path, tmp_path: Path):
    home = tmp_path / "home"
    summary = ingest(home, "worldbank", shared_data / "macro" / "wdi-download-utf16" / "time_series_data.txt")
    assert "appended 8741" in summary
    succeed(home, "publish")
    with LiveServer(home) as server:
        values = rows(server, create_key(home, "starter"), "country=ZMB&from=2020")
    assert {(row["indicator_name"], row["unit"]) for row in values} == {
        ("Inflation, consumer prices (annual %)", "annual %")
    }


def test_a_file_of_another_format_is_an_error_and_stores_nothing(shared_data: Path, tmp_path: Path):
    home = tmp_path / "home"
    for name in ("macro/fx-yearly-vintages", "fx/currency-api", "cpi", "fx/za_zar_per_usd_monthly.csv"):
        for source in ("worldbank", "ecb-fx", "alfred", "series"):
            done = run(home, "ingest", source, shared_data / name)
            assert done.returncode != 0
            assert "expected" in done.stderr
            assert f"{source}: read 0, appended 0" in done.stdout
