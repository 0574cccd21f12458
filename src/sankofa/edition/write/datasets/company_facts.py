"""The figures of each issuer as the SEC's companyfacts writes them, from its rows as these are stored.

An entry is a vintage. A later vintage changes no earlier entry, so a day's answer is the entries known then.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from sankofa.edition.format.issuer_pages import (
    COMPANY_FACTS,
    CompanyConcept,
    company_facts,
    pack_company_facts,
)
from sankofa.edition.format.row_blocks import entries_of
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import KeyRows, PreparedRows, dataset
from sankofa.edition.write.datasets.fundamentals import FUNDAMENTALS
from sankofa.ledger.entities import Entity
from sankofa.model.vintages import Mode

_DOCUMENT: Final = re.compile(r"[^:]*:([^#@]*)")
"""The accession number in a source_ref, such as `sec-companyfacts:0001835632-24-000012#us-gaap:Revenues`."""
_NAMED_PERIODS: Final = frozenset(("FY", "Q1", "Q2", "Q3", "Q4"))
_ALL: Final = int(Mode.ALL)


class _Row(msgspec.Struct, gc=False):
    """The fields of a `/v1/fundamentals` row that an entry has."""

    source_ref: str
    line_item: str
    concept: str | None
    value_reported: msgspec.Raw
    unit: str | None
    period_start: str | None
    period_end: str
    period_type: str
    fiscal_year: int | None
    available_at: str
    vintage: int


class _Figure(msgspec.Struct, gc=False):
    """A figure as the SEC writes it. The form of its filing is not held."""

    start: str | msgspec.UnsetType
    end: str
    val: msgspec.Raw
    accn: str
    fy: int
    fp: str
    form: str
    filed: str


_Known = tuple[tuple[str, str, str, int], int, _Row]
"""The order of a row, the day from which on it is known, and the row."""
_read_rows = msgspec.msgpack.Decoder(PreparedRows).decode
_read_row = msgspec.json.Decoder(_Row).decode
_write_figure = msgspec.json.Encoder().encode


@dataset(COMPANY_FACTS, None, pack=pack_company_facts, by_organisation=True)
def _company_facts(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity in some:
        if part := context.issuers.part(FUNDAMENTALS, entity.service_id):
            yield KeyRows(entity.service_id, company_facts(_concepts(_read_rows(part))), entity.aliases)


def _concepts(rows: PreparedRows) -> list[CompanyConcept]:
    """The figures by taxonomy, tag and unit. A vintage that withdraws a figure is none."""
    known: defaultdict[tuple[str, str, str], dict[tuple[object, ...], _Known]] = defaultdict(dict)
    for block in rows.blocks:
        for entry in entries_of(block.plain):
            row = _read_row(entry.row)
            if not entry.modes & _ALL or bytes(row.value_reported) == b"null":
                continue
            taxonomy, colon, tag = (row.concept or f"sankofa:{row.line_item}").partition(":")
            concept = (taxonomy, tag) if colon else ("sankofa", taxonomy)
            order = row.period_end, row.period_start or "", row.available_at, row.vintage
            # the later stretches of a vintage name its successor only
            known[*concept, row.unit or "pure"].setdefault((order, row.line_item), (order, entry.first, row))
    return [_concept(key, sorted(own.values(), key=itemgetter(0))) for key, own in sorted(known.items())]


def _concept(key: tuple[str, str, str], known: Sequence[_Known]) -> CompanyConcept:
    label = min(known, key=itemgetter(1, 0))[2].line_item.replace("_", " ").capitalize()
    return CompanyConcept(*key, label, [(first, _figure(row)) for _, first, row in known])


def _figure(row: _Row) -> bytes:
    document = _DOCUMENT.match(row.source_ref)
    figure = _Figure(
        row.period_start or msgspec.UNSET,
        row.period_end,
        row.value_reported,
        document[1] if document else "",
        row.fiscal_year or int(row.period_end[:4]),
        row.period_type if row.period_type in _NAMED_PERIODS else "",
        "",
        row.available_at,
    )
    return _write_figure(figure)
