"""GET /v1/fundamentals/{service_id} and GET /v1/statements/{service_id}."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.keys import FULL_YEARS, STATEMENTS
from sankofa.edition.format.row_blocks import FUNDAMENTALS_ORDER, RowOrder, SortKey
from sankofa.edition.format.visibility import ANY_TAG, KIND_MODES
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.statement_order import StatementRows, core_first, find_core_first, line_item_of
from sankofa.model.catalogue_rows import StatementFigureRow, WideStatementRow
from sankofa.model.errors import InvalidParameter
from sankofa.model.facts import FUND
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import strictest
from sankofa.model.rows import FundamentalsRow, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import nearest_line_items, predecessor_hint, unknown_organisation
from sankofa.operations.paging import first_page

_MODES = {"latest": int(Mode.LATEST), "as_reported": int(Mode.AS_REPORTED), "all": int(Mode.ALL)}
_EVERYTHING: Final = 2**31 - 1
_STATEMENT: Final = "statement"
_FOR_AGENTS: Final = AgentView(overflow={"order": "statement"})


@operation(
    "/v1/fundamentals/{service_id}",
    dataset=FUND,
    row=FundamentalsRow,
    errors=(400, 401, 404, 429, 503),
    tool="get_fundamentals",
    extensions=("line_items", "order", "limit", "cursor"),
    agent=_FOR_AGENTS,
)
async def get_fundamentals(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    as_of: parameters.AsOf = None,
    period_type: parameters.PeriodType = None,
    vintages: parameters.Vintages = "latest",
    line_items: parameters.LineItems = None,
    order: parameters.FundamentalsOrder = None,
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Point-in-time reported facts for one issuer.

    Ordered by period_end descending, period_type, line_item and vintage. Without `limit` the sample tier gets
    the first rows with `truncated: true`, paid tiers everything. `order=statement` gives the documented line
    items first, newest period first and in their documented order, then all others; a cursor goes on in the
    order it was given in.
    """
    key = service_id.upper()
    page = await first_page(
        call, "fundamentals", key, period_type, vintages, line_items, as_of=as_of, cursor=cursor
    )
    most = call.grant.rows_or_all(limit)
    modes = _MODES[vintages]
    tag = ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type)
    where = None if line_items is None else has_line_item(line_items)
    # In statement order the key of a cursor begins with the name of that order.
    by_statement = order == "statement" if not page.key else page.key[0] == _STATEMENT
    if page.key and order is not None and (order == "statement") != by_statement:
        raise InvalidParameter("order", "the cursor is of pages in the other order; leave it out")
    if by_statement:
        names = None if line_items is None else frozenset(name.encode() for name in line_items)
        rows = StatementRows(key, page.day.toordinal(), modes, tag, names)
        start = await page.start(lambda edition, behind: find_core_first(edition, rows, behind[1:]))
        selection = await core_first(page.edition, rows, _EVERYTHING if most is None else most, start)
    else:
        selection = await page.select(
            "fundamentals", key, FUNDAMENTALS_ORDER, most, modes=modes, tag=tag, where=where
        )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    behind: RowOrder | SortKey = FUNDAMENTALS_ORDER
    if by_statement and selection.following is not None:
        behind = _STATEMENT, *FUNDAMENTALS_ORDER.key_of(selection.last_row)
    members: dict[str, object] = {}
    if not selection.count:
        members = nearest_line_items(line_items, selection)
        members |= await predecessor_hint(page.edition, key, selection, call.today)
    return page.answer(selection, behind, as_of=page.day, members=members)


def has_line_item(line_items: tuple[str, ...]) -> Callable[[bytes], bool]:
    """A test for encoded rows: true for those of the line items. As quick for a hundred as for one."""
    wanted = frozenset(name.encode() for name in line_items)
    return lambda row: line_item_of(row) in wanted


_FULL_YEAR: Final = "FY"


class _Cell(msgspec.Struct):
    """The fields of a statement row that a wide row has."""

    source_ref: str
    license_class: str
    observed_at: str | None
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
    row=StatementFigureRow,
    also=(WideStatementRow,),
    errors=(400, 401, 402, 404, 429, 503),
    tool="get_statement",
    extension=True,
)
async def get_statement(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    as_of: parameters.AsOf = None,
    period_type: parameters.PeriodType = None,
    kind: parameters.StatementKind = None,
    line_items: parameters.LineItems = None,
    shape: parameters.Shape = "long",
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The statements of one issuer: one figure per line item and period.

    Each is the reported figure that the metrics use, in one accounting standard and one currency per period.
    `alternatives` counts the others that `/v1/fundamentals` has for the line item and period. An item that
    the metrics compute from several figures, or leave out, has no row. Ordered by period_end descending,
    period_type, then by line item as in a statement. `shape=wide` gives one row per line item with a column
    for each period, named by its period_end, newest first, and a new row where the standard or the currency
    changes; full years where `period_type` is omitted. Without `limit` the sample tier gets the first figures
    with `truncated: true`, paid tiers everything.
    """
    page = await first_page(
        call,
        "statement",
        service_id.upper(),
        period_type,
        kind,
        line_items,
        shape,
        as_of=as_of,
        cursor=cursor,
    )
    most = call.grant.rows_or_all(limit)
    wide = shape == "wide"
    if wide and period_type is None:
        period_type = _FULL_YEAR
    full_years = period_type == _FULL_YEAR
    figures = replace(page, key=()) if wide else page
    selection = await figures.select(
        FULL_YEARS if full_years else STATEMENTS,
        service_id.upper(),
        _ORDER,
        # A wide page is made of all the figures that a long answer would have.
        most if not wide else call.grant.row_cap if call.grant.sample else None,
        modes=int(Mode.LATEST) if kind is None else KIND_MODES[kind],
        tag=ANY_TAG if period_type is None or full_years else PERIOD_TYPES.index(period_type),
        where=None if line_items is None else has_line_item(line_items),
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    hint = await predecessor_hint(page.edition, service_id, selection, call.today)
    if not wide:
        return page.answer(selection, _ORDER, as_of=page.day, shape=StatementFigureRow, members=hint)
    columns, rows = _wide(cell for chunk in selection.lists() for cell in _cells(chunk))
    table = _wide_page(rows, page.key, most, more=selection.truncated)
    return page.answer(
        table, _WIDE_ORDER, as_of=page.day, shape=WideStatementRow, members=hint, more_columns=columns
    )


_PLACE: Final = {"line_item": LINE_ITEMS.index}
_ORDER: Final = RowOrder("-period_end", "period_type", "line_item", ranks=_PLACE)
_WIDE_ORDER: Final = RowOrder("line_item", ranks=_PLACE)


def _wide_page(rows: list[bytes], behind: SortKey, most: int | None, *, more: bool) -> Selection:
    """The wide rows behind a sort key."""
    rest = [row for row in rows if not behind or _WIDE_ORDER.behind(behind)(row)]
    table = rest[:most]
    cut = more or len(table) < len(rest)
    return Selection(table, len(table), truncated=cut, following=(0,) if cut else None)


def _wide(cells: Iterable[_Cell]) -> tuple[tuple[str, ...], list[bytes]]:
    """The period ends, and one row per line item with its value at each, null if it has none.

    A line item has a row of its own for each accounting standard and unit, the newest first.
    """
    by_row: dict[tuple[str, str, str | None], dict[str, _Cell]] = {}
    ends: dict[str, None] = {}
    for cell in cells:
        standard = (cell.concept or "").partition(":")[0]
        by_row.setdefault((cell.line_item, standard, cell.unit), {})[cell.period_end] = cell
        ends[cell.period_end] = None
    columns = tuple(sorted(ends, reverse=True))
    ordered = sorted(by_row.values(), key=lambda own: min(columns.index(end) for end in own))
    ordered.sort(key=lambda own: LINE_ITEMS.index(next(iter(own.values())).line_item))
    return columns, [_wide_row(own, columns) for own in ordered]


def _wide_row(own: dict[str, _Cell], columns: tuple[str, ...]) -> bytes:
    first = next(iter(own.values()))
    row = WideStatementRow(
        source_ref=first.source_ref,
        license_class=strictest(cell.license_class for cell in own.values()),
        observed_at=max(cell.observed_at or "" for cell in own.values()),
        line_item=first.line_item,
        period_type=first.period_type,
        unit=first.unit,
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
