"""Reads what replaced earlier figures: restatements of filings, and every vintage of a series."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import (
    ENTITIES,
    MACRO_SERIES,
    RESTATEMENT_LISTS,
    RESTATEMENTS,
    key_list,
    restatement_list,
)
from sankofa.edition.format.macro import read_page
from sankofa.edition.format.row_blocks import RowOrder, RowSlice, SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.macro import SeriesObservation, read_observations
from sankofa.edition.read.seek import find
from sankofa.edition.read.yield_points import YieldPoints

RESTATEMENT_ORDER: Final = RowOrder(
    "-available_at",
    "service_id",
    "-period_end",
    "line_item",
    "concept|line_item",
    "unit",
    "period_start",
    "vintage",
)


class RestatementQuestion(NamedTuple):
    """What is asked about restatements; the days are those of `available_at`, both included."""

    day: int
    """The day on which they are known."""
    since: date
    until: date
    country: str | None = None
    service_id: str | None = None
    line_item: str | None = None
    min_change: Decimal | None = None

    def lists(self, edition: Edition) -> Iterator[tuple[int, str, str]]:
        """The number, kind and key of each list that may have rows, newest first."""
        if self.service_id is not None:
            yield 0, RESTATEMENTS, self.service_id
            return
        for year in reversed(edition.manifest.get("restatement_years", [])):
            if self.since.year <= year <= self.until.year:
                yield -year, RESTATEMENT_LISTS, restatement_list(self.country or "", year)

    def test(self) -> Callable[[bytes], bool]:
        """A test for encoded rows."""
        since, until = self.since.isoformat(), self.until.isoformat()

        def admits(row: bytes) -> bool:
            one = _read(row)
            if not since <= one.available_at <= until or self.line_item not in (None, one.line_item):
                return False
            return self.min_change is None or (one.change is not None and abs(one.change) >= self.min_change)

        return admits


class _Tested(msgspec.Struct):
    line_item: str
    change: Decimal | None
    available_at: str


class _Country(msgspec.Struct):
    country: str | None


_country = msgspec.json.Decoder(_Country).decode
_read = msgspec.json.Decoder(_Tested).decode


async def restatements(
    edition: Edition, asked: RestatementQuestion, limit: int, start: tuple[int | str, ...] = ()
) -> Selection:
    """The first rows from `start` on, which is `following` of an earlier selection."""
    first, skip, passed = map(int, start or (-(10**6), 0, 0))
    slices: list[RowSlice] = []
    count = 0
    if asked.service_id is not None and asked.country is not None:
        entity = await edition.raw(ENTITIES, asked.service_id)
        if entity is None or _country(entity).country != asked.country:
            return Selection((), 0, truncated=False)
    for number, kind, key in asked.lists(edition):
        if number < first:
            continue
        own = await edition.select(
            kind,
            key,
            day=asked.day,
            limit=limit - count,
            where=asked.test(),
            skip=skip if number == first else 0,
            passed=passed if number == first else 0,
        )
        if own is None:
            continue
        slices += own.slices
        count += own.count
        if own.following is not None:
            return Selection(slices, count, truncated=True, following=(number, *own.following))
    return Selection(slices, count, truncated=False)


async def restatement_behind(
    edition: Edition, asked: RestatementQuestion, key: SortKey
) -> tuple[int | str, ...]:
    """Where the rows behind a sort key begin."""
    year = 0 if asked.service_id is not None else -int(str(key[0])[:4])
    for number, kind, listed in asked.lists(edition):
        if number == year:
            is_behind = RESTATEMENT_ORDER.behind(key)
            at = await find(edition, kind, listed, is_behind, day=asked.day, where=asked.test())
            return number, *at
    return year, 0, 0


async def columns_of_series(edition: Edition, series: str) -> list[str]:
    """The columns under a series key, `series|type|frequency|country` each."""
    columns: list[str] = []
    page = 0
    while blocks := await edition.blocks(f"{MACRO_SERIES}-list", key_list(series), page, 1):
        columns += [one.key for one in read_page(blocks[0][1])]
        page += 1
    return columns


async def every_vintage(edition: Edition, column: str, day: date) -> AsyncIterator[SeriesObservation]:
    """Every vintage of a column that was known on a day, in no particular order."""
    yield_points = YieldPoints(1)
    block = 0
    while blocks := await edition.blocks(MACRO_SERIES, column, block, 1):
        for one in read_observations(b"[%b]" % bytes(blocks[0][1])):
            if one.available_at <= day and one.date <= day:
                yield one
        await yield_points.step()
        block += 1
