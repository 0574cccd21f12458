"""GET /v1/issuers."""

from datetime import date

from sankofa.access.cursors import Position
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.issuers import issuers_on
from sankofa.model.catalogue_rows import IssuerRow
from sankofa.model.exchanges import exchange as exchange_name
from sankofa.model.facts import FUND
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.parameters import (
    AsOfParameter,
    CountryParameter,
    CursorParameter,
    ExchangeParameter,
    LimitParameter,
)


@operation(
    "/v1/issuers",
    dataset=FUND,
    row=IssuerRow,
    errors=(400, 401, 402, 429, 503),
    tool="list_issuers",
    extension=True,
)
async def list_issuers(
    call: Call,
    *,
    country: CountryParameter = None,
    exchange: ExchangeParameter = None,
    as_of: AsOfParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """The universe as it was knowable on a day: every issuer with a figure that was public by then.

    An issuer is in from the day its first figure was public and never leaves, whether it was delisted or
    stopped reporting since: draw a backtest's universe from here, not from today's screen. The dates and
    `fact_count` are those of that day; names, LEI and listings are today's. Ordered by country, those of none
    last, then service_id.
    """
    name = None if exchange is None else exchange_name(exchange)
    filters = f"issuers|{country or ''}|{name or ''}|{as_of or ''}"
    edition, first, day = call.edition, 0, call.day_asked(as_of)
    if cursor is not None:
        position = call.cursors.read(cursor, filters)
        edition = await call.edition_for_cursor(position.edition)
        first = int(position.after[0])
        day = date.fromordinal(int(position.after[1]))  # of the first page: midnight may have passed
    most = call.grant.rows(limit)
    page = await issuers_on(edition, day.toordinal(), country, name, first, most)
    following = None
    if page.following is not None:
        following = call.cursors.issue(Position(edition.id, filters, (page.following, day.toordinal())))
    return Answer(
        Selection(page.rows, len(page.rows), truncated=following is not None),
        as_of=day,
        members={"next_cursor": following},
        edition_id=edition.id,
    )
