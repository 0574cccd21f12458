"""Reads series, indicators, and the inputs of cross rates."""

from collections.abc import AsyncIterator, Callable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from sankofa.edition.format.keys import (
    MACRO_SERIES,
)
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
from sankofa.edition.read.row_forms import RowForm
from sankofa.edition.read.seek import last_before
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
    taken = _Collected(edition, kind, span, limit)
    page = start.page if start else 0
    yield_points = YieldPoints(_PAGES_PER_YIELD)
    while True:
        await yield_points.step()
        blocks = await edition.blocks(f"{kind}-list", listed, page, 1)
        if not blocks:
            return taken.selection()
        for one in read_page(blocks[0][1]):
            until = span.until
            if start is not None:
                if (place := column_order(one.key)) < column_order(start.key):
                    continue
                if place == column_order(start.key):
                    until = min(until, start.until)
                start = None
            seen = one.oldest <= until and one.newest >= span.since and one.known <= span.known_on
            if seen and admits(one.key) and await taken.take(one.key, one.newest, until) > limit:
                return taken.selection(page)
        page += 1


def column_order(key: str) -> list[str]:
    return key.split("|")


async def page_of(edition: Edition, kind: str, listed: str, key: str) -> int:
    """The page of a list that has a column, or would have it."""
    place = column_order(key)

    async def is_past(number: int) -> bool:
        blocks = await edition.blocks(f"{kind}-list", listed, number, 1)
        return not blocks or column_order(read_page(blocks[0][1])[0].key) > place

    return await last_before(is_past)


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
    taken = _Collected(edition, kind, span, limit, form)
    matched = await taken.take(key, newest, span.until, passed)
    if matched < 0:
        return None
    return taken.selection(0) if matched > limit else taken.selection()


class _Collected:
    """Collects the rows of an answer."""

    def __init__(
        self, edition: Edition, kind: str, span: DayRange, limit: int, form: RowForm | None = None
    ) -> None:
        self._edition = edition
        self._kind = kind
        self._span = span
        self._limit = limit
        self._form = form
        self._slices: list[RowSlice] = []
        self._keys: set[str] = set()
        self._count = 0

    async def take(self, key: str, newest: int, until: int, passed: int = 0) -> int:
        """Add the rows of a column up to a day, without the first `passed`.

        Returns the number of rows so far, limit + 1 if more matched, -1 without such a column.
        """
        self._keys.add(key)
        span, limit = self._span._replace(until=until), self._limit
        cut = span.until < newest or span.since > 0
        yield_points = YieldPoints(_BLOCKS_PER_YIELD)
        skip, last = await self._within(key, span) if cut else (0, FOREVER)
        while skip < last:
            # An answer that begins inside a block usually ends in the next.
            begun = cut or passed > 0
            most = min(last - skip, 1 + begun + (limit - self._count) // ROWS_IN_A_BLOCK)
            blocks = await self._edition.blocks(self._kind, key, skip, most, self._form)
            for one in blocks:
                await yield_points.step()
                slices, taken, more = select(one, span, passed + limit - self._count)
                left_out = min(passed, taken)
                self._slices += without_first(slices, left_out) if left_out else slices
                self._count += taken - left_out
                if more:
                    return limit + 1
                passed -= left_out
            if len(blocks) < most:
                return self._count if blocks or skip else -1
            skip += most
        return self._count

    async def _within(self, key: str, span: DayRange) -> tuple[int, int]:
        """The blocks that may have rows within the days of the question."""
        first_days = await self._edition.raw(f"{self._kind}-days", key)
        if first_days is None:
            return 0, FOREVER
        return blocks_within(first_days, span.since, span.until)

    def selection(self, page: int | None = None) -> Selection:
        """The rows, and the page of the column that has more, if any."""
        following = None if page is None else (page,)
        sources = None
        if self._edition.lock is not None and len(self._keys) == 1:
            sources = self._edition.bare.source(self._kind, *self._keys)
        return Selection(
            self._slices, self._count, following is not None, following=following, sources=sources
        )


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
