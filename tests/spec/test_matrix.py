"""GET /v1/series/{series}/matrix and GET /v1/fundamentals/{service_id}/matrix: vintages side by side."""

import csv
import io
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import openpyxl
import polars
import pytest

from sankofa.client import Client
from sankofa.model.identifiers import service_id
from sankofa.operations.matrix import MOST_CELLS
from tests.every import every
from tests.live import LiveServer

RETAILER = service_id("lei:999900SAMPLEZA000189")
Row = dict[str, Any]
exact = msgspec.json.Decoder(float_hook=Decimal).decode


def asked(server: LiveServer, key: str, path: str) -> list[Row]:
    answer = server.get(path, key)
    assert answer.status_code == 200, answer.text
    rows: list[Row] = exact(answer.content)["data"]
    return rows


def days_of(row: Row) -> list[str]:
    return [name for name in row if name[:1].isdigit()]


@pytest.mark.rule("SER-5")
@every("lock", ["", "/at/2024-02-29"])
def test_a_cell_of_a_series_is_the_value_known_on_its_release_day(
    server: LiveServer, paid_key: str, lock: str
) -> None:
    """Every column is what /v1/macro answers for that day."""
    releases = asked(server, paid_key, f"{lock}/v1/series/CPI.ZA/vintages?limit=1000")
    days = sorted(row["release_date"] for row in releases)
    rows = asked(server, paid_key, f"{lock}/v1/series/CPI.ZA/matrix")
    assert all(days_of(row) == days for row in rows)
    for day in days:
        known = asked(server, paid_key, f"{lock}/v1/macro?series=CPI.ZA&as_of={day}&limit=10000")
        column = {row["date"]: row[day] for row in rows if row[day] is not None}
        assert column == {row["date"]: row["value"] for row in known}
    part = asked(server, paid_key, f"{lock}/v1/series/cpi.za/matrix?from=2022-01-01&to=2022-12-31")
    assert part == [row for row in rows if row["date"][:4] == "2022"]
    assert len(part) > 3
    assert days_of(part[0]) == days


@pytest.mark.rule("SER-5")
def test_a_cell_of_a_line_item_is_the_figure_known_on_its_release_day(server: LiveServer, paid_key: str):
    revised = 0
    for issuer in server.body("/v1/issuers?limit=10000", paid_key)["data"]:
        path = f"/v1/fundamentals/{issuer['service_id']}"
        vintages = asked(server, paid_key, f"{path}?vintages=all&line_items=profit&period_type=FY")
        by_row: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
        for one in vintages:
            by_row[one["period_end"], one["concept"], one["unit"], one["period_start"]].append(one)
        days = sorted({one["available_at"] for one in vintages})
        rows = asked(server, paid_key, f"{path}/matrix?line_item=profit&period_type=FY")
        assert len(rows) == len(by_row)
        for row in rows:
            own = by_row[row["date"], row["concept"], row["unit"], row["period_start"]]
            for day in days:
                known = [one for one in own if max(one["available_at"], one["period_end"]) <= day]
                latest = max(known, key=lambda one: one["vintage"], default={"value_reported": None})
                assert row[day] == latest["value_reported"]
        revised += sum(len(own) > 1 for own in by_row.values())
        second = asked(server, paid_key, f"{path}/matrix?line_item=profit&period_type=FY&release=2")
        assert [(one["date"], one["available_at"], one["value"]) for one in second] == sorted(
            (one["period_end"], one["available_at"], one["value_reported"])
            for one in vintages
            if one["vintage"] == 2
        )
    assert revised


@pytest.mark.rule("SER-5")
def test_one_release_has_the_columns_available_at_and_value(server: LiveServer, paid_key: str) -> None:
    path = "/v1/series/CPI.ZA/matrix"
    matrix = asked(server, paid_key, path)
    for release in ("first", "latest"):
        lines = list(
            csv.DictReader(io.StringIO(server.get(f"{path}?release={release}&format=csv", paid_key).text))
        )
        assert list(lines[0]) == ["date", "available_at", "value"]
        by_date = {row["date"]: row for row in matrix}
        for line in lines:
            cells = [by_date[line["date"]][day] for day in days_of(matrix[0])]
            shown = [cell for cell in cells if cell is not None]
            if shown:  # a value may be announced before its date, and not yet have a column
                assert Decimal(line["value"]) == (shown[0] if release == "first" else shown[-1])
    assert asked(server, paid_key, f"{path}?release=9999") == []
    assert server.get(f"{path}?release=0", paid_key).json()["parameter"] == "release"


@pytest.mark.rule("SER-5", "ENV-7")
def test_the_forms_of_a_matrix_have_dates_and_release_days_only(server: LiveServer, paid_key: str) -> None:
    path = "/v1/series/CPI.ZA/matrix?from=2022-01-01"
    rows = asked(server, paid_key, path)
    names = ["date", *days_of(rows[0])]
    lines = list(csv.reader(io.StringIO(server.get(f"{path}&format=csv", paid_key).text)))
    assert lines[0] == names
    assert lines[1:] == [["" if row[n] is None else str(row[n]) for n in names] for row in rows]
    arrow = polars.read_ipc_stream(server.get(f"{path}&format=arrow", paid_key).content)
    assert arrow.columns == names
    first = server.get(f"{path}&format=xlsx", paid_key)
    assert first.headers["content-type"].endswith("spreadsheetml.sheet")
    sheet = openpyxl.load_workbook(io.BytesIO(first.content))["data"]
    table = list(sheet.iter_rows(values_only=True))
    assert list(table[0]) == names
    for line, row in zip(table[1:], rows, strict=True):
        assert line[0] == datetime.fromisoformat(row["date"])
        assert [None if cell is None else float(str(cell)) for cell in line[1:]] == [
            None if row[name] is None else float(row[name]) for name in names[1:]
        ]
    again = server.get(f"/at/2024-06-30{path}&format=xlsx", paid_key)
    assert again.content == server.get(f"/at/2024-06-30{path}&format=xlsx", paid_key).content
    figures = list(
        csv.reader(
            io.StringIO(
                server.get(
                    f"/v1/fundamentals/{RETAILER}/matrix?line_item=revenue&period_type=FY&format=csv",
                    paid_key,
                ).text
            )
        )
    )
    assert figures[0][0] == "date"
    assert [date.fromisoformat(day) for day in figures[0][1:]]


@pytest.mark.limit("cells of a vintage matrix")
def test_a_matrix_of_too_many_cells_is_refused_before_it_is_made(server: LiveServer, paid_key: str) -> None:
    refused = server.get("/v1/series/FX.EUR.ZAR/matrix", paid_key)
    assert refused.status_code == 400
    assert refused.json()["parameter"] == "from"
    assert str(MOST_CELLS) in refused.json()["detail"]
    rows = asked(server, paid_key, "/v1/series/FX.EUR.ZAR/matrix?from=2024-06-01&to=2024-06-30")
    assert len(rows) == 20


@pytest.mark.rule("SER-5")
def test_the_client_and_the_page_give_the_matrix(server: LiveServer, paid_key: str) -> None:
    rows = asked(server, paid_key, "/v1/series/CPI.ZA/matrix")
    with Client(paid_key, server.url) as client:
        frame = client.vintages("CPI.ZA")
        assert [str(day.date()) for day in frame.columns] == days_of(rows[0])
        last = frame.iloc[-1].tolist()
        assert last[-1] == float(rows[-1][days_of(rows[0])[-1]] or "nan") or last[-1] != last[-1]
        assert list(client.vintages("CPI.ZA", release="first").columns) == ["available_at", "value"]
    page = server.http.get("/macro/series/CPI.ZA")
    assert "chart=matrix&amp;format=csv" in page.text
    lines = list(
        csv.reader(io.StringIO(server.http.get("/macro/series/CPI.ZA?chart=matrix&format=csv").text))
    )
    assert lines.pop(0) == [f"# first 25 of {len(rows)} rows"]
    assert lines[0] == ["date", *days_of(rows[0])]
    assert len(lines) > 20
