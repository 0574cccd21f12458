"""CSV and Arrow by `Accept` on every endpoint: the same rows (contract: ENV-7)."""

import csv
import io
import json
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import httpx
import pyarrow
import pytest

from sankofa.operations.contract import Operation, endpoints
from sankofa.rest.formats import ARROW, CSV, negotiated_format
from tests.every import every
from tests.live import LiveServer

SERVED = tuple(operation for operation in endpoints() if not operation.live)  # their answers contain the time
MATRICES = ("get_fundamentals_matrix", "get_series_matrix")
IDS = [operation.name for operation in SERVED]
ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
OTHER_MODE = {
    "get_macro": "indicator",
    "get_shared_facts": "country",
    "get_signal": "basis",
}  # the examples of the others form one question
MODES = {
    "get_macro": ("/v1/macro?country=ZA", "/v1/macro?series=CPI.ZA", "/v1/macro?series=NO.SUCH"),
    "get_panel": (
        "/v1/panel?metrics=net_margin&line_items=revenue,inventories&series=CPI.ZA&from=2012-01-01&limit=90",
        "/v1/panel?metrics=net_margin&line_items=revenue&every=change&from=2012-01-01&limit=100",
    ),
    "get_fundamentals": (f"{ISSUER}?vintages=all", f"{ISSUER}?as_of=1990-01-01"),
}


def questions(operation: Operation) -> list[str]:
    """The examples of its parameters combined, and its other modes."""
    examples = {n: p.kind.schema().get("examples", [""])[0] for n, p in operation.parameters.items()}
    query = {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in examples.items()
        if value and not operation.parameters[name].in_path and name != OTHER_MODE.get(operation.name)
    }
    return [f"{operation.path.format(**examples)}?{urlencode(query)}", *MODES.get(operation.name, ())]


def as_json(answer: httpx.Response, operation: Operation) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows with every figure as written, and the rest of the envelope."""
    body = json.loads(answer.text, parse_float=lambda text: ("figure", text))
    return body.pop(operation.rows_under), body


def text_of(value: Any, written: str | None) -> Any:
    """A value of a JSON row as text, as other formats may hold it."""
    if isinstance(value, tuple):
        return value[1]
    if isinstance(value, list | dict):
        assert written is not None
        assert json.loads(written, parse_float=lambda text: ("figure", text)) == value
        return written
    return str(value)


def envelope_fields(answer: httpx.Response) -> dict[str, Any]:
    """The envelope as header fields."""
    names = ("edition", "count", "truncated", "as-of", "next-cursor")
    return {n.replace("-", "_"): answer.headers.get(f"X-{n}") for n in names}


def expected(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "edition": body["edition"],
        "count": str(body["count"]),
        "truncated": str(body["truncated"]).lower(),
        "as_of": body.get("as_of"),
        "next_cursor": body.get("next_cursor"),
    }


@pytest.mark.rule("ENV-7")
@every("tier", ["sample", "paid"])
@every("operation", SERVED, ids=IDS)
def test_csv_and_arrow_have_the_rows_of_json(
    server: LiveServer, sample_key: str, paid_key: str, operation: Operation, tier: str
) -> None:
    key = sample_key if tier == "sample" else paid_key
    for question in questions(operation):
        plain, in_csv, in_arrow = (server.get(question, key, accept=form) for form in ("*/*", CSV, ARROW))
        assert in_csv.status_code == in_arrow.status_code == plain.status_code, question
        if plain.status_code != 200:  # the paid crosswalk
            assert in_csv.headers["Content-Type"] == "application/problem+json"
            continue
        rows, body = as_json(plain, operation)
        assert in_csv.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
        header, *lines = csv.reader(io.StringIO(in_csv.text, newline=""), strict=True)
        fixed = [list(shape.__struct_encode_fields__) for shape in operation.shapes]
        if operation.name not in MATRICES:
            assert header in fixed or (operation.name == "get_panel" and header[: len(fixed[0])] == fixed[0])
        compare(tabular(operation, rows, header), [dict(zip(header, line, strict=True)) for line in lines])
        assert in_csv.headers.get("Link") == plain.headers.get("Link")
        assert in_arrow.headers["Content-Type"] == ARROW
        table = pyarrow.ipc.open_stream(in_arrow.content).read_all()
        compare(tabular(operation, rows, table.column_names), table.to_pylist(), arrow=True)
        for answer in (in_csv, in_arrow):
            assert envelope_fields(answer) == expected(body)
        metadata = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}
        assert metadata["edition"] == body["edition"]
        assert metadata["license"] == body["_license"]
        assert metadata.get("as_of") == body.get("as_of")


def compare(rows: list[Any], others: list[dict[str, Any]], *, arrow: bool = False) -> None:
    """Every cell of another form is the value of the JSON row in that form."""
    assert len(others) == len(rows)
    for other, row in zip(others, rows, strict=True):
        assert other.keys() == row.keys()
        for name, cell in other.items():
            if arrow:
                assert arrow_text(cell) == arrow_value(row[name], cell), name
            else:
                assert cell == csv_text(row[name], cell), name


def tabular(operation: Operation, rows: list[Any], columns: list[str]) -> list[Any]:
    """The rows without the members of a matrix that only JSON has (contract: SER-5)."""
    if operation.name not in MATRICES:
        return rows
    assert columns[0] == "date"
    return [{name: row[name] for name in columns} for row in rows]


def csv_text(value: Any, cell: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(text_of(value, cell))


def arrow_text(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return Decimal(repr(value)) if isinstance(value, float) else value


def arrow_value(value: Any, cell: Any) -> Any:
    if isinstance(value, tuple):
        return Decimal(value[1]) if isinstance(cell, float) else value[1]
    if isinstance(value, list | dict):
        return text_of(value, cell)
    if isinstance(value, int) and isinstance(cell, str):
        return str(value)  # a figure without a fraction
    return value


def test_arrow_is_compressed_on_request(server: LiveServer, paid_key: str) -> None:
    plain = server.get(ISSUER, paid_key, accept=ARROW, accept_encoding="identity")
    packed = server.get(ISSUER, paid_key, accept=f"{ARROW};compression=zstd", accept_encoding="identity")
    assert packed.headers["Content-Type"] == f"{ARROW};compression=zstd"
    assert len(packed.content) < len(plain.content)
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert (
        pyarrow.ipc.open_stream(packed.content).read_all()
        == pyarrow.ipc.open_stream(plain.content).read_all()
    )


@pytest.mark.rule("ENV-10")
@every("form", [CSV, ARROW])
def test_other_members_of_the_envelope_are_header_fields(
    server: LiveServer, sample_key: str, paid_key: str, form: str
) -> None:
    path = "/v1/crosswalk/DC46AF1B1AAA424B58D1368176"
    body = server.get(path, sample_key).json()
    answer = server.get(path, sample_key, accept=form)
    assert body["withheld_id_types"]
    assert json.loads(answer.headers["X-Withheld-Id-Types"]) == body["withheld_id_types"]
    assert answer.headers["X-Crosswalk-Loaded"] == "true"
    assert json.loads(server.get(path, paid_key, accept=form).headers["X-Withheld-Id-Types"]) == []


def test_every_format_has_its_own_tag(server: LiveServer, paid_key: str) -> None:
    tags = {form: server.get(ISSUER, paid_key, accept=form).headers["ETag"] for form in ("*/*", CSV, ARROW)}
    assert len(set(tags.values())) == 3
    for form, tag in tags.items():
        assert server.get(ISSUER, paid_key, accept=form, if_none_match=tag).status_code == 304
        others = ", ".join(t for t in tags.values() if t != tag)
        assert server.get(ISSUER, paid_key, accept=form, if_none_match=others).status_code == 200


@every("form", [CSV, ARROW])
@every("encoding", ["gzip", "br"])
def test_formats_are_compressed_and_repeatable(
    server: LiveServer, paid_key: str, form: str, encoding: str
) -> None:
    plain = server.get(ISSUER, paid_key, accept=form, accept_encoding="identity")
    packed = server.get(ISSUER, paid_key, accept=form, accept_encoding=encoding)
    assert packed.headers["Content-Encoding"] == encoding
    assert packed.content == plain.content
    head = server.http.head(
        ISSUER, headers={"X-API-Key": paid_key, "Accept": form, "Accept-Encoding": "identity"}
    )
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == str(len(plain.content))


@every("form", [CSV, ARROW])
def test_every_format_can_be_paged(server: LiveServer, paid_key: str, form: str) -> None:
    path, count = "/v1/tenders?limit=40", 0
    while path:
        answer = server.get(path, paid_key, accept=form)
        count += int(answer.headers["X-Count"])
        path = answer.links["next"]["url"] if "next" in answer.links else ""
        assert bool(path) is ("X-Next-Cursor" in answer.headers)
    assert count == server.get("/v1/tenders?limit=10000", paid_key).json()["count"]


@every(
    ("accept", "form"),
    [
        ("", None),
        ("*/*", None),
        ("application/json", None),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", None),
        ("text/csv", CSV),
        ("text/*", CSV),
        ("text/csv; charset=utf-8", CSV),
        ("text/csv;q=0.5, application/json;q=0.4", CSV),
        ("text/csv;q=0.4, application/json;q=0.5", None),
        ("*/*, text/csv;q=0.5", None),
        ("application/json;q=0, */*", CSV),
        ("application/json;q=0, text/csv;q=0, */*;q=0.1", ARROW),
        (f"{ARROW};compression=zstd, application/json;q=0.5", ARROW),
        (f"{ARROW};compression=zstd;q=0.1, text/csv", CSV),
        (f"{ARROW}, text/csv;q=0.9", ARROW),
        ("text/csv;q=0", None),
        (",,;;q=", None),
    ],
)
def test_the_client_gets_the_format_it_prefers(accept: str, form: str | None) -> None:
    chosen = negotiated_format(accept.encode())
    assert (chosen.media_type if chosen else None) == form
