"""GET /v1/export: the manifest, and the files it lists, read as their users read them."""

import hashlib
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sankofa.derive.signals.contract import panels
from tests.live import LiveServer
from tests.spec.exported_files import FIELDS, OPEN, fetch, one, table
from tests.spec.exported_files import manifest as manifest


@pytest.mark.rule("EXP-1", "EXP-3")
def test_the_manifest_has_its_fields_and_the_licence_of_each_file(manifest: list[dict[str, Any]]) -> None:
    for row in manifest:
        assert set(row) == FIELDS
        assert row["media_type"] == "application/vnd.apache.parquet"
        assert (row["access"] == "open") == (row["min_tier"] is None)
        assert row["license"] == ("CC-BY-4.0" if row["access"] == "open" else "LicenseRef-Sankofa-Bulk")
    assert {row["sku"] for row in manifest if row["access"] == "licensed"} >= {
        "AF-FUND",
        "AF-TENDER",
        "AF-MACRO",
    }


@pytest.mark.rule("SIG-3")
def test_every_panel_is_listed_under_its_key(manifest: list[dict[str, Any]]) -> None:
    listed = {row["signal_key"]: row["access"] for row in manifest if row["signal_key"]}
    assert listed == {key: panel.access for key, panel in panels().items()}
    assert {key for key, access in listed.items() if access == "open"} == OPEN


@pytest.mark.rule("EXP-1")
def test_sizes_digests_rows_and_columns_are_true(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    for row in manifest:
        answer = fetch(server, row, None if row["access"] == "open" else paid_key)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == row["media_type"]
        assert len(answer.content) == row["size_bytes"]
        assert hashlib.sha256(answer.content).hexdigest() == row["sha256"]
        assert answer.headers["etag"] == f'"{row["sha256"]}"'
        read = pq.read_table(pa.BufferReader(answer.content))
        assert (read.num_rows, read.column_names) == (row["row_count"], row["columns"])
        assert read.num_rows > 0, row["name"]


def test_a_file_says_what_it_is_but_not_of_which_edition(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    """So that it is the same file in the next edition where its rows are the same."""
    for row in manifest:
        content = fetch(server, row, None if row["access"] == "open" else paid_key).content
        metadata = pq.read_metadata(pa.BufferReader(content))
        told = {key.decode(): value.decode() for key, value in metadata.metadata.items()}
        assert "edition" not in told
        assert told["license"] == row["license"]
        assert told["attribution"]
        assert told["methodology"]
        assert set(json.loads(told["columns"])) == set(row["columns"])
        group = metadata.row_group(0)
        for number in range(metadata.num_columns):
            column = group.column(number)
            assert column.compression == "ZSTD"
            assert column.is_stats_set or column.path_in_schema == "release"


def test_files_are_sorted_as_they_say(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str):
    seen = 0
    for row in manifest:
        content = pa.BufferReader(fetch(server, row, None if row["access"] == "open" else paid_key).content)
        metadata = pq.read_metadata(content)
        order = metadata.row_group(0).sorting_columns
        names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
        if order:
            seen += 1
            keys = [(names[c.column_index], "descending" if c.descending else "ascending") for c in order]
            read = pq.read_table(content, columns=[name for name, _ in keys])
            assert read.sort_by(keys).equals(read), row["name"]
    assert seen >= 6


@pytest.mark.rule("EXP-5")
def test_columns_are_typed(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str) -> None:
    schema = table(server, one(manifest, "af-fund-fundamentals"), paid_key).schema
    assert schema.field("period_end").type == pa.date32()
    assert schema.field("observed_at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("value_reported").type == pa.string()
    assert schema.field("value_reported_float").type == pa.float64()
    assert schema.field("restated").type == pa.bool_()
    releases = table(server, one(manifest, "af-tender-releases"), paid_key)
    assert releases.schema.field("release_date").type == pa.timestamp("us", tz="UTC")
    assert json.loads(releases.column("release")[0].as_py())["ocid"] == releases.column("ocid")[0].as_py()


def test_fundamentals_are_those_of_the_api_every_vintage(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    rows = table(server, one(manifest, "af-fund-fundamentals"), paid_key).to_pylist()
    for service_id in {row["service_id"] for row in rows}:
        served = json.loads(
            server.get(f"/v1/fundamentals/{service_id}?vintages=all", paid_key).content, parse_float=Decimal
        )["data"]
        ours = [row for row in rows if row["service_id"] == service_id]
        assert [_as_served(row, served[0]) for row in ours] == served


def test_panels_are_those_of_the_api(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str):
    for key in panels():
        rows = table(server, one(manifest, key), paid_key if key not in OPEN else None).to_pylist()
        path = f"/v1/signals/{key}?limit=10000"
        served = json.loads(server.get(path, paid_key).content, parse_float=Decimal)["observations"]
        if key == "procurement-demand":  # served by country, ZA where none is named
            rows = [row for row in rows if row["country"] == "ZA"]
        assert [_as_served(row, served[0]) for row in rows] == served


def _as_served(row: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """A row of a file in the words of the API."""
    found = {}
    for name in like:
        value = row[name]
        if isinstance(value, float):
            value = Decimal(repr(value))
        elif f"{name}_float" in row and value is not None:
            value = Decimal(value)
        elif name == "observed_at":
            value = value.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif hasattr(value, "isoformat"):
            value = value.isoformat()
        found[name] = value
    return found


@pytest.mark.rule("EXP-4")
def test_awards_are_in_bulk(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str) -> None:
    awards = table(server, one(manifest, "af-tender-awards"), paid_key).to_pylist()
    releases = table(server, one(manifest, "af-tender-releases"), paid_key).to_pylist()
    told = {(row["ocid"], row["release_id"], row["release_date"], row["award_id"]) for row in awards}
    assert len(told) == sum(row["award_count"] for row in releases) > 0
    assert any(row["supplier_service_id"] for row in awards)
