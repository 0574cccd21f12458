"""/delta-sharing/: `delta-sharing`, unmodified, reads every table in bulk, with editions as versions."""

import io
import json
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow.parquet as pq
import pytest

from tests.foreign import foreign
from tests.live import Copies, LiveServer, succeed
from tests.patience import until

pytestmark = pytest.mark.slow
TABLE = "shares/sankofa/schemas/af-macro/tables/af-macro-series"
CLIENT = """
import delta_sharing
profile = inputs["profile"]
client = delta_sharing.SharingClient(profile)
tables = [(t.share, t.schema, t.name) for t in client.list_all_tables()]
output["tables"] = tables
def rows(table, **question):
    frame = delta_sharing.load_as_pandas(f"{profile}#{'.'.join(table)}", **question)
    return [len(frame), sorted(frame.columns)]
output["whole"] = {t[2]: rows(t) for t in tables if t[2] in inputs["loaded"]}
output["answers"] = [rows(("sankofa", "af-macro", "af-macro-series"), **one) for one in inputs["questions"]]
output["version"] = delta_sharing.get_table_version(f"{profile}#sankofa.af-macro.af-macro-series")
"""


def profile(folder: Path, url: str, key: str) -> str:
    path = folder / "profile.share"
    content = {"shareCredentialsVersion": 1, "endpoint": f"{url}/delta-sharing", "bearerToken": key}
    path.write_text(json.dumps(content))
    return str(path)


def query(server: LiveServer, key: str, at: str = "", **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return server.http.post(f"{at}/delta-sharing/{TABLE}/query", json=body, headers=headers)


def file_of(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    *_, last = answer.text.splitlines()
    file: dict[str, Any] = json.loads(last)["file"]
    return file


@pytest.fixture(scope="module")
def grown(copy_small: Copies, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with two editions, its paid key, their ids and row counts, and an instant between them."""
    home = copy_small()
    with LiveServer(home) as server:
        key = server.key("professional")
        first = server.get("/v1/export", key).json()
        between = datetime.now(UTC)
        until(lambda: datetime.now(UTC) > between + timedelta(seconds=1.1))
        more = tmp_path_factory.mktemp("more") / "more.csv"
        more.write_text(
            "series,series_type,frequency,country,date,value,unit,release_date\n"
            "NEW.ZA,cpi,monthly,ZA,2024-01-31,1.5,index,2024-02-20\n"
        )
        succeed(home, "ingest", "sample-series", more)
        succeed(home, "publish")
        until(lambda: server.get("/v1/export", key).json()["edition"] != first["edition"])
        second = server.get("/v1/export", key).json()
        counts = [
            next(row["row_count"] for row in one["data"] if row["name"] == "af-macro-series.parquet")
            for one in (first, second)
        ]
        yield server, key, counts, between


@pytest.mark.rule("DIA-5")
def test_delta_sharing_loads_every_version(grown: Any, tmp_path: Path) -> None:
    server, key, counts, between = grown
    output = foreign(
        CLIENT,
        profile=profile(tmp_path, server.url, key),
        loaded=["af-fund-entities", "af-fund-fundamentals", "af-tender-releases", "procurement-demand"],
        questions=[{}, {"version": 0}, {"version": 1}, {"timestamp": between.isoformat()}, {"limit": 5}],
    )
    files = {row["name"]: row for row in server.get("/v1/export", key).json()["data"]}
    assert {f"{name}.parquet" for _, _, name in output["tables"]} == set(files)
    for name, (count, columns) in output["whole"].items():
        assert count == files[f"{name}.parquet"]["row_count"]
        assert columns == sorted(files[f"{name}.parquet"]["columns"])
    assert counts[1] == counts[0] + 1
    assert [count for count, _ in output["answers"]] == [counts[1], counts[0], counts[1], counts[0], 5]
    assert output["version"] == 1


@pytest.mark.ci
@pytest.mark.rule("DIA-5", "LOCK-2")
def test_a_locked_view_has_one_version_with_the_rows_of_its_day(grown: Any, tmp_path: Path) -> None:
    server, key, _, _ = grown
    day = "2023-06-30"
    output = foreign(
        CLIENT,
        profile=profile(tmp_path, f"{server.url}/at/{day}", key),
        loaded=["af-fund-fundamentals"],
        questions=[{}, {"version": 0}],
    )
    assert output["version"] == 0
    assert len(output["tables"]) == 3
    file = file_of(query(server, key, f"/at/{day}"))
    rows = pq.read_table(io.BytesIO(server.http.get(file["url"]).content)).to_pylist()
    assert [count for count, _ in output["answers"]] == [len(rows)] * 2
    assert rows
    assert all(str(row["available_at"]) <= day and row["observed_at"] is None for row in rows)
    assert all(row["superseded_at"] is None or str(row["superseded_at"]) <= day for row in rows)
    latest = {(r["series"], str(r["date"])): r["value"] for r in rows if r["superseded_at"] is None}
    served = server.get(f"/at/{day}/v1/macro?series=CPI.ZA&as_of={day}&limit=10000", key).json()["data"]
    assert served
    for row in served:
        assert float(latest[row["series"], row["date"]]) == row["value"]
        assert "@" not in row["source_ref"]
    figures = output["whole"]["af-fund-fundamentals"][0]
    issuers = server.get(f"/at/{day}/v1/issuers?limit=10000", key).json()["data"]
    paths = [f"/at/{day}/v1/fundamentals/{one['service_id']}?vintages=all" for one in issuers]
    assert figures == sum(server.get(path, key).json()["count"] for path in paths)
    refused = query(server, key, f"/at/{day}", version=1)
    assert refused.status_code == 400
    locked = server.key("professional", "--as-of-max", day)
    own = file_of(query(server, locked))
    assert server.http.get(own["url"]).content == server.http.get(file["url"]).content


@pytest.mark.rule("DIA-5")
def test_addresses_of_files_are_signed_for_one_file_and_take_ranges(grown: Any) -> None:
    server, key, _, _ = grown
    url = file_of(query(server, key))["url"]
    head = server.http.head(url)
    assert (head.status_code, head.headers["accept-ranges"]) == (200, "bytes")
    part = server.http.get(url, headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"PAR1")
    other = url.replace("af-macro-series", "af-fund-entities")
    assert server.http.get(other).status_code == 401
    assert server.http.get(url[:-2] + ("A" if url[-2] != "A" else "B") + url[-1]).status_code == 401
    assert server.http.get(url.partition("?")[0]).status_code == 401
    edition = url.partition("edition=")[2].partition("&")[0]
    assert server.http.get(url.replace(f"edition={edition}&", "")).status_code == 401
    leaver = server.key("professional")
    url = file_of(query(server, leaver))["url"]
    assert server.http.head(url).status_code == 200
    succeed(server.home, "keys", "revoke", leaver)
    assert server.http.head(url).status_code == 401


CHANGES = """
import delta_sharing
import pandas as pd
pages = {table: f"{inputs['profile']}#sankofa.{table}" for table in inputs["tables"]}
def changes(table, **bounds):
    frame = delta_sharing.load_table_changes_as_pandas(pages[table], **bounds)
    return [frame] + [frame[frame["_commit_version"] == n] for n in (0, 1)]
def rows(frame):  # the set of rows: a table has none twice
    shown = frame.drop(columns=[name for name in frame if name.startswith("_")]).astype(str)
    assert not shown.duplicated().any()
    return set(shown.itertuples(index=False, name=None))
output["counts"], output["net"] = {}, {}
for table in pages:
    whole, first, second = changes(table, starting_version=0)
    held = set()
    for version, part in enumerate((first, second)):
        gone, came = (rows(part[part["_change_type"] == kind]) for kind in ("delete", "insert"))
        assert gone <= held
        before, held = held, held - gone | came
        assert held == rows(delta_sharing.load_as_pandas(pages[table], version=version)), table
    output["counts"][table] = [len(first), len(second)]
    output["net"][table] = [len(held - before), len(before - held)]
    assert len(changes(table, starting_version=1)[0]) == len(second)
    assert len(changes(table, starting_version=0, ending_version=0)[0]) == len(first)
    assert len(changes(table, starting_timestamp=inputs["between"])[0]) == len(second)
    bounds = {"starting_version": 0, "ending_timestamp": inputs["between"]}
    assert len(changes(table, **bounds)[0]) == len(first)
"""


def since(day: str) -> str:
    return f"startingTimestamp={day}T00:00:00Z"


@pytest.mark.ci
@pytest.mark.rule("DIA-5")
def test_the_change_feed_leads_from_version_to_version(grown: Any, tmp_path: Path) -> None:
    server, key, counts, between = grown
    series, entities = "af-macro.af-macro-series", "af-fund.af-fund-entities"
    own = profile(tmp_path, server.url, key)
    inputs = {"profile": own, "tables": [series, entities], "between": between.isoformat()}
    output = foreign(CHANGES, **inputs)
    assert output["net"] == {series: [1, 0], entities: [0, 0]}
    # one publication replaced the file of the series, and not the one of the entities
    assert output["counts"][series] == [counts[0], counts[0] + counts[1]]
    assert output["counts"][entities][1] == 0
    path = f"/delta-sharing/{TABLE}"
    feed = server.get(f"{path}/changes?startingVersion=0", key).text.splitlines()
    assert [next(iter(json.loads(line))) for line in feed[2:]] == ["add", "remove", "add"]
    # as Spark asks for a stream
    streamed = query(server, key, startingVersion=1).text.splitlines()
    assert [next(iter(json.loads(line))) for line in streamed[2:]] == ["remove", "add"]
    day = "2023-06-30"
    locked = server.get(f"/at/{day}{path}/changes?startingVersion=0", key).text.splitlines()
    (added,) = [json.loads(line)["add"] for line in locked[2:]]
    assert (added["version"], added["id"]) == (0, file_of(query(server, key, f"/at/{day}"))["id"])
    assert server.get(f"/at/{day}{path}/changes?startingVersion=1", key).status_code == 400


@pytest.mark.ci
@pytest.mark.rule("DIA-5", "ING-10")
def test_the_change_feed_ends_where_an_edition_was_withdrawn(grown: Any, tmp_path: Path) -> None:
    before, key, _, _ = grown
    home = Path(shutil.copytree(before.home, tmp_path / "home"))
    succeed(home, "withdraw", "sample-series", "--file", "more.csv", "--everywhere", "--reason", "wrong")
    succeed(home, "publish")
    with LiveServer(home) as server:
        path = f"/delta-sharing/{TABLE}"
        assert server.get(f"{path}/version", key).headers["delta-table-version"] == "2"
        for bounds in ("startingVersion=1", "startingVersion=2"):  # both need the rows of version 1
            answer = server.get(f"{path}/changes?{bounds}", key)
            assert (answer.status_code, answer.json()["errorCode"]) == (410, "GONE"), answer.text
        assert "NEW.ZA" not in {
            row["series"]
            for row in pq.read_table(
                io.BytesIO(server.http.get(file_of(query(server, key))["url"]).content)
            ).to_pylist()
        }


@pytest.mark.rule("DIA-5", "KEY-6")
def test_refusals_follow_the_delta_sharing_protocol(grown: Any) -> None:
    server, key, _, _ = grown
    sample = server.key("sample")
    for answer, status in (
        (query(server, sample), 402),
        (query(server, "sk_nobody"), 401),
        (query(server, key, version="first"), 400),
        (query(server, key, version=True), 400),
        (query(server, key, version=99), 400),
        (query(server, key, timestamp="1999-01-01T00:00:00Z"), 400),
        (query(server, key, timestamp="x"), 400),
        (server.get(f"/delta-sharing/{TABLE}/version?startingTimestamp=2999-01-01T00:00:00Z", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?startingVersion=x", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?startingVersion=2", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?startingVersion=1&endingVersion=0", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?startingVersion=0&{since('2020-01-01')}", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?{since('2999-01-01')}", key), 400),
        (server.get(f"/delta-sharing/{TABLE}/changes?startingVersion=0", sample), 402),
        (server.get("/delta-sharing/shares/other/schemas", key), 404),
        (server.get(f"/delta-sharing/{TABLE}/query", key), 405),
    ):
        assert answer.status_code == status, answer.text
        assert {"errorCode", "message"} == set(answer.json())
    version = server.get(f"/delta-sharing/{TABLE}/version?startingTimestamp=2020-01-01T00:00:00Z", key)
    assert (version.status_code, version.headers["delta-table-version"]) == (200, "0")


@pytest.mark.deep
@pytest.mark.limit("time for the body of a request to a dialect", "body of a request to a dialect")
def test_a_missing_body_times_out(grown: Any) -> None:
    server, key, _, _ = grown
    large = server.http.post(
        f"/delta-sharing/{TABLE}/query", content=b" " * (1 << 17), headers={"X-API-Key": key}
    )
    assert large.status_code == 413
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as one:
        head = f"POST /delta-sharing/{TABLE}/query HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n"
        one.sendall(f"{head}Content-Length: 20\r\n\r\n{{".encode())
        assert b" 408 " in one.recv(4096)
