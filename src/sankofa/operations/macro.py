"""GET /v1/macro."""

from datetime import date

from sankofa.edition.format.keys import MACRO_ANNUAL, MACRO_SERIES, annual_key, key_list, series_list
from sankofa.edition.format.series_blocks import DayRange
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.series import read_one_series, read_series
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter
from sankofa.model.facts import MACRO
from sankofa.model.rows import MacroAnnualRow, MacroSeriesRow
from sankofa.operations.contract import NO_ROWS, NULLABLE_AS_OF, Answer, Call, operation
from sankofa.operations.nearest import nearest_series
from sankofa.operations.parameters import (
    FrequencyParameter,
    FromParameter,
    IndicatorParameter,
    LimitParameter,
    MacroCountryParameter,
    SeriesAsOfParameter,
    SeriesParameter,
    SeriesTypeParameter,
    ToParameter,
)

_ANNUAL_ONLY = "of annual mode only; `series` or `as_of` asks for series mode"
_SERIES_ONLY = "of series mode only, which `series` or `as_of` asks for"


@operation(
    "/v1/macro",
    dataset=MACRO,
    row=MacroAnnualRow,
    also=(MacroSeriesRow,),
    errors=(400, 401, 402, 429, 503),
    tool="get_macro",
    tool_names={"from": "from_date", "to": "to_date"},
    members=NULLABLE_AS_OF,
)
async def get_macro(
    call: Call,
    *,
    country: MacroCountryParameter = None,
    indicator: IndicatorParameter = None,
    series: SeriesParameter = None,
    series_type: SeriesTypeParameter = None,
    frequency: FrequencyParameter = None,
    as_of: SeriesAsOfParameter = None,
    from_: FromParameter = None,
    to: ToParameter = None,
    limit: LimitParameter = None,
) -> Answer:
    """Annual indicators of countries, or point-in-time series such as exchange rates and price indices.

    Series mode, where `series` or `as_of` is given: the latest vintage of each value known on the day,
    ordered by series, series_type, frequency and country, then date descending. Otherwise annual mode: the
    values of the tables captured last, ordered by country (alpha-2), indicator, then year descending; no
    release date is evidenced for them, so none is known under an `as_of`, and the envelope's is
    null. A parameter of the other mode is a 400. An exchange rate is served as it is published, never
    inverted; where its source names no country, it is of the one whose currency it is quoted in (FX.EUR.ZAR
    of ZA, FX.USD.XOF of none). Of a series or indicator that is not there, the answer has no rows and names
    in `nearest` those that are close.
    """
    if series is None and as_of is None:
        for name, value in (("series_type", series_type), ("frequency", frequency)):
            if value is not None:
                raise InvalidParameter(name, _SERIES_ONLY)
        most = call.grant.rows(limit)
        years = DayRange(FOREVER, _year(from_, 0), _year(to, FOREVER))
        selection = await _annual(call, country or "", (indicator or "").upper(), years, most)
        nearest = await nearest_series(call.edition, indicator, selection)
        return Answer(selection, as_of=None, shape=MacroAnnualRow, members=nearest)
    if indicator is not None:
        raise InvalidParameter("indicator", _ANNUAL_ONLY)
    as_of = call.day_asked(as_of)
    day = as_of.toordinal()
    days = DayRange(day, _day("from", from_, 0), min(_day("to", to, FOREVER), day))
    most = call.grant.rows(limit)
    selection = await _series(call, series, (series_type, frequency, country), days, most)
    nearest = await nearest_series(call.edition, series, selection)
    return Answer(selection, as_of=as_of, shape=MacroSeriesRow, members=nearest)


async def _annual(call: Call, country: str, indicator: str, years: DayRange, most: int) -> Selection:
    key = annual_key(country, indicator)
    if country and indicator:
        return await read_one_series(call.edition, MACRO_ANNUAL, key, years, most) or NO_ROWS
    return await read_series(call.edition, MACRO_ANNUAL, key, years, most)


async def _series(
    call: Call, series: str | None, filters: tuple[str | None, ...], days: DayRange, most: int
) -> Selection:
    if series is None:
        family, frequency, country = (text or "" for text in filters)
        list_key = series_list(country, family, frequency)
        return await read_series(call.edition, MACRO_SERIES, list_key, days, most)
    list_key = key_list(series.upper())
    if filters == (None, None, None):
        # No observation is dated after today.
        selection = await read_one_series(
            call.edition, MACRO_SERIES, list_key, days, most, call.today.toordinal()
        )
        if selection is not None:
            return selection

    def admits(key: str) -> bool:
        return all(a in (None, b) for a, b in zip(filters, key.split("|")[1:], strict=True))

    return await read_series(call.edition, MACRO_SERIES, list_key, days, most, admits)


def _year(given: date | int | None, otherwise: int) -> int:
    if given is None:
        return otherwise
    return given.year if isinstance(given, date) else given


def _day(name: str, given: date | int | None, otherwise: int) -> int:
    if isinstance(given, int):
        raise InvalidParameter(name, "expected a date as YYYY-MM-DD; a year is taken in annual mode only")
    return otherwise if given is None else given.toordinal()
