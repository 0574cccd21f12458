"""Each limit of docs/reference/limits.md: the bound is accepted, and one more gets the documented answer."""

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sankofa.mcp.surface import _FREE_BYTES, LARGEST_BODY
from sankofa.operations.service import LARGEST_HEADERS, LONGEST_PATH, LONGEST_QUERY
from sankofa.web.responses import _LARGEST_FORM
from tests import publisher as faults
from tests.live import Copies, LiveServer, run
from tests.patience import in_one_minute
from tests.publisher import Publisher
from tests.spec.mcp_messages import OLD, SANDBOX, message
from tests.spec.test_collect import Home, table
from tests.spec.test_ingest_limits import HEADER, ROW, rejects
from tests.wire import exchange, request, statuses

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
BY_ONE = (0, 1)


@pytest.fixture(scope="module")
def strict(copy_sample: Copies) -> Iterator[LiveServer]:
    """Two requests a minute for every tier, and at most three rows."""
    quotas: dict[str, Any] = {f"per_minute_{tier}": "2" for tier in ("sample", "starter", "professional")}
    with LiveServer(copy_sample(), rows_paid="3", rows_sample="2", rows_default="2", **quotas) as live:
        yield live


@pytest.mark.ci
@pytest.mark.rule("LIM-1")
@pytest.mark.limit("query of an address", "path of an address")
def test_an_address_has_a_maximum_length(server: LiveServer, paid_key: str) -> None:
    for more, refused in zip(BY_ONE, (False, True), strict=True):
        for address in (
            f"{ENTITY}?{'a' * (LONGEST_QUERY + more)}",
            f"/docs?q={'a' * (LONGEST_QUERY - 2 + more)}",
            f"/v1/entities/{'A' * (LONGEST_PATH - len('/v1/entities/') + more)}",
        ):
            assert (server.get(address, paid_key).status_code == 414) is refused, address[:30]


@pytest.mark.limit("header fields of a request")
def test_header_fields_have_a_maximum_size(server: LiveServer) -> None:
    others = sum(len(field) + 2 for field in ("Host: x", "Connection: close", "A: "))
    for more, status in zip(BY_ONE, (200, 431), strict=True):
        padding = "a" * (LARGEST_HEADERS - others + more)
        answer = exchange(server.port, request("/health", "Host: x", f"A: {padding}"))
        assert statuses(answer) == [status]


def _padded(body: dict[str, Any], size: int) -> bytes:
    """A message of exactly this many bytes."""
    empty = len(json.dumps({**body, "padding": ""}))
    return json.dumps({**body, "padding": "x" * (size - empty)}).encode()


def _status(server: LiveServer, body: bytes, key: str = SANDBOX) -> int:
    headers = {"X-API-Key": key, "Content-Type": "application/json", "Accept": "application/json"}
    headers["MCP-Protocol-Version"] = OLD
    return server.http.post("/mcp", content=body, headers=headers).status_code


@pytest.mark.limit("MCP message")
def test_an_mcp_message_has_a_maximum_size(server: LiveServer, paid_key: str) -> None:
    call = message("tools/call", OLD, name="get_entity", arguments={"service_id": "x" * 65_536})
    assert _status(server, _padded(call, LARGEST_BODY), paid_key) == 200, "a tool error that names it"
    assert _status(server, _padded(call, LARGEST_BODY + 1), paid_key) == 413


@pytest.mark.limit("uncounted MCP message")
def test_an_uncounted_message_has_a_maximum_size(server: LiveServer) -> None:
    key = server.key("starter", "--per-month", "2")
    for _ in range(3):
        assert _status(server, _padded(message("ping", OLD), _FREE_BYTES), key) == 200
    assert server.get(ENTITY, key).status_code == 200
    assert _status(server, _padded(message("ping", OLD), _FREE_BYTES + 1), key) == 200
    assert server.get(ENTITY, key).status_code == 429


@pytest.mark.limit("form of a page", "fields of a form")
def test_a_form_has_a_maximum_size(server: LiveServer) -> None:
    for more, refused in zip(BY_ONE, (False, True), strict=True):
        form = b"action=forget&key=" + b"a" * (_LARGEST_FORM - len(b"action=forget&key=") + more)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = server.http.post("/key", content=form, headers=headers)
        assert (answer.status_code == 413) is refused, answer.text
        fields = "&".join(f"f{n}=1" for n in range(64 + more))
        assert ("more than 64 fields" in server.get(f"/docs?{fields}").text) is refused


@pytest.mark.limit("words of a search")
def test_a_search_has_at_most_twelve_words(server: LiveServer, paid_key: str) -> None:
    beginnings = [word[:length] for word in ("inflation", "consumer") for length in range(3, 9)]
    for at, has_rows in ((11, False), (12, True)):
        words = quote(" ".join([*beginnings[:at], "zqxzqx"]))
        answer = server.get(f"/v1/series?q={words}", paid_key)
        assert answer.status_code == 200
        assert bool(answer.json()["data"]) is has_rows


@pytest.mark.limit("SANKOFA_ROWS_SAMPLE", "SANKOFA_ROWS_PAID")
@in_one_minute
def test_an_answer_has_a_maximum_number_of_rows(strict: LiveServer) -> None:
    sample, paid = strict.key("sample"), strict.key("starter")
    path = "/v1/issuers?limit={}"
    assert [strict.get(path.format(n), sample).status_code for n in (2, 3)] == [200, 402]
    answers = [strict.get(path.format(n), paid).json() for n in (3, 4)]
    assert [(one["count"], one["truncated"]) for one in answers] == [(3, True), (3, True)]


@pytest.mark.limit(
    "SANKOFA_PER_MINUTE_SAMPLE", "SANKOFA_PER_MINUTE_STARTER", "SANKOFA_PER_MINUTE_PROFESSIONAL"
)
@in_one_minute
def test_each_tier_has_a_limit_of_requests_per_minute(strict: LiveServer) -> None:
    for tier in ("sample", "starter", "professional"):
        key = strict.key(tier)
        assert [strict.get(ENTITY, key).status_code for _ in range(3)] == [200, 200, 429], tier


@pytest.mark.limit("SANKOFA_PER_MONTH_SAMPLE", "SANKOFA_PER_MONTH_STARTER", "SANKOFA_PER_MONTH_PROFESSIONAL")
def test_each_tier_has_a_limit_of_requests_per_month(copy_sample: Copies) -> None:
    quotas: dict[str, Any] = {f"per_month_{tier}": "2" for tier in ("sample", "starter", "professional")}
    with LiveServer(copy_sample(), **quotas) as live:
        for tier in ("sample", "starter", "professional"):
            key = live.key(tier)
            assert [live.get(ENTITY, key).status_code for _ in range(3)] == [200, 200, 429], tier


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _ingest(home: Path, source: str, file: Path, **settings: str) -> tuple[int, str]:
    done = run(home, "ingest", source, file, **settings)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.limit("SANKOFA_INGEST_FILE_BYTES", "SANKOFA_INGEST_LINE_BYTES")
def test_a_file_and_a_line_have_a_maximum_size(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "filings.csv"
    file.write_text(HEADER + ROW)
    size = len(HEADER + ROW)
    assert (
        "(SANKOFA_INGEST_FILE_BYTES)"
        in _ingest(home, "sample-filings", file, ingest_file_bytes=str(size - 1))[1]
    )
    assert _ingest(home, "sample-filings", file, ingest_file_bytes=str(size))[0] == 0
    long = tmp_path / "long.csv"
    line = ROW.strip() + "," + "x" * 600_000
    long.write_text(f"{HEADER}{line}\n{ROW}")
    refused = _ingest(home, "sample-filings", long, ingest_line_bytes=str(len(line) - 1))
    assert "(SANKOFA_INGEST_LINE_BYTES)" in refused[1]
    assert (
        "(SANKOFA_INGEST_LINE_BYTES)"
        not in _ingest(home, "sample-filings", long, ingest_line_bytes=str(len(line)))[1]
    )


@pytest.mark.limit("SANKOFA_INGEST_DOCUMENT_BYTES")
def test_a_document_that_is_read_whole_has_a_maximum_size(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "CIK0000000001.json"
    file.write_text('{"cik":1,"entityName":"x","facts":{}}')
    for less, refused in zip(BY_ONE, (False, True), strict=True):
        bound = str(file.stat().st_size - less)
        output = _ingest(home, "sample-companyfacts", file, ingest_document_bytes=bound)[1]
        assert ("(SANKOFA_INGEST_DOCUMENT_BYTES)" in output) is refused


def _release(number: int, **more: Any) -> dict[str, Any]:
    tender = {"id": "1", **more.pop("tender", {})}
    usual = {"ocid": f"ocds-1-{number}", "id": str(number), "date": "2024-01-01T00:00:00Z"}
    return {**usual, "tag": ["tender"], "initiationType": "tender", "tender": tender, **more}


@pytest.mark.limit("SANKOFA_INGEST_TEXT_LENGTH", "ocid or id of a release", "levels of a release")
def test_a_release_has_a_maximum_size(home: Path, tmp_path: Path) -> None:
    def nested(levels: int) -> Any:
        value: Any = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    releases = []
    for more in BY_ONE:
        releases += [
            _release(10 + more, tender={"description": ("word " * 400)[: 1_000 + more].replace(" ", "_")}),
            _release(20 + more, ocid="o" * (400 + more)),
            _release(30 + more, id="i" * (400 + more)),
            _release(40 + more, tender={"deep": nested(98 + more)}),
        ]
    file = tmp_path / "tenders.json"
    file.write_text(json.dumps({"releases": releases}))
    code, output = _ingest(home, "sample-tenders-ke", file, ingest_text_length="1000")
    assert code == 0, output
    assert "appended 4" in output
    reasons = sorted(rejects(home))
    assert len(reasons) == 4
    assert "nested more than 100 levels deep" in reasons
    assert "a text of more than 1,000 characters (SANKOFA_INGEST_TEXT_LENGTH)" in reasons


@pytest.mark.limit("document, concept and location of a fact", "size of a number")
def test_a_figure_has_a_maximum_number_of_digits(home: Path, tmp_path: Path) -> None:
    rows = [ROW.replace("1000", f"1e{60 + more}").replace("report", f"number-{more}") for more in BY_ONE]
    one = tmp_path / "numbers.csv"
    one.write_text(HEADER + "".join(rows))
    assert "appended 1, unchanged 0, withheld 0, rejected 1" in _ingest(home, "sample-filings", one)[1]
    texts = tmp_path / "texts.csv"
    used = len("p. 1") + len("revenue")
    texts.write_text(HEADER + "".join(ROW.replace("report", "d" * (600 - used + more)) for more in BY_ONE))
    assert "appended 1, unchanged 0, withheld 0, rejected 1" in _ingest(home, "sample-filings", texts)[1]


@pytest.mark.limit("series key or indicator code", "series_type")
def test_a_series_has_maximum_sizes(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "series.csv"
    keys = [f"{'A' * (64 + more)},index,monthly,2024-01-31,{more}\n" for more in BY_ONE]
    types = [f"TYPE{more},{'t' * (32 + more)},monthly,2024-01-31,{more}\n" for more in BY_ONE]
    file.write_text("series,series_type,frequency,date,value\n" + "".join(keys + types))
    assert "appended 2, unchanged 0, withheld 0, rejected 2" in _ingest(home, "sample-series", file)[1]


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(tmp_path, stack.enter_context(Publisher()))


PAGE = "/NY.GDP.MKTP.CD.csv"


@pytest.mark.rule("ING-13")
@pytest.mark.limit("reply of a publisher (max_bytes), unpacked")
def test_a_reply_has_a_maximum_size(collecting: Home) -> None:
    content = table(1, filler=100)
    collecting.publisher.put(PAGE, content)
    for less, name in zip(BY_ONE, ("whole", "large"), strict=True):
        collecting.source(name, PAGE, max_bytes=len(content) - less)
    collecting.publisher.fail(PAGE, faults.as_gzip)
    assert collecting.report("whole")["whole"]["status"] == "fetched"
    for fault in ((), (faults.as_gzip,)):
        collecting.publisher.fail(PAGE, *fault)
        assert "more than max_bytes" in collecting.collect("large").stderr
    collecting.publisher.put(f"{PAGE}.gz", gzip.compress(content.encode()))
    collecting.source("packed", f"{PAGE}.gz", max_bytes=len(content) - 1)
    assert "unpacked" in collecting.collect("packed").stderr


@pytest.mark.limit("redirects of a publisher", "SANKOFA_COLLECT_ATTEMPTS")
def test_redirects_and_attempts_are_limited(collecting: Home) -> None:
    server = collecting.publisher
    server.put("/8.csv", table(1))
    for name, start in (("eight", 0), ("nine", -1)):
        collecting.source(name, f"/{start}.csv")
        for hop in range(start, 8):
            server.fail(f"/{hop}.csv", faults.redirect(f"/{hop + 1}.csv"))
        report = collecting.collect(name)
        assert ("more than 8 redirects" in report.stderr) is (name == "nine"), report.stderr
    server.put("/FP.CPI.TOTL.ZG.csv", table(2))
    collecting.source("busy", "/FP.CPI.TOTL.ZG.csv")
    for failures, done in ((2, 1), (1, 0)):
        server.faults.clear()
        server.fail("/FP.CPI.TOTL.ZG.csv", *[faults.status(503)] * failures)
        assert collecting.collect("busy", collect_attempts="2").returncode == done


@pytest.mark.limit("pages of one list (most_pages)")
def test_a_list_has_a_maximum_number_of_pages(collecting: Home) -> None:
    for number, following in ((1, "b.json"), (2, "")):
        releases = [_release(number)]
        collecting.publisher.put(
            f"/{'ab'[number - 1]}.json", json.dumps({"links": {"next": following}, "releases": releases})
        )
    for most, name in ((1, "short"), (2, "whole")):
        options: dict[str, Any] = {
            "adapter": "ocds",
            "sku": "AF-TENDER",
            "next": "/links/next",
            "most_pages": most,
        }
        collecting.source(name, "/a.json", **options)
        done = collecting.collect(name)
        assert ("more than 1 pages (most_pages)" in done.stderr) is (name == "short"), done.stderr


def test_an_invalid_number_of_pages_is_refused(collecting: Home) -> None:
    collecting.publisher.put("/v2/1.json", json.dumps([{"pages": "²"}, []]))
    collecting.source("bank", "/v2/{page}.json", pages="/0/pages", file="gdp.json")
    done = collecting.collect("bank")
    assert "does not say how many pages there are" in done.stderr
    assert "Traceback" not in done.stderr
