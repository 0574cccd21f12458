"""FRED and ALFRED: series, their observations by real-time period, vintage dates, search and release.

A real-time period is the days on which a value was the latest, as `/v1/macro` answers with `as_of`. Ids are
our series keys. docs/how-to/other-clients.md lists what is missing compared with FRED.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

import msgspec

from sankofa.dialects.contract import (
    JSON,
    Dialect,
    DialectQuestion,
    DialectReply,
    DialectRequest,
    ListedSeries,
    Row,
    rows_numbered,
    series_row,
    stored_row,
    tabled_numbers,
)
from sankofa.dialects.fred_values import (
    AGGREGATIONS,
    LAST_DAY,
    SHORT,
    UNITS,
    History,
    RealTimePeriod,
    ValueStep,
    aggregated,
    by_period,
    by_vintage_date,
    edition_on,
    figure,
    history,
    known_on,
    on_days,
    transformed,
    whole,
    xml_attributes,
    xml_document,
)
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.search import series_named
from sankofa.edition.read.series_catalogue import country_entries, release_rows
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.model.countries import country_and_subject
from sankofa.model.errors import InvalidParameter, NotFound, Problem
from sankofa.model.text import code_words
from sankofa.operations.contract import printable

_XML: Final = "text/xml; charset=UTF-8"
_CSV: Final = "text/csv; charset=utf-8"
_FIRST_DAY: Final = date(1776, 7, 4)
_EARLIEST: Final = "1600-01-01"
_LATEST: Final = str(LAST_DAY)
_ROWS: Final = 100_000
"""The `limit` of observations if none is sent; a longer series is sent whole."""
_BYTES_OF_A_ROW: Final = 90
_DATE: Final = len("2024-01-31")
_released = msgspec.json.Decoder(list[dict[str, Any]]).decode


class NoSuchSeries(InvalidParameter):
    """FRED answers 400 for an unknown series."""

    def __init__(self, key: str) -> None:
        super().__init__("series_id", f"the series {key[:80]} does not exist")


async def answer(question: DialectQuestion) -> DialectReply:
    request = question.request
    endpoint = _ENDPOINTS.get(request.path.strip("/"))
    if endpoint is None:
        raise NotFound(f"No such path; expected one of {', '.join(_ENDPOINTS)}.")
    perform, names = endpoint
    if not names.keys() >= request.values.keys():
        name = next(name for name in request.values if name not in names)
        raise InvalidParameter(printable(name), f"no such parameter; expected one of: {', '.join(names)}")
    return await perform(question)


def refuse(problem: Problem, request: DialectRequest) -> DialectReply:
    status = problem.status
    if ("file_type", "json") in request.query:
        error = {"error_code": status, "error_message": problem.detail}
        return DialectReply(msgspec.json.encode(error), JSON, status)
    attributes = {"code": status, "message": problem.detail}
    return DialectReply(xml_document("error", attributes, ()), _XML, status)


def _period(
    question: DialectQuestion, *, since_ever: bool = False, until_ever: bool = False
) -> RealTimePeriod:
    """The requested real-time period; by default, today or all days.

    Raises InvalidParameter for a day after the view's.
    """
    today, request = question.call.today, question.request
    if listed := request.given("vintage_dates"):
        days = sorted({request.read_day("vintage_dates", text) for text in listed.split(",")})
        if days[-1] > today:
            raise InvalidParameter("vintage_dates", f"later than {today}, the last day of this view")
        return RealTimePeriod(days[0], days[-1], days[-1], tuple(days))
    start = request.day("realtime_start") or (_FIRST_DAY if since_ever else today)
    end = request.day("realtime_end") or (LAST_DAY if until_ever else max(start, today))
    for name, day in (("realtime_start", start), ("realtime_end", end)):
        if day > today and not (name == "realtime_end" and day == LAST_DAY):
            raise InvalidParameter(name, f"later than {today}, the last day of this view")
    if start > end:
        raise InvalidParameter("realtime_start", "later than realtime_end")
    return RealTimePeriod(start, end, min(end, today))


async def _series(question: DialectQuestion) -> DialectReply:
    period = _period(question)
    key, row = await _requested_series(question, period)
    described = [await _described(edition_on(question, period.known), key, row, period)]
    return _written(question.request, "seriess", "series", period.echo(), described)


def _requested_key(question: DialectQuestion) -> str:
    if not (key := question.request.given("series_id").upper()):
        raise InvalidParameter("series_id", "required")
    return key


async def _requested_series(question: DialectQuestion, period: RealTimePeriod) -> tuple[str, ListedSeries]:
    """The key and catalogue row of the requested series, as known at the end of the period."""
    key = _requested_key(question)
    row = await series_row(edition_on(question, period.known), key)
    if row is None:
        raise NoSuchSeries(key)
    return key, row


async def _described(
    edition: Edition, key: str, row: ListedSeries, period: RealTimePeriod
) -> dict[str, object]:
    releases = await release_rows(edition, row.series, 0, 1)
    updated = _released(b"[%b]" % releases.rows)[0]["release_date"] if releases and releases.count else ""
    return {
        "id": key,
        **period.echo(),
        "title": row.name or key,
        "observation_start": row.first_date,
        "observation_end": row.last_date,
        "frequency": row.frequency.capitalize(),
        "frequency_short": SHORT[row.frequency].upper(),
        "units": row.unit or "",
        "units_short": row.unit or "",
        "seasonal_adjustment": "Not Available",
        "seasonal_adjustment_short": "NA",
        "last_updated": f"{updated or row.last_date} 00:00:00+00",
        "popularity": 0,
        "notes": row.note or "",
    }


async def _observations(question: DialectQuestion) -> DialectReply:
    request = question.request
    form = request.number("output_type", 1, 1, 4)
    period = _period(question, since_ever=form > 2)
    key = _requested_key(question)
    row = await series_row(whole(question.call.edition), key)
    order = request.chosen("sort_order", ("asc", "desc"), "asc")
    echo = {
        **period.echo(),
        "observation_start": request.day("observation_start") or _EARLIEST,
        "observation_end": request.day("observation_end") or _LATEST,
        "units": request.chosen("units", UNITS, "lin"),
        "output_type": form,
        "file_type": request.given("file_type") or "xml",
        "order_by": "observation_date",
        "sort_order": order,
    }
    values = {} if row is None else await _values_of_period(question, key, period, form)
    if row is None or not values:  # unknown, or not known yet
        _, row = await _requested_series(question, period)
    size = _BYTES_OF_A_ROW * (values.count("\n") if isinstance(values, str) else len(values))
    return await in_thread_if_large(size, _observed, question, values, key, row, period, echo)


def _observed(
    question: DialectQuestion,
    known: History | str,
    key: str,
    row: ListedSeries,
    period: RealTimePeriod,
    echo: Row,
) -> DialectReply:
    """The values in the requested units, frequency and order."""
    request, form, units = question.request, echo["output_type"], echo["units"]
    own = SHORT[row.frequency]
    frequency = request.chosen("frequency", AGGREGATIONS, own)
    method = request.chosen("aggregation_method", ("avg", "sum", "eop"), "avg")
    first, last = str(echo["observation_start"]), str(echo["observation_end"])
    rows: list[Any]
    if isinstance(known, str) and units == "lin" and frequency == own:
        if (first, last, echo["sort_order"]) != (_EARLIEST, _LATEST, "asc"):
            lines = known.splitlines()
            lines = lines[bisect_left(lines, first) : bisect_right(lines, f"{last}~")]
            known = "\n".join(lines if echo["sort_order"] == "asc" else reversed(lines))
        return _page(question, "observations", "observation", echo, known, _ROWS)
    values = _history(known, period.known)
    if frequency != own:
        values = aggregated(values, own, frequency, method)
    values = transformed(values, units, frequency)
    values = {at: steps for at, steps in values.items() if first <= str(at) <= last}
    if form in (2, 3):
        rows = by_vintage_date(key, values, period, only_new=form == 3)
    else:
        rows = by_period(values, period, only_first=form == 4)
    if echo["sort_order"] == "desc":
        rows.reverse()
    return _page(question, "observations", "observation", echo, rows, _ROWS)


async def _values_of_period(
    question: DialectQuestion, key: str, period: RealTimePeriod, form: int = 1
) -> History | str:
    """The latest values within a period, oldest first; for one day, those of `/v1/macro`. All output types
    but the first need the days on which a value became the latest. The sample tier may request a few."""
    rows = None
    if form == 1 and period.start == period.known and not question.call.grant.sample:
        rows = await known_on(question, key, period.known)
    return await history(question.call.edition, key, period.known) if rows is None else rows


def _history(known: History | str, day: date) -> History:
    if isinstance(known, dict):
        return known
    values = [(date.fromisoformat(one[:_DATE]), one[_DATE + 1 :]) for one in known.splitlines()]
    return {at: [ValueStep(day.toordinal(), None if text == "." else Decimal(text))] for at, text in values}


async def _vintage_dates(question: DialectQuestion) -> DialectReply:
    period = _period(question, since_ever=True, until_ever=True)
    key, _ = await _requested_series(question, period)
    known = await history(question.call.edition, key, period.known)
    days = sorted({date.fromordinal(step.day) for steps in known.values() for step in steps})
    days = [day for day in days if day >= period.start]
    order = question.request.chosen("sort_order", ("asc", "desc"), "asc")
    if order == "desc":
        days.reverse()
    echo = {**period.echo(), "order_by": "vintage_date", "sort_order": order}
    size = _BYTES_OF_A_ROW * len(days)
    return await in_thread_if_large(
        size, _page, question, "vintage_dates", "vintage_date", echo, days, 10_000
    )


async def _search(question: DialectQuestion) -> DialectReply:
    """GET /fred/series/search: series whose id or name has every word; words may name the country."""
    request, period = question.request, _period(question)
    text = request.given("search_text")
    if not text:
        raise InvalidParameter("search_text", "required")
    rows = await _matching(question.call.edition, text)
    question.refuse_cut(len(rows), "This search")
    if request.given("filter_variable"):
        field = _FIELDS[request.chosen("filter_variable", ("frequency", "units", "seasonal_adjustment"), "")]
        value = request.given("filter_value").lower()
        rows = [row for row in rows if field and str(getattr(row, field) or "").lower() == value]
    order = request.chosen("order_by", _FIELDS, "search_rank")
    direction = request.chosen("sort_order", ("asc", "desc"), "asc")
    if field := _FIELDS[order]:
        rows.sort(key=lambda row: str(getattr(row, field) or ""), reverse=direction == "desc")
    offset, most = request.number("offset", 0, 0, 10**8), request.number("limit", 1000, 1, 1000)
    edition = edition_on(question, period.known)
    described = [await _described(edition, row.series, row, period) for row in rows[offset : offset + most]]
    echo = {**period.echo(), "order_by": order, "sort_order": direction}
    sizes = {"count": len(rows), "offset": offset, "limit": most}
    return _written(request, "seriess", "series", {**echo, **sizes}, described)


async def _matching(edition: Edition, text: str) -> list[ListedSeries]:
    """The dated series of a search; an annual indicator is its `WDI:` series, one for each country."""
    if own := await series_row(edition, text.upper()):
        return [own]
    query_words = code_words(text)
    numbers = await _numbered(edition, query_words)
    place, subject = country_and_subject(query_words, None)
    if place is not None and subject and subject != query_words:  # those of the country that the words name
        of_place = {*await country_entries(whole(edition), place)}
        numbers += [number for number in await _numbered(edition, subject) if number in of_place]
    return await rows_numbered(edition, list(dict.fromkeys(numbers)))


async def _numbered(edition: Edition, query_words: list[str]) -> list[int]:
    """The catalogue numbers of the dated series with every word."""
    tabled = await tabled_numbers(edition)
    numbers: list[int] = []
    # a locked view's catalogue has no indicators: their tables have no release day
    for first, end in await series_named(whole(edition), query_words):
        row = await stored_row(edition, first)
        numbers += range(first, end) if row.vintages else tabled.get(row.series, [])
    return numbers


_FIELDS: Final = {
    "series_id": "series",
    "title": "name",
    "units": "unit",
    "frequency": "frequency",
    "observation_start": "first_date",
    "observation_end": "last_date",
    "last_updated": "last_date",
    **dict.fromkeys("search_rank popularity seasonal_adjustment realtime_start realtime_end".split(), ""),
}
"""The catalogue field for each search order; empty for orders in which all rows are equal."""


async def _release(question: DialectQuestion) -> DialectReply:
    """GET /fred/series/release: the source of a series."""
    period = _period(question)
    _, row = await _requested_series(question, period)
    sources = await question.rows("get_sources")
    source = next((one for one in sources if one["source_id"] == row.source_id), {})
    release = {
        "id": zlib.crc32(row.source_id.encode()) >> 1,
        **period.echo(),
        "name": source.get("title") or row.source_id,
        "press_release": False,
        "link": source.get("url") or "",
    }
    return _written(question.request, "releases", "release", period.echo(), [release])


async def _graph(question: DialectQuestion) -> DialectReply:
    """GET /fred/graph/fredgraph.csv: the values of a few series by date, as known on the day of the view."""
    request = question.request
    first, last = request.day("cosd") or date(1600, 1, 1), request.day("coed") or LAST_DAY
    day = request.day("vintage_date") or question.call.today
    if day > question.call.today:
        raise InvalidParameter("vintage_date", f"later than {question.call.today}")
    keys = [key.upper() for key in request.given("id").split(",") if key]
    if not keys or len(keys) > 12:
        raise InvalidParameter("id", "expected 1 to 12 series")
    columns = []
    for key in keys:
        columns.append(_history(await _values_of_period(question, key, RealTimePeriod(day, day, day)), day))
        if not columns[-1] and await series_row(edition_on(question, day), key) is None:
            raise NoSuchSeries(key)
    dates = sorted({at for column in columns for at in column if first <= at <= last})
    question.refuse_cut(len(dates))
    lines = [",".join(("observation_date", *keys))]
    for at in dates:
        figures = (figure(*on_days(column.get(at, []), [day.toordinal()])) for column in columns)
        lines.append(",".join((str(at), *figures)))
    return DialectReply(("\n".join(lines) + "\n").encode(), _CSV)


def _page(
    question: DialectQuestion, root: str, element: str, echo: Row, rows: list[Any] | str, default: int
) -> DialectReply:
    """The rows from `offset` on, at most `limit`; all without a `limit`. Text has an observation per line."""
    by_day = echo.get("output_type") in (2, 3)
    request = question.request
    offset, most = request.number("offset", 0, 0, 10**8), request.number("limit", default, 1, _ROWS)
    if offset:
        question.call.grant.requires_paid("offset")
    count = sent = len(rows) if isinstance(rows, list) else rows.count("\n") + bool(rows)
    if offset or count > most:
        listed = rows if isinstance(rows, list) else rows.splitlines()
        listed = listed[offset : offset + most] if request.given("limit") else listed[offset:]
        sent, rows = len(listed), listed if isinstance(rows, list) else "\n".join(listed)
    question.refuse_cut(sum(len(row) - 1 for row in rows) if by_day else sent)
    sizes = {"count": count, "offset": offset, "limit": most}
    return _written(request, root, element, {**echo, **sizes}, rows)


def _written(
    request: DialectRequest,
    root: str,
    element: str,
    attributes: Mapping[str, object],
    content: list[Any] | str,
) -> DialectReply:
    """Rows in the format of `file_type`, by default XML. Raises InvalidParameter."""
    file_type = request.given("file_type", "xml")
    lines, rows = (content, []) if isinstance(content, str) else ("", content)
    start, end = attributes.get("realtime_start"), attributes.get("realtime_end")
    if file_type == "json":
        if not lines:
            return DialectReply(msgspec.json.encode({**attributes, root: rows}), JSON)
        opening = f'{{"realtime_start":"{start}","realtime_end":"{end}","date":"'
        listed = _around(lines, opening, '","value":"', '"},')
        head = msgspec.json.encode(attributes).removesuffix(b"}")
        return DialectReply(b'%b,"%b":[%b]}' % (head, root.encode(), listed.encode()), JSON)
    if file_type != "xml":
        raise InvalidParameter("file_type", "expected xml or json")
    children: Iterable[str] = ()
    if lines:
        opening = f'<{element} realtime_start="{start}" realtime_end="{end}" date="'
        children = (_around(lines, opening, '" value="', '"/>\n'),)
    elif rows and isinstance(rows[0], date):
        children = (f"<{element}>{row}</{element}>" for row in rows)
    else:
        fields = (row if isinstance(row, dict) else msgspec.structs.asdict(row) for row in rows)
        children = (f"<{element}{xml_attributes(row)}/>" for row in fields)
    return DialectReply(xml_document(root, attributes, children), _XML)


def _around(lines: str, opening: str, middle: str, closing: str) -> str:
    """Lines of dates and figures with text around both; the last character of `closing` only separates."""
    between = lines.replace(" ", middle).replace("\n", closing + opening)
    return f"{opening}{between}{closing[:-1]}"


_PARAMETERS: Final = ("series_id", "realtime_start", "realtime_end", "file_type")
_PAGED: Final = "limit offset sort_order"
_SELECTED: Final = "observation_start observation_end units frequency aggregation_method"
_SEARCHED: Final = "search_text search_type order_by filter_variable filter_value"
_ENDPOINTS: Final = {
    path: (perform, dict.fromkeys((*_PARAMETERS, *names.split())))
    for path, perform, names in (
        ("series", _series, ""),
        ("series/observations", _observations, f"{_PAGED} {_SELECTED} output_type vintage_dates"),
        ("series/vintagedates", _vintage_dates, _PAGED),
        ("series/search", _search, f"{_PAGED} {_SEARCHED}"),
        ("series/release", _release, ""),
        ("graph/fredgraph.csv", _graph, "id cosd coed vintage_date"),
    )
}
"""The function of each path, and its parameters besides the common ones."""
DIALECT: Final = Dialect("fred", ("/fred",), answer, refuse, key_parameter="api_key")
