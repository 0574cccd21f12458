"""Vintages, and the days on which each is seen, against a replay of the rules."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sankofa.model.days import FOREVER
from sankofa.model.vintages import Mode, vintages, visibilities
from tests.every import every
from tests.torture import rounds
from tests.world.reference import MODES, ExpectedRow, FiledFigure, knowable

START = date(2020, 1, 1)
END = date(2020, 1, 9)
MODE_OF = dict(zip(MODES, (Mode.LATEST, Mode.AS_REPORTED, Mode.ALL), strict=True))


class Report(NamedTuple):
    value: str | None
    available: int
    order: tuple[object, ...]


def day(offset: int) -> date:
    return START + timedelta(days=offset)


def report(value: str | None, offset: int, document: str = "d1") -> Report:
    return Report(value, day(offset).toordinal(), (document, Decimal(value or "-Infinity")))


reports = st.lists(
    st.builds(
        report,
        st.sampled_from(("1", "2", "3", None)),
        st.integers(0, 20),
        st.sampled_from(("d1", "d2", "d3")),
    ),
    max_size=14,
)


def filed_figures(filed: list[Report]) -> list[FiledFigure]:
    return [
        FiledFigure("revenue", "ZAR", None, END, str(r.order[0]), Decimal(r.value) if r.value else None,
             date.fromordinal(r.available), END)
        for r in filed
    ]  # fmt: skip


def rows_on(filed: list[Report], on: date, mode: str) -> set[ExpectedRow]:
    """The rows that the intervals show on a day."""
    rows = set()
    for vintage in vintages(filed, END.toordinal()):
        sight = [
            s
            for s in visibilities(vintage)
            if s.first <= on.toordinal() < s.until and s.modes & MODE_OF[mode]
        ]
        assert len(sight) <= 1, "a vintage is seen once"
        if sight:
            successor = vintage.successor if sight[0].tells_successor else None
            rows.add(
                ExpectedRow(
                    "revenue",
                    "ZAR",
                    None,
                    END,
                    vintage.number,
                    Decimal(vintage.report.value) if vintage.report.value else None,
                    date.fromordinal(vintage.report.available),
                    str(vintage.report.order[0]),
                    vintage.number > 1,
                    successor and date.fromordinal(successor.available),
                    successor and str(successor.order[0]),
                )
            )
    return rows


@pytest.mark.rule("VINT-2")
@settings(max_examples=rounds(30, 100, 200, here=12))
@given(reports)
def test_each_day_matches_a_replay_in_each_mode(filed: list[Report]) -> None:
    events = {END, *(date.fromordinal(r.available) for r in filed)}
    for on in {event + timedelta(days=step) for event in events for step in (-1, 0, 1)}:
        for mode in MODES:
            assert rows_on(filed, on, mode) == knowable(filed_figures(filed), on, mode), (on, mode)


@given(reports, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(filed: list[Report], chance: object) -> None:
    shuffled = chance.sample(filed, len(filed))  # type: ignore[attr-defined]
    assert vintages(shuffled, END.toordinal()) == vintages(filed, END.toordinal())


@given(reports)
def test_the_intervals_of_the_latest_neither_overlap_nor_leave_a_gap(filed: list[Report]) -> None:
    numbered = vintages(filed, END.toordinal())
    latest = [(s.first, s.until) for v in numbered for s in visibilities(v) if s.modes & Mode.LATEST]
    assert all(end == start for (_, end), (start, _) in pairwise(latest))
    assert [v.number for v in numbered] == list(range(1, len(numbered) + 1))
    if numbered:
        assert latest[0][0] == max(END.toordinal(), numbered[0].report.available) or len(latest) < len(
            numbered
        )
        assert latest[-1][1] == FOREVER


@given(reports, reports)
def test_later_reports_change_no_earlier_day(filed: list[Report], later: list[Report]) -> None:
    since = [r._replace(available=r.available + 21) for r in later]
    for offset in range(-1, 21):
        for mode in MODES:
            assert rows_on(filed + since, day(offset), mode) == rows_on(filed, day(offset), mode)


@pytest.mark.rule("VINT-3")
@every(
    ("figures", "numbers"),
    [
        ("", ""),
        ("A", "A"),
        ("AA", "A"),
        ("AB", "AB"),
        ("ABA", "ABA"),
        ("AABBA", "ABA"),
        ("A-", "A-"),
        ("A-A", "A-A"),
        ("-", ""),
        ("-A", "A"),
        ("--A-B", "A-B"),
    ],
)
def test_another_figure_is_the_next_vintage_and_a_dash_withdraws_it(figures: str, numbers: str) -> None:
    filed = [Report(None if f == "-" else f, n, ()) for n, f in enumerate(figures, 1)]
    assert [v.report.value or "-" for v in vintages(filed, 0)] == list(numbers)


@pytest.mark.rule("VINT-4")
def test_of_two_figures_on_one_day_the_later_document_is_the_later_vintage() -> None:
    numbered = vintages([report("2", 10, "0002"), report("1", 10, "0001")], END.toordinal())
    assert [(v.number, v.report.value) for v in numbered] == [(1, "1"), (2, "2")]
    assert [[s.modes for s in visibilities(v)] for v in numbered] == [
        [Mode.AS_REPORTED | Mode.ALL],
        [Mode.LATEST | Mode.ALL],
    ]


def test_a_figure_announced_before_its_period_ended_is_seen_from_the_end_of_the_period() -> None:
    (vintage,) = vintages([report("1", 2)], END.toordinal())
    (sight,) = visibilities(vintage)
    assert (sight.first, sight.until) == (END.toordinal(), FOREVER)
