"""Catalogue rows of dated series: what several dialects say of a series. The `WDI:` series of an annual
indicator are found under the indicator."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final, cast

import msgspec

from sankofa.edition.format.keys import ENTRIES_PER_BLOCK, SERIES_ENTRIES, SERIES_KNOWN
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.series_catalogue import entry_behind, entry_count, entry_on
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.observations import TABLED

_TABLED_INDICATOR: Final = re.compile(rb'"series":"WDI:([A-Z0-9._-]+):')
"""The indicator in a catalogue row, such as `"series":"WDI:NY.GDP.MKTP.CD:GHA"`."""
_BEHIND_TABLED: Final = "WDI;"
"""Sorts after every key that begins with `WDI:`."""


class ListedSeries(msgspec.Struct, frozen=True):
    """The fields of a `/v1/series` row that are served."""

    series: str
    name: str | None
    unit: str | None
    note: str | None
    frequency: str
    country: str | None
    first_date: date
    last_date: date
    vintages: int
    source_id: str


read_series_rows = msgspec.json.Decoder(list[ListedSeries]).decode
_row = msgspec.json.Decoder(ListedSeries).decode


async def series_row(edition: Edition, key: str) -> ListedSeries | None:
    """The catalogue row of a series; None if there is no such series, or it was not known yet."""
    kept = edition.cache("series rows", 1024)
    if (known := kept.get(key)) is not None:
        return cast("ListedSeries", known)
    number = await entry_behind(edition, (key, 1, "", ""))
    rows = await rows_numbered(edition, [number] if number < entry_count(edition) else [])
    if not rows or rows[0].series != key or not rows[0].vintages:
        return None
    kept.put(key, rows[0])
    return rows[0]


async def rows_numbered(edition: Edition, numbers: Iterable[int]) -> list[ListedSeries]:
    """The rows of catalogue entries; in a locked view those of the day, without entries not known yet."""
    rows, yield_points = [], YieldPoints(16)
    for number in numbers:
        if (stored := await entry_on(edition, number)) is not None:
            rows.append(_row(stored))
        await yield_points.step()
    return rows


async def stored_row(edition: Edition, number: int) -> ListedSeries:
    """The row of a catalogue entry as it is today, whatever the day of the view."""
    (stored,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
    return _row(stored)


async def tabled_numbers(edition: Edition) -> Mapping[str, list[int]]:
    """By indicator the numbers of its `WDI:` series in the catalogue; in a locked view those known then."""
    whole = edition.whole if isinstance(edition, DayView) else edition
    kept = whole.cache("tabled indicators", 1)
    numbers: dict[str, list[int]] | None = kept.get("")
    if numbers is None:
        numbers = {}
        begin, end = [await entry_behind(whole, (key, 1, "", "")) for key in (TABLED, _BEHIND_TABLED)]
        number = begin
        yield_points = YieldPoints(1)
        for first in range(begin, end, 1024):
            rows = await whole.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, first, min(first + 1024, end))
            for indicator in _TABLED_INDICATOR.findall(b",".join(rows)):
                numbers.setdefault(indicator.decode(), []).append(number)
                number += 1
            await yield_points.step()
        kept.put("", numbers)
    if not isinstance(edition, DayView):
        return numbers
    days = await edition.numbers(SERIES_KNOWN, "", keep=True)
    known = {one: [n for n in own if days[n] <= edition.day] for one, own in numbers.items()}
    return {one: own for one, own in known.items() if own}
