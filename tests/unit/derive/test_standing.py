"""On which days a value stands: windows of full years, and the stretches within one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sankofa.derive.metrics.standing import standing, windows
from sankofa.model.days import FOREVER
from sankofa.model.metric_states import State

YEARS = st.dictionaries(st.integers(1, 8), st.integers(1, 30), max_size=6)
DAYS = st.integers(1, 40)


@pytest.mark.rule("MET-1")
@given(YEARS)
def test_on_every_day_the_latest_year_published_by_then_is_the_one_asked_about(years: dict[int, int]) -> None:
    found = windows(years.items())
    for day in range(50):
        published = [end for end, known in years.items() if known <= day]
        asked = [end for end, (first, until) in found.items() if first <= day < until]
        assert asked == ([max(published)] if published else [])


@given(DAYS, DAYS, DAYS, DAYS)
def test_each_day_of_a_window_shows_one_thing(first: int, length: int, completed: int, wait: int) -> None:
    window = (first, first + length)
    settled = completed + wait
    shown = standing(window, completed, settled)
    assert [day for day, _ in shown] == sorted({day for day, _ in shown})
    assert all(first <= day < first + length for day, _ in shown)
    for day in range(first, first + length):
        states = [state for begin, state in shown if begin <= day][-1:]
        if day < completed:
            expected = [State.COMPLETED_AFTER_AS_OF]
        elif day < settled:
            expected = [State.REVISED_AFTER_AS_OF]
        else:
            expected = [State.STANDS]
        assert states == expected


def test_a_year_published_after_a_later_one_has_no_window() -> None:
    assert windows([(1, 10), (2, 30), (3, 20)]) == {1: (10, 20), 3: (20, FOREVER)}


def test_two_years_published_on_one_day_are_the_later_one() -> None:
    assert windows([(1, 10), (2, 10)]) == {2: (10, FOREVER)}
