"""The frames that most notebooks make of an answer first."""

from typing import TYPE_CHECKING, Any

from sankofa.client.answers import Answer
from sankofa.client.frames import Figures

if TYPE_CHECKING:
    import pandas


def by_date(answer: Answer[Any], figures: Figures) -> "pandas.DataFrame":
    """The observations of one series, by date, the oldest first."""
    return answer.to_pandas(figures=figures).set_index("date").sort_index()
