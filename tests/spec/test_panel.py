"""GET /v1/panel: one row for each issuer and day, with every column as known that day."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sankofa.derive.metrics.contract import slugs
from sankofa.model.identifiers import service_id
from sankofa.model.line_items import LINE_ITEMS
from sankofa.operations.panel import MOST_COLUMNS, MOST_DAYS
from tests.foreign import foreign
from tests.live import LiveServer
from tests.spec.test_as_known import Reported, World, body, publish, refused, year
from tests.torture import rounds
from tests.world.reference import FiledFigure
from tests.world.signals_desk import SERIES, take
from tests.world.test_metrics_point_in_time import history

RATES = [
    ("2018-01-31", "11.5", "2018-02-01"),
    ("2018-01-31", "12.5", "2019-06-01"),
    ("2019-01-31", "13", "2019-02-15"),
]
ITEMS = ("revenue", "profit", "assets")
METRICS = ("net_margin", "revenue_growth", "return_on_assets")
PERIOD = "from=2018-01-15&to=2021-06-30"


def plain(number: int, chance: random.Random) -> Iterator[FiledFigure]:
    """Revenue of six years, some of it restated, without contradictions."""
    for calendar_year in range(2014, 2020):
        filed = date(calendar_year + 1, chance.randrange(1, 7), 15)
        revenue = chance.randrange(100, 10_000)
        yield year(calendar_year, "revenue", revenue, filed.isoformat())
        if chance.random() < 0.4:
            later = filed + timedelta(days=chance.randrange(30, 900))
            yield year(calendar_year, "revenue", revenue + number + 1, later.isoformat())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    chance = random.Random(7)
    reported: Reported = [(f"ticker:JSE:T{n}", one) for n in range(6) for one in history(chance)]
    reported += [(f"ticker:NSE:S{n}", one) for n in range(6) for one in plain(n, chance)]
    desk = publish(tmp_path_factory.mktemp("panel"), reported)
    rows = "".join(
        f"FX.USD.ZAR,fx,monthly,ZA,{day},{value},ZAR,{released}\n" for day, value, released in RATES
    )
    take(desk, "series", "rates.csv", SERIES + rows)
    desk.publish()
    with LiveServer(desk.home) as server:
        yield World(reported, server, server.key("professional"))


def month_ends(first: date, last: date) -> list[str]:
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return [day.isoformat() for day in days if (day + timedelta(days=1)).day == 1]


@pytest.mark.rule("PAN-1", "PAN-2", "PAN-3")
def test_every_cell_equals_the_endpoints_on_its_day(world: World) -> None:
    columns = f"metrics={','.join(METRICS)}&line_items={','.join(ITEMS)}&series=fx.usd.zar"
    panel = body(world, f"/v1/panel?{columns}&{PERIOD}&limit=10000")
    assert (panel["basis"], panel["truncated"]) == ("as_known", False)
    days = month_ends(date(2018, 1, 15), date(2021, 6, 30))
    assert sorted({row["as_of"] for row in panel["data"]}) == days
    reasons = set()
    for day in random.Random(1).sample(days, rounds(6, 6, here=3)):
        rows = {row["service_id"]: row for row in panel["data"] if row["as_of"] == day}
        universe = body(world, f"/v1/issuers?as_of={day}&limit=1000")["data"]
        assert set(rows) == {row["service_id"] for row in universe}
        rate = body(world, f"/v1/macro?series=FX.USD.ZAR&as_of={day}&limit=1")["data"]
        for issuer, row in rows.items():
            expected: dict[str, tuple[Any, Any]] = dict.fromkeys(
                (*METRICS, *ITEMS, "FX.USD.ZAR"), (None, None)
            )
            metrics = body(world, f"/v1/metrics/{issuer}?as_of={day}&basis=as_known")
            expected |= {
                one["metric"]: (one["value"], one["age_days"])
                for one in metrics["data"]
                if one["metric"] in METRICS
            }
            figures = body(world, f"/v1/statements/{issuer}?as_of={day}&period_type=FY")["data"]
            for figure in reversed(figures):  # the newest last
                if figure["line_item"] in ITEMS:
                    age = (date.fromisoformat(day) - date.fromisoformat(figure["period_end"])).days
                    expected[figure["line_item"]] = (figure["value_reported"], age)
                    units = figure["unit"]
                    if row[figure["line_item"]] == figure["value_reported"]:
                        assert row["units"][figure["line_item"]] == units
            for one in rate:
                age = (date.fromisoformat(day) - date.fromisoformat(one["date"])).days
                expected["FX.USD.ZAR"] = (one["value"], age)
                assert row["units"]["FX.USD.ZAR"] == "ZAR"
            cells = {name: (row[name], row["age_days"].get(name)) for name in expected}
            assert cells == expected, (issuer, day)
            assert set(row["missing"]) == {name for name, (value, _) in cells.items() if value is None}
            why = {one["metric"]: one["reason"] for one in metrics["missing"] if one["metric"] in METRICS}
            assert {name: row["missing"][name] for name in row["missing"] if name in METRICS} == why
            reasons |= set(row["missing"].values())
    assert {"input_absent", "not_known"} <= reasons


@pytest.mark.rule("PAN-1")
@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("week", ["2020-12-20", "2020-12-27", "2021-01-03"]),
        ("month", ["2020-12-31", "2021-01-31", "2021-02-28"]),
        ("quarter", ["2020-12-31", "2021-03-31"]),
        ("year", ["2019-12-31", "2020-12-31"]),
    ],
)
def test_days_are_the_last_of_each_period(world: World, every: str, expected: list[str]) -> None:
    first, last = {
        "week": ("2020-12-14", "2021-01-09"),
        "month": ("2020-12-31", "2021-03-30"),
        "quarter": ("2020-10-02", "2021-06-29"),
        "year": ("2019-01-01", "2021-06-30"),
    }[every]
    path = f"/v1/panel?metrics=net_margin&from={first}&to={last}&every={every}&issuers="
    panel = body(world, path + service_id("ticker:NSE:S0").lower())
    assert [row["as_of"] for row in panel["data"]] == expected


@pytest.mark.rule("PAN-4")
def test_pages_by_cursor_add_up_to_the_panel(world: World) -> None:
    for universe in ("", f"&issuers={','.join(world.issuers)}", "&exchange=NSE"):
        path = f"/v1/panel?metrics=net_margin&line_items=revenue&{PERIOD}&every=quarter{universe}"
        whole = world.server.rows(f"{path}&limit=10000", world.key)
        pages = list(world.server.pages(f"{path}&limit=7", world.key))
        assert [row for page in pages for row in page["data"]] == whole
        assert len(whole) > 20
        cursor = pages[-2]["next_cursor"]
        assert refused(world, f"{path}&country=ZA&limit=7&cursor={cursor}") == "cursor"


@pytest.mark.rule("PAN-2")
def test_change_days_give_the_cell_of_any_day(world: World) -> None:
    """Between two of its rows only the age changes."""
    path = f"/v1/panel?metrics={','.join(METRICS)}&line_items={','.join(ITEMS)}&from=2017-01-01&to=2021-06-30"
    steps = body(world, f"{path}&every=change&limit=10000")["data"]
    weekly = body(world, f"{path}&every=week&limit=10000")["data"]
    by_issuer: dict[str, list[Any]] = {}
    for row in steps:
        by_issuer.setdefault(row["service_id"], []).append(row)
    for row in weekly:
        then = [one for one in by_issuer[row["service_id"]] if one["as_of"] <= row["as_of"]][-1]
        later = (date.fromisoformat(row["as_of"]) - date.fromisoformat(then["as_of"])).days
        ages = {name: age + later for name, age in then["age_days"].items()}
        assert {**then, "as_of": row["as_of"], "age_days": ages} == row
    assert len(weekly) > 1000
    assert refused(world, f"{path}&every=change&series=FX.USD.ZAR") == "every"


@pytest.mark.rule("PAN-5")
@pytest.mark.limit("columns of a panel", "days of a panel")
def test_too_large_and_malformed_questions_are_refused(world: World) -> None:
    few = "/v1/panel?metrics=net_margin&from=2020-01-01"
    assert refused(world, "/v1/panel?from=2020-01-01") == "metrics"
    assert refused(world, "/v1/panel?metrics=net_margin") == "from"
    assert refused(world, "/v1/panel?metrics=nett_margin&from=2020-01-01") == "metrics"
    assert refused(world, "/v1/panel?line_items=sales&from=2020-01-01") == "line_items"
    assert refused(world, f"{few}&to=2019-12-31") == "to"
    assert refused(world, f"{few}&to={datetime.now(UTC).date() + timedelta(days=2)}") == "to"
    assert refused(world, f"{few}&every=day") == "every"
    assert refused(world, f"{few}&issuers=a-b") == "issuers"
    columns = (
        f"metrics={','.join(slugs())}&line_items={','.join(LINE_ITEMS[: MOST_COLUMNS - len(slugs()) + 1])}"
    )
    assert refused(world, f"/v1/panel?{columns}&from=2020-01-01") == "metrics"
    first = date(2021, 1, 1) - timedelta(weeks=MOST_DAYS + 2)
    assert refused(world, f"/v1/panel?metrics=net_margin&from={first}&to=2021-01-01&every=week") == "every"
    answer = world.server.get(few, world.server.key("sample"))
    assert (answer.status_code, "upgrade" in answer.json()) == (402, True)
    assert body(world, f"{few}&issuers=DC000000000000000000000000")["data"] == []


def parquet(world: World, folder: Path, name: str) -> Path:
    files = body(world, "/v1/export")["data"]
    (row,) = [one for one in files if one["name"] == f"{name}.parquet"]
    path = folder / f"{name}.parquet"
    path.write_bytes(world.server.get(row["url"].replace(world.server.url, ""), world.key).content)
    return path


@pytest.mark.rule("PAN-2")
def test_an_asof_join_over_the_files_gives_the_same_cells(world: World, tmp_path: Path) -> None:
    """DuckDB's ASOF JOIN finds the figure of the latest year and the latest observation known on each day."""
    facts = parquet(world, tmp_path, "af-fund-fundamentals")
    observed = parquet(world, tmp_path, "af-macro-series")
    issuers = [service_id(f"ticker:NSE:S{n}") for n in range(6)]
    path = f"/v1/panel?line_items=revenue&series=FX.USD.ZAR&{PERIOD}&limit=10000&issuers={','.join(issuers)}"
    rows = body(world, path)["data"]
    days = [(row["service_id"], row["as_of"]) for row in rows]
    duck = duckdb.connect()
    duck.execute("CREATE TABLE days (service_id VARCHAR, day DATE)")
    duck.executemany("INSERT INTO days VALUES (?, ?)", days)
    latest = """
        SELECT {by} AS key, available_at,
               arg_max(figure, rank) OVER (PARTITION BY {by} ORDER BY available_at) AS value
        FROM (SELECT *, {figure} AS figure, ({dated}, vintage) AS rank FROM '{file}' {where})
    """
    revenue = latest.format(
        by="service_id", figure="value_reported", dated="period_end", file=facts,
        where="WHERE period_type = 'FY' AND line_item = 'revenue'",
    )  # fmt: skip
    rate = latest.format(by="series", figure="value", dated="date", file=observed, where="")
    joined = duck.execute(
        f"""
        SELECT days.service_id, CAST(days.day AS VARCHAR), revenue.value, rate.value
        FROM days
        ASOF LEFT JOIN ({revenue}) revenue
            ON days.service_id = revenue.key AND days.day >= revenue.available_at
        ASOF LEFT JOIN ({rate}) rate
            ON rate.key = 'FX.USD.ZAR' AND days.day >= rate.available_at
        """
    ).fetchall()
    expected = {(issuer, day): (value, rate) for issuer, day, value, rate in joined}
    assert len(expected) == len(rows) > 150
    for row in rows:
        value, expected_rate = expected[row["service_id"], row["as_of"]]
        assert (row["revenue"], row["FX.USD.ZAR"]) == (_exact(value), _exact(expected_rate)), row["as_of"]


FEAST = """
from datetime import timedelta
import pandas as pd
from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
from feast.types import Float64
folder = inputs["folder"]
facts = pd.read_parquet(f"{folder}/af-fund-fundamentals.parquet")
facts = facts[(facts.period_type == "FY") & (facts.line_item == "revenue")]
facts["period_end"] = pd.to_datetime(facts.period_end)
facts = facts.sort_values(["service_id", "available_at", "period_end", "vintage"])
newest = facts.groupby("service_id").period_end.cummax()
facts = facts[facts.period_end == newest].drop_duplicates(["service_id", "available_at"], keep="last")
facts = pd.DataFrame(
    {
        "service_id": facts.service_id,
        "revenue": facts.value_reported.astype(float),
        "available_at": pd.to_datetime(facts.available_at, utc=True),
    }
)
facts.to_parquet(f"{folder}/revenue.parquet")
store = FeatureStore(
    config=RepoConfig(
        project="panel", provider="local", registry=f"{folder}/registry.db", offline_store={"type": "file"},
        online_store={"type": "sqlite", "path": f"{folder}/online.db"}, entity_key_serialization_version=3,
    )
)
issuer = Entity(name="service_id", join_keys=["service_id"], value_type=ValueType.STRING)
source = FileSource(path=f"{folder}/revenue.parquet", timestamp_field="available_at")
view = FeatureView(
    name="filed", entities=[issuer], ttl=timedelta(0), source=source,
    schema=[Field(name="revenue", dtype=Float64)],
)
store.apply([issuer, view])
days = pd.DataFrame(inputs["days"], columns=["service_id", "event_timestamp"])
days["event_timestamp"] = pd.to_datetime(days.event_timestamp, utc=True)
frame = store.get_historical_features(entity_df=days, features=["filed:revenue"]).to_df()
output["rows"] = [
    (row.service_id, str(row.event_timestamp.date()), None if pd.isna(row.revenue) else row.revenue)
    for row in frame.itertuples()
]
"""


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.rule("PAN-2")
def test_feast_retrieves_the_same_figures_from_the_files(world: World, tmp_path: Path) -> None:
    """Feast's point-in-time join, over the figures that were of the newest year when they were filed."""
    parquet(world, tmp_path, "af-fund-fundamentals")
    issuers = [service_id(f"ticker:NSE:S{n}") for n in range(6)]
    rows = body(world, f"/v1/panel?line_items=revenue&{PERIOD}&limit=10000&issuers={','.join(issuers)}")[
        "data"
    ]
    days = [(row["service_id"], row["as_of"]) for row in rows]
    retrieved = foreign(FEAST, folder=str(tmp_path), days=days)["rows"]
    by_issuer_and_day = {(issuer, day): value for issuer, day, value in retrieved if value is not None}
    assert len(by_issuer_and_day) > 100
    assert by_issuer_and_day == {
        (row["service_id"], row["as_of"]): float(row["revenue"]) for row in rows if row["revenue"] is not None
    }


def _exact(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value)).normalize() + 0
