"""Bulk files as tools read them: by their URL, with and without a key, in parts."""

import asyncio
import hashlib
from typing import Any

import duckdb
import httpx
import pytest

from tests.live import LiveServer
from tests.spec.exported_files import OPEN, fetch, one
from tests.spec.exported_files import duck as duck
from tests.spec.exported_files import manifest as manifest


def test_duckdb_reads_an_open_panel_by_its_url(
    duck: duckdb.DuckDBPyConnection, manifest: list[dict[str, Any]]
) -> None:
    row = one(manifest, "procurement-demand")
    found = duck.sql(
        f"SELECT count(*), avg(category_share) FROM '{row['url']}' WHERE country = 'ZA'"
    ).fetchone()
    assert found is not None
    assert 0 < found[0] <= row["row_count"]
    assert 0 < found[1] <= 1


def test_duckdb_reads_a_licensed_file_with_a_key(
    duck: duckdb.DuckDBPyConnection, manifest: list[dict[str, Any]], paid_key: str
) -> None:
    duck.execute(f"CREATE SECRET (TYPE http, EXTRA_HTTP_HEADERS MAP {{'X-API-Key': '{paid_key}'}})")
    row = one(manifest, "af-fund-fundamentals")
    found = duck.sql(f"SELECT count(*) FROM '{row['url']}'").fetchone()
    assert found == (row["row_count"],)


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
    """Some ranges (`bytes=-8`, where a reader of Parquet begins) are preflighted."""
    fields = {"Origin": "https://page.example", "Access-Control-Request-Method": "GET"}
    asked = fields | {"Access-Control-Request-Headers": "range"}
    answer = server.http.options(one(manifest, "procurement-demand")["url"], headers=asked)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, "*")
    assert "GET" in answer.headers["access-control-allow-methods"]
    assert "range" in answer.headers["access-control-allow-headers"].split(", ")
    licensed = server.http.options(one(manifest, "af-fund-fundamentals")["url"], headers=asked)
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
    for asked, start, end in (("0-99", 0, 100), ("-8", size - 8, size), (f"{size - 5}-", size - 5, size)):
        answer = fetch(server, row, None, Range=f"bytes={asked}")
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
    held = fetch(server, row, None, If_None_Match=f'"a", W/{tag}')
    assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", tag)
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
    for asked in (
        ",".join(["0-"] * 16),
        ",".join(["0-"] * 1000),
        ",".join(f"{n}-" for n in range(16)),
        ",".join(f"{n * 2}-{n * 2}" for n in range(1000)),
        ",".join(f"{n * 600}-{n * 600 + 340}" for n in range(16)),
    ):
        answer = fetch(server, row, None, Range=f"bytes={asked}")
        assert answer.status_code in (200, 206)
        assert len(answer.content) <= size


def test_a_reader_that_stalls_costs_no_memory(server: LiveServer, manifest: list[dict[str, Any]]) -> None:
    """Many slow readers at once: everyone else is answered."""
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
