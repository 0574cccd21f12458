"""Hostile text, from the ingested file to every surface, and archives with paths that lead outside."""

import csv
import io
import json
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from tests.live import LiveServer, run
from tests.spec.market import Desk, PaidCaller, package, party, release
from tests.torture import Trial

FIRM = "Zqtext Holdings Limited"
MARK = "zqmark"
TEXTS = (
    f"<script>alert('{MARK}')</script>",
    f'"><img src=x onerror=alert("{MARK}")>',
    f"</title><svg/onload={MARK}>",
    f"=cmd|' /C calc'!A0 {MARK}",
    f"+1+1 {MARK}",
    f"@SUM(1,1) {MARK}",
    f"-2+3 {MARK}",
    f'"quoted", with, commas {MARK}',
    f"two\r\nlines {MARK}",
    f"NUL \x00 and bell \x07 {MARK}",
    f"escape \x1b[31m red {MARK}",
    f"\u202egnippils {MARK}",
    f"isolate \u2066{MARK}\u2069",
    f"zero\u200bwidth\u200d{MARK}",
    f"\ufeffmark {MARK}",
    f"line\u2028separator {MARK}",
    f"half \ud83d of a pair {MARK}",
    f"{{{{7*7}}}} ${{7*7}} {MARK}",
    f"../../etc/passwd {MARK}",
    f"%0d%0aSet-Cookie: a=b {MARK}",
    f"' OR 1=1 -- {MARK}",
    f"{MARK} " + "long " * 180_000,
)


def hostile_release(number: int, text: str) -> dict[str, Any]:
    items = [{"id": "1", "description": text}]
    return release(
        f"text-{number}",
        buyer={"id": "b", "name": FIRM},
        parties=[party("b", FIRM, "buyer", address={"streetAddress": text})],
        tender={"id": "1", "title": text, "description": text, "items": items},
    )


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidCaller]:
    desk = Desk(tmp_path_factory.mktemp("texts"))
    content = package(*(hostile_release(number, text) for number, text in enumerate(TEXTS)))
    desk.ingest("portal-za", "texts.json", content)
    with desk.publish_and_serve() as caller:
        yield caller


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


def by_tool(caller: PaidCaller) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        failed, body = caller.tool("search_tenders", country="ZA", detail="full", **cursor)
        assert not failed, body
        rows += body["data"]
        if body["next_cursor"] is None:
            return rows
        cursor = {"cursor": body["next_cursor"]}


@pytest.mark.deep
def test_hostile_text_is_data_on_every_surface(caller: PaidCaller, trial: Trial) -> None:
    path = "/v1/tenders?limit=10000"
    plain = caller.server.get(path, caller.key)
    rows = plain.json()["data"]
    assert len(rows) >= len(TEXTS) - 1  # # an unpaired surrogate
    served = [text for text in texts_in(rows) if MARK in text]
    assert len(served) >= 3 * len(rows)
    for text in served:
        assert not [c for c in text if unicodedata.category(c) == "Cs"], text[:80]
        trial.saw("texts served as data")
    assert plain.headers["content-type"] == "application/json"
    csv.field_size_limit(100_000_000)
    in_csv = caller.server.get(path, caller.key, accept="text/csv")
    lines = list(csv.DictReader(io.StringIO(in_csv.text, newline=""), strict=True))
    in_arrow = caller.server.get(path, caller.key, accept="application/vnd.apache.arrow.stream")
    table = pyarrow.ipc.open_stream(in_arrow.content).read_all().to_pylist()
    for row, line, typed in zip(rows, lines, table, strict=True):
        for name, value in row.items():
            if isinstance(value, str):
                assert line[name] == typed[name] == value
            elif isinstance(value, dict | list):
                assert json.loads(line[name]) == json.loads(typed[name]) == value
    for row, own in zip(rows, by_tool(caller), strict=True):
        fits = own.get("release") is not None  # a row that is too large for a tool's answer is left out
        assert {name: row[name] for name in own if fits or name != "release"} == {
            name: value for name, value in own.items() if fits or name != "release"
        }
    for answer in (plain, in_csv, in_arrow):
        assert "set-cookie" not in answer.headers
        assert MARK not in str(answer.headers)


def test_hostile_text_reaches_no_page_and_no_line_of_the_log(caller: PaidCaller) -> None:
    server: LiveServer = caller.server
    for path in ("/", "/problems/not-found", "/openapi.json", "/v1/status", f"/v1/{TEXTS[0]}"):
        assert MARK not in server.get(path.replace(MARK, "x")).text
    assert MARK not in server.log
    page = server.get("/")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    "name", ["../../outside.json", "/zq/outside.json", "..\\..\\outside.json", "a/../../outside.json"]
)
def test_no_archive_member_is_written_to_disk(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path / "inner" / "desk")
    before = set(tmp_path.rglob("*"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, json.dumps(package(hostile_release(1, "x"))))
    done = run(desk.home, "ingest", "portal-za", desk.write("archive.zip", content.getvalue()))
    assert "Traceback" not in done.stderr
    new = set(tmp_path.rglob("*")) - before
    assert [path for path in new if "outside" in path.name] == []
    assert not Path("/zq").exists()
    assert all(path.is_relative_to(desk.folder) for path in new)
