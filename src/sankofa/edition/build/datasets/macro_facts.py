"""Macro values as facts of their country, once more than `/v1/macro` has them: by measure, and in one order.

- `fact_macro`: country, measure and mode (`ZA|FX.EUR.ZAR|series`) lead to its facts, the newest period first;
- `fact_order`: a country leads to the places of all its facts (`ZA`), or of the dated ones (`ZA|dated`), the
  newest period first, then by measure. The first block has the day on which each of the others begins.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from datetime import date
from itertools import chain, groupby
from typing import NamedTuple

import msgspec

from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.build.datasets.facts import country_of_facts
from sankofa.edition.build.datasets.macro import annual, series
from sankofa.edition.format.keys import (
    ANNUAL_MODE,
    FACT_ORDER,
    MACRO_FACTS,
    RANGES_PER_BLOCK,
    SERIES_MODE,
    macro_key,
    order_key,
)
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.series_blocks import pack_pages
from sankofa.model.facts import MACRO, SharedFact, Source, Who, fact, record_ref
from sankofa.model.rows import FactRow, wire


class _Annual(msgspec.Struct):
    source_ref: str
    license_class: str
    observed_at: str
    country: str
    indicator: str
    year: int
    value: msgspec.Raw
    unit: str | None
    vintage: int


class _Observation(msgspec.Struct):
    source_ref: str
    license_class: str
    observed_at: str
    series: str
    series_type: str
    frequency: str
    country: str
    date: str
    value: msgspec.Raw
    unit: str | None
    available_at: str
    vintage: int


_annual = msgspec.json.Decoder(_Annual).decode
_observation = msgspec.json.Decoder(_Observation).decode


class _Noted(NamedTuple):
    """Which facts stand under a key of `fact_macro`, in their order."""

    measure: str
    mode: str
    first_row: int
    ends: "array[int]"
    firsts: "array[int]"
    untils: "array[int]"


_Told = tuple[int, Entry]
"""The last day of the period, and the fact."""


@dataset(MACRO_FACTS, FactRow, placed=True)
def macro_facts(context: BuildContext) -> Iterator[KeyRows]:
    rows = 0
    noted: defaultdict[str, list[_Noted]] = defaultdict(list)
    for country, measure, mode, told in chain(_of_tables(context), _of_series(context)):
        entries = [entry for _, entry in told]
        columns = ((end for end, _ in told), (e.first for e in entries), (e.until for e in entries))
        noted[country].append(_Noted(measure, mode, rows, *(array("i", column) for column in columns)))
        rows += len(entries)
        yield KeyRows(macro_key(country, measure, mode), entries)
    context.columns[FACT_ORDER] = [(country, noted[country]) for country in sorted(noted)]


def _of_tables(context: BuildContext) -> Iterator[tuple[str, str, str, list[_Told]]]:
    for key, entries, _ in annual(_aside(context)):
        country, measure = key.split("|")
        entity = country_of_facts(country)
        told: list[_Told] = []
        for entry in entries:
            made = wire.encode(annual_fact(entity, entry.row))
            told.append((date(entry.tag, 12, 31).toordinal(), Entry(made)))
        yield country, measure, ANNUAL_MODE, told


def _of_series(context: BuildContext) -> Iterator[tuple[str, str, str, list[_Told]]]:
    """The series of one key that are of one country, whatever their type and frequency, together."""
    parts = ((tuple(key.split("|")), entries) for key, entries, _ in series(_aside(context)))
    for measure, columns in groupby(parts, key=lambda part: part[0][0]):
        told: defaultdict[str, list[_Told]] = defaultdict(list)
        for (*_, country), entries in columns:
            if country:
                entity = country_of_facts(country)
                for row, first, until, _, tag in entries:
                    made = wire.encode(series_fact(entity, row))
                    told[country].append((tag, Entry(made, first, until)))
        for country, facts in told.items():
            facts.sort(key=lambda fact: -fact[0])
            yield country, measure, SERIES_MODE, facts


def _aside(context: BuildContext) -> BuildContext:
    """The same context, in which building rows once more lists nothing twice."""
    other = copy(context)
    other.columns = defaultdict(list)
    return other


def annual_fact(entity: Who, wire_row: bytes) -> SharedFact:
    """One row of an annual indicator as a fact of its country."""
    row = _annual(wire_row)
    told = (row.country, row.indicator, str(row.year), str(row.vintage), bytes(row.value).decode())
    return fact(
        entity,
        MACRO,
        record_ref(*told),
        row.indicator,
        row.value,
        row.unit,
        (f"{row.year:04}-12-31", "annual"),
        None,
        row.vintage,
        Source(row.source_ref, row.license_class, row.observed_at),
    )


def series_fact(entity: Who, wire_row: bytes) -> SharedFact:
    """One row of a series as a fact of its country."""
    row = _observation(wire_row)
    identity = (row.series, row.series_type, row.frequency, row.country, row.date)
    return fact(
        entity,
        MACRO,
        record_ref(*identity, row.available_at, bytes(row.value).decode(), row.unit or ""),
        row.series,
        row.value,
        row.unit,
        (row.date, row.frequency),
        row.available_at,
        row.vintage,
        Source(row.source_ref, row.license_class, row.observed_at),
    )


@dataset(FACT_ORDER, None, pack=pack_pages)
def fact_order(context: BuildContext) -> Iterator[KeyRows]:
    for country, noted in context.columns[FACT_ORDER]:
        for dated in (False, True):
            ordered = _ordered(noted, dated=dated)
            if ordered:
                yield KeyRows(order_key(country, dated=dated), _order_blocks(context, ordered))


_Placed = tuple[int, int, int, int, int]
"""The day a fact is of, counted down, the place of its measure; its row, first and until."""


def _ordered(noted: list[_Noted], *, dated: bool) -> list[_Placed]:
    columns = sorted(noted, key=lambda n: (n.measure, n.mode))
    return sorted(
        (-end, rank, column.first_row + row, first, until)
        for rank, column in enumerate(columns)
        if not dated or column.mode == SERIES_MODE
        for row, (end, first, until) in enumerate(zip(column.ends, column.firsts, column.untils, strict=True))
    )


def _order_blocks(context: BuildContext, ordered: list[_Placed]) -> Iterable[Entry]:
    places = context.places[MACRO_FACTS]
    yield Entry(array("i", [-placed[0] for placed in ordered[::RANGES_PER_BLOCK]]).tobytes())
    for at in range(0, len(ordered), RANGES_PER_BLOCK):
        block = ordered[at : at + RANGES_PER_BLOCK]
        rows = [places[row] for _, _, row, _, _ in block]
        columns = (
            *zip(*((first, until) for *_, first, until in block), strict=True),
            *zip(*rows, strict=True),
        )
        yield Entry(b"".join(array("i", column).tobytes() for column in columns))
