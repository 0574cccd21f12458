"""Open panels are scanned lazily by their URL; files are fetched whole and verified."""

import asyncio
import hashlib
import shutil
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import polars
import pyarrow.parquet
import pytest

from sankofa.client import AsyncClient, Client, InvalidAnswer, NotOpen, UpgradeRequired
from sankofa.client.panels import Engine
from tests.client.conftest import Scripted, publish_another, settled
from tests.client.test_paging import gone_from
from tests.live import LiveServer


@pytest.fixture(scope="module", autouse=True)
def httpfs() -> None:
    """DuckDB would download it."""
    package = Path(str(duckdb_extension_httpfs.__file__)).parent
    (extension,) = package.glob("extensions/*/httpfs.duckdb_extension")
    duckdb.execute(f"LOAD '{extension}'")


def test_a_panel_is_a_lazy_frame_of_polars(client: Client) -> None:
    scanned = client.scan_panel("procurement-demand")
    assert isinstance(scanned, polars.LazyFrame)
    counted = scanned.filter(polars.col("country") == "ZA").select(polars.len()).collect().item()
    rows = client.get_procurement_demand(country="ZA", limit=10_000).rows
    assert counted == len(rows) > 0


def test_a_panel_is_a_relation_of_duckdb(client: Client) -> None:
    relation = client.scan_panel("procurement-demand", engine="duckdb")
    (counted,) = relation.filter("country = 'ZA'").aggregate("count(*)").fetchone() or (0,)
    assert counted == client.get_procurement_demand(country="ZA", limit=10_000).count


def test_the_awaited_client_scans_too(server: LiveServer, paid_key: str) -> None:
    async def scanned() -> polars.LazyFrame:
        async with AsyncClient(paid_key, server.url) as client:
            frame: polars.LazyFrame = await client.scan_panel("macro-momentum")
            return frame

    assert asyncio.run(scanned()).collect().height > 0


def test_a_licensed_or_unknown_panel_is_not_open(client: Client) -> None:
    with pytest.raises(NotOpen, match="licensed"):
        client.scan_panel("fundamentals-factors")
    with pytest.raises(NotOpen, match="macro-momentum"):
        client.scan_panel("no-such-panel")
    with pytest.raises(ValueError, match="engine"):
        client.scan_panel("macro-momentum", engine="excel")  # type: ignore[call-overload]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_scan_stays_on_its_edition_and_fails_once_that_is_gone(
    sample_home: Path, tmp_path: Path, engine: Engine
) -> None:
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)

    def height(panel: Any) -> int:
        found = panel.collect() if engine == "polars" else panel.pl()
        return int(found.height)

    with LiveServer(home) as live, Client(live.key("starter"), live.url) as client:
        edition = client.get_export().edition
        before = {row["name"]: row["sha256"] for row in client.get_export()}
        scanned = client.scan_panel("procurement-demand", engine=engine)
        rows = height(scanned)
        publish_another(home, 1)
        settled(client, other_than=edition)
        assert {row["name"]: row["sha256"] for row in client.get_export()} != before
        assert height(scanned) == rows
        publish_another(home, 2)
        gone_from(live, edition)
        with pytest.raises(Exception, match=r"not kept|HTTP GET error"):
            height(scanned)


def test_a_licensed_file_is_fetched_whole(client: Client, tmp_path: Path) -> None:
    listed = next(row for row in client.get_export() if row["access"] == "licensed")
    place = client.get_licensed_file(listed["name"], tmp_path)
    assert place == tmp_path / listed["name"]
    assert hashlib.sha256(place.read_bytes()).hexdigest() == listed["sha256"]
    assert pyarrow.parquet.read_table(place).num_rows == listed["row_count"]
    assert list(tmp_path.iterdir()) == [place]


def test_an_open_file_needs_no_key(server: LiveServer, tmp_path: Path) -> None:
    with Client(base_url=server.url) as client:
        place = client.get_open_file("macro-momentum.parquet", tmp_path / "mine.parquet")
    assert pyarrow.parquet.read_table(place).num_rows > 0


def test_the_awaited_client_fetches_files_too(server: LiveServer, tmp_path: Path) -> None:
    async def fetched() -> Path:
        async with AsyncClient(base_url=server.url) as client:
            return await client.get_open_file("macro-momentum.parquet", tmp_path)

    assert pyarrow.parquet.read_table(asyncio.run(fetched())).num_rows > 0


def test_a_licensed_file_needs_its_tier(server: LiveServer, sample_key: str, tmp_path: Path) -> None:
    with Client(sample_key, server.url) as client, pytest.raises(UpgradeRequired):
        client.get_licensed_file("af-fund-fundamentals.parquet", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_the_one_promised_is_not_kept(scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers = [(200, {"ETag": '"0000"'}, b"PAR1")]
    with Client(None, scripted.url) as client, pytest.raises(InvalidAnswer, match="SHA-256"):
        client.get_open_file("x.parquet", tmp_path)
    assert list(tmp_path.iterdir()) == []
