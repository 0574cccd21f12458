"""The frames that most notebooks make of an answer first."""

from typing import TYPE_CHECKING, Any, Final, Literal

from sankofa.client.answers import Answer
from sankofa.client.errors import UnknownSeries
from sankofa.client.frames import Figures, library
from sankofa.client.notebook import PROVENANCE

if TYPE_CHECKING:
    import pandas

StatementKind = Literal["income", "balance", "cash"]
_BESIDE_PERIODS: Final = 7
"""Columns of a wide statement before those of its periods."""


def series_key(series: object) -> str:
    """The key that is asked for. Raises ValueError: without one the service would give annual figures."""
    if not isinstance(series, str) or not series:
        raise ValueError(f"series: expected text, not {series!r}")
    return series


def by_date(series: str, answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """The observations of one series, by date, the oldest first. Raises UnknownSeries."""
    nearest, hint = answer.members.get("nearest"), answer.members.get("hint")
    if hint is not None:
        raise UnknownSeries(hint, [])
    if nearest is not None:
        close = f"; nearest: {', '.join(nearest)}" if nearest else ""
        raise UnknownSeries(f"{series}: no such series{close}", nearest)
    return _values_first(answer.to_pandas(figures=figures).set_index("date").sort_index(), "value")


def by_period(answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """A wide statement: a row for each line item, a column for each period, newest first.

    `attrs["cells"]` has of each figure, by line item and period, its concept, vintage and source.
    """
    frame = answer.to_pandas(figures=figures).set_index("line_item")
    periods = list(frame.columns)[_BESIDE_PERIODS - 1 :]
    wide = frame[periods].set_axis(library("pandas").to_datetime(periods), axis="columns")
    wide.attrs = {**answer.attrs, "cells": {row["line_item"]: row["cells"] for row in answer.rows}}
    return wide


def universe_frame(answer: Answer[Any]) -> "pandas.DataFrame":
    """The issuers of a day, by service_id."""
    return _values_first(answer.to_pandas().set_index("service_id"))


def _values_first(frame: "pandas.DataFrame", *first: str) -> "pandas.DataFrame":
    """The columns to be seen first, then the others, then provenance: a terminal shows both ends."""
    others = [name for name in frame.columns if name not in (*first, *PROVENANCE)]
    return frame[[*first, *others, *PROVENANCE]]
