"""GET /v1/quality-metrics/{sku}."""

from sankofa.edition.format.row_blocks import RowOrder
from sankofa.model.catalogue_rows import QualityRow
from sankofa.model.errors import NotFound
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.paging import first_page
from sankofa.operations.parameters import CursorParameter, LimitOrAllParameter, SkuParameter

_ORDER = RowOrder("measure")
_FOR_AGENTS = AgentView(
    description="""\
Coverage and freshness of one dataset: AF-FUND (company figures), AF-TENDER (tenders), AF-MACRO (macro).
`status` UNMEASURED is never a pass. Ask before you rely on an answer being complete.
Example: {"sku":"AF-FUND"}""",
    narrow_by=("limit",),
)


@operation(
    "/v1/quality-metrics/{sku}",
    row=QualityRow,
    errors=(401, 404, 429, 503),
    tool="get_quality_metrics",
    extensions=("limit", "cursor"),
    agent=_FOR_AGENTS,
)
async def get_quality_metrics(
    call: Call, *, sku: SkuParameter, limit: LimitOrAllParameter = None, cursor: CursorParameter = None
) -> Answer:
    """Coverage and freshness of one dataset, ordered by measure.

    Each measure is held against the floor its sources set: `PASS`, `FAIL`, or `UNMEASURED` where there is a
    floor and no measurement, which is never a pass. For age, rejects and
    restatements the floor is a maximum; for every other measure it is a minimum.
    """
    walk = first_page(call, "quality", sku.upper())
    if cursor is not None:
        walk = await walk.after(cursor)
    most = None if limit is None else call.grant.rows(limit)
    selection = await walk.select("quality", sku.upper(), _ORDER, most)
    if selection is None:
        raise NotFound(f"No dataset {sku}.")
    return walk.answer(selection, _ORDER, dataset=sku.upper())
