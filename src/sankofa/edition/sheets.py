"""The sheets that screens are read from: the values of a metric in order of size, by country and year.

A screen is asked for by metric, country (or none) and day. For each metric, country and calendar year in
which anything changes there is one sheet that lists the values standing on any day of that year, largest
first, ties by service_id, each with the place of its row, which is that of `/v1/metrics`. In a year without a
sheet all stands as at the end of the last one before it. Beside it are their order from the smallest, on
which days each stands, and how many issuers show what (a value, or which reason for none) from each day on.
The top of a screen is the first so many that stand on the day: nothing is sorted, grouped or counted.

On which days a value stands is told by a byte for each sixteen days of the year, its mark: there are 136
stretches of days within sixteen, and none. The marks of all values for the same days follow one another, so
that those of a day are found by translating a run of bytes, and only the values that stand are unpacked.

Layout of a sheet, in 32-bit words, little-endian: how many days; the days; per day a count for each state;
how many values; of each value block, start and end of the row; the order from the smallest; then, in bytes,
of each sixteen days the mark of every value; padded to whole words.
"""

import struct
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple, Protocol

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.standing import State, Stretch
from sankofa.edition.metric_rows import UNDATED, Standings
from sankofa.engines.datastore import ByteRange
from sankofa.model.days import FOREVER

STATES = len(State)
PLACE = struct.Struct("<3I")
"""Of a value in a sheet: the block, start and end of its row behind the day."""
MARKED = 16
"""The days that one mark tells of."""
LAST_DAY = 365
"""Days of a year are counted from 0. On this one, there or not, whatever stands on after the year does."""
_MARKS = [(first, until) for first in range(MARKED) for until in range(first + 1, MARKED + 1)]
_MARK_OF = {days: mark for mark, days in enumerate(_MARKS, 1)}
STANDING = [
    bytes([0, *(first <= day < until for first, until in _MARKS)]).ljust(256, b"\0") for day in range(MARKED)
]
"""For each of the marked days, by mark: a 1 where the value stands."""
EVERYWHERE = ""
_IN_A_YEAR = LAST_DAY // MARKED + 1
_NOWHERE = "?"  # an issuer without a country: in no country's sheets


class Placed(Protocol):
    """The places of rows, by number."""

    def __getitem__(self, number: int, /) -> ByteRange: ...


class Column(NamedTuple):
    """The values of one metric, in the order of their issuers."""

    sizes: "array[float]"  # ten digits are exact in a float, so it orders them as they are
    firsts: "array[int]"
    untils: "array[int]"
    numbers: "array[int]"  # of the rows, in the order they are shelved
    countries: "array[int]"


class Omitted(NamedTuple):
    """The days of one issuer that show no value, by number of the metric."""

    service_id: str
    aliases: tuple[str, ...]
    stretches: list[tuple[int, Stretch]]


class Screening:
    """Collects what the sheets are made of, issuer by issuer in the order of their service_id."""

    def __init__(self) -> None:
        self._columns = [Column(array("d"), array("i"), array("i"), array("I"), array("H")) for _ in slugs()]
        self._changes: list[defaultdict[str, Counter[tuple[int, int]]]] = [
            defaultdict(Counter) for _ in slugs()
        ]
        self._countries: dict[str, int] = {}
        self._rows = 0
        self._issuers: list[tuple[str, tuple[str, ...], int]] = []
        self._missing = array("i")

    def add(self, service_id: str, aliases: tuple[str, ...], country: str | None, own: Standings) -> None:
        place = country or _NOWHERE
        number = self._countries.setdefault(place, len(self._countries))
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
        missing = 0
        before = (-1, 0)
        for metric, first, until, state in own.stretches():
            changes = self._changes[metric][place]
            changes[first, state] += 1
            if before[0] == metric:
                changes[first, before[1]] -= 1
            before = (metric, state)
            if state != State.STANDS:
                self._missing.extend((metric, first, until, state))
                missing += 1
        self._issuers.append((service_id, aliases, missing))

    def omitted(self) -> Iterator[Omitted]:
        """Of each issuer, the days on which a metric has no value, and why."""
        at = 0
        for service_id, aliases, count in self._issuers:
            words = self._missing[at : at + 4 * count]
            at += 4 * count
            stretches = [
                (words[n], Stretch(words[n + 1], words[n + 2], State(words[n + 3])))
                for n in range(0, 4 * count, 4)
            ]
            yield Omitted(service_id, aliases, stretches)

    def years(self) -> list[int]:
        """The calendar years in which anything changes, oldest first: few, however far off a mistyped one is.

        Where a value follows another the same day no state changes, only which value stands.
        """
        days = {day for by in self._changes for own in by.values() for day, _ in own if 0 < day < FOREVER}
        return sorted({date.fromordinal(day).year for day in days.union(*(c.firsts for c in self._columns))})

    def sheets(self, places: Placed) -> Iterator[tuple[str, bytes]]:
        """Every sheet by its key, given the places of the rows."""
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
                for place in range(bisect_right(starts, first) - 1, len(starts)):
                    if starts[place] >= until:
                        break
                    by_country[EVERYWHERE].values[place].append(at)
                    if named is not None:
                        named.values[place].append(at)
            everywhere: Counter[tuple[int, int]] = Counter()
            for own in changes.values():
                everywhere.update(own)
            for name, yearly in by_country.items():
                tallies = _tallies(everywhere if name == EVERYWHERE else changes[name], starts)
                for year, start, values, tally in zip(years, starts, yearly.values, tallies, strict=True):
                    yield f"{slug}|{name}|{year}", tally + _listed(column, values, places, start)


class _Yearly:
    """Of each year, the values that stand in it, largest first."""

    def __init__(self, years: int) -> None:
        self.values = [array("I") for _ in range(years)]


def _listed(column: Column, values: "array[int]", places: Placed, start: int) -> bytes:
    """The values of the year that begins on a day."""
    records = array("I")
    skipped = len(UNDATED)
    for at in values:
        block, begin, end = places[column.numbers[at]]
        records.extend((block, begin + skipped, end))
    sizes = [column.sizes[at] for at in values]
    order = array("I", sorted(range(len(sizes)), key=sizes.__getitem__))
    after = LAST_DAY + 1
    by_value = b"".join(
        [_marks(max(column.firsts[at] - start, 0), min(column.untils[at] - start, after)) for at in values]
    )
    marks = [by_value[n::_IN_A_YEAR] for n in range(_IN_A_YEAR)]
    padding = bytes(-len(by_value) % 4)
    return b"".join((struct.pack("<I", len(values)), records.tobytes(), order.tobytes(), *marks, padding))


@lru_cache(maxsize=1 << 16)
def _marks(first: int, until: int) -> bytes:
    """The marks of a value that stands on the days [first, until) of a year."""
    starts = range(0, LAST_DAY + 1, MARKED)
    return bytes([_MARK_OF.get((max(first - at, 0), min(until - at, MARKED)), 0) for at in starts])


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
