"""GET /v1/quality-metrics/{sku}."""

from sankofa.model.errors import NotFound
from sankofa.model.rows import QualityRow
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.parameters import SkuParameter


@operation(
    "/v1/quality-metrics/{sku}", row=QualityRow, errors=(401, 404, 429, 503), tool="get_quality_metrics"
)
async def get_quality_metrics(call: Call, *, sku: SkuParameter) -> Answer:
    """Coverage and freshness of one dataset, ordered by measure.

    Each measure is held against the floor its sources set: `PASS`, `FAIL`, or `UNMEASURED` where there is a
    floor and no measurement, which is never a pass. Of age, rejects and restatements it is the most they may
    be, of everything else the least.
    """
    selection = await call.edition.select("quality", sku.upper(), day=call.today.toordinal())
    if selection is None:
        raise NotFound(f"No dataset {sku}.")
    return Answer(selection, dataset=sku.upper())
