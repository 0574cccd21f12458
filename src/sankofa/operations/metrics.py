"""GET /v1/screen and GET /v1/metrics/{service_id}."""

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.row_blocks import ANY_TAG
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.screens import dated, omissions, screen
from sankofa.model.facts import FUND
from sankofa.model.metric_states import REASONS, State
from sankofa.model.rows import MetricsRow, ScreenRow
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.parameter_types import JsonSchema
from sankofa.operations.parameters import (
    AsOfParameter,
    CountryParameter,
    LimitParameter,
    MetricParameter,
    OrderParameter,
    RequiredMetricParameter,
    ServiceIdParameter,
)

_TAGS = {slug: tag for tag, slug in enumerate(slugs())}
_STATES = {reason.encode(): state for state, reason in REASONS.items()}
_OMITTED: dict[str, JsonSchema] = {
    "omitted": {
        "type": "object",
        "description": "How many values are missing, by reason: why a view is thinner than the market was.",
        "properties": {
            reason: {"type": "integer", "minimum": 0, "description": meaning}
            for reason, meaning in (
                ("not_published", "No full year was published by that day."),
                ("input_absent", "An input of the latest full year is not reported."),
                ("currency_mixed", "The inputs are there, but not all in one currency."),
                ("denominator_not_positive", "The denominator is zero or negative."),
                ("completed_after_as_of", "An input became known only later."),
                ("revised_after_as_of", "An input was revised later."),
            )
        },
        "required": list(REASONS.values()),
        "additionalProperties": False,
    }
}


@operation("/v1/screen", dataset=FUND, row=ScreenRow, errors=(400, 401, 402, 429, 503), members=_OMITTED)
async def get_screen(
    call: Call,
    *,
    metric: RequiredMetricParameter,
    order: OrderParameter = "desc",
    as_of: AsOfParameter = None,
    country: CountryParameter = None,
    limit: LimitParameter = None,
) -> Answer:
    """Issuers ranked on a metric.

    Per issuer the latest full year published by `as_of` counts. Its value is there only if everything it is
    computed from was available by then with the figures it holds today; a year that was revised or
    completed later is left out, not replaced, and `omitted` counts it. Ordered by rank; `rank` is the
    position by size over the whole result, ties by service_id, and not a rating.
    """
    day = as_of or call.today
    most = call.grant.rows(limit)
    ranking = await screen(call.edition, metric, country, day, smallest_first=order == "asc", most=most)
    return Answer(ranking.selection, as_of=day, members={"omitted": ranking.omitted})


@operation(
    "/v1/metrics/{service_id}",
    dataset=FUND,
    row=MetricsRow,
    errors=(400, 401, 402, 429, 503),
    members=_OMITTED,
)
async def get_metrics(
    call: Call,
    *,
    service_id: ServiceIdParameter,
    metric: MetricParameter = None,
    as_of: AsOfParameter = None,
    limit: LimitParameter = None,
) -> Answer:
    """Every metrics-v1 value for one issuer.

    The same values that `/v1/screen` ranks, under the same rules for `as_of`, ordered by metric. `omitted`
    counts the metrics that have none, by reason. Each row's `methodology_ref` names its formula, which is
    explained at `/methodology/` and that name. For information only.
    """
    day = as_of or call.today
    most = call.grant.rows(limit)
    tag = ANY_TAG if metric is None else _TAGS[metric]
    key = service_id.upper()
    values = await call.edition.select("metrics", key, day=day.toordinal(), tag=tag, limit=most) or NO_ROWS
    missing = await call.edition.select("omitted", key, day=day.toordinal(), tag=tag) or NO_ROWS
    counts = [0] * len(State)
    if missing.count:
        for reason in missing.rows.split(b","):
            counts[_STATES[reason]] += 1
    runs = (dated(values.rows, day),) if values.count else ()
    selection = Selection(runs, values.count, truncated=values.truncated)
    return Answer(selection, as_of=day, members={"omitted": omissions(counts)})
