"""The bundled starter world: real African figures, as they were known when."""

import csv
import hashlib
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from sankofa.model.identifiers import cik, service_id
from tests.live import LiveServer, run, succeed

pytestmark = pytest.mark.ci

STARTER = Path(str(files("sankofa").joinpath("starter")))


def rows(server: LiveServer, path: str) -> list[dict[str, Any]]:
    """What the sandbox key is answered."""
    return server.rows(path, "sankofa-sandbox")


def test_every_bundled_file_is_the_one_that_its_list_names() -> None:
    with (STARTER / "SOURCES.csv").open() as stream:
        for row in csv.DictReader(stream):
            content = (STARTER / row["file"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == row["sha256"], row["file"]


def test_nigerias_gdp_of_2010_is_todays_figure_in_its_fourth_vintage(starter_part_server: LiveServer) -> None:
    (row,) = rows(starter_part_server, "/v1/macro?country=NG&indicator=NY.GDP.MKTP.CD&from=2010&to=2010")
    assert (row["value"], row["vintage"]) == (366990417129.04, 4)


@pytest.mark.parametrize(
    ("day", "value", "vintage"),
    [
        ("2012-12-31", 196837602739.825, 1),
        ("2013-12-31", 228637855746.94, 2),
        ("2015-12-31", 369062464570.387, 3),
        ("2026-07-01", 366990417129.04, 4),
    ],
)
def test_nigerias_gdp_of_2010_as_it_was_known_on_a_day(
    starter_part_server: LiveServer, day: str, value: float, vintage: int
) -> None:
    path = f"/v1/macro?series=WDI:NY.GDP.MKTP.CD:NGA&as_of={day}&from=2010-12-31&to=2010-12-31"
    (row,) = rows(starter_part_server, path)
    assert (row["value"], row["vintage"]) == (value, vintage)


@pytest.mark.rule("CLI-5")
@pytest.mark.parametrize(("day", "rate"), [("2024-03-04", 30.89818524), ("2024-03-31", 47.25166141)])
def test_the_egyptian_pound_before_and_after_its_devaluation(
    starter_part_server: LiveServer, day: str, rate: float
) -> None:
    row, *_ = rows(starter_part_server, f"/v1/macro?series=FX.USD.EGP&as_of={day}&limit=1")
    assert row["value"] == rate


def test_gold_fields_is_found_by_its_ticker_and_shows_no_later_figure(starter_part_server: LiveServer):
    (match,) = rows(starter_part_server, "/v1/crosswalk?id_type=ticker&id_value=NYSE:GFI")
    assert match["legal_name"] == "Gold Fields Limited"
    facts = rows(starter_part_server, f"/v1/fundamentals/{match['service_id']}?as_of=2013-12-31")
    assert facts
    assert all(row["available_at"] <= "2013-12-31" for row in facts)


@pytest.mark.rule("FUND-10")
def test_gold_fields_sales_of_gold_are_its_revenue(starter_part_server: LiveServer) -> None:
    """By the arithmetic of its filings; as a tagged part of revenue they keep their own name."""
    path = f"/v1/fundamentals/{service_id(cik(1172724))}"
    found = rows(starter_part_server, f"{path}?line_items=revenue&period_type=FY&as_of=2014-12-31")
    gold = {r["period_end"] for r in found if r["concept"] == "us-gaap:GoldProductsAndServicesRevenue"}
    assert {"2008-06-30", "2009-06-30", "2010-06-30", "2011-12-31", "2012-12-31", "2013-12-31"} <= gold
    names = {(r["period_type"], r["fiscal_year"]) for r in balances(starter_part_server, path, "2010-12-31")}
    assert len(names) == 1
    assert {r["period_type"] for r in balances(starter_part_server, path, "2013-10-01")} == {"other"}


def balances(server: LiveServer, path: str, day: str) -> list[dict[str, Any]]:
    """The balances of a day, in every vintage."""
    answer = server.get(f"{path}?vintages=all&limit=10000", server.key("starter"))
    found: list[dict[str, Any]] = answer.json()["data"]
    return [r for r in found if r["period_end"] == day and r["period_start"] is None]


@pytest.mark.parametrize(("first", "second"), [("starter", "sample"), ("sample", "starter")])
def test_the_two_bundled_worlds_never_share_an_edition(
    first: str, second: str, sample_home: Path, starter_part_home: Path, tmp_path: Path
) -> None:
    held = Path(shutil.copytree(starter_part_home if first == "starter" else sample_home, tmp_path / "home"))
    refused = run(held, second)
    assert refused.returncode == 1
    assert f"holds data of the {first} world" in refused.stderr
    succeed(held, second, "--if-empty")


def test_the_starter_world_shows_every_verdict_of_quality(starter_part_server: LiveServer) -> None:
    for sku in ("AF-FUND", "AF-TENDER", "AF-MACRO"):
        measures = rows(starter_part_server, f"/v1/quality-metrics/{sku}")
        verdicts = {row["status"] for row in measures}
        assert {"PASS", "FAIL", "UNMEASURED", None} <= verdicts | {"PASS"}, sku
    fund = {row["measure"]: row for row in rows(starter_part_server, "/v1/quality-metrics/AF-FUND")}
    assert fund["freshness_days"]["status"] == "FAIL"
    assert fund["share_with_evidenced_available_at"]["status"] == "PASS"


@pytest.mark.rule("MACRO-11")
def test_the_rand_by_day_and_by_month_are_two_series(starter_part_server: LiveServer) -> None:
    for series, frequency in {"FX.USD.ZAR": "daily", "FX.USD.ZAR.H10": "monthly"}.items():
        found = rows(starter_part_server, f"/v1/macro?series={series}")
        assert {row["frequency"] for row in found} == {frequency}


@pytest.mark.deep
@pytest.mark.rule("ENT-8")
def test_every_issuer_has_a_country_and_anglogold_is_found_by_its_ticker(starter_server: LiveServer) -> None:
    issuers = starter_server.get("/v1/issuers?limit=25", "sankofa-sandbox").json()["data"]
    assert all(row["country"] for row in issuers)
    (match,) = rows(starter_server, "/v1/crosswalk?id_type=ticker&id_value=NYSE:AU")
    entity = starter_server.get(f"/v1/entities/{match['service_id']}", "sankofa-sandbox").json()
    (before,) = entity["predecessors"]
    assert before["legal_name"] == "AngloGold Ashanti Limited"
    ranked = rows(starter_server, "/v1/screen?metric=current_ratio&country=ZA&as_of=2021-06-30")
    assert before["service_id"] in {row["service_id"] for row in ranked}
