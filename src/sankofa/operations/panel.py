"""GET /v1/panel."""

from calendar import monthrange
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.issuer_figures import (
    PanelColumns,
    change_days,
    history_of,
    rows_on_days,
    series_on,
)
from sankofa.edition.read.issuers import issuers_in_order, issuers_on
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import IssuerDayRow
from sankofa.model.days import iso_day
from sankofa.model.errors import Absence, InvalidParameter
from sankofa.model.identifiers import exchange as exchange_name
from sankofa.model.limits import limit as bound
from sankofa.model.provenance import EVERY_SOURCE, FUND
from sankofa.operations import parameters
from sankofa.operations.contract import BASIS, Answer, Call, operation
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
    "/v1/panel",
    row=IssuerDayRow,
    errors=(400, 401, 402, 429, 503),
    members=BASIS,
    tool="get_panel",
    tool_names={"from": "from_date", "to": "to_date"},
    paid=True,
    check=_check,
    extension=True,
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

    A metric is that of `/v1/metrics` with `basis=as_known`, a line item the figure of the latest full year
    that `/v1/statements` shows, a series its latest observation. `missing` has the reason for each empty
    cell, `age_days` the days since the year or the observation ended. An issuer has rows from the day on
    which its first figure was public. Ordered by country, those of none last, then service_id and day; with
    `issuers` by service_id and day. Needs the starter tier or above.
    """
    names, keys = _columns(metrics, line_items), _columns([key.upper() for key in series or ()])
    market = None if exchange is None else exchange_name(exchange)
    asked = None if issuers is None else tuple(sorted({issuer.upper() for issuer in issuers}))
    page = await first_page(
        call, "panel", names, keys, from_, every, country, market, asked, as_of=to, cursor=cursor
    )
    first, last = from_.toordinal(), page.day.toordinal()
    days = [] if every == _CHANGE else _days(from_, page.day, every)
    cells = await _series_cells(page.edition, keys, days)
    columns = PanelColumns(names, days, keys, cells)
    most = call.grant.rows(limit)
    rows: list[bytes] = []
    key: SortKey = ()
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    more = False
    known_by = last if every == _CHANGE else days[-1] if days else 0
    async for place, service_id in _universe(page, known_by, country, market, asked):
        history = await history_of(page.edition, service_id)
        if history is None:
            continue
        if every == _CHANGE:
            columns = columns._replace(days=change_days(history, names, first, last))
        own = rows_on_days(history, columns)
        passed = 0
        if page.key[:2] == (place, service_id):
            passed = sum(iso_day(day) <= str(page.key[2]) for day in own.days)
        room = most - len(rows)
        taken = own.rows[passed : passed + room]
        await yield_points.step(len(own.rows) + 1)
        if taken:
            rows += taken
            key = (place, service_id, iso_day(own.days[passed + len(taken) - 1]))
        if len(own.rows) > passed + len(taken):
            more = True
            break
    selection = Selection(rows, len(rows), truncated=more, following=(0,) if more else None)
    answer = page.answer(
        selection,
        key,
        members={"basis": "as_known"},
        shape=IssuerDayRow,
        dataset=EVERY_SOURCE if keys else FUND,
        more_columns=(*names, *keys),
    )
    if days or every == _CHANGE:
        return answer
    return replace(answer, absent=Absence("outside_dates", f"No {every} ends from {from_} to {page.day}."))


def _columns(*lists: Sequence[str] | None) -> tuple[str, ...]:
    """The columns of a panel, each once."""
    return tuple(dict.fromkeys(name for names in lists for name in names or ()))


def _days(first: date, last: date, every: str) -> list[int]:
    """The last day of each period, from a day to a day. Raises InvalidParameter for too many."""
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
    page: ListPage, known_by: int, country: str | None, exchange: str | None, asked: tuple[str, ...] | None
) -> AsyncIterator[tuple[str, str]]:
    """The issuers of a page in order: the country that an issuer sorts by, and its service_id."""
    if asked is not None:
        admitted = None
        if country is not None or exchange is not None:
            listed = _listed(page.edition, known_by, country, exchange, 0)
            admitted = {service_id async for _, service_id in listed}
        behind = str(page.key[1]) if page.key else ""
        for service_id in asked:
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
            place, service_id = order.key(bytes(row_slice))
            yield str(place), str(service_id)
        if some.following is None:
            return
        first = int(some.following[0])
