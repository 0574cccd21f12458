"""GET /v1/fundamentals/{service_id}."""

from collections.abc import Callable
from typing import Final

from sankofa.edition.format.row_blocks import FUNDAMENTALS_ORDER, RowOrder, SortKey
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.statement_order import StatementRows, core_first, find_core_first, line_item_of
from sankofa.model.errors import InvalidParameter
from sankofa.model.facts import FUND
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.rows import FundamentalsRow
from sankofa.model.vintages import Mode
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import nearest_line_items, predecessor_hint, unknown_organisation
from sankofa.operations.paging import first_page
from sankofa.operations.parameters import (
    AsOfParameter,
    CursorParameter,
    FundamentalsOrderParameter,
    LimitOrAllParameter,
    LineItemsParameter,
    PeriodTypeParameter,
    ServiceIdParameter,
    VintagesParameter,
)

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
    service_id: ServiceIdParameter,
    as_of: AsOfParameter = None,
    period_type: PeriodTypeParameter = None,
    vintages: VintagesParameter = "latest",
    line_items: LineItemsParameter = None,
    order: FundamentalsOrderParameter = None,
    limit: LimitOrAllParameter = None,
    cursor: CursorParameter = None,
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
