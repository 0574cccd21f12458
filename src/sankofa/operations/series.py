"""GET /v1/series and GET /v1/series/{series}/vintages."""

from sankofa.access.cursors import Position
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.search import search_code, series_named
from sankofa.edition.read.series_catalogue import catalogue_page, entry_count, release_rows
from sankofa.model.catalogue_rows import SeriesCatalogueRow, SeriesReleaseRow
from sankofa.model.facts import MACRO
from sankofa.model.names import code_words
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.nearest import unknown_series
from sankofa.operations.parameters import (
    CursorParameter,
    LimitParameter,
    MacroCountryParameter,
    SeriesKeyParameter,
    SeriesQueryParameter,
)


@operation(
    "/v1/series",
    dataset=MACRO,
    row=SeriesCatalogueRow,
    errors=(400, 401, 402, 429, 503),
    tool="list_series",
    extension=True,
)
async def list_series(
    call: Call,
    *,
    country: MacroCountryParameter = None,
    q: SeriesQueryParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """The series and annual indicators that `/v1/macro` serves.

    Ordered by series, frequency and country. An annual indicator has a row for each country, frequency
    `annual`, dates at the ends of its first and last year, and no vintages: its tables evidence no day of
    release. With `q`, those whose key or name has every word, or one that begins with it.
    """
    words = code_words(q) if q is not None else []
    filters = f"series|{country or ''}|{' '.join(words)}|{q is None}"
    edition, first = call.edition, 0
    if cursor is not None:
        position = call.cursors.read(cursor, filters)
        edition = await call.edition_for_cursor(position.edition)
        first = int(position.after[0])
    most = call.grant.rows(limit)
    spans = [(0, entry_count(edition))] if q is None else await series_named(edition, words)
    runs, count, following = await catalogue_page(edition, spans, country, first, most)
    more = following is not None
    return Answer(
        Selection(runs, count, truncated=more),
        members={
            "next_cursor": call.cursors.issue(Position(edition.id, filters, (following or 0,)))
            if more
            else None
        },
        edition_id=edition.id,
    )


@operation(
    "/v1/series/{series}/vintages",
    dataset=MACRO,
    row=SeriesReleaseRow,
    errors=(400, 401, 402, 404, 429, 503),
    extension=True,
)
async def get_series_vintages(
    call: Call,
    *,
    series: SeriesKeyParameter,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """The days on which values of a series were released, and how many each added or changed.

    Newest first, then by frequency and country where several series share the key. A release that changed
    nothing is not listed. An annual indicator has none: its tables evidence no day of release.
    """
    key = series.upper()
    filters = f"vintages|{key}"
    edition, first = call.edition, 0
    if cursor is not None:
        position = call.cursors.read(cursor, filters)
        edition = await call.edition_for_cursor(position.edition)
        first = int(position.after[0])
    most = call.grant.rows(limit)
    read = await release_rows(edition, key, first, most)
    if read is None:
        if not await search_code(edition, key):
            raise await unknown_series(edition, series)
        read = [], False
    rows, more = read
    following = call.cursors.issue(Position(edition.id, filters, (first + most,))) if more else None
    return Answer(
        Selection(rows, len(rows), truncated=more), members={"next_cursor": following}, edition_id=edition.id
    )
