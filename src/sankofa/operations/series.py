"""GET /v1/series and GET /v1/series/{series}/vintages."""

from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.macro import (
    CATALOGUE_ORDER,
    RELEASE_ORDER,
    catalogue_page,
    entry_behind,
    entry_count,
    release_behind,
    release_rows,
)
from sankofa.edition.read.search import search_code, series_named
from sankofa.model.catalogue_rows import SeriesCatalogueRow, SeriesReleaseRow
from sankofa.model.facts import MACRO
from sankofa.model.text import code_words
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import unknown_series
from sankofa.operations.paging import Start, first_page
from sankofa.operations.parameters import (
    CursorParameter,
    LimitParameter,
    MacroCountryParameter,
    SeriesKeyParameter,
    SeriesQueryParameter,
)

_FOR_AGENTS = AgentView(
    description="""\
Lists series and annual indicators with unit, frequency and dates. Next: get_macro with `series`, or with
`indicator` where `vintages` is 0.
Example: {"country":"ZA","q":"inflation"}""",
    narrow_by=("q", "country", "limit"),
)


@operation(
    "/v1/series",
    dataset=MACRO,
    row=SeriesCatalogueRow,
    errors=(400, 401, 402, 429, 503),
    tool="list_series",
    extension=True,
    agent=_FOR_AGENTS,
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
    walk = first_page(call, "series", country, None if q is None else tuple(words))
    if cursor is not None:
        walk = await walk.after(cursor)
    spans = [(0, entry_count(walk.edition))] if q is None else await series_named(walk.edition, words)

    async def locate(edition: Edition, key: SortKey) -> Start:
        return (await entry_behind(edition, key),)

    start = await walk.start(locate)
    first = int(start[0]) if start else 0
    runs, count, last = await catalogue_page(walk.edition, spans, country, first, call.grant.rows(limit))
    following = None if last is None else (last,)
    selection = Selection(runs, count, truncated=last is not None, following=following)
    return walk.answer(selection, CATALOGUE_ORDER)


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
    walk = first_page(call, "vintages", key)
    if cursor is not None:
        walk = await walk.after(cursor)
    most = call.grant.rows(limit)

    async def locate(edition: Edition, behind: SortKey) -> Start:
        return (await release_behind(edition, key, behind),)

    start = await walk.start(locate)
    first = int(start[0]) if start else 0
    read = await release_rows(walk.edition, key, first, most)
    if read is None:
        if not await search_code(walk.edition, key):
            raise await unknown_series(walk.edition, series)
        read = [], False
    rows, more = read
    following = (first + most,) if more else None
    return walk.answer(Selection(rows, len(rows), truncated=more, following=following), RELEASE_ORDER)
