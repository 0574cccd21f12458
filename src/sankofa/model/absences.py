"""Reasons for answers without rows (contract: ABS-1)."""

from collections.abc import Mapping
from datetime import date
from typing import Final

import msgspec


class Suggestion(msgspec.Struct, frozen=True):
    """Another question that may have rows."""

    path: str
    arguments: dict[str, str]
    why: str


class Absence(msgspec.Struct, frozen=True):
    """Why an answer has no rows."""

    reason: str
    """One of `ABSENCES`."""
    detail: str
    first: date | None = None
    last: date | None = None
    suggestions: tuple[Suggestion, ...] = msgspec.field(default=(), name="try")


ABSENCES: Final[Mapping[str, str]] = {
    "annual_indicator": "It is an annual indicator, whose dated series has another key.",
    "dated_series": "It is a series, not an annual indicator.",
    "end_of_list": "The pages of the list end here.",
    "figures_of_predecessor": "The figures are under the service_id of a predecessor.",
    "no_figures": "The organisation has identifiers and no figures.",
    "no_match": "Nothing passes the filters.",
    "not_covered": "The dataset has nothing of the country.",
    "not_reported": "The organisation does not report the line item.",
    "not_yet_known": "It became known only after the day asked for.",
    "nothing_known": "Nothing that matches was public on the day of the locked view.",
    "outside_dates": "Its values are of other dates.",
    "unknown_code": "There is no such series or indicator.",
    "unknown_line_item": "There is no such line item.",
    "unknown_organisation": "There is no such organisation.",
}
"""The reasons, by code."""
