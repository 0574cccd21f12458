"""GET /v1/cross-rates."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from sankofa.access.tiers import Grant
from sankofa.derive.cross_rates import cross_rate, cross_rate_row
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.macro import InputPair, RatePair, input_pairs, rate_pairs
from sankofa.model.catalogue_rows import CrossRateRow
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter
from sankofa.model.facts import MACRO
from sankofa.model.rows import wire
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.paging import ListPage, first_page
from sankofa.operations.parameters import (
    AsOfParameter,
    BaseCurrencyParameter,
    CursorParameter,
    FromDayParameter,
    LimitParameter,
    QuoteCurrencyParameter,
    ToDayParameter,
    ViaParameter,
)


def _check_pair(_: Grant, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidParameter if the currencies are not of a pair."""
    if arguments["base"] == arguments["quote"]:
        raise InvalidParameter("quote", "expected another currency than base")
    if arguments["via"] in (arguments["base"], arguments["quote"]):
        raise InvalidParameter("via", "expected a third currency; a rate of two is in `/v1/macro`")


@operation(
    "/v1/cross-rates",
    check=_check_pair,
    dataset=MACRO,
    row=CrossRateRow,
    errors=(400, 401, 402, 429, 503),
    tool="get_cross_rates",
    tool_names={"from": "from_date", "to": "to_date"},
    extension=True,
)
async def get_cross_rates(
    call: Call,
    *,
    base: BaseCurrencyParameter,
    quote: QuoteCurrencyParameter,
    via: ViaParameter = None,
    as_of: AsOfParameter = None,
    from_: FromDayParameter = None,
    to: ToDayParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """Exchange rates derived from two published daily rates against a third currency.

    No source publishes these rates: `method` is `derived`, and `inputs` name both published rates with their
    vintages, sources and licences. Both have the same date and were known on `as_of`.
    Exact arithmetic, rounded half-even to 10 significant digits. Ordered by `via`, then date descending:
    through each third currency there is a value of its own. Two currencies without a common third have no
    rows.
    """
    page = await first_page(
        call, "cross-rates", base, quote, via, str(from_), str(to), as_of=as_of, cursor=cursor
    )
    selection = await _rows(page, (base, quote), via, _span(page, from_, to), call.grant.rows(limit))
    return page.answer(selection, selection.following or (), as_of=page.day)


def _span(page: ListPage, since: date | None, until: date | None) -> DayRange:
    day = page.day.toordinal()
    last = FOREVER if until is None else until.toordinal()
    return DayRange(day, 0 if since is None else since.toordinal(), min(last, day))


async def _rows(
    page: ListPage, pair: tuple[str, str], via: str | None, span: DayRange, most: int
) -> Selection:
    slices: list[bytes] = []
    last: SortKey = ()
    begins_via, last_day = page.key or ("", FOREVER)
    for rates in await rate_pairs(page.edition, *pair):
        if rates.via < str(begins_via) or via not in (None, rates.via):
            continue
        until = min(span.until, int(last_day) - 1) if rates.via == begins_via else span.until
        async for inputs in input_pairs(page.edition, rates, span._replace(until=until)):
            if len(slices) == most:
                return Selection(slices, most, truncated=True, following=last)
            slices.append(wire.encode(_row(pair, rates, inputs)))
            last = rates.via, inputs.day.toordinal()
    return Selection(slices, len(slices), truncated=False)


def _row(pair: tuple[str, str], rates: RatePair, inputs: InputPair) -> CrossRateRow:
    value = cross_rate(
        inputs.base.value,
        inputs.quote.value,
        base_inverted=rates.base.inverted,
        quote_inverted=rates.quote.inverted,
    )
    return cross_rate_row((*pair, rates.via), inputs.day, (inputs.base, inputs.quote), value)
