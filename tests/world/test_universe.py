"""Issuers and statements through the real ledger and build, against the fundamentals of a day."""

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.edition.format.keys import STATEMENTS
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import issuers_in_order, issuers_on
from sankofa.model.identifiers import service_id
from tests.patience import wait
from tests.world.desk import around, as_row, ask
from tests.world.reference import FiledFigure
from tests.world.test_point_in_time import CAPTURES, DAYS, DEEP, ISSUER, KEY, YEAR, desk, histories, take

OTHER = "ticker:NGX:OTH"
OTHERS_KEY = service_id(OTHER)
OTHERS_FIGURE = FiledFigure(
    "assets", "NGN", None, date(2020, 6, 30), "d0", Decimal(5), date(2020, 12, 1), CAPTURES[1]
)
Row = dict[str, Any]


def universe(edition: Edition, day: date) -> dict[str, Row]:
    order = wait(issuers_in_order(edition, day.toordinal()))
    page = wait(issuers_on(order, day.toordinal(), None, None, 0, 100))
    assert page.following is None
    rows = json.loads(b"[%b]" % page.rows)
    return {row["service_id"]: row for row in rows}


def statement(edition: Edition, day: date) -> list[Row]:
    selection = wait(edition.select(STATEMENTS, KEY, day=day.toordinal()))
    assert selection is not None
    rows: list[Row] = json.loads(b"[%b]" % selection.rows)
    return rows


def days_of(history: Iterable[tuple[FiledFigure, str]]) -> Iterable[date]:
    filed = [YEAR, OTHERS_FIGURE, *(report for report, _ in history)]
    return around({day for r in filed for day in (r.end, r.captured, r.available or r.captured)})


@pytest.mark.deep
@pytest.mark.rule("ISS-1", "ISS-3")
@DEEP
@given(histories())
def test_the_universe_of_every_day_follows_from_its_figures(history: list[tuple[FiledFigure, str]]) -> None:
    with desk() as desk_:
        take(desk_, history)
        desk_.set_day(CAPTURES[1])
        desk_.filings("other.csv", [as_row(OTHER, OTHERS_FIGURE)])
        edition = desk_.publish()
        days = list(days_of(history))
        by_issuer = {key: ask(edition, key, days) for key in (KEY, OTHERS_KEY)}
        for day in days:
            rows = universe(edition, day)
            for key, answers in by_issuer.items():
                every = answers[day, "all"]
                assert (key in rows) == bool(every), (key, day)
                if every:
                    available = [row["available_at"] for row in every]
                    listed = rows[key]
                    assert listed["first_available"] == min(available)
                    assert listed["last_available"] == max(available)
                    assert listed["fact_count"] == len(answers[day, "latest"])
                    assert listed["source_ref"] in {row["source_ref"] for row in every}


@pytest.mark.rule("PIT-9", "ISS-3")
def test_a_later_filing_changes_no_past_universe() -> None:
    later = FiledFigure(
        "revenue", "ZAR", None, date(2021, 3, 31), "d9", Decimal(9), date(2021, 5, 1), CAPTURES[2]
    )
    with desk() as desk_:
        take(desk_, [])
        before = desk_.publish()
        desk_.set_day(CAPTURES[2])
        desk_.filings("later.csv", [as_row(ISSUER, later)])
        after = desk_.publish()
        for day in (date(2020, 3, 1), date(2021, 4, 30)):
            assert universe(after, day) == universe(before, day) != {}
        assert universe(after, date(2021, 5, 1))[KEY]["fact_count"] == 2


@pytest.mark.deep
@pytest.mark.rule("STMT-1", "STMT-2")
@DEEP
@given(histories(), st.randoms(use_true_random=False))
def test_a_statement_has_one_figure_of_the_day_per_line_item_and_period(
    history: list[tuple[FiledFigure, str]], chance: Any
) -> None:
    with desk() as desk_:
        take(desk_, history)
        edition = desk_.publish()
        days = sorted({*DAYS, *chance.sample(list(days_of(history)), 3)})
        for (day, _), answer in ask(edition, KEY, days, ["latest"]).items():
            groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
            for row in answer:
                if row["value_reported"] is not None:
                    groups[row["line_item"], row["period_end"], row["period_type"]].append(row)
            rows = statement(edition, day)
            cells = [(row["line_item"], row["period_end"], row["period_type"]) for row in rows]
            assert len(set(cells)) == len(cells)
            currencies: dict[tuple[str, ...], str] = {
                cell[1:]: row["currency_reported"] for cell, row in zip(cells, rows, strict=True)
            }
            assert currencies.keys() == {cell[1:] for cell in groups}
            for cell, reported in groups.items():
                has_currency = currencies[cell[1:]] in [row["currency_reported"] for row in reported]
                assert has_currency is (cell in cells), "a column has one currency"
            by_ref = {row["record_ref"]: row for row in answer}
            for cell, row in zip(cells, rows, strict=True):
                # If no other profit is reported, that of the owners is used.
                assert cell in groups or row["line_item"] == "profit_owners"
                fact = by_ref[row["record_ref"]]
                assert (row["vintage"], row["available_at"]) == (fact["vintage"], fact["available_at"])
                others = [one for one in groups[cell] if one["record_ref"] != row["record_ref"]]
                assert row["alternatives"] == len(others)
