"""GET /v1/macro, /v1/series, /v1/series/{series}/vintages and /v1/cross-rates."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from sankofa.access.tiers import Grant
from sankofa.derive.cross_rates import cross_rate, cross_rate_row
from sankofa.edition.format.keys import MACRO_ANNUAL, MACRO_SERIES, annual_key, key_list, series_list
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import RowOrder, SortKey
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.macro import (
    SeriesStart,
    input_pairs,
    page_of,
    rate_pairs,
    read_one_series,
    read_series,
)
from sankofa.edition.read.series_catalogue import (
    CATALOGUE_ORDER,
    RELEASE_ORDER,
    catalogue_page,
    entry_behind,
    entry_count,
    release_behind,
    release_rows,
    series_asked,
)
from sankofa.model.catalogue_rows import CrossRateRow, SeriesCatalogueRow, SeriesReleaseRow
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter
from sankofa.model.observations import TABLED, tabled_series
from sankofa.model.provenance import MACRO
from sankofa.model.rows import MacroAnnualRow, MacroSeriesRow, wire
from sankofa.model.text import code_words
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, NULLABLE_AS_OF, Answer, Call, operation
from sankofa.operations.nearest import nearest_series, refuse_unknown_series
from sankofa.operations.paging import ListPage, first_page

_ANNUAL_ONLY = "for annual mode only; with `series` or `as_of` the answer is in series mode: use `series={}`"
_SERIES_ONLY = "for series mode only; add `series` or `as_of`"


def _check_mode(_: Grant, arguments: Mapping[str, Any]) -> None:
    if arguments["series"] is None and arguments["as_of"] is None:
        for name in ("series_type", "frequency"):
            if arguments[name] is not None:
                raise InvalidParameter(name, _SERIES_ONLY)
        return
    if arguments["indicator"] is not None:
        indicator, country = arguments["indicator"].upper(), arguments["country"]
        of_day = tabled_series(indicator, country) if country else f"{TABLED}{indicator}:<alpha-3 country>"
        raise InvalidParameter("indicator", _ANNUAL_ONLY.format(of_day))
    for argument, name in (("from_", "from"), ("to", "to")):
        if isinstance(arguments[argument], int):
            raise InvalidParameter(name, "expected a date as YYYY-MM-DD; a year works in annual mode only")


@operation(
    "/v1/macro",
    check=_check_mode,
    dataset=MACRO,
    row=MacroAnnualRow,
    also=(MacroSeriesRow,),
    tool="get_macro",
    members=NULLABLE_AS_OF,
    extensions=("cursor",),
)
async def get_macro(
    call: Call,
    *,
    country: parameters.MacroCountry = None,
    indicator: parameters.Indicator = None,
    series: parameters.Series = None,
    series_type: parameters.SeriesType = None,
    frequency: parameters.Frequency = None,
    as_of: parameters.SeriesAsOf = None,
    from_: parameters.From = None,
    to: parameters.To = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Annual indicators of countries, or point-in-time series such as exchange rates and price indices.

    With `series` or `as_of` the answer is in series mode: the latest vintage of each value known on the day,
    ordered by series, series_type, frequency and country, then date descending. Otherwise it is in annual
    mode: the values of the tables captured last, ordered by country (alpha-2), indicator, then year
    descending. Annual values have no evidenced release date, so none is known with an `as_of`, and the
    envelope's `as_of` is null. A parameter of the other mode is a 400. Exchange rates are served as
    published, never inverted. If the source names no country, the row's country is that of the quoted
    currency (FX.EUR.ZAR: ZA; FX.USD.XOF: none). For an annual indicator as known on a day, ask for the series
    `WDI:<indicator>:<alpha-3 country>`, or for `series` with the indicator's code and `country`. If the
    series or indicator does not exist, the answer has no rows and `nearest` names close matches. If it
    belongs to the other mode, `hint` says so.
    """
    if series is None and as_of is None:
        list_filters = ("annual", country, (indicator or "").upper(), str(from_), str(to))
        page = await first_page(call, *list_filters, cursor=cursor)
        most = call.grant.rows(limit)
        years = DayRange(FOREVER, _year(from_, 0), _year(to, FOREVER))
        selection = await _annual(page, country or "", (indicator or "").upper(), years, most)
        nearest = {} if selection.count else await nearest_series(page.edition, indicator, "indicator")
        last = _column(selection, _ANNUAL_COLUMN)
        return page.answer(selection, last, as_of=call.lock, shape=MacroAnnualRow, members=nearest)
    since, until = _day(from_, 0), _day(to, FOREVER)
    filters = (series_type, frequency, country)
    key = (series or "").upper()
    page = await first_page(call, "series", key, *filters, str(from_), str(to), as_of=as_of, cursor=cursor)
    day = page.day.toordinal()
    most = call.grant.rows(limit)
    days = DayRange(day, since, min(until, day))
    selection = await _series(page, series, filters, days, most)
    if country and key and not selection.count:
        selection = await _series(page, tabled_series(key, country), filters, days, most)
    nearest = {} if selection.count else await nearest_series(page.edition, series, "series", country)
    last = _column(selection, _SERIES_COLUMN)
    return page.answer(selection, last, as_of=page.day, shape=MacroSeriesRow, members=nearest)


async def _annual(page: ListPage, country: str, indicator: str, years: DayRange, most: int) -> Selection:
    key = annual_key(country, indicator)
    if page.call.lock is not None:  # annual values have no evidenced day (contract: PIT-6)
        return NO_ROWS
    if country and indicator:
        return await read_one_series(page.edition, MACRO_ANNUAL, key, _rest(page, years), most) or NO_ROWS
    start = await _start(page, MACRO_ANNUAL, key)
    return await read_series(page.edition, MACRO_ANNUAL, key, years, most, start=start)


async def _series(
    page: ListPage, series: str | None, filters: tuple[str | None, ...], days: DayRange, most: int
) -> Selection:
    edition = page.edition
    if series is None:
        family, frequency, country = (text or "" for text in filters)
        list_key = series_list(country, family, frequency)
        start = await _start(page, MACRO_SERIES, list_key)
        return await read_series(edition, MACRO_SERIES, list_key, days, most, start=start)
    list_key = key_list(series.upper())
    if filters == (None, None, None):
        # No observation is dated after today.
        newest = page.call.today.toordinal() if page.call.lock is None else FOREVER
        selection = await read_one_series(edition, MACRO_SERIES, list_key, _rest(page, days), most, newest)
        if selection is not None:
            return selection

    def admits(key: str) -> bool:
        return all(a in (None, b) for a, b in zip(filters, key.split("|")[1:], strict=True))

    start = await _start(page, MACRO_SERIES, list_key)
    return await read_series(edition, MACRO_SERIES, list_key, days, most, admits, start)


_ANNUAL_COLUMN = RowOrder("country", "indicator", "year")
_SERIES_COLUMN = RowOrder("series", "series_type", "frequency", "country", "date")


def _column(selection: Selection, fields: RowOrder) -> SortKey:
    """The column of the last row, and its year or day; None on the last page."""
    if selection.following is None:
        return ()
    *column, at = fields.key_of(selection.last_row)
    day = at if isinstance(at, int) else date.fromisoformat(at).toordinal()
    return "|".join(map(str, column)), day


def _rest(page: ListPage, span: DayRange) -> DayRange:
    """The rest of the single column requested."""
    return span._replace(until=min(span.until, int(page.key[1]) - 1)) if page.key else span


async def _start(page: ListPage, kind: str, listed: str) -> SeriesStart | None:
    """Where a list of columns continues."""
    if not page.key:
        return None
    column, day = str(page.key[0]), int(page.key[1])
    block = await page.position(lambda edition, _: page_of(edition, kind, listed, column))
    return SeriesStart(block, column, day - 1)


def _year(day_or_year: date | int | None, otherwise: int) -> int:
    if day_or_year is None:
        return otherwise
    return day_or_year.year if isinstance(day_or_year, date) else day_or_year


def _day(day_or_year: date | int | None, otherwise: int) -> int:
    return day_or_year.toordinal() if isinstance(day_or_year, date) else otherwise


@operation("/v1/series", dataset=MACRO, row=SeriesCatalogueRow, tool="list_series", extension=True)
async def list_series(
    call: Call,
    *,
    country: parameters.MacroCountry = None,
    q: parameters.SeriesQuery = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The series and annual indicators that `/v1/macro` serves.

    Ordered by series, frequency and country. An annual indicator has one row for each country, with frequency
    `annual`, dates at the ends of its first and last year, and no vintages, because its tables have no
    evidenced release day. `q` keeps series with all its words in key or name; words may be incomplete.
    A word may also name the country of the series: `nigerian inflation`.
    """
    words = code_words(q) if q is not None else []
    page = await first_page(call, "series", country, None if q is None else tuple(words), cursor=cursor)
    spans = [(0, entry_count(page.edition))]
    if q is not None:
        spans = await series_asked(page.edition, words, country)
    first = await page.position(entry_behind)
    selection = await catalogue_page(page.edition, spans, country, first, call.grant.rows(limit))
    return page.answer(selection, CATALOGUE_ORDER)


@operation(
    "/v1/series/{series}/vintages",
    dataset=MACRO,
    row=SeriesReleaseRow,
    tool="get_series_vintages",
    extension=True,
)
async def get_series_vintages(
    call: Call,
    *,
    series: parameters.SeriesKey,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The days on which values of a series were released, and how many each added or changed.

    Newest first, then by frequency and country where several series share the key. A release that changed
    nothing is not listed. An annual indicator has no releases: its tables have no evidenced release day.
    """
    key = series.upper()
    page = await first_page(call, "vintages", key, cursor=cursor)
    most = call.grant.rows(limit)
    first = await page.position(lambda edition, behind: release_behind(edition, key, behind))
    releases = await release_rows(page.edition, key, first, most)
    if releases is None:
        await refuse_unknown_series(page.edition, series)
    return page.answer(releases or NO_ROWS, RELEASE_ORDER)


def _check_pair(_: Grant, arguments: Mapping[str, Any]) -> None:
    if arguments["base"] == arguments["quote"]:
        raise InvalidParameter("quote", "expected a currency other than base")
    if arguments["via"] in (arguments["base"], arguments["quote"]):
        raise InvalidParameter("via", "expected a third currency; published rates are in `/v1/macro`")


@operation(
    "/v1/cross-rates",
    check=_check_pair,
    dataset=MACRO,
    row=CrossRateRow,
    tool="get_cross_rates",
    extension=True,
)
async def get_cross_rates(
    call: Call,
    *,
    base: parameters.BaseCurrency,
    quote: parameters.QuoteCurrency,
    via: parameters.Via = None,
    as_of: parameters.AsOf = None,
    from_: parameters.FromDay = None,
    to: parameters.ToDay = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Exchange rates derived from two published daily rates against a third currency.

    No source publishes these rates: `method` is `derived`, and `inputs` names both published rates with their
    vintages, sources and licences. Both rates have the same date and were known on `as_of`. The arithmetic is
    exact, rounded half-even to 10 significant digits. Each third currency gives a value of its own. Ordered
    by `via`, then date descending. Two currencies without a common third currency have no rows.
    """
    page = await first_page(
        call, "cross-rates", base, quote, via, str(from_), str(to), as_of=as_of, cursor=cursor
    )
    day = page.day.toordinal()
    span = DayRange(day, _day(from_, 0), min(_day(to, FOREVER), day))
    selection = await _rows(page, (base, quote), via, span, call.grant.rows(limit))
    return page.answer(selection, selection.following or (), as_of=page.day)


async def _rows(
    page: ListPage, pair: tuple[str, str], via: str | None, span: DayRange, most: int
) -> Selection:
    slices: list[bytes] = []
    last: SortKey = ()
    begins_via, last_day = page.key or ("", FOREVER)
    for rates in await rate_pairs(page.edition, *pair):
        if rates.via < str(begins_via) or via not in (None, rates.via):
            continue
        until = min(span.until, int(last_day) - 1) if rates.via == begins_via else span.until
        async for inputs in input_pairs(page.edition, rates, span._replace(until=until)):
            if len(slices) == most:
                return Selection(slices, most, truncated=True, following=last)
            value = cross_rate(
                inputs.base.value,
                inputs.quote.value,
                base_inverted=rates.base.inverted,
                quote_inverted=rates.quote.inverted,
            )
            row = cross_rate_row((*pair, rates.via), inputs.day, (inputs.base, inputs.quote), value)
            slices.append(wire.encode(row))
            last = rates.via, inputs.day.toordinal()
    return Selection(slices, len(slices), truncated=False)
