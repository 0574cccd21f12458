"""GET /v1/fundamentals/{service_id}."""

from collections.abc import Callable

from sankofa.edition.format.visibility import ANY_TAG
from sankofa.model.facts import FUND
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.rows import FundamentalsRow
from sankofa.model.vintages import Mode
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.nearest import nearest_line_items, unknown_organisation
from sankofa.operations.parameters import (
    AsOfParameter,
    LineItemsParameter,
    PeriodTypeParameter,
    ServiceIdParameter,
    VintagesParameter,
)

_MODES = {"latest": int(Mode.LATEST), "as_reported": int(Mode.AS_REPORTED), "all": int(Mode.ALL)}


@operation(
    "/v1/fundamentals/{service_id}",
    dataset=FUND,
    row=FundamentalsRow,
    errors=(400, 401, 404, 429, 503),
    tool="get_fundamentals",
)
async def get_fundamentals(
    call: Call,
    *,
    service_id: ServiceIdParameter,
    as_of: AsOfParameter = None,
    period_type: PeriodTypeParameter = None,
    vintages: VintagesParameter = "latest",
    line_items: LineItemsParameter = None,
) -> Answer:
    """Point-in-time reported facts for one issuer.

    Ordered by period_end descending, period_type, line_item and vintage. The sample tier gets the
    first rows with `truncated: true`; paid tiers get everything.
    """
    day = call.day_asked(as_of)
    selection = await call.edition.select(
        "fundamentals",
        service_id.upper(),
        day=day.toordinal(),
        modes=_MODES[vintages],
        tag=ANY_TAG if period_type is None else PERIOD_TYPES.index(period_type),
        limit=call.grant.row_cap if call.grant.sample else None,
        where=None if line_items is None else _has_line_item(line_items),
    )
    if selection is None:
        raise await unknown_organisation(call, service_id)
    return Answer(selection, as_of=day, members=nearest_line_items(line_items, selection))


def _has_line_item(line_items: tuple[str, ...]) -> Callable[[bytes], bool]:
    """A test for encoded rows: true for those of the line items. As quick for a hundred as for one."""
    wanted = frozenset(name.encode() for name in line_items)
    field = b'"line_item":"'

    def admits(row: bytes) -> bool:
        start = row.find(field) + len(field)
        return row[start : row.find(b'"', start)] in wanted

    return admits
