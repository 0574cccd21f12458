"""Puts the metrics of every issuer in order of size: makes the index that screens are read from.

What it is made of is collected by part of organisations, and kept for the next build as it is
(`build.partition_summaries`).
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.screen_index import (
    DAYS_PER_MARK,
    EVERYWHERE,
    LAST_DAY,
    MARK_OF,
    MARKS_PER_YEAR,
    STATES,
    UNDATED,
)
from sankofa.edition.write.metric_rows import Standings
from sankofa.model.days import FOREVER

_NOWHERE: Final = "?"
"""The country of an issuer without one: in no country's pages."""
_write = msgspec.msgpack.Encoder().encode
_read_changes = msgspec.msgpack.Decoder(list[tuple[int, int, int, int]]).decode
_Changes = dict[tuple[int, int], int]
"""By day and state, by how many issuers more are in it from then on."""


class MetricValues(msgspec.Struct, frozen=True, array_like=True):
    """The values of one metric, in the order of their issuers; of each a number in every column."""

    sizes: "array[float]"
    """Ten digits are exact in a float, so it orders them as they are."""
    firsts: "array[int]"
    untils: "array[int]"
    countries: "array[int]"
    issuers: "array[int]"
    blocks: "array[int]"
    """Counted from the first of the issuer."""
    begins: "array[int]"
    ends: "array[int]"


_TYPES: Final = "iiIIIII"
"""Of the columns of `MetricValues` behind the first."""


def _no_values() -> MetricValues:
    sizes: array[float] = array("d")
    return MetricValues(sizes, *(array(code) for code in _TYPES))


class ScreenSegment(msgspec.Struct, frozen=True, array_like=True):
    """What screens list of some organisations that follow each other, as it is written down."""

    issuers: list[str]
    countries: list[str]
    columns: list[list[bytes]]
    """Of each metric its `MetricValues`."""
    changes: list[bytes]
    """Of each metric a list, read only where its pages are made: number of a country, day, state, step."""
    years: list[int]
    """Those in which anything changes."""


class SegmentBuilder:
    """Collects a segment, issuer by issuer in the order of their service_id."""

    def __init__(self) -> None:
        self._issuers: list[str] = []
        self._countries: dict[str, int] = {}
        self._columns = [_no_values() for _ in slugs()]
        self._changes: list[Counter[tuple[int, int, int]]] = [Counter() for _ in slugs()]

    def add(
        self, service_id: str, country: str | None, own: Standings, row_ends: Sequence[Sequence[int]]
    ) -> None:
        """`row_ends`: of each block of the issuer's rows where each row ends."""
        issuer = len(self._issuers)
        self._issuers.append(service_id)
        number = self._countries.setdefault(country or _NOWHERE, len(self._countries))
        blocks = [block for block, ends in enumerate(row_ends) for _ in ends]
        begins = [begin for ends in row_ends for begin in (0, *(end + 1 for end in ends[:-1]))]
        row_end = [end for ends in row_ends for end in ends]
        first = 0
        for metric, count in sorted(Counter(own.metrics).items()):  # the rows are ordered by metric
            column, end = self._columns[metric], first + count
            column.sizes.frombytes(own.sizes[8 * first : 8 * end])
            column.firsts.frombytes(own.firsts[4 * first : 4 * end])
            column.untils.frombytes(own.untils[4 * first : 4 * end])
            column.countries.extend((number,) * count)
            column.issuers.extend((issuer,) * count)
            column.blocks.extend(blocks[first:end])
            column.begins.extend(begins[first:end])
            column.ends.extend(row_end[first:end])
            first = end
        before = (-1, 0)
        for metric, day, _, state in own.stretches():
            changes = self._changes[metric]
            changes[number, day, state] += 1
            if before[0] == metric:
                changes[number, day, before[1]] -= 1
            before = (metric, state)

    def segment(self) -> ScreenSegment:
        return ScreenSegment(
            self._issuers,
            list(self._countries),
            [[column.tobytes() for column in msgspec.structs.astuple(own)] for own in self._columns],
            [_write(sorted((*key, step) for key, step in own.items())) for own in self._changes],
            self._years(),
        )

    def _years(self) -> list[int]:
        """Where a value follows another the same day no state changes, only which value stands."""
        days = {day for own in self._changes for _, day, _ in own if 0 < day < FOREVER}
        return sorted({date.fromordinal(day).year for day in days.union(*(c.firsts for c in self._columns))})


class ScreenIndex:
    """All segments, in the order of their organisations."""

    def __init__(self) -> None:
        self._columns = [_no_values() for _ in slugs()]
        self._changes: list[list[tuple[list[str], bytes]]] = [[] for _ in slugs()]
        """Of each metric what every segment has, and its countries."""
        self._countries: dict[str, int] = {}
        self._years: set[int] = set()

    def add(self, segment: ScreenSegment, first_blocks: Mapping[str, int]) -> None:
        """`first_blocks`: by service_id the address of the first block of its rows."""
        for country in segment.countries:
            self._countries.setdefault(country, len(self._countries))
        countries = [self._countries[country] for country in segment.countries]
        firsts = [first_blocks[service_id] for service_id in segment.issuers]
        for column, stored in zip(self._columns, segment.columns, strict=True):
            own = _no_values()
            for part, content in zip(msgspec.structs.astuple(own), stored, strict=True):
                part.frombytes(content)
            for name in ("sizes", "firsts", "untils", "begins", "ends"):
                getattr(column, name).extend(getattr(own, name))
            column.countries.extend([countries[number] for number in own.countries])
            column.blocks.extend(
                [firsts[issuer] + block for issuer, block in zip(own.issuers, own.blocks, strict=True)]
            )
        for changes, stored_changes in zip(self._changes, segment.changes, strict=True):
            changes.append((segment.countries, stored_changes))
        self._years.update(segment.years)

    @cached_property
    def years(self) -> list[int]:
        """The calendar years in which anything changes, oldest first: few, however far off a mistyped one."""
        return sorted(self._years)

    @cached_property
    def _starts(self) -> list[int]:
        return [date(year, 1, 1).toordinal() for year in self.years]

    def metrics(self) -> Iterator[tuple[int, list[str]]]:
        """Every metric by its number, with its keys; all in the order of the keys."""
        countries = [EVERYWHERE, *(name for name in self._countries if name != _NOWHERE)]
        for number in sorted(range(len(slugs())), key=lambda number: f"{slugs()[number]}|"):
            slug = slugs()[number]
            yield number, sorted(f"{slug}|{name}|{year}" for name in countries for year in self.years)

    def inputs(self, metric: int, *, ranges: bool) -> str:
        """A digest of what the pages of a metric are made of, or the byte ranges of what is on them."""
        column = self._columns[metric]
        digest = sha256(_write((self.years, list(self._countries))))
        for part in (column.sizes, column.firsts, column.untils, column.countries):
            digest.update(part)
        if ranges:
            for part in (column.blocks, column.begins, column.ends):
                digest.update(part)
        else:
            digest.update(_write(self._changes[metric]))
        return digest.hexdigest()

    def pages(self, metric: int, *, ranges: bool) -> dict[str, bytes]:
        """By key, the pages of a metric, or the byte ranges of the rows on each."""
        column, slug = self._columns[metric], slugs()[metric]
        encoded: dict[str, bytes] = {}
        changes = {} if ranges else self._changes_by_country(metric)
        for name, by_year in self._values(column).items():
            if ranges:
                for year, values in zip(self.years, by_year, strict=True):
                    encoded[f"{slug}|{name}|{year}"] = _ranges(column, values)
                continue
            tallies = _tallies(changes.get(name, {}), self._starts)
            for year, start, values, tally in zip(self.years, self._starts, by_year, tallies, strict=True):
                encoded[f"{slug}|{name}|{year}"] = tally + _listed(column, values, start)
        return encoded

    def _values(self, column: MetricValues) -> "dict[str, list[array[int]]]":
        """By country, of each year the values that stand in it, largest first."""
        names, starts = list(self._countries), self._starts
        by_country = {name: [array("I") for _ in starts] for name in (EVERYWHERE, *names) if name != _NOWHERE}
        everywhere = [values.append for values in by_country[EVERYWHERE]]
        named = [[values.append for values in by_country.get(name, ())] for name in names]
        firsts, untils, countries = column.firsts, column.untils, column.countries
        negative = [-size for size in column.sizes]
        for at in sorted(range(len(negative)), key=negative.__getitem__):
            first_year, until_year = bisect_right(starts, firsts[at]) - 1, bisect_left(starts, untils[at])
            for add in everywhere[first_year:until_year]:
                add(at)
            for add in named[countries[at]][first_year:until_year]:
                add(at)
        return by_country

    def _changes_by_country(self, metric: int) -> dict[str, _Changes]:
        by_country: defaultdict[str, _Changes] = defaultdict(lambda: defaultdict(int))
        for countries, stored in self._changes[metric]:
            named = [by_country[country] for country in countries]
            for number, day, state, step in _read_changes(stored):
                named[number][day, state] += step
        everywhere: _Changes = defaultdict(int)
        for own in by_country.values():
            for key, step in own.items():
                everywhere[key] += step
        return {**by_country, EVERYWHERE: everywhere}


def _ranges(column: MetricValues, values: "array[int]") -> bytes:
    records = array("I", bytes(12 * len(values)))
    skipped = len(UNDATED)
    records[0::3] = array("I", map(column.blocks.__getitem__, values))
    records[1::3] = array("I", [begin + skipped for begin in map(column.begins.__getitem__, values)])
    records[2::3] = array("I", map(column.ends.__getitem__, values))
    return records.tobytes()


def _listed(column: MetricValues, values: "array[int]", start: int) -> bytes:
    """The values of the year that begins on a day."""
    sizes = list(map(column.sizes.__getitem__, values))
    order = array("I", sorted(range(len(sizes)), key=sizes.__getitem__))
    after, end = LAST_DAY + 1, start + LAST_DAY + 1
    by_value = b"".join(
        [
            _marks(first - start if first > start else 0, until - start if until < end else after)
            for first, until in zip(
                map(column.firsts.__getitem__, values), map(column.untils.__getitem__, values), strict=True
            )
        ]
    )
    marks = [by_value[n::MARKS_PER_YEAR] for n in range(MARKS_PER_YEAR)]
    padding = bytes(-len(by_value) % 4)
    return b"".join((struct.pack("<I", len(values)), order.tobytes(), *marks, padding))


@lru_cache(maxsize=1 << 16)
def _marks(first: int, until: int) -> bytes:
    """The marks of a value that stands on the days [first, until) of a year."""
    starts = range(0, LAST_DAY + 1, DAYS_PER_MARK)
    return bytes([MARK_OF.get((max(first - at, 0), min(until - at, DAYS_PER_MARK)), 0) for at in starts])


def _tallies(changes: _Changes, starts: Sequence[int]) -> list[bytes]:
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
