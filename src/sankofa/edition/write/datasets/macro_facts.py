"""Macro values as facts of their country: by measure, and all in one order.

- `fact_macro`: country, measure and mode (`ZA|FX.EUR.ZAR|series`) lead to its facts, the newest period first;
- `fact_order`: a country leads to the byte ranges of all its facts (`ZA`), or of the dated ones (`ZA|dated`),
  the newest period first, then by measure. The first block has the first day of each other block.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sankofa.derive.series import MacroColumn, SeriesVintages
from sankofa.edition.format import keys
from sankofa.edition.format.macro import encode_ranges
from sankofa.edition.format.row_blocks import Entry, row_ends
from sankofa.edition.format.visibility import first_day_of_blocks
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    Building,
    Input,
    KeyRows,
    Outcome,
    PreparedRows,
    dataset,
    pages_of,
    prepare,
)
from sankofa.edition.write.datasets.macro_series import ProvenanceText
from sankofa.edition.write.derived_parts import macro_part
from sankofa.edition.write.tables import (
    MacroRows,
    country_entity,
    encoded_provenance,
    encoded_rows,
    provenance_name,
    provenance_table,
    table,
)
from sankofa.engines.edition_reader import BLOCK_BITS
from sankofa.model.days import iso_day, ordinal
from sankofa.model.errors import CheckFailed
from sankofa.model.provenance import MACRO, FactSource, SharedFact, fact, record_ref
from sankofa.model.rows import FactRow, wire
from sankofa.model.vintages import in_force

if TYPE_CHECKING:
    import pyarrow

_ANNUAL_FACTS: Final = "af-macro-annual-fact"
_SERIES_FACTS: Final = "af-macro-series-fact"


class _MeasurePart(msgspec.Struct, frozen=True, array_like=True):
    """The stored facts of a measure of a country, each with its last day and [first, until)."""

    country: str
    measure: str
    mode: str
    rows: PreparedRows
    days: tuple[bytes, bytes, bytes]


_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[_MeasurePart]).decode


class _MeasureFacts(NamedTuple):
    """The facts under a key of `fact_macro`, in order."""

    measure: str
    mode: str
    first_row: int
    ends: "array[int]"
    firsts: "array[int]"
    untils: "array[int]"


_EndedFact = tuple[int, Entry]
"""The last day of the period, and the fact."""


@dataset(keys.MACRO_FACTS, FactRow, reads=(Input.MACRO,))
def macro_facts(context: BuildContext) -> Building:
    """Returns the facts of each measure by country, and the block, start and end of every row."""
    blocks = 0
    ranges = [array("i"), array("i"), array("i")]
    measures: defaultdict[str, list[_MeasureFacts]] = defaultdict(list)
    for part in context.macro.parts(keys.MACRO_FACTS):
        for one in _read(part):
            days = (array("i", column) for column in one.days)
            measures[one.country].append(_MeasureFacts(one.measure, one.mode, len(ranges[0]), *days))
            for block in one.rows.blocks:
                blocks += 1
                ends = row_ends((block.index, b"") if block.index else block.plain)
                ranges[0].extend([blocks] * len(ends))
                ranges[1].extend([0, *(end + 1 for end in ends[:-1])])
                ranges[2].extend(ends)
            yield KeyRows(keys.macro_key(one.country, one.measure, one.mode), one.rows)
    if blocks >= 1 << BLOCK_BITS:
        raise CheckFailed(f"{keys.MACRO_FACTS}: more blocks than a part can have")
    return Outcome(([(country, measures[country]) for country in sorted(measures)], ranges))


@macro_part
def _derived(columns: Sequence[MacroColumn]) -> Iterator[tuple[str, bytes]]:
    provenance = ProvenanceText(columns[0].captures)
    parts: list[_MeasurePart] = []
    facts: list[SharedFact] = []
    for column in columns:
        if column.country:
            by_country = {column.country: _of_table(column, provenance, facts)}
        else:
            by_country = defaultdict(list)
            for one in column.series:
                if one.identity.country:
                    by_country[one.identity.country] += _of_series(column, provenance, one, facts)
            for served in by_country.values():
                served.sort(key=lambda fact: -fact[0])
        mode = keys.ANNUAL_MODE if column.country else keys.SERIES_MODE
        parts += (_part(country, column.code, mode, own) for country, own in by_country.items() if own)
    yield keys.MACRO_FACTS, _write(parts)
    name = _ANNUAL_FACTS if columns[0].country else _SERIES_FACTS
    yield name, encoded_rows(name, facts)
    yield provenance_name(name), encoded_provenance(name, facts)


def _part(country: str, measure: str, mode: str, facts: list[_EndedFact]) -> _MeasurePart:
    entries = [entry for _, entry in facts]
    columns = ((end for end, _ in facts), (e.first for e in entries), (e.until for e in entries))
    ends, firsts, untils = (array("i", column).tobytes() for column in columns)
    rows = prepare(keys.MACRO_FACTS, FactRow, keys.macro_key(country, measure, mode), entries)
    return _MeasurePart(country, measure, mode, rows, (ends, firsts, untils))


def _of_table(column: MacroColumn, provenance: ProvenanceText, facts: list[SharedFact]) -> list[_EndedFact]:
    """The annual values of an indicator as facts. Adds every vintage to `facts`."""
    country, indicator, _, unit, _ = column.indicator
    entity = country_entity(country)
    served: list[_EndedFact] = []
    for year in sorted(column.years, reverse=True):
        known = column.years[year]
        location, last_day = f"{indicator} {country} {year}", f"{int(year):04}-12-31"
        for number, (value, capture_id, document) in enumerate(known.vintages, 1):
            capture = column.captures[capture_id]
            figure = value or "null"
            ref = record_ref(country, indicator, str(int(year)), str(number), figure)
            source = FactSource(
                provenance.ref(capture_id, document, location), capture.license_class, capture.observed_at
            )
            raw, period = msgspec.Raw(figure.encode()), (last_day, "annual")
            facts.append(fact(entity, MACRO, ref, indicator, raw, unit or None, period, None, number, source))
        if known.listed:
            served.append((ordinal(last_day), Entry(wire.encode(facts[-1]))))
    return served


def _of_series(
    column: MacroColumn, provenance: ProvenanceText, one: SeriesVintages, facts: list[SharedFact]
) -> list[_EndedFact]:
    """The values of a series as facts of its country. Adds every vintage to `facts`."""
    series, family, frequency, country = one.identity
    entity = country_entity(country)
    served: list[_EndedFact] = []
    for day, last_day, known in one.days:
        for vintage in known:
            report = vintage.report
            capture, value = column.captures[report.capture_id], report.figure or "null"
            available_at = iso_day(report.available)
            ref = record_ref(series, family, frequency, country, day, available_at, value, report.unit)
            location = report.location or f"{series} {day}"
            source = FactSource(
                provenance.ref(report.capture_id, report.document, location),
                capture.license_class,
                capture.observed_at,
            )
            raw, period = msgspec.Raw(value.encode()), (day, frequency)
            unit, number = report.unit or None, vintage.number
            made_fact = fact(entity, MACRO, ref, series, raw, unit, period, available_at, number, source)
            facts.append(made_fact)
            if seen := in_force(vintage):
                served.append((last_day, Entry(wire.encode(made_fact), *seen)))
    return served


@dataset(keys.FACT_ORDER, None, needs=(keys.MACRO_FACTS,), reads=())
def fact_order(
    context: BuildContext, facts: "tuple[list[tuple[str, list[_MeasureFacts]]], list[array[int]]]"
) -> Iterator[KeyRows]:
    by_country, ranges = facts
    for country, measures in by_country:
        columns = sorted(measures, key=lambda n: (n.measure, n.mode))
        for dated in (False, True):
            if own := [one for one in columns if one.mode == keys.SERIES_MODE or not dated]:
                pages = _order_pages(_in_order(own, ranges))
                yield KeyRows(keys.order_key(country, dated=dated), pages_of(pages))


def _in_order(columns: list[_MeasureFacts], ranges: "Iterable[array[int]]") -> "list[array[int]]":
    """The facts of some measures, newest first, ties in the given order: each with its last day, first,
    until, and the byte range of its row."""
    import pyarrow
    from pyarrow import compute

    def numbers(values: "array[int]") -> "pyarrow.Array":
        return pyarrow.Array.from_buffers(pyarrow.int32(), len(values), [None, pyarrow.py_buffer(values)])

    ends, firsts, untils, rows = (array("i") for _ in range(4))
    for one in columns:
        ends += one.ends
        firsts += one.firsts
        untils += one.untils
        rows.extend(range(one.first_row, one.first_row + len(one.ends)))
    order = compute.array_sort_indices(numbers(ends), order="descending")  # the sort is stable
    row_numbers = numbers(rows).take(order)
    ordered = [
        *(numbers(column).take(order) for column in (ends, firsts, untils)),
        *(numbers(column).take(row_numbers) for column in ranges),
    ]
    return [array("i", column.buffers()[1].to_pybytes()[: 4 * len(column)]) for column in ordered]


def _order_pages(facts: "list[array[int]]") -> Iterator[bytes]:
    days, *columns = facts
    yield first_day_of_blocks(days, keys.RANGES_PER_BLOCK)
    for at in range(0, len(days), keys.RANGES_PER_BLOCK):
        yield encode_ranges(column[at : at + keys.RANGES_PER_BLOCK] for column in columns)


table(
    _ANNUAL_FACTS,
    FactRow,
    MACRO,
    "Annual indicators as facts of their country, every vintage. Bulk only.",
    rows=partial(MacroRows, _ANNUAL_FACTS),
    reads=(Input.ANNUAL,),
)
table(
    _SERIES_FACTS,
    FactRow,
    MACRO,
    "Values of series as facts of their country, every vintage. Bulk only.",
    rows=partial(MacroRows, _SERIES_FACTS),
    reads=(Input.SERIES,),
)
provenance_table(_ANNUAL_FACTS, MACRO, (Input.ANNUAL,))
provenance_table(_SERIES_FACTS, MACRO, (Input.SERIES,))
