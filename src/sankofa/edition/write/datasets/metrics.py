"""Derived values: by service_id, and in order of size.

- `metrics`: the values of an issuer, ordered by metric, each with the days on which it is valid;
- `omitted`: for an issuer, metric and day, why there is no value, and the later figures that caused it;
- `screen`, `screen-ranges`: the index of `format.screen_index`, which leads to the rows of `metrics`.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import derive
from sankofa.edition.format.issuer_pages import (
    DAYS_PER_MARK,
    EVERYWHERE,
    LAST_DAY,
    MARK_OF,
    MARKS_PER_YEAR,
    SCREEN,
    SCREEN_RANGES,
    STATES,
    UNDATED,
)
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, KeyRows, Outcome, PreparedRows, dataset, prepare
from sankofa.edition.write.derived_parts import issuer_part
from sankofa.edition.write.metric_rows import METRICS, ScreenData, metric_rows, screen_data
from sankofa.edition.write.partition_summaries import NOWHERE, MetricValues, ScreenSegment, metric_values
from sankofa.ledger.entities import Entity
from sankofa.model.rows import REASONS, MetricsRow, State

_read_changes = msgspec.msgpack.Decoder(list[tuple[int, int, int, int]]).decode
_Changes = dict[tuple[int, int], int]
"""By day and state, the change in the number of issuers."""


class ScreenIndex:
    """Orders the metrics of every issuer by size: builds the pages of the screen index from all segments."""

    def __init__(self) -> None:
        self._columns = [metric_values() for _ in slugs()]
        self._changes: list[list[tuple[list[str], tuple[bytes, bytes]]]] = [[] for _ in slugs()]
        """For each metric, the countries of every segment and its changes for each basis."""
        self._countries: dict[str, int] = {}
        self._years: set[int] = set()

    def add(self, segment: ScreenSegment, first_blocks: Mapping[str, int]) -> None:
        """`first_blocks` has the address of the first block of each service_id."""
        countries = [self._countries.setdefault(name, len(self._countries)) for name in segment.countries]
        firsts = [first_blocks[service_id] for service_id in segment.issuers]
        for column, stored in zip(self._columns, segment.columns, strict=True):
            own = metric_values(stored)
            blocks = [firsts[issuer] + block for issuer, block in zip(own.issuers, own.blocks, strict=True)]
            own = own._replace(
                countries=array("I", [countries[number] for number in own.countries]),
                blocks=array("I", blocks),
            )
            for name in MetricValues._fields:
                getattr(column, name).extend(getattr(own, name))
        for changes, by_basis in zip(self._changes, segment.changes, strict=True):
            changes.append((segment.countries, by_basis))
        self._years.update(segment.years)

    @cached_property
    def years(self) -> list[int]:
        """The calendar years in which anything changes, oldest first."""
        return sorted(self._years)

    @cached_property
    def _starts(self) -> list[int]:
        return [date(year, 1, 1).toordinal() for year in self.years]

    def metrics(self) -> Iterator[tuple[int, list[str]]]:
        """Every metric by number with its keys, in the order of the keys."""
        countries = [EVERYWHERE, *(name for name in self._countries if name != NOWHERE)]
        for number in sorted(range(len(slugs())), key=lambda number: f"{slugs()[number]}|"):
            slug = slugs()[number]
            yield number, sorted(f"{slug}|{name}|{year}" for name in countries for year in self.years)

    def pages(self, metric: int, *, ranges: bool) -> dict[str, bytes]:
        """The pages of a metric by key, or the byte ranges of their rows."""
        column, slug = self._columns[metric], slugs()[metric]
        encoded: dict[str, bytes] = {}
        current, known = ({}, {}) if ranges else (self._changes_by_country(metric, basis) for basis in (0, 1))
        for name, by_year in self._values(column).items():
            if ranges:
                for year, values in zip(self.years, by_year, strict=True):
                    encoded[f"{slug}|{name}|{year}"] = _ranges(column, values)
                continue
            tallies = [_tallies(changes.get(name, {}), self._starts) for changes in (current, known)]
            pages = zip(self.years, self._starts, by_year, *tallies, strict=True)
            for year, start, values, current_tally, known_tally in pages:
                listed = _listed(column, values, start)
                encoded[f"{slug}|{name}|{year}"] = current_tally + known_tally + listed
        return encoded

    def _values(self, column: MetricValues) -> "dict[str, list[array[int]]]":
        """By country and year, the values valid in it, largest first."""
        names, starts = list(self._countries), self._starts
        by_country = {name: [array("I") for _ in starts] for name in (EVERYWHERE, *names) if name != NOWHERE}
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

    def _changes_by_country(self, metric: int, basis: int) -> dict[str, _Changes]:
        by_country: defaultdict[str, _Changes] = defaultdict(lambda: defaultdict(int))
        for countries, stored in self._changes[metric]:
            named = [by_country[country] for country in countries]
            for number, day, state, step in _read_changes(stored[basis]):
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
    """The values of the year that begins on a day, as a page has them."""
    sizes = list(map(column.sizes.__getitem__, values))
    order = array("I", sorted(range(len(sizes)), key=sizes.__getitem__))
    after, end = LAST_DAY + 1, start + LAST_DAY + 1
    firsts, untils = (map(days.__getitem__, values) for days in (column.firsts, column.untils))
    by_value = [
        _marks(first - start if first > start else 0, until - start if until < end else after)
        for first, until in zip(firsts, untils, strict=True)
    ]
    current = map(column.current.__getitem__, values)
    for_current = [
        mark if is_current else _NO_MARKS for mark, is_current in zip(by_value, current, strict=True)
    ]
    marks = [
        joined[n::MARKS_PER_YEAR]
        for joined in (b"".join(for_current), b"".join(by_value))
        for n in range(MARKS_PER_YEAR)
    ]
    years = array("i", map(column.years.__getitem__, values))
    padding = bytes(-2 * MARKS_PER_YEAR * len(values) % 4)
    size = struct.pack("<I", len(values))
    return b"".join((size, order.tobytes(), years.tobytes(), *marks, padding))


_NO_MARKS = bytes(MARKS_PER_YEAR)


@lru_cache(maxsize=1 << 16)
def _marks(first: int, until: int) -> bytes:
    """The marks of a value that is valid on the days [first, until) of a year."""
    starts = range(0, LAST_DAY + 1, DAYS_PER_MARK)
    return bytes([MARK_OF.get((max(first - at, 0), min(until - at, DAYS_PER_MARK)), 0) for at in starts])


def _tallies(changes: _Changes, starts: Sequence[int]) -> list[bytes]:
    """For each year, the days on which a count changes, with its first day, and the counts from then on."""
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


_read = msgspec.msgpack.Decoder(tuple[PreparedRows, ScreenData]).decode
_write = msgspec.msgpack.Encoder().encode
_OMITTED_ROW = b'{"metric":"%b","reason":"%b","changes":%b}'


@issuer_part(METRICS)
def _part(issuer: Issuer) -> bytes:
    derived = derive(issuer.years)
    if not any(derived.histories):
        return b""
    entries = metric_rows(issuer.entity, derived.values)
    return _write((prepare(METRICS, MetricsRow, issuer.entity.service_id, entries), screen_data(derived)))


@dataset(METRICS, MetricsRow, by_organisation=True, addressed=True)
def metrics(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(METRICS, some):
        yield KeyRows(entity.service_id, _read(part)[0], entity.aliases)


@dataset("omitted", None, by_organisation=True)
def omitted(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(METRICS, some):
        if entries := list(_omitted(_read(part)[1])):
            yield KeyRows(entity.service_id, entries, entity.aliases)


def _omitted(listed: ScreenData) -> Iterator[Entry]:
    changes = {(number, first): changed for number, first, changed in listed.changes}
    modes_of = dict.fromkeys(listed.stretches(known=True), AS_KNOWN)
    for one in listed.stretches():
        modes_of[one] = Entry(b"").modes | modes_of.get(one, 0)
    for one, modes in sorted(modes_of.items()):
        if one.state != State.STANDS:
            changed = changes.get((one.number, one.first), b"[]") if modes != AS_KNOWN else b"[]"
            row = _OMITTED_ROW % (slugs()[one.number].encode(), REASONS[State(one.state)].encode(), changed)
            yield Entry(row, one.first, one.until, modes, one.number)


@dataset(SCREEN, None, needs=(METRICS,), reads=(), partitioned=True, of_organisations=True)
def screen(context: BuildContext, metrics: Mapping[str, int]) -> Building:
    """`metrics` has the address of the first block of each issuer. Returns the index."""
    index = ScreenIndex()
    for segment in context.summaries.screens():
        index.add(segment, metrics)
    yield from _pages(index, ranges=False)
    return Outcome(index, manifest_extras={"screen_years": index.years})


@dataset(SCREEN_RANGES, None, needs=(SCREEN,), reads=(), partitioned=True, of_organisations=True)
def screen_ranges(context: BuildContext, screens: ScreenIndex) -> Iterator[KeyRows]:
    yield from _pages(screens, ranges=True)


def _pages(index: ScreenIndex, *, ranges: bool) -> Iterator[KeyRows]:
    for metric, keys in index.metrics():
        pages = index.pages(metric, ranges=ranges)
        for key in keys:
            yield KeyRows(key, [Entry(pages[key])])
