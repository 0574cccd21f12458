"""GET /v1/statements/{service_id}."""

from collections.abc import Iterable
from typing import Final

import msgspec

from sankofa.edition.format.keys import STATEMENTS
from sankofa.edition.format.visibility import ANY_TAG, KIND_MODES
from sankofa.edition.read.edition import Selection
from sankofa.model.catalogue_rows import StatementRow, WideStatementRow
from sankofa.model.facts import FUND
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import strictest
from sankofa.model.rows import wire
from sankofa.model.vintages import Mode
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.nearest import unknown_organisation
from sankofa.operations.parameters import (
    AsOfParameter,
    PeriodTypeParameter,
    ServiceIdParameter,
    ShapeParameter,
    StatementKindParameter,
)

_FULL_YEAR: Final = "FY"


class _Cell(msgspec.Struct):
    """What a wide row keeps of a row of the statement."""

    source_ref: str
    license_class: str
    observed_at: str
    record_ref: str
    line_item: str
    concept: str | None
    value_reported: msgspec.Raw
    unit: str | None
    period_end: str
    period_type: str
    available_at: str
    vintage: int
    alternatives: int


_cells = msgspec.json.Decoder(list[_Cell]).decode


@operation(
    "/v1/statements/{service_id}",
    dataset=FUND,
    row=StatementRow,
    also=(WideStatementRow,),
    errors=(400, 401, 404, 429, 503),
    tool="get_statement",
    extension=True,
)
async def get_statement(
    call: Call,
    *,
    service_id: ServiceIdParameter,
    as_of: AsOfParameter = None,
    period_type: PeriodTypeParameter = None,
    kind: StatementKindParameter = None,
    shape: ShapeParameter = "long",
) -> Answer:
    """The statements of one issuer: one figure per line item and period.

    Each is a figure as it was reported, chosen by the order of concepts that the metrics use; `alternatives`
    counts the others of the period that could stand for it, and `/v1/fundamentals` has them. What would have
    to be computed of several figures is no row. Ordered by period_end descending, period_type, then as a
    statement is. `shape=wide` gives one row per line item with a column for each period, named by its
    period_end, newest first; full years where `period_type` is omitted. The sample tier gets the first rows
    with `truncated: true`.
    """
    day = call.day_asked(as_of)
    wide = shape == "wide"
    if wide and period_type is None:
        period_type = _FULL_YEAR
    selection = await call.edition.select(
        STATEMENTS,
        service_id.upper(),
        day=day.toordinal(),
        modes=int(Mode.LATEST) if kind is None else KIND_MODES[kind],
        tag=ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type),
        limit=call.grant.row_cap if call.grant.sample else None,
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    if not wide:
        return Answer(selection, as_of=day, shape=StatementRow)
    columns, rows = _wide(cell for piece in selection.lists() for cell in _cells(piece))
    return Answer(
        Selection(rows, len(rows), truncated=selection.truncated),
        as_of=day,
        shape=WideStatementRow,
        more_columns=columns,
    )


def _wide(cells: Iterable[_Cell]) -> tuple[tuple[str, ...], list[bytes]]:
    """The period ends, and one row per line item with its value at each, null where it has none."""
    by_item: dict[str, dict[str, _Cell]] = {}
    ends: dict[str, None] = {}
    for cell in cells:
        by_item.setdefault(cell.line_item, {})[cell.period_end] = cell
        ends[cell.period_end] = None
    columns = tuple(sorted(ends, reverse=True))
    ordered = sorted(by_item, key=LINE_ITEMS.index)
    return columns, [_wide_row(by_item[item], columns) for item in ordered]


def _wide_row(own: dict[str, _Cell], columns: tuple[str, ...]) -> bytes:
    first = next(iter(own.values()))
    units = {cell.unit for cell in own.values()}
    row = WideStatementRow(
        source_ref=first.source_ref,
        license_class=strictest(cell.license_class for cell in own.values()),
        observed_at=max(cell.observed_at for cell in own.values()),
        line_item=first.line_item,
        period_type=first.period_type,
        unit=units.pop() if len(units) == 1 else None,
        cells={
            end: {
                "concept": cell.concept,
                "unit": cell.unit,
                "available_at": cell.available_at,
                "vintage": cell.vintage,
                "alternatives": cell.alternatives,
                "record_ref": cell.record_ref,
                "source_ref": cell.source_ref,
            }
            for end, cell in own.items()
        },
    )
    values = (bytes(own[end].value_reported) if end in own else b"null" for end in columns)
    named = b",".join(b'"%b":%b' % (end.encode(), value) for end, value in zip(columns, values, strict=True))
    return b"%b,%b}" % (wire.encode(row)[:-1], named)
