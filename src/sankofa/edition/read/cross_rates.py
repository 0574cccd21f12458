"""The inputs of cross rates read back: the rates of two currencies against a third, of the same days."""

from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from sankofa.edition.format.keys import MACRO_SERIES
from sankofa.edition.format.rate_legs import RATE_LEGS, RateLeg, decode_legs
from sankofa.edition.format.series_blocks import ROWS_IN_A_BLOCK, DayRange
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.series import read_one_series
from sankofa.edition.read.turns import Turns
from sankofa.model.catalogue_rows import CrossRateInput

_EVERY_ROW = 1_000_000
"""More than there are days."""


_Day = date  # where a row has a field of that name


class LegPair(NamedTuple):
    """The rates of two currencies against the same third."""

    via: str
    base: RateLeg
    quote: RateLeg


class InputPair(NamedTuple):
    """What was published of one day: of the base currency, and of the quote currency."""

    day: date
    base: CrossRateInput
    quote: CrossRateInput


class _Observation(msgspec.Struct):
    series: str
    date: _Day
    value: Decimal | None
    unit: str | None
    available_at: _Day
    vintage: int
    source_ref: str
    license_class: str
    observed_at: str


_observations = msgspec.json.Decoder(list[_Observation]).decode


async def leg_pairs(edition: Edition, base: str, quote: str) -> list[LegPair]:
    """The ways from one currency to another, by the code of the third."""
    quoted = {leg.via: leg for leg in await _legs(edition, quote)}
    based = await _legs(edition, base)
    return [LegPair(leg.via, leg, other) for leg in based if (other := quoted.get(leg.via)) is not None]


async def _legs(edition: Edition, currency: str) -> list[RateLeg]:
    encoded = await edition.raw(RATE_LEGS, currency)
    return [] if encoded is None else decode_legs(encoded)


async def input_pairs(edition: Edition, legs: LegPair, span: DayRange) -> AsyncIterator[InputPair]:
    """The days of which both rates are known, newest first; a block at a time, others having their turn."""
    turns = Turns(1)
    while span.since <= span.until:
        rates = await _rates(edition, legs.base, span, ROWS_IN_A_BLOCK)
        if not rates:
            return
        oldest = rates[-1].date.toordinal()
        others = await _rates(edition, legs.quote, span._replace(since=oldest), _EVERY_ROW)
        quoted = {one.date: one for one in others}
        for one in rates:
            if (other := quoted.get(one.date)) is not None and _is_rate(one) and _is_rate(other):
                yield InputPair(one.date, _input(one), _input(other))
        span = span._replace(until=oldest - 1)
        await turns.step()


async def _rates(edition: Edition, leg: RateLeg, span: DayRange, most: int) -> list[_Observation]:
    selection = await read_one_series(edition, MACRO_SERIES, leg.key, span, most)
    if selection is None:
        return []
    return [one for piece in selection.lists() for one in _observations(piece)]


def _is_rate(one: _Observation) -> bool:
    return one.value is not None and one.value > 0


def _input(one: _Observation) -> CrossRateInput:
    return CrossRateInput(
        one.series,
        Decimal(0) if one.value is None else one.value,
        one.unit,
        one.available_at,
        one.vintage,
        one.source_ref,
        one.license_class,
        one.observed_at,
    )
