"""Puts the metrics of every issuer in order of size: makes the index that screens are read from."""

import struct
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple, Protocol

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.build.metric_rows import Standings
from sankofa.edition.format.screen_index import (
    DAYS_PER_MARK,
    EVERYWHERE,
    LAST_DAY,
    MARK_OF,
    MARKS_PER_YEAR,
    STATES,
    UNDATED,
)
from sankofa.engines.datastore import ByteRange
from sankofa.model.days import FOREVER

_NOWHERE = "?"  # an issuer without a country: in no country's pages


class Placed(Protocol):
    """The places of rows, by number."""

    def __getitem__(self, number: int, /) -> ByteRange: ...


class MetricValues(NamedTuple):
    """The values of one metric, in the order of their issuers."""

    sizes: "array[float]"  # ten digits are exact in a float, so it orders them as they are
    firsts: "array[int]"
    untils: "array[int]"
    numbers: "array[int]"  # of the rows, in the order they are written
    countries: "array[int]"


class ScreenIndex:
    """Collects what the pages are made of, issuer by issuer in the order of their service_id."""

    def __init__(self) -> None:
        self._columns = [
            MetricValues(array("d"), array("i"), array("i"), array("I"), array("H")) for _ in slugs()
        ]
        self._changes: list[defaultdict[str, Counter[tuple[int, int]]]] = [
            defaultdict(Counter) for _ in slugs()
        ]
        self._countries: dict[str, int] = {}
        self._rows = 0

    def add(self, country: str | None, own: Standings) -> None:
        counted_in = country or _NOWHERE
        number = self._countries.setdefault(counted_in, len(self._countries))
        begin = 0
        for metric, count in sorted(Counter(own.metrics).items()):  # the rows are ordered by metric
            column, end = self._columns[metric], begin + count
            column.sizes.frombytes(own.sizes[8 * begin : 8 * end])
            column.firsts.frombytes(own.firsts[4 * begin : 4 * end])
            column.untils.frombytes(own.untils[4 * begin : 4 * end])
            column.numbers.extend(range(self._rows + begin, self._rows + end))
            column.countries.extend((number,) * count)
            begin = end
        self._rows += begin
        before = (-1, 0)
        for metric, first, _, state in own.stretches():
            changes = self._changes[metric][counted_in]
            changes[first, state] += 1
            if before[0] == metric:
                changes[first, before[1]] -= 1
            before = (metric, state)

    def years(self) -> list[int]:
        """The calendar years in which anything changes, oldest first: few, however far off a mistyped one is.

        Where a value follows another the same day no state changes, only which value stands.
        """
        days = {day for by in self._changes for own in by.values() for day, _ in own if 0 < day < FOREVER}
        return sorted({date.fromordinal(day).year for day in days.union(*(c.firsts for c in self._columns))})

    def pages(self, ranges: Placed) -> Iterator[tuple[str, bytes]]:
        """Every page by its key, given where the rows stand."""
        years = self.years()
        starts = [date(year, 1, 1).toordinal() for year in years]
        names = list(self._countries)
        for slug, column, changes in zip(slugs(), self._columns, self._changes, strict=True):
            by_country = {EVERYWHERE: _Yearly(len(years))} | {
                name: _Yearly(len(years)) for name in names if name != _NOWHERE
            }
            for at in sorted(range(len(column.sizes)), key=lambda n: -column.sizes[n]):
                first, until = column.firsts[at], column.untils[at]
                named = by_country.get(names[column.countries[at]])
                for year_number in range(bisect_right(starts, first) - 1, len(starts)):
                    if starts[year_number] >= until:
                        break
                    by_country[EVERYWHERE].values[year_number].append(at)
                    if named is not None:
                        named.values[year_number].append(at)
            everywhere: Counter[tuple[int, int]] = Counter()
            for own in changes.values():
                everywhere.update(own)
            for name, yearly in by_country.items():
                tallies = _tallies(everywhere if name == EVERYWHERE else changes[name], starts)
                for year, start, values, tally in zip(years, starts, yearly.values, tallies, strict=True):
                    yield f"{slug}|{name}|{year}", tally + _listed(column, values, ranges, start)


class _Yearly:
    """Of each year, the values that stand in it, largest first."""

    def __init__(self, years: int) -> None:
        self.values = [array("I") for _ in range(years)]


def _listed(column: MetricValues, values: "array[int]", ranges: Placed, start: int) -> bytes:
    """The values of the year that begins on a day."""
    records = array("I")
    skipped = len(UNDATED)
    for at in values:
        block, begin, end = ranges[column.numbers[at]]
        records.extend((block, begin + skipped, end))
    sizes = [column.sizes[at] for at in values]
    order = array("I", sorted(range(len(sizes)), key=sizes.__getitem__))
    after = LAST_DAY + 1
    by_value = b"".join(
        [_marks(max(column.firsts[at] - start, 0), min(column.untils[at] - start, after)) for at in values]
    )
    marks = [by_value[n::MARKS_PER_YEAR] for n in range(MARKS_PER_YEAR)]
    padding = bytes(-len(by_value) % 4)
    return b"".join((struct.pack("<I", len(values)), records.tobytes(), order.tobytes(), *marks, padding))


@lru_cache(maxsize=1 << 16)
def _marks(first: int, until: int) -> bytes:
    """The marks of a value that stands on the days [first, until) of a year."""
    starts = range(0, LAST_DAY + 1, DAYS_PER_MARK)
    return bytes([MARK_OF.get((max(first - at, 0), min(until - at, DAYS_PER_MARK)), 0) for at in starts])


def _tallies(changes: "Counter[tuple[int, int]]", starts: Sequence[int]) -> list[bytes]:
    """Of each year: the days on which a count changes, its first day included, and the counts from then."""
    by_day: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (day, state), step in changes.items():
        if step:
            by_day[day].append((state, step))
    running = [0] * STATES
    years: list[tuple[array[int], array[int]]] = [(array("i"), array("I")) for _ in starts]
    for year, start in enumerate(starts):
        by_day.setdefault(0 if year == 0 else start, [])
    for day in sorted(by_day):
        for state, step in by_day[day]:
            running[state] += step
        days, counts = years[max(bisect_right(starts, day) - 1, 0)]
        days.append(day)
        counts.extend(running)
    return [struct.pack("<I", len(d)) + d.tobytes() + c.tobytes() for d, c in years]
