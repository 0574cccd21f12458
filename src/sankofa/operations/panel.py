"""GET /v1/panel, /v1/series/{series}/matrix and /v1/fundamentals/{service_id}/matrix: wide tables."""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.issuer_figures import (
    PanelCells,
    PanelColumns,
    PanelRows,
    PanelTable,
    change_days,
    history_of,
    line_item_of,
    series_on,
)
from sankofa.edition.read.issuers import issuers_in_order, issuers_on
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import FigureMatrixRow, IssuerDayRow, MatrixRow, NthFigureRow, NthReleaseRow
from sankofa.model.days import iso_day, ordinal
from sankofa.model.errors import Absence, InvalidParameter
from sankofa.model.identifiers import exchange as exchange_name
from sankofa.model.limits import limit as bound
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import EVERY_SOURCE, FUND, MACRO
from sankofa.model.rows import Row, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import BASIS, Answer, Call, operation
from sankofa.operations.fundamentals import read_figures
from sankofa.operations.nearest import refuse_unknown_series, unknown_organisation
from sankofa.operations.paging import ListPage, first_page

MOST_COLUMNS: Final = bound("columns of a panel", 50, "metrics, line items and series", "400")
MOST_DAYS: Final = bound("days of a panel", 1_500, "days from `from` to `to`, one in each period", "400")
_CHANGE: Final = "change"
_ROWS_PER_YIELD: Final = 2_000
_CELLS_PER_YIELD: Final = 64
_ISSUERS_AT_ONCE: Final = 64


def _check(grant: Grant, arguments: Mapping[str, Any]) -> None:
    columns = _columns(*(arguments[name] for name in ("metrics", "line_items", "series")))
    if not columns:
        raise InvalidParameter("metrics", "expected at least one of metrics, line_items and series")
    if len(columns) > MOST_COLUMNS:
        raise InvalidParameter("metrics", f"at most {MOST_COLUMNS} metrics, line items and series together")
    if arguments["every"] == _CHANGE:
        if arguments["series"]:
            raise InvalidParameter("every", "`change` is for metrics and line items; leave series out")
    elif (to := arguments["to"]) is not None:
        _days(arguments["from_"], to, arguments["every"])
    if (to := arguments["to"]) is not None and to < arguments["from_"]:
        raise InvalidParameter("to", "before `from`")


@operation(
    "/v1/panel", row=IssuerDayRow, members=BASIS, tool="get_panel", paid=True, check=_check, extension=True
)
async def get_panel(
    call: Call,
    *,
    from_: parameters.PanelFrom,
    metrics: parameters.PanelMetrics = None,
    line_items: parameters.PanelLineItems = None,
    series: parameters.PanelSeries = None,
    to: parameters.PanelTo = None,
    every: parameters.Every = "month",
    country: parameters.Country = None,
    exchange: parameters.Exchange = None,
    issuers: parameters.PanelIssuers = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """One row for each issuer and day, with every column as known on that day.

    A metric has its value from `/v1/metrics` with `basis=as_known`, a line item the latest full year's figure
    from `/v1/statements`, a series its latest observation. `missing` gives the reason for each empty cell;
    `age_days` counts the days since the year or the observation ended. An issuer has rows from the day its
    first figure became public. Ordered by country (issuers without a country last), then service_id and day;
    with `issuers`, by service_id and day. Needs the starter tier or above.
    """
    names, keys = _columns(metrics, line_items), _columns([key.upper() for key in series or ()])
    market = None if exchange is None else exchange_name(exchange)
    ids = None if issuers is None else tuple(sorted({issuer.upper() for issuer in issuers}))
    page = await first_page(
        call, "panel", names, keys, from_, every, country, market, ids, as_of=to, cursor=cursor
    )
    first, last = from_.toordinal(), page.day.toordinal()
    days = [] if every == _CHANGE else _days(from_, page.day, every)
    cells = await _series_cells(page.edition, keys, days)
    panel = PanelCells(PanelColumns(names, days, keys, cells))
    most = call.grant.rows(limit)
    written = PanelTable() if call.as_columns else PanelRows(panel.columns)
    count = 0
    key: SortKey = ()
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    more = False
    known_by = last if every == _CHANGE else days[-1] if days else 0
    async for listed_under, service_id in _universe(page, known_by, country, market, ids):
        history = await history_of(page.edition, service_id)
        if history is None:
            continue
        if every == _CHANGE:
            panel = PanelCells(PanelColumns(names, change_days(history, names, first, last)))
        own_days = panel.columns.days
        begin = bisect_left(own_days, history.known_from)
        if page.key[:2] == (listed_under, service_id):
            begin = max(begin, bisect_right(own_days, ordinal(str(page.key[2]))))
        end = min(len(own_days), begin + most - count)
        await yield_points.step(end - begin + 1)
        if begin < end:
            written.add(history, panel.steady_days(history, begin, end))
            count += end - begin
            key = (listed_under, service_id, iso_day(own_days[end - 1]))
        if end < len(own_days):
            more = True
            break
    rows = written if isinstance(written, PanelRows) else ()
    selection = Selection(rows, count, truncated=more, following=(0,) if more else None)
    answer = page.answer(
        selection,
        key,
        members={"basis": "as_known"},
        shape=IssuerDayRow,
        dataset=EVERY_SOURCE if keys else FUND,
        more_columns=(*names, *keys),
        columns=written.columns() if isinstance(written, PanelTable) else None,
    )
    if days or every == _CHANGE:
        return answer
    return replace(answer, absent=Absence("outside_dates", f"No {every} ends from {from_} to {page.day}."))


def _columns(*lists: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names or ()))


def _days(first: date, last: date, every: str) -> list[int]:
    """The last day of each period between two days. Raises InvalidParameter for too many."""
    days: list[int] = []
    day = _period_end(first, every)
    while day <= last:
        if len(days) == MOST_DAYS:
            raise InvalidParameter("every", f"more than {MOST_DAYS} days; choose longer periods")
        days.append(day.toordinal())
        day = _period_end(day + timedelta(days=1), every)
    return days


def _period_end(day: date, every: str) -> date:
    if every == "week":
        return day + timedelta(days=6 - day.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    month = day.month + -day.month % months
    return date(day.year, month, monthrange(day.year, month)[1])


async def _series_cells(edition: Edition, keys: tuple[str, ...], days: Sequence[int]) -> list[Any]:
    yield_points = YieldPoints(_CELLS_PER_YIELD)
    cells = []
    for day in days if keys else ():
        cells.append([await series_on(edition, key, day) for key in keys])
        await yield_points.step(len(keys))
    return cells


async def _universe(
    page: ListPage, known_by: int, country: str | None, exchange: str | None, ids: tuple[str, ...] | None
) -> AsyncIterator[tuple[str, str]]:
    """The issuers of a page in order, each with the country that it sorts by."""
    if ids is not None:
        admitted = None
        if country is not None or exchange is not None:
            listed = _listed(page.edition, known_by, country, exchange, 0)
            admitted = {service_id async for _, service_id in listed}
        behind = str(page.key[1]) if page.key else ""
        for service_id in ids:
            if service_id >= behind and (admitted is None or service_id in admitted):
                yield "", service_id
        return
    order = await issuers_in_order(page.edition, known_by)
    first = await order.behind(page.key[:2], or_at=True) if page.key else 0
    async for listed_issuer in _listed(page.edition, known_by, country, exchange, first):
        yield listed_issuer


async def _listed(
    edition: Edition, known_by: int, country: str | None, exchange: str | None, first: int
) -> AsyncIterator[tuple[str, str]]:
    order = await issuers_in_order(edition, known_by)
    while True:
        some = await issuers_on(order, known_by, country, exchange, first, _ISSUERS_AT_ONCE)
        for row_slice in islice(some.slices, 0, None, some.slices_per_row):
            listed_under, service_id = order.key(bytes(row_slice))
            yield str(listed_under), str(service_id)
        if some.following is None:
            return
        first = int(some.following[0])


MOST_CELLS: Final = bound("cells of a vintage matrix", 1_000_000, "dates times release days", "400")
_MATRIX_CELLS_PER_YIELD: Final = 50_000
_DETAILS: Final = ("period_type", "period_start", "concept", "unit")
"""The fields that tell apart figures with the same date."""


class _Vintage(NamedTuple):
    available_at: date
    number: int
    value: bytes
    fields: dict[str, Any]
    """The fields of its row besides the values."""

    @property
    def row(self) -> tuple[date, ...]:
        """The date, and the other fields that identify its row."""
        return self.fields["date"], *(str(self.fields.get(name) or "") for name in _DETAILS[1:])


@operation(
    "/v1/series/{series}/matrix",
    dataset=MACRO,
    row=MatrixRow,
    also=(NthReleaseRow,),
    extension=True,
)
async def get_series_matrix(
    call: Call,
    *,
    series: parameters.SeriesKey,
    as_of: parameters.AsOf = None,
    from_: parameters.FromDay = None,
    to: parameters.ToDay = None,
    release: parameters.Release = "all",
    country: parameters.MacroCountry = None,
) -> Answer:
    """Every vintage of a series side by side: a row for each date, a column for each release day.

    A cell is the value known on that release day, as `/v1/macro` returns it with `as_of`. Every release day
    known on `as_of` is a column, oldest first; `from` and `to` select rows, not columns. With
    `release=revisions` a cell is the value that replaced another on that day; dates and days without one are
    left out. With `first`, `latest` or a number the columns are `available_at` and `value` of that release of
    each date. Ordered by date. CSV, Arrow and Excel have `date` and these columns only. The sample tier gets
    the first rows with `truncated: true`, paid tiers everything. If several series share the key, choose one
    with `country`.
    """
    day, key = as_of or call.today, series.upper()
    columns = await columns_of_series(call.edition, key)
    known = defaultdict(list)
    for column in columns:
        async for one in every_vintage(call.edition, column, day):
            value, fields = wire.encode(one.value), _fields(one, one.date)
            known[column].append(_Vintage(one.available_at, one.vintage, value, fields))
    if not known:
        await refuse_unknown_series(call.edition, series)
    countries = {column: column.split("|")[3] for column in known}
    chosen = [column for column in known if country in (None, countries[column])]
    if len(chosen) > 1:
        several = ", ".join(sorted(filter(None, countries.values())))
        raise InvalidParameter("country", f"several series share this key; choose one of {several}")
    vintages = known[chosen[0]] if chosen else []
    return await _matrix(call, vintages, day, (from_, to), release, (MatrixRow, NthReleaseRow))


@operation(
    "/v1/fundamentals/{service_id}/matrix",
    dataset=FUND,
    row=FigureMatrixRow,
    also=(NthFigureRow,),
    extension=True,
)
async def get_fundamentals_matrix(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    line_item: parameters.MatrixLineItem,
    period_type: parameters.PeriodType = None,
    as_of: parameters.AsOf = None,
    from_: parameters.FromDay = None,
    to: parameters.ToDay = None,
    release: parameters.Release = "all",
) -> Answer:
    """Every vintage of a line item side by side: a row for each period, a column for each release day.

    A cell is the figure known on that release day; `date` is the last day of the period. The rest is as in
    `/v1/series/{series}/matrix`. Figures with the same date differ in period_type, period_start, concept or
    unit. JSON always has these four fields; CSV, Arrow and Excel have only those that differ. Ordered by
    date, then by these.
    """
    day, key, encoded = as_of or call.today, service_id.upper(), line_item.encode()
    tag = ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type)
    selection = await call.edition.select(
        "fundamentals",
        key,
        day=day.toordinal(),
        modes=int(Mode.ALL),
        tag=tag,
        where=lambda row: line_item_of(row) == encoded,
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    vintages = [
        _Vintage(
            one.available_at,
            one.vintage,
            wire.encode(one.value_reported),
            _fields(one, one.period_end) | {name: getattr(one, name) for name in _DETAILS},
        )
        for chunk in selection.lists()
        for one in read_figures(chunk)
    ]
    return await _matrix(call, vintages, day, (from_, to), release, (FigureMatrixRow, NthFigureRow))


def _fields(one: Any, day: date) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("source_ref", "license_class", "observed_at")} | {
        "date": day
    }


async def _matrix(
    call: Call,
    vintages: Sequence[_Vintage],
    day: date,
    span: tuple[date | None, date | None],
    release: str,
    shapes: tuple[type[Row], type[Row]],
) -> Answer:
    """The rows of a matrix or of one release. Raises InvalidParameter if there are too many cells."""
    is_wide = release in ("all", "revisions")
    if release == "revisions":
        vintages = [one for one in vintages if one.number > 1 and one.available_at >= one.fields["date"]]
    since, until = span[0] or date.min, span[1] or date.max
    vintages_in_order = sorted(vintages, key=lambda one: (one.row, one.number))
    ordered = [
        list(own)
        for row, own in groupby(vintages_in_order, key=lambda one: one.row)
        if since <= row[0] <= until
    ]
    if not is_wide:
        ordered = [some for own in ordered if (some := _released(own, release))]
    days = sorted({one.available_at for one in vintages}) if is_wide else []
    most = call.grant.rows_or_all(None)
    shown = ordered[:most]
    if len(shown) * len(days) > MOST_CELLS:
        raise InvalidParameter(
            "from",
            f"{len(shown)} dates and {len(days)} release days are more than {MOST_CELLS} cells: "
            "narrow `from` and `to`, or ask for one release of each date (`release=latest`)",
        )
    rows, names = [], {day: f'"{day}":'.encode() for day in days}
    yield_points = YieldPoints(_MATRIX_CELLS_PER_YIELD)
    for own in shown:
        newest = own[-1]
        if is_wide:
            cells = _cells(own, names, only_new=release != "all")
            rows.append(b"%b,%b}" % (wire.encode(shapes[0](**newest.fields))[:-1], cells))
        else:
            value = {"available_at": newest.available_at, "value": msgspec.Raw(newest.value)}
            rows.append(wire.encode(shapes[1](**(newest.fields | value))))
        await yield_points.step(len(days) + 1)
    more_columns = tuple(one.isoformat() for one in days)
    columns = more_columns if is_wide else ("available_at", "value")
    return Answer(
        Selection(rows, len(rows), truncated=len(shown) < len(ordered)),
        as_of=day,
        shape=shapes[not is_wide],
        more_columns=more_columns,
        tabular=("date", *_telling_apart(ordered), *columns),
    )


def _released(own: list[_Vintage], release: str) -> list[_Vintage]:
    if release == "latest":
        return own[-1:]
    number = 1 if release == "first" else int(release)
    return [one for one in own if one.number == number]


def _telling_apart(ordered: Sequence[list[_Vintage]]) -> tuple[str, ...]:
    """The details by which rows of the same date differ."""
    by_date: defaultdict[date, list[dict[str, Any]]] = defaultdict(list)
    for own in ordered:
        by_date[own[-1].fields["date"]].append(own[-1].fields)
    several = [some for some in by_date.values() if len(some) > 1]
    return tuple(name for name in _DETAILS if any(len({one[name] for one in some}) > 1 for some in several))


def _cells(own: list[_Vintage], names: Mapping[date, bytes], *, only_new: bool) -> bytes:
    """The value of each release day, as members of a JSON object."""
    row, cells, at, value = own[0].fields["date"], [], 0, b"null"
    came = {one.available_at: one.value for one in own} if only_new else {}
    for day, name in names.items():
        # A value is not known before its own date, even if a source publishes it sooner.
        while at < len(own) and own[at].available_at <= day and row <= day:
            value = own[at].value
            at += 1
        cells.append(name + (came.get(day, b"null") if only_new else value))
    return b",".join(cells)
