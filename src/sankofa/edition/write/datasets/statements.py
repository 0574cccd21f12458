"""Statements of each issuer, by service_id: of each line item and period the figure that stands on a day.

Order: period_end descending, period_type, then the line items as a statement has them (`LINE_ITEMS`).
"""

from collections.abc import Iterator, Sequence

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.statements import statement_figures
from sankofa.edition.format.keys import FULL_YEARS, STATEMENTS
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import KIND_MODES
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import PreparedKeyRows, dataset
from sankofa.edition.write.datasets.fundamentals import TAGS, fact_row
from sankofa.edition.write.issuer_parts import issuer_part
from sankofa.edition.write.prepared_rows import NO_ROWS, PreparedRows, prepare
from sankofa.ledger.entities import Entity
from sankofa.model.catalogue_rows import StatementFigureRow
from sankofa.model.days import ordinal
from sankofa.model.line_items import LINE_ITEMS, statement_kind
from sankofa.model.rows import wire
from sankofa.model.vintages import Mode

_read = msgspec.msgpack.Decoder(list[PreparedRows]).decode
_write = msgspec.msgpack.Encoder().encode
_PLACE = {item: place for place, item in enumerate(LINE_ITEMS)}
_MODES = {item: int(Mode.LATEST) | KIND_MODES[statement_kind(item)] for item in LINE_ITEMS}


@issuer_part(STATEMENTS)
def _derived_rows(issuer: Issuer) -> bytes:
    entries = _entries(issuer)
    years = [entry for entry in entries if entry.tag == TAGS["FY"]]
    key = issuer.entity.service_id
    return _write([prepare(STATEMENTS, StatementFigureRow, key, rows) for rows in (entries, years)])


@dataset(STATEMENTS, StatementFigureRow, by_organisation=True)
def statements(context: BuildContext, some: Sequence[Entity]) -> Iterator[PreparedKeyRows]:
    return _prepared(context, some, 0)


@dataset(FULL_YEARS, StatementFigureRow, by_organisation=True)
def full_years(context: BuildContext, some: Sequence[Entity]) -> Iterator[PreparedKeyRows]:
    return _prepared(context, some, 1)


def _prepared(context: BuildContext, some: Sequence[Entity], number: int) -> Iterator[PreparedKeyRows]:
    for entity in some:
        part = context.issuers.part(STATEMENTS, entity.service_id)
        yield PreparedKeyRows(entity.service_id, _read(part)[number] if part else NO_ROWS, entity.aliases)


def _entries(issuer: Issuer) -> list[Entry]:
    ordered: list[tuple[tuple[object, ...], Entry]] = []
    for one in statement_figures(issuer):
        row = fact_row(issuer, one.identity, one.vintage, one.line_item)
        if one.turned is not None:
            row = msgspec.structs.replace(row, value_reported=one.turned)
        marks = b"true" if one.turned is not None else b"false"
        encoded = b'%b,"alternatives":%d,"sign_turned":%b}' % (wire.encode(row)[:-1], one.alternatives, marks)
        tag = TAGS[row.period_type]
        entry = Entry(encoded, one.first, one.until, _MODES[one.line_item], tag)
        order = (-ordinal(one.identity[2]), row.period_type, _PLACE[one.line_item], one.first)
        ordered.append((order, entry))
    ordered.sort(key=lambda pair: pair[0])
    return [entry for _, entry in ordered]
