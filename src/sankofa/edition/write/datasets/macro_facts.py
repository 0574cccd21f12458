"""Macro values as facts of their country: by measure, and all in one order.

- `fact_macro`: country, measure and mode (`ZA|FX.EUR.ZAR|series`) lead to its facts, the newest period first;
- `fact_order`: a country leads to the byte ranges of all its facts (`ZA`), or of the dated ones (`ZA|dated`),
  the newest period first, then by measure. The first block has the first day of each other block.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import chain, groupby, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sankofa.derive.series import annual_vintages
from sankofa.edition.format.keys import (
    ANNUAL_MODE,
    FACT_ORDER,
    MACRO_FACTS,
    RANGES_PER_BLOCK,
    SERIES_MODE,
    macro_key,
    order_key,
)
from sankofa.edition.format.macro import encode_ranges, pack_pages
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import first_day_of_blocks
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Built, Input, KeyRows, Outcome, RowRanges, dataset
from sankofa.edition.write.datasets.macro import ANNUAL_TABLE
from sankofa.edition.write.datasets.macro_series import SERIES_TABLE, published_series
from sankofa.edition.write.shared_facts import country_entity, provenance_table
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.model.facts import (
    IN_AN_ID,
    MACRO,
    STRUCTURED,
    FactEntity,
    FactSource,
    SharedFact,
    fact,
    provenance_id,
    record_ref,
)
from sankofa.model.observations import TABLED
from sankofa.model.rows import FactRow, wire

if TYPE_CHECKING:
    import pyarrow


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


_NULL = msgspec.Raw(b"null")
_observation = msgspec.json.Decoder(_Observation).decode


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


@dataset(MACRO_FACTS, FactRow, reads=(Input.MACRO,), ranged=True)
def macro_facts(context: BuildContext) -> Building:
    """Returns the facts of each measure by country, for the order of all facts."""
    rows = 0
    measures: defaultdict[str, list[_MeasureFacts]] = defaultdict(list)
    for country, measure, mode, facts in chain(_of_tables(context), _of_series(context)):
        entries = [entry for _, entry in facts]
        columns = ((end for end, _ in facts), (e.first for e in entries), (e.until for e in entries))
        measures[country].append(
            _MeasureFacts(measure, mode, rows, *(array("i", column) for column in columns))
        )
        rows += len(entries)
        yield KeyRows(macro_key(country, measure, mode), entries)
    return Outcome([(country, measures[country]) for country in sorted(measures)])


def _of_tables(context: BuildContext) -> Iterator[tuple[str, str, str, list[_EndedFact]]]:
    """Annual values as facts."""
    for (country, indicator, _, unit, _), years in annual_vintages(context.ledger):
        listed = sorted((year for year, known in years.items() if known.listed), reverse=True)
        if not listed:
            continue
        entity = country_entity(country)
        facts: list[_EndedFact] = []
        for year in listed:
            vintages = years[year].vintages
            value, capture_id, document = vintages[-1]
            capture = context.captures[capture_id]
            row = _Annual(
                capture.ref(f"{indicator} {country} {year}", document),
                capture.license_class,
                capture.observed_at,
                country,
                indicator,
                int(year),
                msgspec.Raw(value.encode()) if value else _NULL,
                unit or None,
                len(vintages),
            )
            fact_row = wire.encode(annual_fact(entity, row))
            facts.append((date(row.year, 12, 31).toordinal(), Entry(fact_row)))
        yield country, indicator, ANNUAL_MODE, facts


def _of_series(context: BuildContext) -> Iterator[tuple[str, str, str, list[_EndedFact]]]:
    """The series with one key of one country together, of any type and frequency.

    Series made from annual tables are facts already, as indicators.
    """
    for measure, columns in groupby(published_series(context), key=lambda rows: rows.identity.series):
        by_country: defaultdict[str, list[_EndedFact]] = defaultdict(list)
        for rows in columns:
            if country := rows.identity.country:
                entity = country_entity(country)
                for row, first, until, _, tag in rows.entries:
                    fact_row = wire.encode(series_fact(entity, row))
                    by_country[country].append((tag, Entry(fact_row, first, until)))
        for country, facts in by_country.items():
            facts.sort(key=lambda fact: -fact[0])
            yield country, measure, SERIES_MODE, facts


def annual_fact(entity: FactEntity, row: _Annual) -> SharedFact:
    """One value of an annual indicator as a fact of its country."""
    identity = (row.country, row.indicator, str(row.year), str(row.vintage), bytes(row.value).decode())
    return fact(
        entity,
        MACRO,
        record_ref(*identity),
        row.indicator,
        row.value,
        row.unit,
        (f"{row.year:04}-12-31", "annual"),
        None,
        row.vintage,
        FactSource(row.source_ref, row.license_class, row.observed_at),
    )


def series_fact(entity: FactEntity, wire_row: bytes) -> SharedFact:
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
        FactSource(row.source_ref, row.license_class, row.observed_at),
    )


@dataset(FACT_ORDER, None, pack=pack_pages, needs=(MACRO_FACTS,), reads=())
def fact_order(
    context: BuildContext, facts: Built[list[tuple[str, list[_MeasureFacts]]]]
) -> Iterator[KeyRows]:
    for country, measures in facts.result:
        for dated in (False, True):
            ordered = _ordered(measures, dated=dated)
            if ordered:
                yield KeyRows(order_key(country, dated=dated), _order_blocks(facts.ranges, ordered))


_OrderedFact = tuple[int, int, int, int, int]
"""The negative day of a fact, the position of its measure, its row, first and until."""


def _ordered(measures: list[_MeasureFacts], *, dated: bool) -> list[_OrderedFact]:
    columns = sorted(measures, key=lambda n: (n.measure, n.mode))
    return sorted(
        (-end, rank, column.first_row + row, first, until)
        for rank, column in enumerate(columns)
        if not dated or column.mode == SERIES_MODE
        for row, (end, first, until) in enumerate(zip(column.ends, column.firsts, column.untils, strict=True))
    )


def _order_blocks(ranges: RowRanges, ordered: list[_OrderedFact]) -> Iterable[Entry]:
    yield Entry(first_day_of_blocks([-fact[0] for fact in ordered], RANGES_PER_BLOCK))
    for at in range(0, len(ordered), RANGES_PER_BLOCK):
        block = ordered[at : at + RANGES_PER_BLOCK]
        yield Entry(encode_ranges([(first, until, ranges[row]) for _, _, row, first, until in block]))


class _AnnualFacts(TableRows):
    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        countries, indicators, years, vintages, values = (
            columns.column(name).to_pylist() for name in ("country", "indicator", "year", "vintage", "value")
        )
        refs = [
            record_ref(country, indicator, str(year), str(vintage), value or "null")
            for country, indicator, year, vintage, value in zip(
                countries, indicators, years, vintages, values, strict=True
            )
        ]
        ends = [f"{year:04}-12-31" for year in years]
        return _fact_columns(columns, "indicator", countries, refs, ends, repeat("annual"))


class _SeriesFacts(TableRows):
    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        from pyarrow import compute

        is_tabled = compute.starts_with(columns.column("series"), TABLED)  # an annual value is a fact already
        has_country = compute.is_valid(columns.column("country"))
        columns = columns.filter(compute.and_not(has_country, is_tabled))
        identity = ("series", "series_type", "frequency", "country", "date", "available_at", "value", "unit")
        lists = [columns.column(name).to_pylist() for name in identity]
        refs = [
            record_ref(*named, value or "null", unit or "")
            for *named, value, unit in zip(*lists, strict=True)
        ]
        return _fact_columns(columns, "series", lists[3], refs, lists[4], lists[2])


def _fact_columns(
    columns: "pyarrow.Table",
    measure: str,
    countries: list[str],
    refs: list[str],
    ends: list[str],
    period_types: Iterable[str],
) -> "pyarrow.Table":
    """Rows of a table of macro values as facts of their countries, in flat columns."""
    import pyarrow

    entities = [country_entity(country) for country in countries]
    sources = zip(
        *(columns.column(name).to_pylist() for name in ("source_ref", "license_class", "observed_at")),
        strict=True,
    )
    measures = columns.column(measure)
    texts = {
        "fact_id": [
            IN_AN_ID.join((MACRO, ref, name)) for ref, name in zip(refs, measures.to_pylist(), strict=True)
        ],
        "entity_id": [entity.entity_id for entity in entities],
        "entity_name": [entity.entity_name for entity in entities],
        "country_iso3": [entity.country_iso3 for entity in entities],
        "dataset": [MACRO] * len(refs),
        "period_end": ends,
        "period_type": list(islice(period_types, len(refs))),
        "provenance_id": [provenance_id(FactSource(*source)) for source in sources],
        "extraction_confidence": [None] * len(refs),
        "method": [STRUCTURED] * len(refs),
    }
    names = ("value", "unit", "available_at", "source_ref", "license_class", "observed_at")
    taken = {name: columns.column(name) for name in names}
    written = {name: pyarrow.array(values, pyarrow.string()) for name, values in texts.items()}
    vintage = columns.column("vintage").cast(pyarrow.string())
    return pyarrow.table({**written, **taken, "measure": measures, "vintage": vintage})


table(
    Table(
        "af-macro-annual-fact",
        FactRow,
        MACRO,
        "Annual indicators as facts of their country, every vintage. Bulk only.",
        takes_from=ANNUAL_TABLE,
        rows=_AnnualFacts,
    )
)
table(
    Table(
        "af-macro-series-fact",
        FactRow,
        MACRO,
        "Values of series as facts of their country, every vintage. Bulk only.",
        takes_from=SERIES_TABLE,
        rows=_SeriesFacts,
    )
)
provenance_table("af-macro-annual-fact", MACRO)
provenance_table("af-macro-series-fact", MACRO)
