"""GET /v1/signals/procurement-demand and GET /v1/signals/{signal_key}."""

from calendar import monthrange
from datetime import date

from sankofa.derive.signals.contract import panels
from sankofa.derive.signals.panels.procurement_demand import ProcurementDemandRow
from sankofa.edition.format.keys import panel_kind
from sankofa.edition.format.series_blocks import DayRange
from sankofa.edition.read.series import read_one_series
from sankofa.model.days import FOREVER
from sankofa.model.errors import NotFound
from sankofa.model.facts import TENDER
from sankofa.model.panel_keys import panel_key
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.parameters import (
    AsOfParameter,
    CategoryParameter,
    FromMonthParameter,
    LimitParameter,
    SignalKeyParameter,
    TenderCountryParameter,
    ToMonthParameter,
)


@operation(
    "/v1/signals/procurement-demand",
    dataset=TENDER,
    row=ProcurementDemandRow,
    errors=(401, 402, 429, 503),
    rows_under="observations",
)
async def get_procurement_demand(
    call: Call,
    *,
    country: TenderCountryParameter = "ZA",
    category: CategoryParameter = None,
    as_of: AsOfParameter = None,
    from_: FromMonthParameter = None,
    to: ToMonthParameter = None,
    limit: LimitParameter = None,
) -> Answer:
    """Category share, buyer concentration and momentum of public procurement, by month.

    Only months closed by `as_of`, computed only from releases dated by then. Ordered by month descending,
    then category. The method is explained at `/methodology/signals-v1/procurement-demand`.
    """
    day = as_of or call.today
    most = call.grant.rows(limit)
    key = panel_key(country, category) if category else panel_key(country)
    span = DayRange(
        day.toordinal(),
        since=from_.toordinal() if from_ else 0,  # the month of `from` ends on that day or later
        until=_end_of_month(to) if to else FOREVER,
    )
    selection = await read_one_series(call.edition, panel_kind("procurement-demand"), key, span, most)
    return Answer(selection or NO_ROWS, as_of=day)


def _end_of_month(day: date) -> int:
    return day.replace(day=monthrange(day.year, day.month)[1]).toordinal()


@operation(
    "/v1/signals/{signal_key}",
    row=ProcurementDemandRow,
    also=tuple(panel.row for panel in panels().values() if panel.row is not ProcurementDemandRow),
    errors=(400, 401, 404, 429, 503),
    rows_under="observations",
)
async def get_signal(call: Call, *, signal_key: SignalKeyParameter, limit: LimitParameter = None) -> Answer:
    """One published signal panel.

    Every panel has rows of its own; its method, its columns and their order are explained at
    `/methodology/signals-v1/` and its key.
    """
    most = call.grant.rows(limit)
    panel = panels().get(signal_key)
    if panel is None:
        raise NotFound(f"No signal panel {signal_key}.")
    day = call.today.toordinal()
    selection = await call.edition.select(panel_kind(panel.key), panel_key(), day=day, limit=most)
    return Answer(selection or NO_ROWS, dataset=panel.sku)
