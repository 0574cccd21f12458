"""GET /v1/export: the manifest, and the files it lists, read with the tools of their users."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_httpfs
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sankofa.derive.signals.contract import panels
from tests.live import LiveServer


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


def test_a_file_describes_itself_but_names_no_edition(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    """So the file stays the same in the next edition if its rows do."""
    for row in manifest:
        content = fetch(server, row, None if row["access"] == "open" else paid_key).content
        metadata = pq.read_metadata(pa.BufferReader(content))
        described = {key.decode(): value.decode() for key, value in metadata.metadata.items()}
        assert "edition" not in described
        assert described["license"] == row["license"]
        assert described["attribution"]
        assert described["methodology"]
        assert set(json.loads(described["columns"])) == set(row["columns"])
        group = metadata.row_group(0)
        for number in range(metadata.num_columns):
            column = group.column(number)
            assert column.compression == "ZSTD"
            assert column.is_stats_set or column.path_in_schema == "release"


def test_files_are_sorted_as_declared(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str):
    sorted_files = 0
    for row in manifest:
        content = pa.BufferReader(fetch(server, row, None if row["access"] == "open" else paid_key).content)
        metadata = pq.read_metadata(content)
        order = metadata.row_group(0).sorting_columns
        names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
        if order:
            sorted_files += 1
            keys = [(names[c.column_index], "descending" if c.descending else "ascending") for c in order]
            read = pq.read_table(content, columns=[name for name, _ in keys])
            assert read.sort_by(keys).equals(read), row["name"]
    assert sorted_files >= 6


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


def test_fundamentals_equal_the_api_in_every_vintage(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    rows = table(server, one(manifest, "af-fund-fundamentals"), paid_key).to_pylist()
    for service_id in {row["service_id"] for row in rows}:
        served = json.loads(
            server.get(f"/v1/fundamentals/{service_id}?vintages=all", paid_key).content, parse_float=Decimal
        )["data"]
        ours = [row for row in rows if row["service_id"] == service_id]
        assert [_as_served(row, served[0]) for row in ours] == served


def test_panels_equal_those_of_the_api(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str):
    for key in panels():
        rows = table(server, one(manifest, key), paid_key if key not in OPEN else None).to_pylist()
        path = f"/v1/signals/{key}?limit=10000"
        served = json.loads(server.get(path, paid_key).content, parse_float=Decimal)["observations"]
        if key == "procurement-demand":  # served by country, ZA where none is named
            rows = [row for row in rows if row["country"] == "ZA"]
        assert [_as_served(row, served[0]) for row in rows] == served


def _as_served(row: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """A row of a file in the form of the API."""
    served = {}
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
        served[name] = value
    return served


@pytest.mark.rule("EXP-4")
def test_awards_are_a_bulk_file(server: LiveServer, manifest: list[dict[str, Any]], paid_key: str) -> None:
    awards = table(server, one(manifest, "af-tender-awards"), paid_key).to_pylist()
    releases = table(server, one(manifest, "af-tender-releases"), paid_key).to_pylist()
    keys = {(row["ocid"], row["release_id"], row["release_date"], row["award_id"]) for row in awards}
    assert len(keys) == sum(row["award_count"] for row in releases) > 0
    assert any(row["supplier_service_id"] for row in awards)


def test_duckdb_reads_an_open_panel_by_its_url(
    duck: duckdb.DuckDBPyConnection, manifest: list[dict[str, Any]]
) -> None:
    row = one(manifest, "procurement-demand")
    result = duck.sql(
        f"SELECT count(*), avg(category_share) FROM '{row['url']}' WHERE country = 'ZA'"
    ).fetchone()
    assert result is not None
    assert 0 < result[0] <= row["row_count"]
    assert 0 < result[1] <= 1


def test_duckdb_reads_a_licensed_file_with_a_key(
    duck: duckdb.DuckDBPyConnection, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    duck.execute(f"CREATE SECRET (TYPE http, EXTRA_HTTP_HEADERS MAP {{'X-API-Key': '{paid_key}'}})")
    row = one(manifest, "af-fund-fundamentals")
    result = duck.sql(f"SELECT count(*) FROM '{row['url']}'").fetchone()
    assert result == (row["row_count"],)


@pytest.mark.rule("EXP-2")
def test_an_open_file_needs_no_key_and_may_be_read_by_any_page(
    server: LiveServer, manifest: list[dict[str, Any]]
) -> None:
    for key in OPEN:
        row = one(manifest, key)
        answer = fetch(server, row, None)
        assert answer.status_code == 200
        assert answer.headers["accept-ranges"] == "bytes"
        assert answer.headers["cache-control"] == "public, no-cache"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["x-service-api-version"] == "1.0.0"
        head = server.http.head(row["url"])
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(row["size_bytes"])
        assert server.http.post(row["url"]).status_code == 405


def test_a_browser_may_ask_for_parts_of_an_open_file(server: LiveServer, manifest: list[dict[str, Any]]):
    """Some ranges (`bytes=-8`, which a Parquet reader asks for first) need a preflight."""
    fields = {"Origin": "https://page.example", "Access-Control-Request-Method": "GET"}
    preflight = fields | {"Access-Control-Request-Headers": "range"}
    answer = server.http.options(one(manifest, "procurement-demand")["url"], headers=preflight)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, "*")
    assert "GET" in answer.headers["access-control-allow-methods"]
    assert "range" in answer.headers["access-control-allow-headers"].split(", ")
    licensed = server.http.options(one(manifest, "af-fund-fundamentals")["url"], headers=preflight)
    assert "access-control-allow-origin" not in licensed.headers


@pytest.mark.rule("EXP-2")
def test_a_licensed_file_needs_a_key_of_its_tier(
    server: LiveServer, manifest: list[dict[str, Any]], sample_key: str, paid_key: str
) -> None:
    row = one(manifest, "af-fund-fundamentals")
    assert fetch(server, row, None).status_code == 401
    assert fetch(server, row, "wrong").status_code == 401
    refused = fetch(server, row, sample_key)
    assert refused.status_code == 402
    assert refused.headers["x-upgrade-url"] == refused.json()["upgrade"]["checkout_url"]
    served = fetch(server, row, paid_key)
    assert served.status_code == 200
    assert served.headers["cache-control"] == "private, no-cache"
    assert served.headers["vary"] == "X-API-Key, Accept, Accept-Encoding"
    assert "ratelimit" in served.headers
    assert server.http.get(row["url"].replace("/v1/export/files/", "/open/")).status_code == 404


def test_an_unknown_file_is_404_and_an_unknown_parameter_400(
    server: LiveServer, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    assert server.http.get("/open/none.parquet").status_code == 404
    assert server.http.get("/open/").status_code == 404
    assert server.http.get("/open/..%2f..%2fmanifest.json").status_code == 404
    assert server.get("/v1/export/files/none.parquet", paid_key).status_code == 404
    url = one(manifest, "macro-momentum")["url"]
    assert server.http.get(url, params={"x": "1"}).json()["parameter"] == "x"
    assert server.http.get(url, params={"edition": "none"}).status_code == 404
    assert server.http.get(url, headers={"X-Edition": "none"}).status_code == 404
    assert server.http.get(url, params={"edition": "?"}).json()["parameter"] == "edition"
    assert server.get("/v1/export?limit=1", paid_key).status_code == 400
    assert server.http.get("/v1/export").status_code == 401


@pytest.mark.rule("EXP-6")
def test_a_file_of_a_named_edition_never_changes(
    server: LiveServer, manifest: list[dict[str, Any]], sample_key: str
) -> None:
    edition = server.get("/v1/export", sample_key).json()["edition"]
    row = one(manifest, "macro-momentum")
    answer = server.http.get(row["url"], params={"edition": edition})
    assert hashlib.sha256(answer.content).hexdigest() == row["sha256"]
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.rule("EXP-2")
def test_ranges_and_conditions(server: LiveServer, manifest: list[dict[str, Any]]) -> None:
    row = one(manifest, "procurement-demand")
    whole = fetch(server, row, None).content
    size, tag = len(whole), f'"{row["sha256"]}"'
    for span, start, end in (("0-99", 0, 100), ("-8", size - 8, size), (f"{size - 5}-", size - 5, size)):
        answer = fetch(server, row, None, Range=f"bytes={span}")
        assert answer.status_code == 206
        assert answer.content == whole[start:end]
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    assert fetch(server, row, None, Range="bytes=0-99", If_Range=tag).status_code == 206
    for other in ('"other"', f"W/{tag}", "Sun, 06 Nov 1994 08:49:37 GMT"):
        answer = fetch(server, row, None, Range="bytes=0-99", If_Range=other)
        assert (answer.status_code, answer.content) == (200, whole)
    refused = fetch(server, row, None, Range=f"bytes={size}-")
    assert refused.status_code == 416
    assert refused.headers["content-range"] == f"bytes */{size}"
    assert refused.headers["content-type"] == "application/problem+json"
    assert fetch(server, row, None, Range="bytes=9-1").content == whole
    unchanged = fetch(server, row, None, If_None_Match=f'"a", W/{tag}')
    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
    assert fetch(server, row, None, If_None_Match=tag, Range="bytes=0-1").status_code == 304
    assert fetch(server, row, None, If_Match='"other"').status_code == 412
    assert fetch(server, row, None, If_Match=tag).status_code == 200
    head = server.http.head(row["url"], headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.headers["content-length"]) == (200, str(size))


def test_several_ranges_are_answered_with_the_whole_file(server: LiveServer, manifest: list[dict[str, Any]]):
    row = one(manifest, "procurement-demand")
    answer = fetch(server, row, None, Range="bytes=0-9,4000-4099,-10")
    assert (answer.status_code, len(answer.content)) == (200, row["size_bytes"])


def test_many_or_overlapping_ranges_cannot_amplify(server: LiveServer, manifest: list[dict[str, Any]]):
    row = one(manifest, "procurement-demand")
    size = row["size_bytes"]
    for ranges in (
        ",".join(["0-"] * 16),
        ",".join(["0-"] * 1000),
        ",".join(f"{n}-" for n in range(16)),
        ",".join(f"{n * 2}-{n * 2}" for n in range(1000)),
        ",".join(f"{n * 600}-{n * 600 + 340}" for n in range(16)),
    ):
        answer = fetch(server, row, None, Range=f"bytes={ranges}")
        assert answer.status_code in (200, 206)
        assert len(answer.content) <= size


def test_a_reader_that_stalls_costs_no_memory(server: LiveServer, manifest: list[dict[str, Any]]) -> None:
    """With many slow readers at once, everyone else gets an answer."""
    row = one(manifest, "macro-momentum")

    async def stall() -> None:
        host, port = "127.0.0.1", server.port
        streams = [await asyncio.open_connection(host, port) for _ in range(50)]
        for _, writer in streams:
            writer.write(f"GET /open/{row['name']} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await asyncio.sleep(0.2)
        async with httpx.AsyncClient() as client:
            assert (await client.get(row["url"])).status_code == 200
        for _, writer in streams:
            writer.close()

    asyncio.run(stall())


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
    """GET the URL as a client would."""
    keys = {"X-API-Key": key} if key else {}
    return server.http.get(
        row["url"], headers={**keys, **{k.replace("_", "-"): v for k, v in headers.items()}}
    )


def table(server: LiveServer, row: dict[str, Any], key: str | None) -> pa.Table:
    return pq.read_table(pa.BufferReader(fetch(server, row, key).content))
