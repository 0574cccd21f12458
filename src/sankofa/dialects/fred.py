"""FRED and ALFRED: series, their observations by real-time period, vintage dates, search and release.

A real-time period is the days on which a value stood, as `/v1/macro` answers with `as_of`. Ids are our series
keys. See docs/other-clients.md for what FRED has and this has not.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import msgspec

from sankofa.dialects.contract import JSON, Dialect, Question, Reply, Request
from sankofa.dialects.series import edition_on, history, series_row
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.series_catalogue import release_rows
from sankofa.model.catalogue_rows import SeriesCatalogueRow
from sankofa.model.days import parse_day
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.observations import TABLED, tabled_series

_XML: Final = "text/xml; charset=UTF-8"
_FIRST_DAY: Final = date(1776, 7, 4)
_LAST_DAY: Final = date(9999, 12, 31)
_FREQUENCIES: Final = {"daily": "D", "weekly": "W", "monthly": "M", "quarterly": "Q", "annual": "A"}
_released = msgspec.json.Decoder(list[dict[str, Any]]).decode


class NoSuchSeries(InvalidParameter):
    """FRED answers 400 for a series that it has not."""

    def __init__(self, key: str) -> None:
        super().__init__("series_id", f"the series {key[:80]} does not exist")


async def answer(question: Question) -> Reply:
    request = question.request
    endpoint = _ENDPOINTS.get(request.path.strip("/"))
    if endpoint is None:
        raise NotFound(f"No such path; there are {', '.join(_ENDPOINTS)}.")
    return await endpoint(question)


def refuse(problem: Problem, request: Request) -> Reply:
    """An error as FRED writes it."""
    status = problem.status
    if ("file_type", "json") in request.query:
        return Reply(_json({"error_code": status, "error_message": problem.detail}), JSON, status)
    attributes = {"code": status, "message": problem.detail}
    return Reply(_document("error", attributes, ()), _XML, status)


class _Period(msgspec.Struct, frozen=True):
    """A real-time period, both days included."""

    start: date
    end: date
    """As asked; 9999-12-31 stands for the day of the view."""
    known: date
    """The last day of it that the view has."""


def _period(question: Question, *, all_days: bool = False) -> _Period:
    """The real-time period asked for; today, or with `all_days` every day, where none is. Raises
    InvalidParameter."""
    today = question.call.today
    start = _day(question.request, "realtime_start") or (_FIRST_DAY if all_days else today)
    end = _day(question.request, "realtime_end") or (_LAST_DAY if all_days else today)
    for name, day in (("realtime_start", start), ("realtime_end", end)):
        if day > today and not (name == "realtime_end" and day == _LAST_DAY):
            raise InvalidParameter(name, f"later than {today}, the last day that this view has")
    if start > end:
        raise InvalidParameter("realtime_start", "later than realtime_end")
    return _Period(start, end, min(end, today))


def _day(request: Request, name: str) -> date | None:
    text = request.given(name)
    try:
        return parse_day(text) if text else None
    except ValueError as failure:
        raise InvalidParameter(name, str(failure)) from None


async def _series(question: Question) -> Reply:
    """GET /fred/series."""
    period = _period(question)
    key, row = await _asked_series(question, period)
    described = [await _described(edition_on(question, period.known), key, row, period)]
    return _written(question.request, "seriess", "series", _echo(period), described)


async def _asked_series(question: Question, period: _Period) -> tuple[str, SeriesCatalogueRow]:
    """The key and the catalogue row of the series asked for, as known at the end of the period."""
    key = question.request.given("series_id").upper()
    if not key:
        raise InvalidParameter("series_id", "required")
    row = await series_row(edition_on(question, period.known), key)
    if row is None:
        raise NoSuchSeries(key)
    return key, row


async def _described(
    edition: Edition, key: str, row: SeriesCatalogueRow, period: _Period
) -> dict[str, object]:
    first, last, updated = row.first_date, row.last_date, None
    if key.startswith(TABLED):  # its catalogue row is that of today's table
        known = await history(edition, key, period.known)
        first, last = (min(known), max(known)) if known else (first, last)
        updated = max((date.fromordinal(steps[-1].day) for steps in known.values()), default=None)
    elif (releases := await release_rows(edition, row.series, 0, 1)) and releases[0]:
        updated = _released(b"[%b]" % releases[0][0])[0]["release_date"]
    return {
        "id": key,
        **_echo(period),
        "title": row.name or key,
        "observation_start": first,
        "observation_end": last,
        "frequency": row.frequency.capitalize(),
        "frequency_short": _FREQUENCIES[row.frequency],
        "units": row.unit or "",
        "units_short": row.unit or "",
        "seasonal_adjustment": "Not Available",
        "seasonal_adjustment_short": "NA",
        "last_updated": f"{updated or last} 00:00:00+00",
        "popularity": 0,
        "notes": row.note or "",
    }


def series_id(row: SeriesCatalogueRow) -> str:
    """The id of a catalogue row; an annual indicator of a country is its `WDI:` series."""
    if row.vintages or row.country is None:
        return row.series
    return tabled_series(row.series, row.country)


def _echo(period: _Period) -> dict[str, object]:
    return {"realtime_start": period.start, "realtime_end": period.end}


def _written(
    request: Request, root: str, element: str, attributes: Mapping[str, object], rows: list[dict[str, object]]
) -> Reply:
    """Rows in the form that `file_type` asks for: XML where it is not there. Raises InvalidParameter."""
    file_type = request.given("file_type", "xml")
    if file_type == "json":
        return Reply(_json({**attributes, root: rows}), JSON)
    if file_type != "xml":
        raise InvalidParameter("file_type", "expected xml or json")
    return Reply(_document(root, attributes, (f"<{element}{_attributes(row)}/>" for row in rows)), _XML)


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)


def _document(root: str, attributes: Mapping[str, object], children: Any) -> bytes:
    inside = "\n".join(children)
    body = f">\n{inside}\n</{root}>" if inside else "/>"
    return f'<?xml version="1.0" encoding="utf-8" ?>\n<{root}{_attributes(attributes)}{body}\n'.encode()


def _attributes(row: Mapping[str, object]) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in row.items())


_ENDPOINTS: Final = {"series": _series}
DIALECT: Final = Dialect("fred", ("/fred",), answer, refuse, key_parameter="api_key")
