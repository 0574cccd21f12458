"""GET /v1/signals/procurement-demand and GET /v1/signals/{signal_key}."""

from calendar import monthrange
from datetime import date
from typing import get_args

import msgspec

from sankofa.derive.signals.contract import panels
from sankofa.derive.signals.panels.demand import ProcurementDemandRow
from sankofa.edition.format.keys import panel_kind
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.macro import read_one_series
from sankofa.edition.read.seek import find_in_list
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.facts import TENDER
from sankofa.model.rows import panel_key
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import BASIS, NO_ROWS, AgentView, Answer, Call, operation
from sankofa.operations.paging import first_page
from sankofa.operations.parameter_types import JsonSchema

_DEMAND_ORDER = RowOrder(*panels()["procurement-demand"].order)
_EVERY_ROW = 2**31 - 1
_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode
_BASIS: dict[str, JsonSchema] = {
    "basis": {
        **BASIS["basis"],
        "type": ["string", "null"],
        "enum": [*get_args(parameters.Basis), None],
        "description": "The figures that rows are computed from: today's, or those known on `as_of`. Null "
        "for panels that are not derived from figures of issuers.",
    }
}


_SIGNAL_FOR_AGENTS = AgentView(
    description=f"""\
One published signal panel, whole, under `observations`: {", ".join(panels())}. 100 rows where `limit` is
omitted; go on with `cursor`. get_procurement_demand filters.
Example: {{"signal_key":"macro-momentum","limit":20}}""",
    narrow_by=("limit",),
)


@operation(
    "/v1/signals/procurement-demand",
    dataset=TENDER,
    row=ProcurementDemandRow,
    errors=(401, 402, 429, 503),
    rows_under="observations",
    members=_BASIS,
    tool="get_procurement_demand",
    tool_names={"from": "from_date", "to": "to_date"},
    extensions=("cursor",),
)
async def get_procurement_demand(
    call: Call,
    *,
    country: parameters.TenderCountry = "ZA",
    category: parameters.Category = None,
    as_of: parameters.AsOf = None,
    from_: parameters.FromMonth = None,
    to: parameters.ToMonth = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Category share, buyer concentration and momentum of public procurement, by month.

    Only months closed by `as_of`, computed only from releases dated by then. Ordered by month descending,
    then category. The method is explained at `/methodology/signals-v1/procurement-demand`.
    """
    asked = ("procurement-demand", country, category, str(from_), str(to))
    page = await first_page(call, *asked, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    key = panel_key(country, category) if category else panel_key(country)
    span = DayRange(
        page.day.toordinal(),
        since=from_.toordinal() if from_ else 0,  # the month of `from` ends on that day or later
        until=_end_of_month(to) if to else FOREVER,
    )
    kind = panel_kind("procurement-demand")
    passed = 0
    if page.key:
        month_end = _end_of_month(date.fromisoformat(f"{page.key[0]}-01"))
        span = span._replace(until=min(span.until, month_end))
        own_month = await read_one_series(page.edition, kind, key, span._replace(since=month_end), _EVERY_ROW)
        is_behind = _DEMAND_ORDER.behind(page.key)
        rows = [row for some in (own_month or NO_ROWS).lists() for row in _rows(some)]
        passed = sum(1 for row in rows if not is_behind(row))
    selection = await read_one_series(page.edition, kind, key, span, most, passed=passed)
    return page.answer(selection or NO_ROWS, _DEMAND_ORDER, as_of=page.day, members={"basis": None})


def _end_of_month(day: date) -> int:
    return day.replace(day=monthrange(day.year, day.month)[1]).toordinal()


@operation(
    "/v1/signals/{signal_key}",
    row=ProcurementDemandRow,
    also=tuple(panel.row for panel in panels().values() if panel.row is not ProcurementDemandRow),
    errors=(400, 401, 404, 429, 503),
    rows_under="observations",
    tool="get_signal",
    members=_BASIS,
    extensions=("as_of", "basis", "cursor"),
    agent=_SIGNAL_FOR_AGENTS,
)
async def get_signal(
    call: Call,
    *,
    signal_key: parameters.SignalKey,
    as_of: parameters.AsOf = None,
    basis: parameters.ChosenBasis = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """One published signal panel.

    Every panel has rows of its own; its method, its columns and their order are explained at
    `/methodology/signals-v1/` and its key. `basis` is for the panels of issuers: fundamentals-factors,
    fundamentals-quality, fundamentals-revisions and issuer-persistence.
    """
    panel = panels().get(signal_key)
    if panel is not None and panel.filters:  # as at its own path, which takes the filters
        _refuse_basis(basis, signal_key)
        answer = await get_procurement_demand(call, as_of=as_of, limit=limit, cursor=cursor)
        return msgspec.structs.replace(answer, dataset=panel.sku)
    applied = call.basis(basis) if panel is not None and panel.has_basis else None
    if applied is None:
        _refuse_basis(basis, signal_key)
    page = await first_page(call, "signal", signal_key, applied, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    if panel is None:
        raise NotFound(f"No signal panel {signal_key}.")
    kind, day = panel_kind(panel.key), page.day.toordinal()
    order = RowOrder(*panel.order)
    modes = AS_KNOWN if applied == "as_known" else int(Mode.LATEST)
    start = await page.start(
        lambda edition, key: find_in_list(edition, kind, order.behind(key), day=day, modes=modes)
    )
    selection = await page.edition.select_list(kind, day=day, modes=modes, limit=most, start=start)
    return page.answer(selection, order, as_of=page.day, members={"basis": applied}, dataset=panel.sku)


def _refuse_basis(basis: parameters.Basis | None, signal_key: str) -> None:
    """Raises InvalidParameter if a basis is named for a panel that is not derived from figures."""
    if basis is not None:
        raise InvalidParameter("basis", f"{signal_key} has none: no figure of an issuer enters it")
