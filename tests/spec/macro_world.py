"""Annual tables and series with vintages, for the tests of /v1/macro."""

import csv
import io
import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

import pytest

from tests.live import LiveServer, succeed

ANNUAL_FIELDS = set(
    "country country_iso3 indicator indicator_name year value unit note available_at vintage "
    "source_ref license_class observed_at".split()
)
SERIES_FIELDS = set(
    "series series_type frequency country date value unit note available_at vintage "
    "source_ref license_class observed_at".split()
)
COLUMNS = ("series", "series_type", "frequency", "country", "date", "value", "unit", "release_date")
GDP = "NY.GDP.MKTP.CD"


class SeriesRow(NamedTuple):
    """A row of the series-csv template, in the order of its file."""

    series: str
    series_type: str
    frequency: str
    country: str
    date: str
    value: str
    unit: str
    release: str


def drawn_rows() -> list[SeriesRow]:
    """Some series with values that are revised, return, are withdrawn, change their unit or come too
    early.
    """
    chance = random.Random(7)
    rows = []
    for series, family, frequency, country, step in (
        ("CPI.ZA", "cpi", "monthly", "ZA", 31),
        ("CPI.KE", "cpi", "monthly", "KE", 31),
        ("GDP.ZA", "gdp", "quarterly", "ZA", 92),
        ("FX.USD.ZAR", "fx", "daily", "ZA", 1),
        ("FX.USD.NGN.CBN", "fx", "monthly", "NG", 31),
        ("FX.USD.NGN", "fx", "daily", "NG", 1),
        ("FX.USD.XOF", "fx", "daily", "", 1),
    ):
        for n in range(14):
            day = date(2023, 1, 31) + timedelta(days=n * step)
            public = day + timedelta(days=chance.choice((-3, 0, 5, 20) if step > 1 else (0, 0, 1)))
            for _ in range(chance.choice((1, 1, 2, 3, 5))):
                value = chance.choice(("1", "2", "9007199254740993.25", "0", ""))
                unit = chance.choice(("index", "index", "points"))
                rows.append(SeriesRow(series, family, frequency, country, str(day), value, unit, str(public)))
                public += timedelta(days=chance.choice((0, 1, 1, 9)))
    chance.shuffle(rows)
    return rows


SERIES_ROWS = drawn_rows()
FIRST = """\
Country Name,Country Code,Year,Value
South Africa,ZAF,2020,337974620000.5
South Africa,ZAF,2021,420886900000
South Africa,ZAF,2022,406920000000.10
Nigeria,NGA,2021,440833635000
Nigeria,NGA,2020,432200000000
Sub-Saharan Africa,SSF,2021,1900000000000
Kosovo,XKX,2021,9412034299.4
"""
SECOND = """\
Country Name,Country Code,Year,Value
South Africa,ZAF,2020,
South Africa,ZAF,2021,420886900000.0
South Africa,ZAF,2022,405270000000
South Africa,ZAF,2023,380699000000
Nigeria,NGA,2021,440833635000
"""
WIDE = """\
"Data Source","World Development Indicators",

"Country Name","Country Code","Indicator Name","Indicator Code","2021","2022"
"South Africa","ZAF","Inflation, consumer prices (annual %)","FP.CPI.TOTL.ZG","4.61","7.04"
"Kenya","KEN","Inflation, consumer prices (annual %)","FP.CPI.TOTL.ZG","6.11",""
"World","WLD","Inflation, consumer prices (annual %)","FP.CPI.TOTL.ZG","3.47","7.93"
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Two captures of a table, a wide table and a file of series."""
    folder = tmp_path_factory.mktemp("macro")
    home, table, half = folder / "home", folder / "ny.gdp.mktp.cd.csv", len(SERIES_ROWS) // 2
    for source, path, content in (
        ("worldbank", table, FIRST),
        ("worldbank", table, SECOND),
        ("worldbank", folder / "wdi.csv", WIDE),
        ("series", folder / "a.csv", as_csv(SERIES_ROWS[:half])),
        ("series", folder / "b.csv", as_csv(SERIES_ROWS[half:])),
    ):
        path.write_text(content)
        succeed(home, "ingest", source, path)
    succeed(home, "publish")
    with LiveServer(home, per_minute_sample="100000", per_month_sample="1000000") as server:
        yield server


def as_csv(rows: list[SeriesRow]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *rows])
    return text.getvalue()


@pytest.fixture(scope="module")
def key(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")


def ask(server: LiveServer, key: str, query: str = "") -> dict[str, Any]:
    return server.exact(f"/v1/macro?{query}", key)


def rows(server: LiveServer, key: str, query: str = "") -> list[dict[str, Any]]:
    return list(ask(server, key, query)["data"])
