"""`basis=as_known`: derived values use the vintages known on a day, whatever was filed later."""

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sankofa
from sankofa.derive.signals.contract import panels
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import dated
from sankofa.edition.write import derived_parts
from sankofa.edition.write.metric_rows import METRICS
from sankofa.model.days import months_before
from sankofa.model.identifiers import service_id
from tests.live import LiveServer
from tests.patience import wait
from tests.real_inputs import Digits
from tests.torture import ALL_ROUNDS, Trial, rounds
from tests.world.desk import Desk, as_row
from tests.world.reference import FiledFigure
from tests.world.test_metrics_point_in_time import TODAY, history

ISSUERS = rounds(12, 12, here=4)
STARTER = Path(sankofa.__file__).parent / "starter" / "filings" / "companyfacts"
RESTATED = service_id("ticker:JSE:RST")
Rows = list[dict[str, Any]]
Reported = list[tuple[str, FiledFigure]]


class World(NamedTuple):
    """Issuers whose figures are restated, completed and withdrawn, published and served."""

    told: Reported
    server: LiveServer
    key: str

    @property
    def issuers(self) -> list[str]:
        return sorted({service_id(name) for name, _ in self.told})


def year(number: int, item: str, value: int, available: str) -> FiledFigure:
    start, end = date(number, 1, 1), date(number, 12, 31)
    return FiledFigure(
        item, "ZAR", start, end, available, Decimal(value), date.fromisoformat(available), TODAY
    )


def publish(folder: Path, told: Reported) -> Desk:
    desk = Desk(folder / "home", TODAY)
    summary = desk.filings("all.csv", [as_row(name, one, one.document) for name, one in told])
    assert summary.failures == []
    return desk


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    chance = random.Random(33)
    told = [(f"ticker:JSE:T{n}", one) for n in range(ISSUERS) for one in history(chance)]
    name = "ticker:JSE:RST"
    told += [
        (name, year(2015, "revenue", 100, "2016-03-31")),
        (name, year(2016, "revenue", 200, "2017-03-31")),
        (name, year(2016, "profit", 50, "2017-03-31")),
        (name, year(2016, "profit", 80, "2019-03-31")),  # restated long after
        (name, year(2017, "revenue", 300, "2019-03-31")),
        (name, year(2017, "profit", 30, "2019-03-31")),
    ]
    desk = publish(tmp_path_factory.mktemp("known"), told)
    desk.publish()
    with LiveServer(desk.home) as server:
        yield World(told, server, server.key("professional"))


def body(world: World, path: str) -> dict[str, Any]:
    answer = world.server.get(path, world.key)
    assert answer.status_code == 200, answer.text
    read: dict[str, Any] = json.loads(answer.text, parse_int=Decimal, parse_float=Decimal)
    return read


def refused(world: World, path: str) -> str:
    answer = world.server.get(path, world.key)
    assert answer.status_code == 400, answer.text
    parameter: str = answer.json()["parameter"]
    return parameter


def metrics_of(edition: Edition, issuer: str, day: date) -> Rows:
    found = wait(edition.select("metrics", issuer, day=day.toordinal()))
    rows: Rows = json.loads(
        b"[%b]" % dated(found.rows if found else b"", day), parse_int=Decimal, parse_float=Decimal
    )
    return rows


def real_files(request: pytest.FixtureRequest, chance: random.Random) -> dict[str, Any]:
    """Some companyfacts of the starter world; wherever every round is tried also those of the real inputs."""
    paths = sorted(STARTER.glob("*.json.gz"), key=lambda path: (path.stat().st_size, path.name))
    if not ALL_ROUNDS:
        del paths[15:]  # the larger ones
    else:
        folder = request.getfixturevalue("shared_data") / "fundamentals" / "companyfacts-2021"
        paths += sorted(folder.glob("*.json.gz"))
    paths = chance.sample(paths, min(len(paths), rounds(3, 6, len(paths))))
    return {path.stem: json.loads(gzip.decompress(path.read_bytes()), parse_float=Digits) for path in paths}


def filed_between(document: dict[str, Any], since: str, day: str) -> dict[str, Any]:
    """What a companyfacts file has of the filings after a day, up to another."""
    facts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for taxonomy, concepts in document["facts"].items():
        for name, concept in concepts.items():
            units = {
                unit: own
                for unit, reported in concept["units"].items()
                if (own := [one for one in reported if since < one["filed"] <= day])
            }
            if units:
                facts[taxonomy][name] = concept | {"units": units}
    return document | {"facts": facts}


def publish_filed(desk: Desk, folder: Path, documents: dict[str, Any], since: str, day: str) -> Edition:
    """Ingest what was filed after a day, up to another, and publish."""
    taken = {name: filed_between(document, since, day) for name, document in documents.items()}
    paths = [folder / name for name in taken if taken[name]["facts"]]
    for path in paths:
        path.write_text(json.dumps(taken[path.name]))
    assert desk.take("sec-companyfacts", *paths).failures == []
    return desk.publish()


class Filed(NamedTuple):
    """Companyfacts files, the days on which something was filed, and all of it published and served."""

    documents: dict[str, Any]
    days: list[str]
    world: World

    @property
    def issuers(self) -> list[str]:
        return [service_id(f"registry:US-SEC-CIK:{int(one['cik']):010}") for one in self.documents.values()]

    def random_days(self, count: int) -> list[date]:
        """Different days on or after which something was filed."""
        chance = random.Random(rounds(60, 61, 62))
        chosen: dict[date, None] = {}
        while len(chosen) < count:
            filed = date.fromisoformat(chance.choice(self.days))
            chosen[filed + timedelta(days=chance.choice((0, 0, 1, 40)))] = None
        return list(chosen)


@pytest.fixture(scope="module")
def filed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filed]:
    documents = real_files(request, random.Random(rounds(60, 61, 62)))
    days = sorted(
        {
            one["filed"]
            for document in documents.values()
            for concepts in document["facts"].values()
            for concept in concepts.values()
            for reported in concept["units"].values()
            for one in reported
        }
    )
    folder = tmp_path_factory.mktemp("filed")
    desk = Desk(folder / "home", TODAY)
    publish_filed(desk, folder, documents, "", days[-1])
    with LiveServer(desk.home) as server:
        world = World([], server, server.key("professional", "--per-minute", "1000000"))
        yield Filed(documents, days, world)


SHARES = rounds(1, 2, 6)
"""Parts of the days: with all 147 issuers a day takes up to half a minute, and no test may take twenty."""


@pytest.mark.ci
@pytest.mark.rule("MET-13")
@pytest.mark.parametrize("share", range(SHARES))
def test_a_day_of_real_files_is_what_a_build_from_those_filed_by_then_gives(
    filed: Filed, share: int, tmp_path: Path, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For random days, every metric of every issuer; 60 days wherever every round is tried.

    A ledger gets what was filed from one day to the next, so that it holds only what was filed by a day. Of
    the parts of an issuer its build derives the metrics, which take a sixth of the time.
    """
    only_metrics = {METRICS: derived_parts._ISSUER_PARTS[METRICS]}
    monkeypatch.setattr(derived_parts, "_ISSUER_PARTS", only_metrics)
    days = sorted(filed.random_days(rounds(4, 60, 60))[share::SHARES])
    desk, since, left_out = Desk(tmp_path / "home", TODAY), "", 0
    for day in days:
        alone = publish_filed(desk, tmp_path, filed.documents, since, day.isoformat())
        since = day.isoformat()
        for issuer in filed.issuers:
            known = body(filed.world, f"/v1/metrics/{issuer}?as_of={day}&basis=as_known")["data"]
            expected = metrics_of(alone, issuer, day)
            assert without_capture(known) == without_capture(expected), (issuer, day)
            left_out += len(known) - len(body(filed.world, f"/v1/metrics/{issuer}?as_of={day}")["data"])
            trial.saw("value", len(known))
            trial.saw("issuer on a day")
        trial.saw("day")
    assert trial.outcomes["value"] > 10 * len(days)
    assert left_out > 0  # or nothing was restated, and the comparison proves little


def without_capture(rows: Rows) -> Rows:
    """Rows without the instant of capture, which two ledgers do not share."""
    return [{name: value for name, value in row.items() if name != "observed_at"} for row in rows]


@pytest.mark.rule("MET-13")
def test_a_later_restatement_omits_nobody(world: World) -> None:
    path = "/v1/screen?metric=net_margin&as_of=2018-01-31&limit=100"
    now, known = body(world, path), body(world, f"{path}&basis=as_known")
    assert (now["basis"], known["basis"]) == ("current", "as_known")
    assert RESTATED not in {row["service_id"] for row in now["data"]}
    (row,) = [row for row in known["data"] if row["service_id"] == RESTATED]
    assert (row["value"], row["period_end"], row["age_days"]) == (Decimal("0.25"), "2016-12-31", 396)
    later = body(world, f"/v1/metrics/{RESTATED}?metric=net_margin&as_of=2019-03-31&basis=as_known")
    assert [(row["value"], row["period_end"]) for row in later["data"]] == [(Decimal("0.1"), "2017-12-31")]


@pytest.mark.rule("MET-13")
def test_today_both_bases_are_the_same(world: World) -> None:
    for issuer in world.issuers:
        now, known = (body(world, f"/v1/metrics/{issuer}?basis={b}") for b in ("current", "as_known"))
        assert (now.pop("basis"), known.pop("basis")) == ("current", "as_known")
        assert now == known


@pytest.mark.rule("SIG-8")
def test_a_panel_as_known_has_the_rows_of_the_locked_view_of_its_day(world: World) -> None:
    def rows(path: str) -> Rows:
        origin = ("observed_at", "source_ref")
        listed = body(world, f"{path}limit=10000")["observations"]
        return [{name: value for name, value in row.items() if name not in origin} for row in listed]

    restated = False
    for panel in (key for key, panel in panels().items() if panel.has_basis):
        path = f"/v1/signals/{panel}?"
        known = rows(f"{path}as_of=2018-01-31&basis=as_known&")
        assert known == rows(f"/at/2018-01-31{path}"), panel
        restated |= known != rows(f"{path}as_of=2018-01-31&")
    assert restated


@pytest.mark.rule("MET-14")
def test_max_age_omits_old_years_and_counts_them(world: World) -> None:
    day = date(2018, 1, 31)
    path = f"/v1/screen?metric=net_margin&as_of={day}&basis=as_known&limit=100"
    every = body(world, path)
    for months in (1, 12, 13, 14, 36, 1200):
        oldest = str(months_before(day, months))
        young = body(world, f"{path}&max_age={months}")
        expected = [row for row in every["data"] if row["period_end"] >= oldest]
        assert [{**row, "rank": 0} for row in young["data"]] == [{**row, "rank": 0} for row in expected]
        assert [row["rank"] for row in young["data"]] == list(range(1, len(expected) + 1))
        assert young["omitted"]["too_old"] == every["count"] - len(expected)
        if not expected:
            assert young["absent"]["detail"] == f"Nothing has a year that ended on or after {oldest}."
        own = body(world, f"/v1/metrics/{RESTATED}?as_of={day}&basis=as_known&max_age={months}")
        old = body(world, f"/v1/metrics/{RESTATED}?as_of={day}&basis=as_known")
        is_young = oldest <= "2016-12-31"
        assert own["data"] == (old["data"] if is_young else [])
        assert own["omitted"]["too_old"] == (0 if is_young else old["count"])
        too_old = {one["metric"] for one in own["missing"] if one["reason"] == "too_old"}
        assert too_old == (set() if is_young else {row["metric"] for row in old["data"]})
    assert "too_old" not in every["omitted"]
    for row in every["data"]:
        assert row["age_days"] == (day - date.fromisoformat(row["period_end"])).days


@pytest.mark.rule("MET-13", "MET-14", "SIG-8")
def test_a_malformed_basis_or_age_is_refused(world: World) -> None:
    for path in (
        "/v1/screen?metric=net_margin",
        f"/v1/metrics/{RESTATED}?",
        "/v1/signals/issuer-persistence?",
    ):
        assert refused(world, f"{path}&basis=later") == "basis"
    for path in ("/v1/screen?metric=net_margin", f"/v1/metrics/{RESTATED}?"):
        for age in ("0", "-1", "1201", "x"):
            assert refused(world, f"{path}&max_age={age}") == "max_age"
    assert refused(world, "/v1/signals/macro-momentum?basis=as_known") == "basis"
    assert body(world, "/v1/signals/macro-momentum")["basis"] is None
