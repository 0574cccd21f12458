"""GET /v1/statements/{service_id}: one figure per line item and period."""

from collections import defaultdict
from datetime import date
from typing import Any

import pytest

from sankofa.model.identifiers import service_id
from sankofa.model.line_items import LINE_ITEMS, statement_kind
from tests.every import every
from tests.live import LiveServer

RETAILER = service_id("lei:999900SAMPLEZA000189")
FILER = service_id("registry:US-SEC-CIK:9999900003")
ZAR_AND_USD = service_id("registry:US-SEC-CIK:9999900001")
DAYS = ("2020-11-02", "2022-06-30", "2023-08-27", "2024-06-30", "2026-01-01")
Rows = list[dict[str, Any]]
Cell = tuple[str, str, str]


def statement(server: LiveServer, key: str, issuer: str, query: str = "") -> Rows:
    return server.rows(f"/v1/statements/{issuer}?{query}", key)


def cell(row: dict[str, Any]) -> Cell:
    return row["line_item"], row["period_end"], row["period_type"]


@pytest.mark.rule("STMT-1", "STMT-2")
@every("issuer", [RETAILER, FILER, ZAR_AND_USD])
def test_every_line_item_of_a_period_appears_once_with_a_reported_figure(
    server: LiveServer, paid_key: str, issuer: str
) -> None:
    for day in DAYS:
        hold_against_fundamentals(server, paid_key, issuer, day)


def hold_against_fundamentals(server: LiveServer, key: str, issuer: str, day: str) -> None:
    facts = server.rows(f"/v1/fundamentals/{issuer}?as_of={day}", key)
    rows = statement(server, key, issuer, f"as_of={day}")
    cells = [cell(row) for row in rows]
    assert len(set(cells)) == len(cells)
    reported = {fact["record_ref"]: fact for fact in facts}
    by_cell: defaultdict[Cell, Rows] = defaultdict(list)
    for fact in facts:
        if fact["line_item"] in LINE_ITEMS and fact["value_reported"] is not None:
            by_cell[cell(fact)].append(fact)
    for row in rows:
        fact = reported[row["record_ref"]]
        own = ("alternatives", "line_item", "sign_turned")
        same = {name: value for name, value in row.items() if name not in own}
        assert same.items() <= fact.items()
        others = [one for one in by_cell[cell(row)] if one["record_ref"] != row["record_ref"]]
        assert row["alternatives"] == len(others)


@pytest.mark.rule("STMT-2")
@every("issuer", [RETAILER, FILER, ZAR_AND_USD])
def test_statements_show_the_figures_that_the_metrics_use(
    server: LiveServer, paid_key: str, issuer: str
) -> None:
    compared = sum(compare_with_metrics(server, paid_key, issuer, day) for day in DAYS)
    assert compared > 20


def compare_with_metrics(server: LiveServer, key: str, issuer: str, day: str) -> int:
    """If a metric takes an item from one figure, the statement shows that figure.

    Only metrics of one year: averages and growth rates use one route for both years, which need not be the
    first of either.
    """
    rows = statement(server, key, issuer, f"as_of={day}&period_type=FY")
    figures = {(row["line_item"], row["period_end"]): row for row in rows}
    compared = 0
    for metric in server.rows(f"/v1/metrics/{issuer}?as_of={day}", key):
        inputs: defaultdict[str, Rows] = defaultdict(list)
        for one in metric["inputs"]:
            inputs[one["line_item"]].append(one)
        for item, own in inputs.items():
            row = figures.get((item, metric["period_end"]))
            if row is not None and not _paired(metric):
                compared += 1
                figure = (row["concept"], row["value_reported"], row["vintage"], row["source_ref"])
                assert figure in [
                    (one["concept"], one["value"], one["vintage"], one["source_ref"]) for one in own
                ], (metric["metric"], item)
    return compared


def _paired(metric: dict[str, Any]) -> bool:
    """True if it has figures of two years."""
    return len({one["period_end"] for one in metric["inputs"]}) > 1


@pytest.mark.rule("STMT-1")
def test_rows_have_the_order_of_a_statement(server: LiveServer, paid_key: str) -> None:
    rows = statement(server, paid_key, FILER)
    order = [
        (-date.fromisoformat(r["period_end"]).toordinal(), r["period_type"], LINE_ITEMS.index(r["line_item"]))
        for r in rows
    ]
    assert order == sorted(order)


@pytest.mark.rule("STMT-3")
def test_kind_and_period_type_filter_the_rows(server: LiveServer, paid_key: str) -> None:
    rows = statement(server, paid_key, FILER)
    for kind in ("income", "balance", "cash"):
        own = [row for row in rows if statement_kind(row["line_item"]) == kind]
        assert own
        assert statement(server, paid_key, FILER, f"kind={kind}") == own
        years = [row for row in own if row["period_type"] == "FY"]
        assert statement(server, paid_key, FILER, f"kind={kind}&period_type=FY") == years
    assert server.get(f"/v1/statements/{FILER}?kind=cashflow", paid_key).json()["parameter"] == "kind"


@pytest.mark.rule("STMT-4")
def test_wide_has_a_row_for_each_line_item_and_a_column_for_each_period(server: LiveServer, paid_key: str):
    long = statement(server, paid_key, FILER, "period_type=FY")
    wide = statement(server, paid_key, FILER, "shape=wide")
    ends = sorted({row["period_end"] for row in long}, reverse=True)
    items = {row["line_item"] for row in long}
    assert [row["line_item"] for row in wide] == [item for item in LINE_ITEMS if item in items]
    for row in wide:
        assert list(row)[-len(ends) :] == ends
        own = {one["period_end"]: one for one in long if one["line_item"] == row["line_item"]}
        assert {end: row[end] for end in ends if row[end] is not None} == {
            end: one["value_reported"] for end, one in own.items()
        }
        assert row["cells"].keys() == own.keys()
        for end, own_cell in row["cells"].items():
            assert own_cell.items() <= own[end].items()
        assert all(row[name] for name in ("source_ref", "license_class", "observed_at"))
    quarters = statement(server, paid_key, FILER, "shape=wide&period_type=Q1&kind=income")
    assert {row["period_type"] for row in quarters} <= {"Q1"}


def test_line_items_narrow_a_statement_to_the_same_figures(
    server: LiveServer, paid_key: str, sample_key: str
) -> None:
    query = "period_type=FY&as_of=2024-06-30"
    whole = statement(server, paid_key, FILER, query)
    some = [row for row in whole if row["line_item"] in ("revenue", "profit")]
    assert len(some) >= 4
    for key in (paid_key, sample_key):
        assert statement(server, key, FILER, f"{query}&line_items=revenue,profit") == some[:25]
    assert statement(server, paid_key, FILER, f"{query}&line_items=nothing") == []


@pytest.mark.rule("STMT-5")
def test_an_unknown_id_is_not_found(server: LiveServer, paid_key: str) -> None:
    for unknown in ("DC000000000000000000000000", "a.b", "JSE:NOBODY"):
        assert server.get(f"/v1/statements/{unknown}", paid_key).status_code == 404
    assert statement(server, paid_key, FILER, "as_of=1990-01-01") == []
