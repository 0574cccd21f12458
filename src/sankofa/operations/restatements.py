"""GET /v1/restatements, GET /v1/series/{series}/revisions and GET /v1/changes (contract: CHG-1)."""

import asyncio
from datetime import date
from typing import Final

import msgspec

from sankofa.access.records import Position
from sankofa.derive.cross_rates import SeriesVintage, revision_summary
from sankofa.edition.read.changes import Change, ChangePosition, page
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.series_catalogue import (
    RESTATEMENT_ORDER,
    RestatementQuestion,
    columns_of_series,
    every_vintage,
    restatement_behind,
    restatements,
)
from sankofa.model.catalogue_rows import ChangeRow, RestatementRow, SeriesRevisionsRow
from sankofa.model.errors import NotFound
from sankofa.model.provenance import FUND, MACRO, source_of_ref, source_ref
from sankofa.model.rows import Row, wire
from sankofa.operations import parameters
from sankofa.operations.contract import MEMBERS, Answer, Call, operation
from sankofa.operations.nearest import refuse_other_identifier, refuse_unknown_series
from sankofa.operations.paging import first_page


@operation("/v1/restatements", dataset=FUND, row=RestatementRow, tool="get_restatements", extension=True)
async def get_restatements(
    call: Call,
    *,
    since: parameters.RestatedSince = None,
    until: parameters.RestatedUntil = None,
    country: parameters.Country = None,
    service_id: parameters.RestatedServiceId = None,
    line_item: parameters.LineItem = None,
    min_change: parameters.MinChange = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Reported figures that replaced earlier ones: from what, to what, when and by which document.

    One row for each vintage after the first. `since` and `until` bound the day on which the new figure became
    public, both included. If a filing restated the figure for a split, `split_ratio` is given. Ordered by
    available_at descending, service_id, period_end descending, line_item, concept, unit, period_start, then
    vintage. `/feeds/restatements.atom` has the newest rows as an Atom feed with the same parameters;
    `/feeds/company/{service_id}.atom` has those of one organisation.
    """
    key = None if service_id is None else service_id.upper()
    filters = (str(since), str(until), country, key, line_item, str(min_change))
    page = await first_page(call, "restatements", *filters, cursor=cursor)
    last = page.day if until is None else min(until, page.day)
    question = RestatementQuestion(
        page.day.toordinal(), since or date.min, last, country, key, line_item, min_change
    )
    most = call.grant.rows(limit)
    start = await page.start(lambda edition, behind: restatement_behind(edition, question, behind))
    selection = await restatements(page.edition, question, most, start)
    if key is not None and not selection.count:
        await refuse_other_identifier(call, key, "service_id")
    return page.answer(selection, RESTATEMENT_ORDER)


@operation(
    "/v1/series/{series}/revisions",
    dataset=MACRO,
    row=SeriesRevisionsRow,
    extension=True,
)
async def get_series_revisions(
    call: Call, *, series: parameters.SeriesKey, as_of: parameters.AsOf = None
) -> Answer:
    """How far the values of a series were revised after their first release: size, bias, time to final.

    One row for each frequency and country under the key, computed from the vintages known on `as_of`. The
    latest vintage of that day counts as final. An annual indicator has no rows, because its tables have no
    evidenced release day. Ask for the series `WDI:<indicator>:<alpha-3 country>`.
    """
    day = as_of or call.today
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
            observed_at=newest.observed_at or "",
        )
        rows.append(wire.encode(row))
    if not rows:
        await refuse_unknown_series(call.edition, series)
    return Answer(Selection(rows, len(rows), truncated=False), as_of=day)


_EFFORT: Final = 20_000
"""Number of unchanged keys after which a page ends, however few changes it has."""
_ROWS_A_TURN: Final = 256
_NULL: Final = msgspec.Raw(b"null")
_provenance = msgspec.json.Decoder(Row)


@operation(
    "/v1/changes",
    row=ChangeRow,
    paid=True,
    extension=True,
    members={"since": MEMBERS["since"]},
)
async def get_changes(
    call: Call,
    *,
    since: parameters.Since = None,
    dataset: parameters.ChangedDataset = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Rows added, changed or removed since an earlier edition.

    Use it to keep a copy up to date. Pass your copy's edition as `since`; without it, every row is listed as
    added. Apply the rows in order, by `dataset` and `key`, and keep `edition` as the next `since`. The rows
    are every vintage of a fact, the latest vintage of a macro value, and current identifiers. Derived values
    are not listed. Ordered by dataset and key (tenders by day, newest first), then as served, removed rows
    last. A page may be short and still have a `next_cursor`. All pages use the `edition` of the first. If
    that edition is removed meanwhile, the pages go on in the current one; a removed edition as `since` is a
    410: start again. Needs the starter tier or above.
    """
    if call.lock is not None:
        raise NotFound("A locked view has no changes between editions.")
    filters = f"changes|{since or ''}|{dataset or ''}"
    edition, start = call.edition, None
    first_edition = edition.id
    if cursor is not None:
        position = call.cursors.read(cursor, filters)
        edition = await call.edition_for_cursor(position.edition)
        first_edition = position.edition
        name, key, part, *behind = position.after
        start = ChangePosition(str(name), str(key), int(part), tuple(behind))
    most = call.grant.rows(limit)
    before = None if since is None else await call.edition_to_compare(since)
    changes, following = await page(before, edition, start, most, dataset=dataset, effort=_EFFORT)
    slices = []
    for first in range(0, len(changes), _ROWS_A_TURN):
        some = changes[first : first + _ROWS_A_TURN]
        slices.append(b",".join([_row(change, since or "", edition) for change in some]))
        await asyncio.sleep(0)  # let other requests run
    next_cursor = None
    if following is not None:
        after = (following.dataset, following.key, following.part, *following.behind)
        next_cursor = call.cursors.issue(Position(first_edition, filters, after))
    selection = Selection(slices, len(changes), truncated=following is not None)
    members: dict[str, object] = {"since": since, "next_cursor": next_cursor}
    return Answer(selection, members=members, edition_id=first_edition)


def _row(change: Change, since: str, edition: Edition) -> bytes:
    """One change as JSON. A removed row cites as its source the edition that no longer has it."""
    removed = change.row is None
    provenance = _provenance.decode(change.row or change.before or b"")
    ref = provenance.source_ref
    if removed:
        ref = source_ref(source_of_ref(ref), f"edition {edition.id}", f"not in it, unlike {since}")
    return wire.encode(
        ChangeRow(
            source_ref=ref,
            license_class=provenance.license_class,
            observed_at=str(edition.manifest["built_from"]) if removed else provenance.observed_at,
            dataset=change.dataset,
            change=change.change,
            key=list(change.key),
            row=change.row or _NULL,
        )
    )
