"""The figures of each issuer as the SEC's companyfacts writes them.

An entry is a vintage. A later vintage changes no earlier entry, so a day's answer is the entries known then.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Final, cast

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.edition.format.issuer_pages import (
    COMPANY_FACTS,
    CompanyConcept,
    company_facts,
    pack_company_facts,
)
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import KeyRows, dataset
from sankofa.edition.write.datasets.fundamentals import ServedFigure, served_figures
from sankofa.edition.write.derived_parts import issuer_part
from sankofa.ledger.entities import Entity
from sankofa.model.rows import FundamentalsRow, wire

_DOCUMENT: Final = re.compile(r"[^:]*:([^#@]*)")
"""The accession number in a source_ref, such as `sec-companyfacts:0001835632-24-000012#us-gaap:Revenues`."""
_NAMED_PERIODS: Final = frozenset(("FY", "Q1", "Q2", "Q3", "Q4"))


class _Figure(msgspec.Struct, gc=False):
    """A figure as the SEC writes it. The form of its filing is not held."""

    start: date | msgspec.UnsetType
    end: date
    val: Decimal
    accn: str
    fy: int
    fp: str
    form: str
    filed: date


_Known = tuple[tuple[object, ...], int, FundamentalsRow]
"""The order of a row, the day from which on it is known, and the row."""
_read = msgspec.msgpack.Decoder(tuple[Entry, Entry]).decode
_write = msgspec.msgpack.Encoder().encode


@issuer_part(COMPANY_FACTS)
def _derived(issuer: Issuer) -> bytes:
    return _write(company_facts(_concepts(served_figures(issuer))))


@dataset(COMPANY_FACTS, None, pack=pack_company_facts, by_organisation=True)
def _company_facts(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity in some:
        if part := context.issuers.part(COMPANY_FACTS, entity.service_id):
            yield KeyRows(entity.service_id, _read(part), entity.aliases)


def _concepts(figures: Iterable[ServedFigure]) -> list[CompanyConcept]:
    """The figures by taxonomy, tag and unit. A vintage that withdraws a figure is none."""
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
