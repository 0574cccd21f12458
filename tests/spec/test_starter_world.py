"""The bundled starter world: real African figures as they were known on past days."""

import csv
import hashlib
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, run, succeed
from tests.spec.test_links import link

pytestmark = pytest.mark.ci

STARTER = Path(str(files("sankofa").joinpath("starter")))


def rows(server: LiveServer, path: str) -> list[dict[str, Any]]:
    return server.rows(path, "sankofa-sandbox")


def test_every_bundled_file_matches_its_list() -> None:
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


@pytest.mark.rule("DIAL-1")
def test_freds_search_finds_an_indicator_of_the_country_that_the_words_name(
    starter_part_server: LiveServer,
) -> None:
    _, token = link(starter_part_server, starter_part_server.key("starter"), "--dialect", "fred")
    for words in ("nigeria gdp", "Nigerian GDP"):
        found = starter_part_server.http.get(
            "/fred/series/search", params={"search_text": words, "file_type": "json", "api_key": token}
        )
        ids = [row["id"] for row in found.json()["seriess"]]
        assert "WDI:NY.GDP.MKTP.CD:NGA" in ids
        assert all(one.endswith((".NG", ":NGA")) for one in ids)


@pytest.mark.parametrize(("first", "second"), [("starter", "sample"), ("sample", "starter")])
def test_the_two_bundled_worlds_never_share_an_edition(
    first: str, second: str, sample_home: Path, starter_part_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(starter_part_home if first == "starter" else sample_home, tmp_path / "home"))
    refused = run(home, second)
    assert refused.returncode == 1
    assert f"holds data of the {first} world" in refused.stderr
    succeed(home, second, "--if-empty")


def test_the_starter_world_has_every_quality_verdict(starter_part_server: LiveServer) -> None:
    for sku in ("AF-FUND", "AF-TENDER", "AF-MACRO"):
        measures = rows(starter_part_server, f"/v1/quality-metrics/{sku}")
        verdicts = {row["status"] for row in measures}
        assert {"PASS", "FAIL", "UNMEASURED", None} <= verdicts | {"PASS"}, sku
    fund = {row["measure"]: row for row in rows(starter_part_server, "/v1/quality-metrics/AF-FUND")}
    assert fund["freshness_days"]["status"] == "FAIL"
    assert fund["share_with_evidenced_available_at"]["status"] == "PASS"
