"""Open panels are scanned lazily by their URL; files are fetched whole and verified."""

import hashlib
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.parquet
import pytest

from sankofa.client import Client, ConnectionFailed, InvalidAnswer, NotOpen, Retries
from tests.client.conftest import Scripted
from tests.live import LiveServer


def test_a_panel_is_a_lazy_frame_of_polars(client: Client) -> None:
    scanned = client.scan_panel("procurement-demand")
    assert isinstance(scanned, polars.LazyFrame)
    counted = scanned.filter(polars.col("country") == "ZA").select(polars.len()).collect().item()
    rows = client.get_procurement_demand(country="ZA", limit=10_000).rows
    assert counted == len(rows) > 0


@pytest.mark.usefixtures("httpfs")
def test_a_panel_is_a_relation_of_duckdb(client: Client) -> None:
    relation = client.scan_panel("procurement-demand", engine="duckdb")
    (counted,) = relation.filter("country = 'ZA'").aggregate("count(*)").fetchone() or (0,)
    assert counted == client.get_procurement_demand(country="ZA", limit=10_000).count


def test_a_licensed_or_unknown_panel_is_not_open(client: Client) -> None:
    with pytest.raises(NotOpen, match="licensed"):
        client.scan_panel("fundamentals-factors")
    with pytest.raises(NotOpen, match="macro-momentum"):
        client.scan_panel("no-such-panel")
    with pytest.raises(ValueError, match="engine"):
        client.scan_panel("macro-momentum", engine="excel")  # type: ignore[call-overload]


def test_a_licensed_file_is_fetched_whole(client: Client, tmp_path: Path) -> None:
    listed = next(row for row in client.get_export() if row["access"] == "licensed")
    path = client.get_licensed_file(listed["name"], tmp_path)
    assert path == tmp_path / listed["name"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == listed["sha256"]
    assert pyarrow.parquet.read_table(path).num_rows == listed["row_count"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("httpfs")
def test_a_licensed_file_is_read_by_duckdb_polars_and_pandas(
    client: Client, server: LiveServer, paid_key: str, tmp_path: Path
) -> None:
    listed = next(row for row in client.get_export() if row["name"] == "af-fund-fundamentals.parquet")
    path = client.get_licensed_file(listed["name"], tmp_path)
    rows = listed["row_count"]
    assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchone() == (rows,)
    assert polars.scan_parquet(path).collect().height == rows
    assert len(pandas.read_parquet(path)) == rows
    url = f"{server.url}/v1/export/files/{listed['name']}"
    duckdb.execute(
        f"CREATE OR REPLACE SECRET sankofa (TYPE http, EXTRA_HTTP_HEADERS MAP {{'X-API-Key': '{paid_key}'}})"
    )
    try:
        assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{url}')").fetchone() == (rows,)
    finally:
        duckdb.execute("DROP SECRET sankofa")
    assert len(pandas.read_parquet(url, storage_options={"X-API-Key": paid_key})) == rows


def test_a_file_with_another_digest_is_deleted(scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers = [(200, {"ETag": '"0000"'}, b"PAR1")]
    with Client(None, scripted.url) as client, pytest.raises(InvalidAnswer, match="SHA-256"):
        client.get_open_file("x.parquet", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_download_leaves_no_file(scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers = [(200, {"Content-Length": "100", "ETag": '"0000"'}, b"PAR1")]
    once = Retries(attempts=1)
    with Client(None, scripted.url, retries=once) as client, pytest.raises(ConnectionFailed):
        client.get_open_file("x.parquet", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_name_with_a_path_is_refused(client: Client, tmp_path: Path) -> None:
    for name in ("../x.parquet", "a/b.parquet", "."):
        with pytest.raises(ValueError, match="file"):
            client.get_open_file(name, tmp_path)
