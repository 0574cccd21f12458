"""The list of bulk files of the sample world, and how one is fetched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.live import LiveServer

FIELDS = {
    *("name", "sku", "signal_key", "access", "license", "url", "media_type", "size_bytes", "sha256"),
    *("row_count", "columns", "min_tier", "updated_at", "source_ref", "license_class", "observed_at"),
}
OPEN = {
    *("procurement-demand", "tender-award-concentration", "public-buyer-concentration", "red-flags"),
    "macro-momentum",
}


@pytest.fixture(scope="module")
def manifest(server: LiveServer, sample_key: str) -> list[dict[str, Any]]:
    body = server.body("/v1/export", sample_key)
    assert body["truncated"] is False
    return list(body["data"])


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    package = Path(str(duckdb_extension_httpfs.__file__)).parent
    (extension,) = package.glob("extensions/*/httpfs.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    yield connection
    connection.close()


def one(manifest: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in manifest if row["name"] == f"{name}.parquet")


def fetch(server: LiveServer, row: dict[str, Any], key: str | None, **headers: str) -> httpx.Response:
    """As a client would, by the URL."""
    keys = {"X-API-Key": key} if key else {}
    return server.http.get(
        row["url"], headers={**keys, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


def table(server: LiveServer, row: dict[str, Any], key: str | None) -> pa.Table:
    return pq.read_table(pa.BufferReader(fetch(server, row, key).content))
