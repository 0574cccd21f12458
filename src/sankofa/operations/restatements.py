"""GET /v1/restatements and GET /v1/series/{series}/revisions."""

from datetime import date

from sankofa.derive.series_revisions import SeriesVintage, revision_summary
from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.revisions import (
    RESTATEMENT_ORDER,
    RestatementQuestion,
    columns_of_series,
    every_vintage,
    restatement_behind,
    restatements,
)
from sankofa.edition.read.search import search_code
from sankofa.model.catalogue_rows import RestatementRow, SeriesRevisionsRow
from sankofa.model.facts import FUND, MACRO
from sankofa.model.rows import wire
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import refuse_other_identifier, unknown_series
from sankofa.operations.paging import Start, first_page
from sankofa.operations.parameters import (
    AsOfParameter,
    CountryParameter,
    CursorParameter,
    LimitParameter,
    LineItemParameter,
    MinChangeParameter,
    RestatedServiceIdParameter,
    RestatedSinceParameter,
    RestatedUntilParameter,
    SeriesKeyParameter,
)

_FOR_AGENTS = AgentView(
    description="""\
Reported figures that replaced earlier ones, newest first: from what, to what, when, by which document.
Next: get_fundamentals with `vintages` "all".
Example: {"country":"ZA","line_item":"revenue","min_change":0.05}""",
    narrow_by=("since", "country", "line_item", "min_change"),
)


@operation(
    "/v1/restatements",
    dataset=FUND,
    row=RestatementRow,
    errors=(400, 401, 402, 429, 503),
    tool="get_restatements",
    extension=True,
    agent=_FOR_AGENTS,
)
async def get_restatements(
    call: Call,
    *,
    since: RestatedSinceParameter = None,
    until: RestatedUntilParameter = None,
    country: CountryParameter = None,
    service_id: RestatedServiceIdParameter = None,
    line_item: LineItemParameter = None,
    min_change: MinChangeParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """Reported figures that replaced earlier ones: from what, to what, when and by which document.

    A row for each vintage after the first, of any period and line item. `since` and `until` are days on which
    the new figure became public, both included. Ordered by available_at descending, service_id, period_end
    descending, line_item, concept, unit, period_start, then vintage. `/feeds/restatements.atom` has the
    newest rows as an Atom feed, with the same parameters, and `/feeds/company/{service_id}.atom` those of one
    organisation.
    """
    key = None if service_id is None else service_id.upper()
    filters = (str(since), str(until), country, key, line_item, str(min_change))
    page = first_page(call, "restatements", *filters)
    if cursor is not None:
        page = await page.after(cursor)
    last = page.day if until is None else min(until, page.day)
    asked = RestatementQuestion(
        page.day.toordinal(), since or date.min, last, country, key, line_item, min_change
    )

    async def locate(edition: Edition, behind: SortKey) -> Start:
        return await restatement_behind(edition, asked, behind)

    most = call.grant.rows(limit)
    selection = await restatements(page.edition, asked, most, await page.start(locate))
    if key is not None and not selection.count:
        await refuse_other_identifier(call, key, "service_id")
    return page.answer(selection, RESTATEMENT_ORDER)


@operation(
    "/v1/series/{series}/revisions",
    dataset=MACRO,
    row=SeriesRevisionsRow,
    errors=(400, 401, 404, 429, 503),
    extension=True,
)
async def get_series_revisions(
    call: Call, *, series: SeriesKeyParameter, as_of: AsOfParameter = None
) -> Answer:
    """How far the values of a series were revised after their first release: size, bias, time to final.

    One row for each frequency and country under the key, computed from the vintages known on `as_of`. The
    latest vintage of that day counts as final. An annual indicator has no rows: its tables evidence no day of
    release; ask for the series `WDI:<indicator>:<alpha-3 country>`.
    """
    day = call.day_asked(as_of)
    columns = await columns_of_series(call.edition, series.upper())
    rows = []
    for column in columns:
        vintages = []
        newest = None
        async for one in every_vintage(call.edition, column, day):
            vintages.append(SeriesVintage(one.date, one.available_at, one.vintage, one.value))
            if newest is None or (one.available_at, one.date) > (newest.available_at, newest.date):
                newest = one
        if newest is None:
            continue
        key, _, frequency, country = column.split("|")
        row = SeriesRevisionsRow(
            series=key,
            frequency=frequency,
            country=country or None,
            first_date=min(one.day for one in vintages),
            last_date=max(one.day for one in vintages),
            **revision_summary(vintages)._asdict(),
            source_ref=newest.source_ref,
            license_class=newest.license_class,
            observed_at=newest.observed_at,
        )
        rows.append(wire.encode(row))
    if not rows and not await search_code(call.edition, series.upper()):
        raise await unknown_series(call.edition, series)
    return Answer(Selection(rows, len(rows), truncated=False), as_of=day)
