"""Reads series, indicators, and the inputs of cross rates."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from sankofa.edition.format.keys import MACRO_SERIES
from sankofa.edition.format.macro import (
    RATE_INPUTS,
    ROWS_IN_A_BLOCK,
    DayRange,
    RateInput,
    SeriesSummary,
    decode_rate_inputs,
    read_page,
    select,
)
from sankofa.edition.format.row_blocks import RowSlice, without_first
from sankofa.edition.format.visibility import blocks_within
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.row_forms import RowForm, Sources
from sankofa.edition.read.seek import last_block
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import CrossRateInput
from sankofa.model.days import FOREVER

_PAGES_PER_YIELD = 4
_BLOCKS_PER_YIELD = 32


class SeriesStart(NamedTuple):
    """Where a list of columns continues: the page, the column, and the latest day."""

    page: int
    key: str
    until: int


async def read_series(
    edition: Edition,
    kind: str,
    listed: str,
    span: DayRange,
    limit: int,
    admits: Callable[[str], bool] = lambda key: True,
    start: SeriesStart | None = None,
) -> Selection:
    """The first rows of the columns on a list, column by column; `following` is the page of the last row."""
    slices: list[RowSlice] = []
    count = 0
    keys: set[str] = set()
    page = start.page if start else 0
    yield_points = YieldPoints(_PAGES_PER_YIELD)
    while True:
        await yield_points.step()
        blocks = await edition.blocks(f"{kind}-list", listed, page, 1)
        if not blocks:
            return Selection(slices, count, truncated=False, sources=_sources(edition, kind, keys))
        for one in read_page(blocks[0][1]):
            until = span.until
            if start is not None:
                if (place := column_order(one.key)) < column_order(start.key):
                    continue
                if place == column_order(start.key):
                    until = min(until, start.until)
                start = None
            seen = one.oldest <= until and one.newest >= span.since and one.known <= span.known_on
            if not (seen and admits(one.key)):
                continue
            keys.add(one.key)
            days = span._replace(until=until)
            read = await _rows_of(edition, kind, one.key, days, limit - count, one.newest)
            own, taken, more = read or ((), 0, False)
            slices += own
            count += taken
            if more:
                sources = _sources(edition, kind, keys)
                return Selection(slices, count, truncated=True, following=(page,), sources=sources)
        page += 1


def _sources(edition: Edition, kind: str, keys: Collection[str]) -> Sources | None:
    """The sources of the rows of some columns, if a locked view knows them."""
    return edition.bare.source(kind, *keys) if edition.lock is not None and len(keys) == 1 else None


def column_order(key: str) -> list[str]:
    return key.split("|")


async def page_of(edition: Edition, kind: str, listed: str, key: str) -> int:
    """The page of a list that has a column, or would have it."""
    place = column_order(key)
    return await last_block(
        edition, f"{kind}-list", listed, lambda block: column_order(read_page(block[1])[0].key) > place
    )


async def read_one_series(
    edition: Edition,
    kind: str,
    key: str,
    span: DayRange,
    limit: int,
    newest: int = FOREVER,
    passed: int = 0,
    form: RowForm | None = None,
) -> Selection | None:
    """The first rows of one column, in a form; None if there is no such column.

    No row is newer than `newest`. The first `passed` rows are left out.
    """
    read = await _rows_of(edition, kind, key, span, limit, newest, passed, form)
    if read is None:
        return None
    slices, count, more = read
    following = (0,) if more else None
    return Selection(
        slices, count, truncated=more, following=following, sources=_sources(edition, kind, (key,))
    )


async def _rows_of(
    edition: Edition,
    kind: str,
    key: str,
    span: DayRange,
    room: int,
    newest: int,
    passed: int = 0,
    form: RowForm | None = None,
) -> tuple[Sequence[RowSlice], int, bool] | None:
    """Up to `room` rows of a column after the first `passed`, their number, and whether more matched; None
    without such a column."""
    slices: list[RowSlice] = []
    count, skip, last = 0, 0, FOREVER
    cut = span.until < newest or span.since > 0
    if cut and (first_days := await edition.raw(f"{kind}-days", key)) is not None:
        skip, last = blocks_within(first_days, span.since, span.until)
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    while skip < last:
        # An answer that begins inside a block usually ends in the next.
        begun = cut or passed > 0
        most = min(last - skip, 1 + begun + (room - count) // ROWS_IN_A_BLOCK)
        blocks = await edition.blocks(kind, key, skip, most, form)
        for one in blocks:
            await yield_points.step()
            own, taken, more = select(one, span, passed + room - count)
            left_out = min(passed, taken)
            slices += without_first(own, left_out) if left_out else own
            count += taken - left_out
            if more:
                return slices, count, True
            passed -= left_out
        if len(blocks) < most:
            return (slices, count, False) if blocks or skip else None
        skip += most
    return slices, count, False


_EVERY_ROW = 1_000_000
"""More than the number of days."""


_Day = date  # because a row has a field of that name


class RatePair(NamedTuple):
    """The rates of two currencies against the same third."""

    via: str
    base: RateInput
    quote: RateInput


class InputPair(NamedTuple):
    """The published rates of one day: of the base currency, and of the quote currency."""

    day: date
    base: CrossRateInput
    quote: CrossRateInput


class SeriesObservation(msgspec.Struct):
    """The fields of a value that are computed with."""

    series: str
    date: _Day
    value: Decimal | None
    unit: str | None
    available_at: _Day
    vintage: int
    source_ref: str
    license_class: str
    observed_at: str | None
    """None in a locked view."""


read_observations = msgspec.json.Decoder(list[SeriesObservation]).decode


async def rate_pairs(edition: Edition, base: str, quote: str) -> list[RatePair]:
    """The third currencies that lead from one currency to another, with both rates."""
    quoted = {rate.via: rate for rate in await _rate_inputs(edition, quote)}
    based = await _rate_inputs(edition, base)
    return [RatePair(rate.via, rate, other) for rate in based if (other := quoted.get(rate.via)) is not None]


async def _rate_inputs(edition: Edition, currency: str) -> list[RateInput]:
    encoded = await edition.raw(RATE_INPUTS, currency)
    return [] if encoded is None else decode_rate_inputs(encoded)


async def input_pairs(edition: Edition, pair: RatePair, span: DayRange) -> AsyncIterator[InputPair]:
    """The days for which both rates are known, newest first, read a block at a time."""
    yield_points = YieldPoints(1)
    while span.since <= span.until:
        rates = await _rates(edition, pair.base, span, ROWS_IN_A_BLOCK)
        if not rates:
            return
        oldest = rates[-1].date.toordinal()
        others = await _rates(edition, pair.quote, span._replace(since=oldest), _EVERY_ROW)
        quoted = {one.date: one for one in others}
        for one in rates:
            if (other := quoted.get(one.date)) is not None and _is_rate(one) and _is_rate(other):
                yield InputPair(one.date, _input(one), _input(other))
        span = span._replace(until=oldest - 1)
        await yield_points.step()


async def _rates(edition: Edition, rate: RateInput, span: DayRange, most: int) -> list[SeriesObservation]:
    selection = await read_one_series(edition, MACRO_SERIES, rate.key, span, most)
    if selection is None:
        return []
    return [one for chunk in selection.lists() for one in read_observations(chunk)]


def _is_rate(one: SeriesObservation) -> bool:
    return one.value is not None and one.value > 0


def _input(one: SeriesObservation) -> CrossRateInput:
    return CrossRateInput(
        one.series,
        Decimal(0) if one.value is None else one.value,
        one.unit,
        one.available_at,
        one.vintage,
        one.source_ref,
        one.license_class,
        one.observed_at or "",
    )


async def column_summaries(edition: Edition, kind: str, listed: str) -> list[SeriesSummary]:
    """The columns on all pages of a list."""
    columns: list[SeriesSummary] = []
    page = 0
    while blocks := await edition.blocks(f"{kind}-list", listed, page, 1):
        columns += read_page(blocks[0][1])
        page += 1
    return columns
