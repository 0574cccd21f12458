"""GET /v1/restatements, its feeds and its page, and GET /v1/series/{series}/revisions."""

import csv
import gzip
import io
import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import openpyxl
import polars
import pytest

import sankofa
from sankofa.client import Client
from sankofa.model.identifiers import service_id
from sankofa.operations.panel import MOST_CELLS
from tests.every import every
from tests.live import LiveServer, publish_files
from tests.starter import ISSUERS

RETAILER = service_id("lei:999900SAMPLEZA000189")
FIELDS = set(
    "service_id legal_name line_item concept unit period_start period_end value_before value_after change "
    "available_before available_at vintage split_ratio record_ref "
    "source_ref license_class observed_at".split()
)
ATOM = "{http://www.w3.org/2005/Atom}"
Row = dict[str, Any]


def restated(server: LiveServer, key: str, query: str = "") -> list[Row]:
    return exact_rows(server, key, f"/v1/restatements?limit=10000&{query}")


@pytest.fixture(scope="module")
def expected(server: LiveServer, paid_key: str) -> list[Row]:
    """The restatements according to the fundamentals of every issuer, in the documented order."""
    rows: list[Row] = []
    for issuer in server.rows("/v1/issuers?limit=10000", paid_key):
        facts: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in exact_rows(server, paid_key, f"/v1/fundamentals/{issuer['service_id']}?vintages=all"):
            identity = (row["line_item"], row["concept"], row["unit"], row["period_start"], row["period_end"])
            facts[identity].append(row)
        for vintages in facts.values():
            vintages.sort(key=lambda row: row["vintage"])
            assert [row["vintage"] for row in vintages] == list(range(1, len(vintages) + 1))
            for before, after in pairwise(vintages):
                rows.append({**_same(after), **_compared(before, after), "legal_name": issuer["legal_name"]})
    rows.sort(key=_order)
    return rows


def _same(after: Row) -> Row:
    names = FIELDS - {"legal_name", "value_before", "value_after", "change", "available_before"}
    return {name: after[name] for name in names}


def _compared(before: Row, after: Row) -> Row:
    first, second = before["value_reported"], after["value_reported"]
    change = None
    if first and second is not None:
        change = (Fraction(second) - Fraction(first)) / abs(Fraction(first))
    return {
        "value_before": first,
        "value_after": second,
        "change": change,
        "available_before": before["available_at"],
    }


def _order(row: Row) -> tuple[Any, ...]:
    return (
        -date.fromisoformat(row["available_at"]).toordinal(),
        row["service_id"],
        -date.fromisoformat(row["period_end"]).toordinal(),
        row["line_item"],
        row["concept"] or row["line_item"],
        row["unit"] or "",
        row["period_start"] or "",
        row["vintage"],
    )


def same_rows(rows: list[Row], expected_rows: list[Row]) -> None:
    assert [{**row, "change": None} for row in rows] == [{**row, "change": None} for row in expected_rows]
    for row, want in zip(rows, expected_rows, strict=True):
        if want["change"] is None:
            assert row["change"] is None
        else:
            assert abs(Fraction(row["change"]) - want["change"]) <= abs(want["change"]) / 10**9


@pytest.mark.rule("RST-1")
def test_every_vintage_after_the_first_is_a_row_in_the_documented_order(
    server: LiveServer, paid_key: str, expected: list[Row]
) -> None:
    rows = restated(server, paid_key)
    assert len(rows) > 50
    assert all(set(row) == FIELDS for row in rows)
    same_rows(rows, expected)


@pytest.mark.rule("RST-2")
def test_filters_narrow_the_rows_and_change_nothing_else(
    server: LiveServer, paid_key: str, expected: list[Row]
) -> None:
    countries = {
        row["service_id"]: row["country"] for row in server.rows("/v1/issuers?limit=10000", paid_key)
    }
    for country in {countries[row["service_id"]] for row in expected} - {None}:
        own = [row for row in expected if countries[row["service_id"]] == country]
        same_rows(restated(server, paid_key, f"country={country.lower()}"), own)
    days = sorted({row["available_at"] for row in expected})
    for since, until in ((days[0], days[-1]), (days[1], days[1]), (days[2], days[-2]), (days[-1], days[0])):
        own = [row for row in expected if since <= row["available_at"] <= until]
        same_rows(restated(server, paid_key, f"since={since}&until={until}"), own)
    one = [row for row in expected if row["service_id"] == RETAILER]
    assert 0 < len(one) < len(expected)
    same_rows(restated(server, paid_key, f"service_id={RETAILER.lower()}"), one)
    same_rows(restated(server, paid_key, f"service_id={RETAILER}&country=ZA"), one)
    assert restated(server, paid_key, f"service_id={RETAILER}&country=NG") == []
    item = one[0]["line_item"]
    same_rows(
        restated(server, paid_key, f"line_item={item}"), [r for r in expected if r["line_item"] == item]
    )
    for least in ("0", "0.02", "0.05", "1000"):
        own = [row for row in expected if row["change"] is not None and abs(row["change"]) >= Fraction(least)]
        same_rows(restated(server, paid_key, f"min_change={least}"), own)


@pytest.mark.rule("RST-3")
def test_feeds_are_atom_with_the_rows_of_the_endpoint(server: LiveServer, paid_key: str) -> None:
    for path, query in (
        ("/feeds/restatements.atom?country=ZA&limit=5", "country=ZA&limit=5"),
        (f"/feeds/company/{RETAILER}.atom", f"service_id={RETAILER}"),
        ("/feeds/restatements.atom?country=SN", "country=SN"),
    ):
        answer = server.get(path, paid_key)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("application/atom+xml")
        feed = ET.fromstring(answer.text)  # noqa: S314 - our own answer
        rows = server.rows(f"/v1/restatements?{query}", paid_key)
        refs = [one.findtext(f"{ATOM}id") for one in feed.iter(f"{ATOM}entry")]
        assert refs == [f"urn:sankofa:restatement:{row['record_ref']}" for row in rows]
        updated = feed.findtext(f"{ATOM}updated") or ""
        assert updated.startswith(rows[0]["available_at"] if rows else "20")
        for entry, row in zip(feed.iter(f"{ATOM}entry"), rows, strict=True):
            assert row["source_ref"] in (entry.findtext(f"{ATOM}summary") or "")
            assert str(row["value_after"]) in (entry.findtext(f"{ATOM}title") or "")
        etag = answer.headers["etag"]
        assert (
            server.http.get(path, headers={"X-API-Key": paid_key, "If-None-Match": etag}).status_code == 304
        )


@pytest.mark.rule("RST-3")
def test_a_feed_needs_a_key_and_a_known_organisation(server: LiveServer, paid_key: str) -> None:
    assert server.http.get("/feeds/restatements.atom").status_code == 401
    assert server.http.get("/feeds/restatements.atom", headers={"Accept": "text/html"}).status_code == 401
    for path in (f"/feeds/company/{RETAILER[:-1]}0.atom", "/feeds/company/x.atom", "/feeds/nothing.atom"):
        assert server.get(path, paid_key).status_code == 404
    refused = server.get("/feeds/restatements.atom?format=csv", paid_key)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "format")
    assert server.get("/feeds/restatements.atom?limit=26", "sankofa-sandbox").status_code == 402


@pytest.mark.rule("RST-4")
def test_the_page_lists_restatements_and_leads_to_the_figure(server: LiveServer) -> None:
    rows = server.rows("/v1/restatements?country=ZA", "sankofa-sandbox")
    page = server.http.get("/restatements?country=ZA")
    assert page.status_code == 200
    for row in rows:
        assert f"/company/{row['service_id']}" in page.text
        assert row["source_ref"] in page.text
    assert "<mark>" in page.text
    assert "/feeds/restatements.atom?country=ZA" in page.text
    assert server.http.get("/restatements?min_change=x").status_code == 400


def revisions(server: LiveServer, key: str, series: str, query: str = "") -> list[Row]:
    return exact_rows(server, key, f"/v1/series/{series}/revisions?{query}")


@pytest.mark.rule("SER-4")
@every("as_of", ["2023-05-31", "2024-02-29", ""])
def test_revisions_of_a_series_match_its_past_days(server: LiveServer, paid_key: str, as_of: str):
    """Ask /v1/macro for every day of release and collect the vintages."""
    checked = 0
    for series in ("CPI.ZA", "CPI.KE", "CPI.NG"):
        releases = server.rows(f"/v1/series/{series}/vintages?limit=1000", paid_key)
        days = sorted(row["release_date"] for row in releases if not as_of or row["release_date"] <= as_of)
        values: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        for day in [*days, as_of or str(datetime.now(UTC).date())]:  # a value may be announced early
            path = f"/v1/macro?series={series}&as_of={day}&limit=10000"
            for row in exact_rows(server, paid_key, path):
                if not values[row["date"]] or values[row["date"]][-1][1] != row["value"]:
                    values[row["date"]].append((day, row["value"]))
        (row,) = revisions(server, paid_key, series, f"as_of={as_of}" if as_of else "")
        moved = [one for one in values.values() if len(one) > 1]
        assert row["values"] == len(values)
        assert row["revised"] == len(moved)
        assert row["revisions"] == sum(len(one) - 1 for one in moved)
        assert (row["first_date"], row["last_date"]) == (min(values), max(values))
        pairs = [(one[0][1], one[-1][1]) for one in moved]
        relative = [(last - first) / abs(first) for first, last in pairs if first and last is not None]
        lasted = [(date.fromisoformat(one[-1][0]) - date.fromisoformat(one[0][0])).days for one in moved]
        if moved:
            assert row["median_days_to_final"] == median(lasted)
            assert row["largest_days_to_final"] == max(lasted)
        if not relative:
            assert row["mean_revision"] is row["mean_absolute_revision"] is None
            continue
        checked += 1
        assert float(row["mean_revision"]) == pytest.approx(float(mean(relative)))
        assert float(row["mean_absolute_revision"]) == pytest.approx(float(mean(map(abs, relative))))
        assert float(row["largest_absolute_revision"]) == pytest.approx(float(max(map(abs, relative))))
    assert checked or as_of == "2023-05-31"


def restated_in(path: Path) -> set[tuple[Any, ...]]:
    """The restatements in a companyfacts file, by the words of the rule."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal, parse_int=Decimal)
    listed = set()
    for taxonomy, concepts in document["facts"].items():
        for name, concept in concepts.items():
            for unit, facts in concept["units"].items():
                vintages: defaultdict[tuple[Any, str], list[tuple[Decimal, str]]] = defaultdict(list)
                for one in sorted(facts, key=lambda one: (one["filed"], one["accn"])):
                    own = vintages[one.get("start"), one["end"]]
                    if not own or own[-1][0] != one["val"]:
                        own.append((one["val"], one["filed"]))
                for (start, end), own in vintages.items():
                    for (before, first), (after, later) in pairwise(own):
                        listed.add((f"{taxonomy}:{name}", unit, start, end, before, after, first, later))
    return {one for one in listed if not one[0].startswith("dei:") or "Shares" in one[0]}


@pytest.mark.rule("RST-1")
def test_restatements_of_real_filings_are_those_in_the_files(tmp_path: Path) -> None:
    folder = Path(sankofa.__file__).parent / "starter" / "filings" / "companyfacts"
    files = {cik: folder / f"CIK{cik:0>10}.json.gz" for cik in ISSUERS}
    publish_files(tmp_path / "home", *(("sec-companyfacts", path) for path in files.values()))
    compared = 0
    with LiveServer(tmp_path / "home") as server:
        key = server.key("professional")
        for cik, path in files.items():
            rows = restated(server, key, f"service_id={service_id(f'registry:US-SEC-CIK:{cik:0>10}')}")
            names = (
                "concept unit period_start period_end value_before value_after available_before available_at"
            )
            served = {tuple(row[name] for name in names.split()) for row in rows}
            assert served == restated_in(path)
            compared += len(served)
    assert compared > 200


@pytest.mark.rule("SER-4")
def test_an_indicator_has_no_revisions_and_an_unknown_series_is_a_404(server: LiveServer, paid_key: str):
    assert revisions(server, paid_key, "NY.GDP.MKTP.CD") == []
    assert revisions(server, paid_key, "CPI.ZA", "as_of=1999-01-01") == []
    unknown = server.get("/v1/series/CPI.ZZ/revisions", paid_key)
    assert unknown.status_code == 404
    assert "CPI.ZA" in unknown.json()["detail"]


def exact_rows(server: LiveServer, key: str, path: str) -> list[Row]:
    return list(server.exact(path, key)["data"])


def days_of(row: Row) -> list[str]:
    return [name for name in row if name[:1].isdigit()]


@pytest.mark.rule("SER-5")
@every("lock", ["", "/at/2024-02-29"])
def test_a_cell_of_a_series_is_the_value_known_on_its_release_day(
    server: LiveServer, paid_key: str, lock: str
) -> None:
    """Every column equals the answer of /v1/macro for that day."""
    releases = exact_rows(server, paid_key, f"{lock}/v1/series/CPI.ZA/vintages?limit=1000")
    days = sorted(row["release_date"] for row in releases)
    rows = exact_rows(server, paid_key, f"{lock}/v1/series/CPI.ZA/matrix")
    assert all(days_of(row) == days for row in rows)
    for day in days:
        on_day = exact_rows(server, paid_key, f"{lock}/v1/macro?series=CPI.ZA&as_of={day}&limit=10000")
        column = {row["date"]: row[day] for row in rows if row[day] is not None}
        assert column == {row["date"]: row["value"] for row in on_day}
    part = exact_rows(server, paid_key, f"{lock}/v1/series/cpi.za/matrix?from=2022-01-01&to=2022-12-31")
    assert part == [row for row in rows if row["date"][:4] == "2022"]
    assert len(part) > 3
    assert days_of(part[0]) == days


@pytest.mark.rule("SER-5")
def test_a_cell_of_a_line_item_is_the_figure_known_on_its_release_day(server: LiveServer, paid_key: str):
    revised = 0
    for issuer in server.rows("/v1/issuers?limit=10000", paid_key):
        path = f"/v1/fundamentals/{issuer['service_id']}"
        vintages = exact_rows(server, paid_key, f"{path}?vintages=all&line_items=profit&period_type=FY")
        by_row: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
        for one in vintages:
            by_row[one["period_end"], one["concept"], one["unit"], one["period_start"]].append(one)
        days = sorted({one["available_at"] for one in vintages})
        rows = exact_rows(server, paid_key, f"{path}/matrix?line_item=profit&period_type=FY")
        assert len(rows) == len(by_row)
        for row in rows:
            own = by_row[row["date"], row["concept"], row["unit"], row["period_start"]]
            for day in days:
                on_day = [one for one in own if max(one["available_at"], one["period_end"]) <= day]
                latest = max(on_day, key=lambda one: one["vintage"], default={"value_reported": None})
                assert row[day] == latest["value_reported"]
        revised += sum(len(own) > 1 for own in by_row.values())
        second = exact_rows(server, paid_key, f"{path}/matrix?line_item=profit&period_type=FY&release=2")
        assert [(one["date"], one["available_at"], one["value"]) for one in second] == sorted(
            (one["period_end"], one["available_at"], one["value_reported"])
            for one in vintages
            if one["vintage"] == 2
        )
        only = exact_rows(
            server, paid_key, f"{path}/matrix?line_item=profit&period_type=FY&release=revisions"
        )
        assert sorted(
            (row["date"], day, row[day]) for row in only for day in days_of(row) if row[day] is not None
        ) == sorted(
            (one["period_end"], one["available_at"], one["value_reported"])
            for one in vintages
            if one["vintage"] > 1
        )
    assert revised


@pytest.mark.rule("SER-5")
def test_one_release_has_the_columns_available_at_and_value(server: LiveServer, paid_key: str) -> None:
    path = "/v1/series/CPI.ZA/matrix"
    matrix = exact_rows(server, paid_key, path)
    for release in ("first", "latest"):
        lines = list(
            csv.DictReader(io.StringIO(server.get(f"{path}?release={release}&format=csv", paid_key).text))
        )
        assert list(lines[0]) == ["date", "available_at", "value"]
        by_date = {row["date"]: row for row in matrix}
        for line in lines:
            cells = [by_date[line["date"]][day] for day in days_of(matrix[0])]
            values = [cell for cell in cells if cell is not None]
            if values:  # a value announced before its date may not have a column yet
                assert Decimal(line["value"]) == (values[0] if release == "first" else values[-1])
    only = list(
        csv.DictReader(io.StringIO(server.get(f"{path}?release=revisions&format=csv", paid_key).text))
    )
    changed = [
        (row["date"], day, row[day])
        for row in matrix
        for before, day in pairwise(days_of(row))
        if row[before] is not None and row[day] != row[before]
    ]
    assert changed
    assert [
        (row["date"], day, Decimal(row[day])) for row in only for day in list(row)[1:] if row[day]
    ] == changed
    assert list(only[0])[1:] == sorted({day for _, day, _ in changed})
    assert exact_rows(server, paid_key, f"{path}?release=9999") == []
    assert server.get(f"{path}?release=0", paid_key).json()["parameter"] == "release"


@pytest.mark.rule("SER-5", "ENV-7")
def test_other_formats_of_a_matrix_have_only_dates_and_release_days(
    server: LiveServer, paid_key: str
) -> None:
    path = "/v1/series/CPI.ZA/matrix?from=2022-01-01"
    rows = exact_rows(server, paid_key, path)
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
def test_a_matrix_with_too_many_cells_is_refused_before_it_is_computed(
    server: LiveServer, paid_key: str
) -> None:
    refused = server.get("/v1/series/FX.EUR.ZAR/matrix", paid_key)
    assert refused.status_code == 400
    assert refused.json()["parameter"] == "from"
    assert str(MOST_CELLS) in refused.json()["detail"]
    rows = exact_rows(server, paid_key, "/v1/series/FX.EUR.ZAR/matrix?from=2024-06-01&to=2024-06-30")
    assert len(rows) == 20


@pytest.mark.rule("SER-5")
def test_the_client_and_the_page_give_the_matrix(server: LiveServer, paid_key: str) -> None:
    rows = exact_rows(server, paid_key, "/v1/series/CPI.ZA/matrix")
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
