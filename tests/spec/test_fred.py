"""/fred: fredapi and pandas-datareader, unmodified, get the same values as /v1/macro with `as_of`."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests
from fredapi import Fred
from pandas_datareader.fred import FredReader

from sankofa.dialects.fred_values import LAST_DAY, RealTimePeriod, ValueStep, by_vintage_date
from sankofa.model.errors import InvalidParameter
from tests.live import LiveServer, succeed
from tests.spec.macro_world import SeriesRow, as_csv
from tests.spec.macro_world import key as key
from tests.spec.macro_world import live as live
from tests.spec.test_links import link

KEYS = ("CPI.ZA", "GDP.ZA", "FX.USD.ZAR")


@pytest.fixture(scope="module")
def token(live: LiveServer, key: str) -> str:
    return link(live, key, "--dialect", "fred", "--per-minute", "100000", "--per-month", "1000000")[1]


def fred(live: LiveServer, token: str, at: date | None = None) -> Fred:
    client = Fred(api_key=token)
    client.root_url = f"{live.url}{'' if at is None else f'/at/{at}'}/fred"
    return client


def macro(
    live: LiveServer, key: str, series: str, day: date | None = None, limit: int = 1000
) -> dict[str, float]:
    """The values of /v1/macro by date; NaN where one is withdrawn."""
    as_of = f"&as_of={day}" if day else ""
    rows = live.get(f"/v1/macro?series={series}&limit={limit}{as_of}", key).json()["data"]
    return {row["date"]: math.nan if row["value"] is None else float(row["value"]) for row in rows}


def same(series: "pd.Series[Any]", expected: dict[str, float]) -> None:
    # fredapi's frames mark a missing value in different ways
    values = {
        str(pd.Timestamp(at).date()): math.nan if pd.isna(value) else float(value)
        for at, value in series.items()
    }
    assert values.keys() == expected.keys()
    for at, value in values.items():
        assert value == expected[at] or (math.isnan(value) and math.isnan(expected[at])), at


def days() -> Iterator[date]:
    yield from (date(2023, 3, 1) + timedelta(days=n * 97) for n in range(6))


@pytest.mark.rule("DIAL-1")
@pytest.mark.parametrize("series", KEYS)
def test_fredapi_gets_the_values_of_today_and_of_any_day(live: LiveServer, key: str, token: str, series: str):
    client = fred(live, token)
    same(client.get_series(series), macro(live, key, series))
    releases = client.get_series_all_releases(series)
    assert list(releases["date"]) == sorted(releases["date"])
    for day in days():
        expected = macro(live, key, series, day)
        as_of = client.get_series_as_of_date(series, str(day))
        last = as_of.groupby("date").tail(1).set_index("date")["value"]
        same(last, expected)
        # with its own real-time period, and inside a locked view
        if expected:
            same(client.get_series(series, realtime_start=day, realtime_end=day), expected)
            same(fred(live, token, day).get_series(series), expected)
            inside = fred(live, token, day).get_series_all_releases(series)
            pd.testing.assert_frame_equal(inside.reset_index(drop=True), as_of.reset_index(drop=True))


def test_first_releases_vintage_dates_search_and_info(live: LiveServer, key: str, token: str) -> None:
    client = fred(live, token)
    releases = client.get_series_all_releases("CPI.ZA")
    first = client.get_series_first_release("CPI.ZA")
    initial = requests.get(
        f"{live.url}/fred/series/observations",
        {"series_id": "CPI.ZA", "output_type": "4", "file_type": "json", "api_key": token},
        timeout=60,
    ).json()
    assert [row["date"] for row in initial["observations"]] == [str(at.date()) for at in first.index]
    assert [row["value"] for row in initial["observations"] if row["value"] != "."] == [
        f"{value}" for value in _texts(live, key, first)
    ]
    listed = {day.date() for day in client.get_series_vintage_dates("CPI.ZA")}
    assert listed == {at.date() for at in releases["realtime_start"]}
    info = client.get_series_info("CPI.ZA")
    (row,) = [r for r in live.get("/v1/series?q=CPI", key).json()["data"] if r["series"] == "CPI.ZA"]
    assert (info["id"], info["observation_start"], info["observation_end"], info["frequency_short"]) == (
        "CPI.ZA",
        row["first_date"],
        row["last_date"],
        "M",
    )
    hits = client.search("CPI", order_by="series_id", sort_order="desc")
    assert set(hits["id"]) >= {"CPI.ZA", "CPI.KE"}
    assert list(hits["id"]) == sorted(hits["id"], reverse=True)
    assert client.search("nothingofthekind") is None
    assert list(client.search("Kenyan inflation")["id"]) == ["CPI.KE"]
    with pytest.raises(ValueError, match="does not exist"):
        client.get_series("NO.SUCH")
    with pytest.raises(ValueError, match="link key"):
        fred(live, key).get_series("CPI.ZA")


def _texts(live: LiveServer, key: str, first: "pd.Series[Any]") -> list[str]:
    """The figures as the template writes them."""
    spelt = {float(text): text for text in ("1", "2", "0", "9007199254740993.25")}
    return [spelt[float(value)] for value in first if not pd.isna(value)]


def test_pandas_datareader_reads_the_graph_of_a_series(live: LiveServer, key: str) -> None:
    session = requests.Session()
    session.headers["X-API-Key"] = key
    for at in (None, date(2023, 9, 30)):
        reader = Reader("FX.USD.ZAR", start="2020-01-01", end="2030-01-01", session=session)
        reader.root = f"{live.url}{'' if at is None else f'/at/{at}'}/fred"
        same(reader.read()["FX.USD.ZAR"], macro(live, key, "FX.USD.ZAR", at))


class Reader(FredReader):  # type: ignore[misc]
    """It has no setting for the address."""

    root = ""

    @property
    def url(self) -> str:
        return f"{self.root}/graph/fredgraph.csv"


UNITS = {
    "lin": lambda now, before, year, n: now,
    "chg": lambda now, before, year, n: now - before,
    "ch1": lambda now, before, year, n: now - year,
    "pch": lambda now, before, year, n: (now / before - 1) * 100,
    "pc1": lambda now, before, year, n: (now / year - 1) * 100,
    "pca": lambda now, before, year, n: ((now / before) ** n - 1) * 100,
    "cch": lambda now, before, year, n: (np.log(now) - np.log(before)) * 100,
    "cca": lambda now, before, year, n: (np.log(now) - np.log(before)) * 100 * n,
    "log": lambda now, before, year, n: np.log(now),
}
"""As FRED documents its units: `n` is the number of observations per year."""


def observations(live: LiveServer, token: str, series: str, at: str = "", **parameters: str) -> list[Any]:
    query = {"series_id": series, "file_type": "json", "api_key": token, **parameters}
    answer = requests.get(f"{live.url}{at}/fred/series/observations", query, timeout=60)
    return list(answer.json().get("observations", []))


def sent_values(rows: list[Any]) -> dict[str, float]:
    return {row["date"]: math.nan if row["value"] == "." else float(row["value"]) for row in rows}


@pytest.mark.rule("DIAL-1")
@pytest.mark.parametrize(("series", "n"), [("CPI.KE", 12), ("GDP.ZA", 4), ("FX.USD.NGN", 260)])
def test_units_and_frequencies_use_the_values_known_on_the_day(
    live: LiveServer, key: str, token: str, series: str, n: int
) -> None:
    for day in ("2023-08-15", "2024-06-30"):
        own = {"realtime_start": day, "realtime_end": day}
        values = pd.Series(macro(live, key, series, date.fromisoformat(day)), dtype=float).sort_index()
        values.index = pd.to_datetime(values.index)
        # the value of the same month, or of the same day, a year before
        same_time = [values.index.year * 100 + values.index.month, values.index][n == 260]
        ago = [at - 100 if n < 260 else at - pd.DateOffset(years=1) for at in same_time]
        year = [dict(zip(same_time, values, strict=True)).get(at, math.nan) for at in ago]
        # the value of the period before; a value two periods before is none
        before = values.shift(1)
        if n < 260:
            periods = values.index.to_period({12: "M", 4: "Q"}[n]).astype("int64")
            before[np.diff(periods, prepend=periods[0]) > 1] = math.nan
        for units, compute in UNITS.items():
            with np.errstate(all="ignore"):
                expected = compute(values, before, np.array(year), n)
            expected = expected.where(np.isfinite(expected))
            expected.index = expected.index.strftime("%Y-%m-%d")
            for sent in (
                observations(live, token, series, **own, units=units),
                observations(live, token, series, f"/at/{day}", units=units),
            ):
                assert sent_values(sent) == pytest.approx(
                    expected.to_dict(), nan_ok=True, rel=1e-9, abs=1e-5
                ), units
        for method, rule in (("avg", "mean"), ("sum", "sum"), ("eop", "last")):
            for frequency, period in (("q", "Q"), ("a", "Y"))[n == 4 :]:
                by_period = getattr(values.dropna().groupby(values.dropna().index.to_period(period)), rule)()
                sent = observations(
                    live, token, series, **own, frequency=frequency, aggregation_method=method
                )
                assert {
                    at: value for at, value in sent_values(sent).items() if value == value
                } == pytest.approx(
                    {str(one.start_time.date()): float(value) for one, value in by_period.items()},
                    rel=1e-9,
                    abs=1e-5,
                )


@pytest.mark.rule("DIAL-1")
@pytest.mark.parametrize("series", KEYS)
@pytest.mark.parametrize(
    "options", [{}, {"units": "pch"}, {"units": "ch1"}, {"frequency": "a", "aggregation_method": "eop"}]
)
def test_a_row_of_a_real_time_period_is_valid_exactly_on_its_days(
    live: LiveServer, token: str, series: str, options: dict[str, str]
) -> None:
    since, until = "2023-02-01", "2024-12-31"
    every = observations(live, token, series, realtime_start=since, realtime_end=until, **options)
    assert all(since <= row["realtime_start"] <= row["realtime_end"] <= until for row in every)
    for day in map(str, days()):
        on_day = [row for row in every if row["realtime_start"] <= day <= row["realtime_end"]]
        one = observations(live, token, series, realtime_start=day, realtime_end=day, **options)
        assert [(row["date"], row["value"]) for row in on_day] == [
            (row["date"], row["value"]) for row in one
        ], day
        inside = observations(live, token, series, f"/at/{day}", **options)
        assert [row["value"] for row in inside] == [row["value"] for row in one]
    # the same values by vintage date: each in the row of its day
    ever = observations(
        live, token, series, realtime_start="1776-07-04", realtime_end="9999-12-31", **options
    )
    cells = [
        (row["date"], name[-8:], value)
        for row in observations(live, token, series, output_type="3", **options)
        for name, value in row.items()
        if name != "date"
    ]
    assert sorted(cells) == sorted(
        (row["date"], row["realtime_start"].replace("-", ""), row["value"]) for row in ever
    )
    first = {row["date"]: (row["realtime_start"], row["value"]) for row in reversed(ever)}
    initial = observations(live, token, series, output_type="4", **options)
    assert {row["date"]: (row["realtime_start"], row["value"]) for row in initial} == first


def test_values_by_vintage_date_and_errors_have_the_requested_format(
    live: LiveServer, key: str, token: str
) -> None:
    def ask(path: str = "series/observations", **parameters: object) -> requests.Response:
        query = {"series_id": "GDP.ZA", "api_key": token, **parameters}
        return requests.get(f"{live.url}/fred/{path}", query, timeout=60)  # type: ignore[arg-type]

    vintages = [str(day.date()) for day in fred(live, token).get_series_vintage_dates("GDP.ZA")]
    chosen = vintages[3:9:2]
    table = ask(output_type=2, vintage_dates=",".join(chosen), file_type="json").json()["observations"]
    for day in chosen:
        column = {row["date"]: row[f"GDP.ZA_{day.replace('-', '')}"] for row in table}
        expected = macro(live, key, "GDP.ZA", date.fromisoformat(day))
        same(
            pd.Series({at: float(v) for at, v in column.items() if v != "."}),
            {at: v for at, v in expected.items() if not math.isnan(v)},
        )
    new = ET.fromstring(ask(output_type=3).content)  # noqa: S314 - our own answer
    releases = fred(live, token).get_series_all_releases("GDP.ZA")
    assert sum(len(child.attrib) - 1 for child in new) == len(releases)
    # a day lists only its new values, although it knows all earlier ones
    day = vintages[6]
    new_values = releases[releases["realtime_start"] == pd.Timestamp(day)]
    on_day = ask(output_type=3, vintage_dates=day, file_type="json").json()["observations"]
    assert [row["date"] for row in on_day] == [str(at.date()) for at in new_values["date"]]
    first = releases.groupby("date").head(1)
    initial = ask(output_type=4, realtime_start=day, realtime_end=day, file_type="json").json()[
        "observations"
    ]
    expected_dates = [str(at.date()) for at in first[first["realtime_start"] == pd.Timestamp(day)]["date"]]
    assert [row["date"] for row in initial] == expected_dates
    for parameters, parameter in (
        ({"units": "x"}, "units"),
        ({"realtime_start": "2999-01-01"}, "realtime_start"),
        ({"output_type": 9}, "output_type"),
        ({"frequency": "d"}, "frequency"),
        ({"nonsense": 1}, "nonsense"),
    ):
        refused = ask(**parameters)
        assert refused.status_code == 400
        error = ET.fromstring(refused.content)  # noqa: S314 - our own answer
        assert error.tag == "error"
        assert error.attrib["code"] == "400"
        assert parameter in error.attrib["message"]
        assert ask(**parameters, file_type="json").json()["error_code"] == 400
    assert (
        live.get(
            "/at/2023-06-30/fred/series/observations?series_id=GDP.ZA&realtime_end=2024-01-01", key
        ).status_code
        == 400
    )
    with pytest.raises(ValueError, match="No such day"):
        fred(live, token, LAST_DAY).get_series("GDP.ZA")


@pytest.mark.rule("DIAL-1")
def test_figures_stored_at_publication_are_sent_on_their_days_only(tmp_path: Path) -> None:
    """A forecast, a revision on the day of the question, and a withdrawn value."""
    today = datetime.now(UTC).date()
    before, after = today - timedelta(days=1), today + timedelta(days=400)
    rows = [
        SeriesRow("CPI.GH", "cpi", "monthly", "GH", str(at), value, "index", str(public))
        for at, value, public in (
            (date(2024, 1, 31), "1", date(2024, 2, 1)),
            (date(2024, 1, 31), "0.0000001", today),
            (date(2024, 2, 29), "2", date(2024, 3, 1)),
            (date(2024, 2, 29), "", before),
            (after, "9", before),
        )
    ]
    home, path = tmp_path / "home", tmp_path / "cpi.csv"
    path.write_text(as_csv(rows))
    succeed(home, "ingest", "series", path)
    succeed(home, "publish")
    with LiveServer(home) as server:
        key = server.key("starter")
        for day in (today, before, before - timedelta(days=1)):
            for prefix, more in (("", f"&realtime_start={day}&realtime_end={day}"), (f"/at/{day}", "")):
                question = f"{prefix}/fred/series/observations?series_id=CPI.GH&file_type=json{more}"
                sent = server.get(question, key).json()["observations"]
                assert {
                    one["date"]: math.nan if one["value"] == "." else float(one["value"]) for one in sent
                } == pytest.approx(macro(server, key, "CPI.GH", day), nan_ok=True), day
        assert "0.0000001" in {
            one["value"]
            for one in server.get("/fred/series/observations?series_id=CPI.GH&file_type=json", key).json()[
                "observations"
            ]
        }


@pytest.mark.rule("DIAL-2")
def test_the_sample_tier_gets_an_error_instead_of_a_truncated_answer(live: LiveServer) -> None:
    sample = live.key("sample")
    observations = "/fred/series/observations?series_id=CPI.ZA"
    whole = live.get("/fred/graph/fredgraph.csv?id=CPI.ZA,GDP.ZA,FX.USD.ZAR", sample)
    assert whole.status_code == 402
    assert "sample" in whole.text
    few = live.get(f"{observations}&limit=5&file_type=json", sample).json()
    assert (few["count"], len(few["observations"])) == (len(macro(live, sample, "CPI.ZA", limit=25)), 5)
    assert live.get(f"{observations}&limit=5&offset=5", sample).status_code == 402
    assert live.get("/fred/series?series_id=CPI.ZA").status_code == 401


@pytest.mark.limit("values by vintage date in FRED's form")
def test_a_table_by_vintage_date_that_is_too_large_is_refused() -> None:
    values = {date.fromordinal(730_000 + n): [ValueStep(730_000 + n, None)] for n in range(1_001)}
    period = RealTimePeriod(date(1776, 7, 4), LAST_DAY, date(2026, 1, 1))
    with pytest.raises(InvalidParameter, match="ask for fewer"):
        by_vintage_date("FX.USD.ZAR", values, period, only_new=False)
