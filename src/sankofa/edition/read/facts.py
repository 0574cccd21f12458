"""Reads facts: stored facts by day, and reported figures, converted to facts.

Reported figures are not stored twice: a block of them is converted to facts on its first read.
"""

from collections.abc import Callable, Sequence
from functools import partial
from heapq import merge
from itertools import accumulate
from typing import Final

import msgspec

from sankofa.edition.format.keys import (
    ANNUAL_MODE,
    FACT_DAYS,
    FACT_ORDER,
    FACTS,
    FACTS_PER_BLOCK,
    MACRO_FACTS,
    RANGES_PER_BLOCK,
    SERIES_MODE,
    macro_key,
    order_key,
)
from sankofa.edition.format.macro import first_range, visible_ranges
from sankofa.edition.format.row_blocks import (
    FUNDAMENTALS_ORDER,
    RowOrder,
    RowSlice,
    SortKey,
    last_row,
    select_where,
)
from sankofa.edition.format.visibility import ANY_TAG, DayRows, blocks_within
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.row_forms import RowForm
from sankofa.edition.read.seek import find, first_past, last_before
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import ByteRange
from sankofa.model.countries import alpha3_of
from sankofa.model.provenance import FUND, FactEntity, SharedFact, fact, source_of
from sankofa.model.rows import wire
from sankofa.model.vintages import Mode

_BLOCKS_PER_YIELD: Final = 16
_MERGED: Final = -1
"""In place of a block number: rows are counted from the beginning of two lists."""
NO_FACTS: Final = Selection((), 0, truncated=False)
Start = tuple[int | str, ...]
"""`following` of the previous rows, or the result of a `find_` function; empty at the beginning."""
MACRO_ORDER: Final = RowOrder(
    "-period_end", "measure", "available_at", "period_type", ranks={"available_at": bool}
)
"""Annual values, which have no day of release, come before a series of the same name."""
_RELEASED: Final = RowOrder("-available_at", "fact_id")
_REMEMBERED: Final = 8


class _Figure(msgspec.Struct, gc=False):
    source_ref: str
    license_class: str
    observed_at: str | None
    service_id: str
    record_ref: str
    line_item: str
    value_reported: msgspec.Raw
    unit: str | None
    period_end: str
    period_type: str
    available_at: str
    vintage: int
    extraction_confidence: float | None
    method: str


class _Entity(msgspec.Struct):
    legal_name: str | None
    country: str | None


class _Ended(msgspec.Struct):
    period_end: str


_figures = msgspec.json.Decoder(list[_Figure]).decode
_entity = msgspec.json.Decoder(_Entity).decode
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ended = msgspec.json.Decoder(_Ended).decode


async def reported_facts(
    edition: Edition, service_id: str, day: int, measure: str | None, most: int, start: Start = ()
) -> tuple[Selection, SortKey]:
    """The reported figures of an organisation, in the order of fundamentals, and the sort key of the last."""
    skip, passed = map(int, start or (0, 0))
    entity = await edition.raw("entity", service_id)
    named = _Entity(None, None) if entity is None else _entity(entity)
    who = FactEntity(service_id, named.legal_name, alpha3_of().get(named.country or ""))
    read = partial(edition.select, "fundamentals", service_id, day=day, limit=most, skip=skip, passed=passed)
    facts = await read(where=_has("measure", measure), form=RowForm(who, partial(_as_facts, who)))
    if facts is None or not facts.count:
        return NO_FACTS, ()
    if facts.following is None:
        return facts, ()
    figures = await read(where=_has("line_item", measure)) or NO_FACTS
    return facts, FUNDAMENTALS_ORDER.key_of(figures.last_row)


async def find_reported(
    edition: Edition, service_id: str, day: int, measure: str | None, behind: SortKey
) -> tuple[int, int]:
    """Where `reported_facts` continues after a sort key."""
    is_behind = FUNDAMENTALS_ORDER.behind(behind)
    return await find(
        edition, "fundamentals", service_id, is_behind, day=day, where=_has("line_item", measure)
    )


def _has(field: str, value: str | None) -> Callable[[bytes], bool] | None:
    mark = f'"{field}":"{value}"'.encode()
    return None if value is None else lambda row: mark in row


def _as_facts(who: FactEntity, rows: bytes, _: Sequence[int]) -> tuple[bytes, Sequence[int]]:
    """Rows of figures as facts, and where each fact ends."""
    facts = [wire.encode(_reported(row, who)) for row in _figures(b"[%b]" % rows)]
    return b",".join(facts), [end - 1 for end in accumulate(len(one) + 1 for one in facts)]


def _reported(row: _Figure, entity: FactEntity) -> SharedFact:
    return fact(
        entity if row.service_id == entity.entity_id else entity._replace(entity_id=row.service_id),
        FUND,
        row.record_ref,
        row.line_item,
        row.value_reported,
        row.unit,
        (row.period_end, row.period_type),
        row.available_at,
        row.vintage,
        source_of(row),
    )


async def released_facts(edition: Edition, key: str, day: int, most: int, start: Start = ()) -> Selection:
    """The awards an organisation won, or the values of a country's tenders, the newest release first."""
    if start:
        skip, passed = map(int, start)
    else:
        days = DayRows(await edition.numbers(FACT_DAYS, key, keep=True))  # a country has too many to try
        skip, passed = (days.first_row(day) or 0) // FACTS_PER_BLOCK, 0
    return await edition.select(FACTS, key, day=day, limit=most, skip=skip, passed=passed) or NO_FACTS


def released_key(selection: Selection) -> SortKey:
    """The day of the last fact, and the ids of the last few facts of that day.

    Facts of a day are ordered by release, which is not in the fact. If the last fact is gone, the rows
    continue after the one before it.
    """
    row_slice = selection.slices[-1]
    days: list[int | str] = []
    fact_ids: list[str] = []
    while len(row_slice) and len(days) < _REMEMBERED:
        row = last_row(row_slice)
        day, fact_id = _RELEASED.key_of(row)
        days.append(day)
        fact_ids.append(_record(fact_id))
        row_slice = row_slice[: -len(row) - 1]
    return days[0], *fact_ids[: days.count(days[0])]


async def find_released(edition: Edition, key: str, day: int, behind: SortKey) -> tuple[int, int]:
    """Where `released_facts` continues after a `released_key`."""
    released, *fact_ids = behind
    begin = await find(edition, FACTS, key, _RELEASED.behind((released, "")), day=day)
    block, passed = begin
    behind_fact: dict[str, tuple[int, int]] = {}
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    while blocks := await edition.blocks(FACTS, key, block, 1):
        await yield_points.step()
        rows, _ = select_where(blocks[0], day, int(Mode.LATEST), ANY_TAG, FACTS_PER_BLOCK, lambda _: True)
        for number, row in enumerate(rows[passed:], passed + 1):
            available, fact_id = _RELEASED.key_of(row)
            if available != released:
                break
            behind_fact[_record(fact_id)] = block, number
        else:
            block, passed = block + 1, 0
            continue
        break
    return next((behind_fact[one] for one in map(str, fact_ids) if one in behind_fact), begin)


def _record(fact_id: int | str) -> str:
    """The unique part of the id of a fact."""
    return str(fact_id).split(":")[1]


async def measure_facts(
    edition: Edition, country: str, measure: str, day: int, most: int, *, dated: bool, start: Start = ()
) -> Selection:
    """One measure of a country, newest period first; `dated` leaves out values without a day."""
    keys = await _measure_keys(edition, country, measure, dated=dated)
    if not keys:
        return NO_FACTS
    skip, passed = map(int, start or (0, 0))
    if len(keys) == 1 and skip >= 0:
        only = await edition.select(MACRO_FACTS, keys[0], day=day, limit=most, skip=skip, passed=passed)
        return only or NO_FACTS
    # Rarely an indicator and a series share a code: both are read from their beginning.
    both = [await edition.select(MACRO_FACTS, key, day=day, limit=passed + most) or NO_FACTS for key in keys]
    rows = _merged(both)
    more = any(one.truncated for one in both) or len(rows) > passed + most
    page = [bytes(row) for row in rows[passed : passed + most]]
    following = (_MERGED, passed + most) if more else None
    return Selection(page, len(page), truncated=more, following=following)


async def find_measure(
    edition: Edition, country: str, measure: str, day: int, behind: SortKey, *, dated: bool
) -> tuple[int, int]:
    """Where `measure_facts` continues after a sort key."""
    keys = await _measure_keys(edition, country, measure, dated=dated)
    is_behind = MACRO_ORDER.behind(behind)
    if len(keys) == 1:
        return await find(edition, MACRO_FACTS, keys[0], is_behind, day=day)
    both = [await edition.select(MACRO_FACTS, key, day=day) or NO_FACTS for key in keys]
    return _MERGED, sum(1 for row in _merged(both) if not is_behind(row))


async def _measure_keys(edition: Edition, country: str, measure: str, *, dated: bool) -> list[str]:
    modes = (SERIES_MODE,) if dated else (ANNUAL_MODE, SERIES_MODE)
    keys = [macro_key(country, measure, mode) for mode in modes]
    return [key for key in keys if await edition.holds(MACRO_FACTS, key)]


def _merged(both: Sequence[Selection]) -> list[msgspec.Raw]:
    """The facts of an indicator and of a series, newest period first."""
    each = (_raws(b"[%b]" % one.rows) for one in both)
    return list(merge(*each, key=lambda row: _ended(row).period_end, reverse=True))


async def find_macro(
    edition: Edition, country: str, day: int, behind: SortKey, *, dated: bool
) -> tuple[int, int]:
    """Where `macro_facts` continues after a sort key."""
    key = order_key(country, dated=dated)
    is_behind = MACRO_ORDER.behind(behind)

    async def is_behind_at(ranges: Sequence[ByteRange]) -> bool:
        (row,) = await edition.rows_at(MACRO_FACTS, ranges)
        return is_behind(row)

    async def is_past(number: int) -> bool:
        """Whether the first fact of a block comes after the key. Block 0 is the index of days."""
        blocks = await edition.blocks(FACT_ORDER, key, 1 + number, 1)
        return not blocks or await is_behind_at([first_range(blocks[0][1])])

    number = 1 + await last_before(is_past)
    blocks = await edition.blocks(FACT_ORDER, key, number, 1)
    visible = visible_ranges(blocks[0][1], day) if blocks else []

    return number, await first_past(len(visible), lambda row: is_behind_at(visible[row : row + 1]))


async def macro_facts(
    edition: Edition, country: str, day: int, most: int, *, dated: bool, start: Start = ()
) -> Selection:
    """All facts of a country, newest period first, then by measure."""
    key = order_key(country, dated=dated)
    first_days = await edition.raw(FACT_ORDER, key)
    if first_days is None:
        return NO_FACTS
    # Block 0 is the index of days. Nothing is known before its period ends.
    number = 1 + (blocks_within(first_days, until=day)[0] if dated else 0)
    passed = 0
    if start:
        number, passed = map(int, start)
    ranges: list[ByteRange] = []
    following: tuple[int, int] | None = None
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    while following is None:
        blocks = await edition.blocks(FACT_ORDER, key, number, 1 + most // RANGES_PER_BLOCK)
        for _, block in blocks:
            visible = visible_ranges(block, day)
            room = most - len(ranges)
            if len(visible) - passed > room:
                following = number, passed + room
            ranges += visible[passed : passed + room]
            if following is not None:
                break
            number, passed = number + 1, 0
            await yield_points.step()
        if not blocks:
            break
    rows: list[RowSlice] = list(await edition.rows_at(MACRO_FACTS, ranges))
    return Selection(rows, len(rows), truncated=following is not None, following=following)
