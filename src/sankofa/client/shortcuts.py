"""The frames that most notebooks make of an answer first."""

from typing import TYPE_CHECKING, Any, Final, Literal

from sankofa.client.answers import Answer
from sankofa.client.frames import Figures, library

if TYPE_CHECKING:
    import pandas

StatementKind = Literal["income", "balance", "cash"]
_BESIDE_PERIODS: Final = 7
"""Columns of a wide statement before those of its periods."""


def by_date(answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """The observations of one series, by date, the oldest first."""
    return answer.to_pandas(figures=figures).set_index("date").sort_index()


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
    return answer.to_pandas().set_index("service_id")
