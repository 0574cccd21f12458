"""Reported facts of each issuer, every vintage, and its statements, by service_id.

Facts are ordered by period_end descending, period_type, line_item, vintage, then concept, unit and
period_start. A statement has, for each line item and period, the figure valid on a day: period_end
descending, period_type, then the line items in the order of `LINE_ITEMS`.

Restatements: each figure that replaced an earlier one, by organisation and in one list by year.

Order: available_at descending, service_id, period_end descending, line_item, concept, unit, period_start,
then vintage. The lists of all organisations and of each country are cut by the year of `available_at`, so a
new filing does not change the parts of earlier years.

Company facts: an issuer's figures in the form of the SEC's companyfacts. An entry is a vintage. A later
vintage changes no earlier entry, so a day's answer has the entries known then.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from sankofa.derive.issuers import Issuer, item_of, statement_figures
from sankofa.edition.format import keys
from sankofa.edition.format.columns import extra_column
from sankofa.edition.format.issuer_pages import COMPANY_FACTS, CompanyConcept, company_facts
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN, KIND_MODES
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    Building,
    Input,
    KeyRows,
    Outcome,
    PreparedRows,
    blocks_of,
    dataset,
    prepare,
)
from sankofa.edition.write.derived_parts import issuer_part
from sankofa.edition.write.partition_summaries import country_spells
from sankofa.edition.write.tables import TableRows, organisation_entity, provenance_table, table
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Identity, Report
from sankofa.ledger.spells import dated_locations
from sankofa.model.catalogue_rows import RestatementRow, StatementFigureRow
from sankofa.model.countries import currency
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.figures import relative_change
from sankofa.model.line_items import LINE_ITEMS, statement_kind
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import (
    FUND,
    IN_AN_ID,
    STRUCTURED,
    STRUCTURED_ROUNDED,
    FactEntity,
    provenance_id,
    record_ref,
    source_of,
)
from sankofa.model.rows import FactRow, FundamentalsRow, wire
from sankofa.model.vintages import Mode, Vintage, visibilities

if TYPE_CHECKING:
    import pyarrow


FUNDAMENTALS: Final = "fundamentals"
_read = msgspec.msgpack.Decoder(PreparedRows).decode
_write = msgspec.msgpack.Encoder().encode
TAGS = {name: tag for tag, name in enumerate(PERIOD_TYPES)}


@issuer_part(FUNDAMENTALS)
def _derived_rows(issuer: Issuer) -> bytes:
    entries = [entry for one in served_figures(issuer) for entry in _row_entries(*one)]
    also = {"provenance_id": lambda row: provenance_id(source_of(row))}
    return _write(prepare(FUNDAMENTALS, FundamentalsRow, issuer.entity.service_id, entries, also))


@dataset(FUNDAMENTALS, FundamentalsRow, by_organisation=True)
def fundamentals(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(FUNDAMENTALS, some):
        yield KeyRows(entity.service_id, _read(part), entity.aliases)


ServedFigure = tuple[FundamentalsRow, Vintage[Report], Identity]


def served_figures(issuer: Issuer) -> list[ServedFigure]:
    """Every vintage of every fact, without its successor, in served order."""
    if issuer.served:
        return issuer.served
    ordered: list[tuple[tuple[object, ...], ServedFigure]] = []
    for identity, vintages in issuer.vintages.items():
        concept, unit, period_end, period_start = identity
        end = ordinal(period_end)
        item = item_of(identity, issuer.reports)
        for vintage in vintages:
            row = fact_row(issuer, identity, vintage, item)
            order = (-end, row.period_type, item, vintage.number, concept, unit, period_start)
            ordered.append((order, (row, vintage, identity)))
    ordered.sort(key=itemgetter(0))
    issuer.served = [one for _, one in ordered]
    return issuer.served


def fact_row(issuer: Issuer, identity: Identity, vintage: Vintage[Report], item: str) -> FundamentalsRow:
    """One vintage of a fact under the name of a line item, without its successor."""
    key = (identity, vintage.number, item)
    row: FundamentalsRow | None = issuer.rows.get(key)
    if row is None:
        row = issuer.rows[key] = _made_row(issuer, identity, vintage, item)
    return row


def _made_row(issuer: Issuer, identity: Identity, vintage: Vintage[Report], item: str) -> FundamentalsRow:
    concept, unit, period_end, period_start = identity
    end, start = ordinal(period_end), ordinal(period_start) if period_start else None
    report = vintage.report
    period = issuer.names.name(start, end, report.available, rounded=report.capture.rounds_dates)
    available_at, instant = _day(report.available), issuer.instant(report)
    return FundamentalsRow(
        service_id=issuer.entity.service_id,
        record_ref=_record_ref(identity, report),
        line_item=item,
        concept=concept if ":" in concept else None,
        value_reported=None if report.value is None else Decimal(report.value),
        currency_reported=_money(unit),
        unit=unit or None,
        period_start=_day(start) if start else None,
        period_end=_day(end),
        period_type=period.period_type,
        fiscal_year=period.fiscal_year,
        available_at=available_at,
        available_instant=instant,
        available_precision="second" if instant else "day",
        tradable_from=issuer.tradable_from(available_at, instant),
        vintage=vintage.number,
        restated=vintage.number > 1,
        split_ratio=issuer.split_ratios.get((identity, vintage.number)),
        superseded_at=None,
        superseding_record_ref=None,
        extraction_confidence=float(report.confidence) if report.confidence else None,
        method=report.method,
        source_ref=report.source_ref,
        license_class=report.capture.license_class,
        observed_at=report.capture.observed_at,
    )


def _row_entries(row: FundamentalsRow, vintage: Vintage[Report], identity: Identity) -> Iterator[Entry]:
    """The row for each stretch of days; it names its successor from the day that was known."""
    for sight in visibilities(vintage):
        visible_row = row
        if sight.tells_successor and vintage.successor is not None:
            visible_row = msgspec.structs.replace(
                row,
                superseded_at=_day(vintage.successor.available),
                superseding_record_ref=_record_ref(identity, vintage.successor),
            )
        yield Entry(wire.encode(visible_row), sight.first, sight.until, sight.modes, TAGS[row.period_type])


def _record_ref(identity: Identity, report: Report) -> str:
    """The same in every edition and on every machine."""
    return record_ref(report.subject, *identity, report.evidenced, report.document, report.value or "")


@lru_cache(maxsize=65536)
def _day(day: int) -> date:
    return date.fromordinal(day)


@lru_cache(maxsize=4096)
def _money(unit: str) -> str | None:
    return currency(unit)


class _ReportedFacts(TableRows):
    """Reported figures as facts by column, like `model.provenance.fact` row by row."""

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow
        from pyarrow import compute

        of, text = columns.column, pyarrow.utf8()
        entity_id = of("service_id")
        method = of("method").combine_chunks()
        rounded = compute.equal(method, STRUCTURED_ROUNDED)
        ids = entity_id.unique()
        number = compute.index_in(entity_id, ids)
        issuers = [self._issuers[service_id] for service_id in ids.to_pylist()]
        facts = {
            "fact_id": compute.binary_join_element_wise(FUND, of("record_ref"), of("line_item"), IN_AN_ID),
            "entity_id": entity_id,
            "entity_name": pyarrow.array([issuer.entity_name for issuer in issuers], text).take(number),
            "country_iso3": pyarrow.array([issuer.country_iso3 for issuer in issuers], text).take(number),
            "dataset": pyarrow.repeat(FUND, columns.num_rows),
            "measure": of("line_item"),
            "value": of("value_reported"),
            "vintage": of("vintage").cast(text),
            "provenance_id": of(extra_column("provenance_id")),
            "method": compute.replace_with_mask(method, rounded, STRUCTURED),
        }
        same = (name for name in FactRow.__struct_fields__ if name not in facts)
        return pyarrow.table(facts | {name: of(name) for name in same})

    @cached_property
    def _issuers(self) -> dict[str, FactEntity]:
        return {entity.service_id: organisation_entity(entity) for entity in self.context.entities}


table(
    "af-fund-fundamentals",
    FundamentalsRow,
    FUND,
    "Reported facts of every issuer, every vintage, as `vintages=all` serves them today.",
    takes_from=FUNDAMENTALS,
    sorted_by=("service_id", "-period_end"),
)
table(
    "af-fund-fact",
    FactRow,
    FUND,
    "Reported figures as facts, every vintage.",
    takes_from=FUNDAMENTALS,
    rows=_ReportedFacts,
    sorted_by=("entity_id",),
)
provenance_table("af-fund-fact", FUND)


_read_statements = msgspec.msgpack.Decoder(list[PreparedRows]).decode
_POSITION = {item: place for place, item in enumerate(LINE_ITEMS)}
_MODES = {item: int(Mode.LATEST) | KIND_MODES[statement_kind(item)] for item in LINE_ITEMS}


@issuer_part(keys.STATEMENTS)
def _derived_statements(issuer: Issuer) -> bytes:
    entries = _statement_entries(issuer)
    years = [entry for entry in entries if entry.tag == TAGS["FY"]]
    key = issuer.entity.service_id
    return _write([prepare(keys.STATEMENTS, StatementFigureRow, key, rows) for rows in (entries, years)])


@dataset(keys.STATEMENTS, StatementFigureRow, by_organisation=True)
def statements(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    return _prepared(context, some, 0)


@dataset(keys.FULL_YEARS, StatementFigureRow, by_organisation=True)
def full_years(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    return _prepared(context, some, 1)


def _prepared(context: BuildContext, some: Sequence[Entity], number: int) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(keys.STATEMENTS, some):
        yield KeyRows(entity.service_id, _read_statements(part)[number], entity.aliases)


def _statement_entries(issuer: Issuer) -> list[Entry]:
    ordered: list[tuple[tuple[object, ...], Entry]] = []
    for one in statement_figures(issuer):
        row = fact_row(issuer, one.identity, one.vintage, one.line_item)
        if one.turned is not None:
            row = msgspec.structs.replace(row, value_reported=one.turned)
        marks = b"true" if one.turned is not None else b"false"
        encoded = b'%b,"alternatives":%d,"sign_turned":%b}' % (wire.encode(row)[:-1], one.alternatives, marks)
        tag = TAGS[row.period_type]
        entry = Entry(encoded, one.first, one.until, _MODES[one.line_item], tag)
        order = (-ordinal(one.identity[2]), row.period_type, _POSITION[one.line_item], one.first)
        ordered.append((order, entry))
    ordered.sort(key=lambda pair: pair[0])
    return [entry for _, entry in ordered]


_read_days = msgspec.msgpack.Decoder(list[tuple[int, bytes]]).decode
"""Days with their rows, compressed; or rows with their first day."""
_EVERY_MODE = Entry(b"").modes
_VisibleDays = tuple[int, int, int]
"""The days [first, until) on which a row is in a list, and the modes that see it."""


@issuer_part(keys.RESTATEMENTS)
def _part(issuer: Issuer) -> bytes:
    """The restatements of each day, newest first; compressed, because the build holds all issuers."""
    by_day: defaultdict[int, list[tuple[tuple[Any, ...], int, bytes]]] = defaultdict(list)
    for identity, vintages in issuer.vintages.items():
        if len(vintages) < 2:
            continue
        concept, unit, period_end, period_start = identity
        end, item = ordinal(period_end), item_of(identity, issuer.reports)
        for before, after in pairwise(vintages):
            row = restatement(
                fact_row(issuer, identity, before, item),
                fact_row(issuer, identity, after, item),
                issuer.entity.legal_name,
            )
            order = (-end, item, concept, unit, period_start, after.number)
            by_day[after.report.available].append((order, after.known_from, wire.encode(row)))
    if not by_day:
        return b""
    return _write([(day, _packed(by_day[day])) for day in sorted(by_day, reverse=True)])


def _packed(rows: list[tuple[tuple[Any, ...], int, bytes]]) -> bytes:
    rows.sort(key=lambda one: one[0])
    return zlib.compress(_write([(first, row) for _, first, row in rows]), 6)


_OF_THE_LATER: Final = tuple(
    name for name in RestatementRow.__struct_fields__ if name in FundamentalsRow.__struct_fields__
)
"""The fields that a restatement has from the figure that replaced another."""


def restatement(before: FundamentalsRow, after: FundamentalsRow, legal_name: str | None) -> RestatementRow:
    """The row of a figure that replaced another."""
    return RestatementRow(
        **{name: getattr(after, name) for name in _OF_THE_LATER},
        legal_name=legal_name,
        value_before=before.value_reported,
        value_after=after.value_reported,
        change=relative_change(before.value_reported, after.value_reported),
        available_before=before.available_at,
    )


@dataset(keys.RESTATEMENTS, RestatementRow, by_organisation=True)
def restatements(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(keys.RESTATEMENTS, some):
        entries = [entry for _, packed in _read_days(part) for entry in _unpacked(packed)]
        yield KeyRows(entity.service_id, entries, entity.aliases)


@dataset(keys.RESTATEMENT_LISTS, None, reads=(Input.ORGANISATIONS,), partitioned=True, of_organisations=True)
def restatement_lists(context: BuildContext) -> Building:
    """The same rows in lists by year, of all organisations and of each country.

    A locked view uses AS_KNOWN and lists an organisation under its country of that day.
    """
    listed: defaultdict[str, defaultdict[tuple[int, str, bytes], list[_VisibleDays]]]
    listed = defaultdict(lambda: defaultdict(list))
    years: set[int] = set()
    for entity, part in context.issuers.parts(keys.RESTATEMENTS, context.entities):
        spells = list(country_spells(dated_locations(entity, context.captures)))
        lists = [("", (0, FOREVER, _EVERY_MODE | AS_KNOWN))]
        if len(spells) == 1:
            lists.append((entity.country or "", (0, FOREVER, _EVERY_MODE | AS_KNOWN)))
        else:
            lists.append((entity.country or "", (0, FOREVER, _EVERY_MODE)))
            lists += [(country, (first, until, AS_KNOWN)) for country, first, until in spells]
        for day, packed in _read_days(part):
            year = date.fromordinal(day).year
            years.add(year)
            for country, visible in (one for one in lists if one[0] or one is lists[0]):
                listed[keys.restatement_list(country, year)][-day, entity.service_id, packed].append(visible)
    for key in sorted(listed):
        rows = sorted(listed[key].items())
        yield KeyRows(key, (entry for (*_, packed), visible in rows for entry in _unpacked(packed, visible)))
    return Outcome(manifest_extras={"restatement_years": sorted(years)})


def _unpacked(
    packed: bytes, visible: Sequence[_VisibleDays] = ((0, FOREVER, _EVERY_MODE),)
) -> Iterator[Entry]:
    """The rows in order; a row that modes see on different days comes once per mode."""
    for first, row in _read_days(zlib.decompress(packed)):
        for since, until, modes in visible:
            if first < until:
                yield Entry(row, max(first, since), until, modes)


_DOCUMENT: Final = re.compile(r"[^:]*:([^#@]*)")
"""The accession number in a source_ref, such as `sec-companyfacts:0001835632-24-000012#us-gaap:Revenues`."""
_NAMED_PERIODS: Final = frozenset(("FY", "Q1", "Q2", "Q3", "Q4"))


class _Figure(msgspec.Struct, gc=False):
    """A figure in the SEC's form. The form of its filing is not stored."""

    start: date | msgspec.UnsetType
    end: date
    val: Decimal
    accn: str
    fy: int
    fp: str
    form: str
    filed: date


_Known = tuple[tuple[object, ...], int, FundamentalsRow]
"""The order of a row, its first day, and the row."""


@issuer_part(COMPANY_FACTS)
def _derived_company_facts(issuer: Issuer) -> bytes:
    return _write(blocks_of([company_facts(_concepts(served_figures(issuer)))]))


@dataset(COMPANY_FACTS, None, by_organisation=True)
def _company_facts(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, part in context.issuers.parts(COMPANY_FACTS, some):
        yield KeyRows(entity.service_id, _read(part), entity.aliases)


def _concepts(figures: Iterable[ServedFigure]) -> list[CompanyConcept]:
    """The figures by taxonomy, tag and unit. A vintage that withdraws a figure is left out."""
    known: defaultdict[tuple[str, str, str], dict[tuple[object, ...], _Known]] = defaultdict(dict)
    for row, vintage, _ in figures:
        if row.value_reported is None:
            continue
        taxonomy, colon, tag = (row.concept or f"sankofa:{row.line_item}").partition(":")
        concept = (taxonomy, tag) if colon else ("sankofa", taxonomy)
        order = row.period_end, row.period_start or date.min, row.available_at, row.vintage
        known[*concept, row.unit or "pure"].setdefault(
            (order, row.line_item), (order, vintage.known_from, row)
        )
    return [_concept(key, sorted(own.values(), key=itemgetter(0))) for key, own in sorted(known.items())]


def _concept(key: tuple[str, str, str], known: Sequence[_Known]) -> CompanyConcept:
    label = min(known, key=itemgetter(1, 0))[2].line_item.replace("_", " ").capitalize()
    return CompanyConcept(*key, label, [(first, _figure(row)) for _, first, row in known])


def _figure(row: FundamentalsRow) -> bytes:
    document = _DOCUMENT.match(row.source_ref)
    figure = _Figure(
        row.period_start or msgspec.UNSET,
        row.period_end,
        cast("Decimal", row.value_reported),
        document[1] if document else "",
        row.fiscal_year or row.period_end.year,
        row.period_type if row.period_type in _NAMED_PERIODS else "",
        "",
        row.available_at,
    )
    return wire.encode(figure)
