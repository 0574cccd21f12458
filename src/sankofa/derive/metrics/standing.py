"""On which days a value stands, and why it is missing on the others.

The rules for `as_of D` (contract: MET-1, MET-2, MET-8):

1. Per issuer and metric the latest full year published by D counts. A year is therefore asked about from the
   day it was published until a later year is. (A year that is published after a later one never is.)
2. Its value is returned only if every filing it is computed from was available by D with the figures it holds
   today: from the day the last of its inputs came to stand as it does now.
3. Before that day it was completed later (an input was not yet known) or revised later (all were known, one
   with another figure, or with this one before it was changed and changed back). It is left out, not
   replaced.
4. Values are computed from current figures. What is not computable from them is missing for as long as its
   year is the latest.

So each value has one interval [first, until), and with the reasons of the other days the history of an
issuer's metric has no gap: on every day there is either the value or the reason why there is none.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sankofa.model.days import FOREVER
from sankofa.model.metric_states import State


class Stretch(NamedTuple):
    """Days [first, until) that show the same."""

    first: int
    until: int
    state: State


def windows(published: Iterable[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Of each full year, by its end, the days [first, until) on which it is the latest one published.

    Takes pairs (end, day of publication). A year that is never the latest has no window.
    """
    spans: dict[int, tuple[int, int]] = {}
    until = FOREVER
    for end, day in sorted(published, reverse=True):
        if day < until:
            spans[end] = (day, until)
            until = day
    return dict(reversed(spans.items()))


def standing(window: tuple[int, int], completed: int, settled: int) -> list[tuple[int, State]]:
    """What the days of a window show of a value that is computable today, each from a day on.

    `completed` is the day on which the last of its inputs was first known, `settled` the one from which the
    last of them stands as it does today.
    """
    first, until = window
    completed, settled = min(max(completed, first), until), min(max(settled, first), until)
    shown = []
    if first < completed:
        shown.append((first, State.COMPLETED_AFTER_AS_OF))
    if completed < settled:
        shown.append((completed, State.REVISED_AFTER_AS_OF))
    if settled < until:
        shown.append((settled, State.STANDS))
    return shown
