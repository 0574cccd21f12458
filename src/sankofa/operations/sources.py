"""GET /v1/sources and GET /v1/coverage."""

from sankofa.edition.format.keys import COVERAGE, SOURCES, coverage_key
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.model.catalogue_rows import CoverageRow, SourceRow
from sankofa.operations.contract import NO_ROWS, AgentView, Answer, Call, operation
from sankofa.operations.paging import first_page
from sankofa.operations.parameters import (
    CountryParameter,
    CursorParameter,
    LimitOrAllParameter,
    OptionalSkuParameter,
)


@operation("/v1/sources", row=SourceRow, errors=(400, 401, 429, 503), extension=True)
async def get_sources(call: Call) -> Answer:
    """Publishers of the data, their licences and attributions.

    Every source that the edition has rows of, ordered by source_id. The first and last date are those of the
    data: period ends, releases, observations. `freshness_days` counts from the newest day of publication that
    the source evidences to the edition's last capture, and is null where it evidences none.
    """
    day = call.today.toordinal()
    return Answer(await call.edition.select(SOURCES, "", day=day) or NO_ROWS)


_ORDER = RowOrder("sku", "country", "source_id", "unit_of_count")
_FOR_AGENTS = AgentView(
    description="""\
Coverage by dataset, country and source: count, first and last date, freshness. Call it first to see what
the service has.
Example: {"country":"NG"}""",
    narrow_by=("country", "sku"),
)


@operation(
    "/v1/coverage",
    row=CoverageRow,
    errors=(400, 401, 402, 429, 503),
    tool="get_coverage",
    extension=True,
    agent=_FOR_AGENTS,
)
async def get_coverage(
    call: Call,
    *,
    country: CountryParameter = None,
    sku: OptionalSkuParameter = None,
    limit: LimitOrAllParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """Coverage of each dataset by country and source: count, first and last date, freshness.

    Counts issuers (AF-FUND), releases (AF-TENDER), series and indicators (AF-MACRO), ordered by sku, country,
    source_id and unit_of_count. Dates and freshness as in `/v1/sources`. Call it to see what is covered.
    """
    walk = first_page(call, "coverage", country, sku)
    if cursor is not None:
        walk = await walk.after(cursor)
    most = None if limit is None else call.grant.rows(limit)
    selection = await walk.select(COVERAGE, coverage_key(country, sku), _ORDER, most)
    return walk.answer(selection or NO_ROWS, _ORDER)
