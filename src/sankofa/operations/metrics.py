"""GET /v1/screen and GET /v1/metrics/{service_id}."""

from collections import Counter
from datetime import date

import msgspec
from msgspec.structs import replace

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.format.visibility import ANY_TAG, AS_KNOWN
from sankofa.edition.read.issuers import (
    TOO_OLD,
    Ranking,
    dated,
    omissions,
    rank_of,
    screen,
    screen_order,
    year_end,
)
from sankofa.model.days import months_before
from sankofa.model.facts import FUND
from sankofa.model.rows import REASONS, MetricsRow, ScreenRow
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import BASIS, MEMBERS, NO_ROWS, Answer, Call, operation
from sankofa.operations.nearest import predecessor_hint, refuse_other_identifier
from sankofa.operations.paging import first_page
from sankofa.operations.parameter_types import JsonSchema


class _Named(msgspec.Struct):
    """The metric of a row."""

    metric: str


class _Missing(msgspec.Struct):
    """A metric without a value."""

    metric: str
    reason: str
    changes: list[dict[str, str | None]]


_ORDER = RowOrder("metric")
_TAGS = {slug: tag for tag, slug in enumerate(slugs())}
_STATES = {reason: state for state, reason in REASONS.items()}
_read = msgspec.json.Decoder(list[_Missing]).decode
_read_metrics = msgspec.json.Decoder(list[_Named]).decode
_OMITTED: dict[str, JsonSchema] = {
    "omitted": {
        "type": "object",
        "description": "How many values are missing, by reason: why a view is thinner than the market was.",
        "properties": {
            reason: {"type": "integer", "minimum": 0, "description": meaning}
            for reason, meaning in MEMBERS["omitted"].items()
        },
        "required": list(REASONS.values()),
        "additionalProperties": False,
    }
}
_MISSING: dict[str, JsonSchema] = {"missing": MEMBERS["missing"]}
_MISSING["missing"]["items"]["properties"]["metric"]["enum"] = list(slugs())
_MISSING["missing"]["items"]["properties"]["reason"]["enum"] = [*REASONS.values(), TOO_OLD]


@operation(
    "/v1/screen",
    dataset=FUND,
    row=ScreenRow,
    errors=(400, 401, 402, 429, 503),
    members=_OMITTED | BASIS,
    tool="screen_issuers",
    extensions=("basis", "max_age", "cursor"),
)
async def get_screen(
    call: Call,
    *,
    metric: parameters.RequiredMetric,
    order: parameters.Order = "desc",
    as_of: parameters.AsOf = None,
    country: parameters.Country = None,
    basis: parameters.ChosenBasis = None,
    max_age: parameters.MaxAge = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Issuers ranked on a metric.

    Each issuer has the value of the latest full year published by `as_of`. A year whose figures were restated
    or completed later is left out, not replaced, and `omitted` counts it; with `basis=as_known` each value is
    computed from the figures known that day, and no later event leaves one out. Rows are ordered by `rank`,
    the position by size in the whole result, ties by service_id. It is not a rating.
    """
    applied = call.basis(basis)
    page = await first_page(
        call, "screen", metric, order, country, applied, max_age, as_of=as_of, cursor=cursor
    )
    ranking = Ranking(
        metric,
        country,
        page.day,
        smallest_first=order == "asc",
        known=applied == "as_known",
        oldest=_oldest(page.day, max_age),
    )
    after = await page.position(lambda edition, key: rank_of(edition, ranking, key))
    ranked = await screen(page.edition, ranking, most=call.grant.rows(limit), after=after)
    own_order = screen_order(smallest_first=ranking.smallest_first)
    members: dict[str, object] = {"basis": applied, "omitted": ranked.omitted}
    return page.answer(ranked.selection, own_order, as_of=page.day, members=members)


def _oldest(day: date, max_age: int | None) -> int:
    """The earliest last day of a year that is young enough; 0 if any is."""
    return months_before(day, max_age).toordinal() if max_age else 0


@operation(
    "/v1/metrics/{service_id}",
    dataset=FUND,
    row=MetricsRow,
    errors=(400, 401, 402, 429, 503),
    members=_OMITTED | _MISSING | BASIS,
    tool="get_metrics",
    extensions=("basis", "max_age", "cursor"),
)
async def get_metrics(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    metric: parameters.Metric = None,
    as_of: parameters.AsOf = None,
    basis: parameters.ChosenBasis = None,
    max_age: parameters.MaxAge = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Every metrics-v1 value for one issuer.

    The same values that `/v1/screen` ranks, under the same rules for `as_of` and `basis`, ordered by metric.
    `omitted` counts the metrics that have none, by reason. `missing` names them, with the figures that a
    later filing restated or added where that is the reason. Each row's `methodology_ref` names its formula,
    which is explained at `/methodology/` and that name. For information only.
    """
    key = service_id.upper()
    applied = call.basis(basis)
    page = await first_page(call, "metrics", key, metric, applied, max_age, as_of=as_of, cursor=cursor)
    day, edition = page.day.toordinal(), page.edition
    tag = ANY_TAG if metric is None else _TAGS[metric]
    most = call.grant.rows(limit)
    modes = AS_KNOWN if applied == "as_known" else int(Mode.LATEST)
    values = await page.select("metrics", key, _ORDER, most, modes=modes, tag=tag)
    if values is None:
        await refuse_other_identifier(call, service_id)
    values = values or NO_ROWS
    rows = values.rows
    listed = await edition.select("omitted", key, day=day, modes=modes, tag=tag) or NO_ROWS
    missing = _read(b"[%b]" % listed.rows) if listed.count else []
    omitted = omissions(Counter(_STATES[one.reason] for one in missing))
    if max_age:
        omitted[TOO_OLD] = 0
        if rows and year_end(rows) < _oldest(page.day, max_age):
            every = await edition.select("metrics", key, day=day, modes=modes, tag=tag) or NO_ROWS
            too_old = [_Missing(one.metric, TOO_OLD, []) for one in _read_metrics(b"[%b]" % every.rows)]
            omitted[TOO_OLD] = len(too_old)
            missing = sorted([*missing, *too_old], key=lambda one: one.metric)
            values, rows = NO_ROWS, b""
    slices = (dated(rows, page.day),) if rows else ()
    selection = replace(values, slices=slices, row_filter=None)
    members = {
        "basis": applied,
        "omitted": omitted,
        "missing": msgspec.to_builtins(missing),
        **await predecessor_hint(edition, key, selection, call.today),
    }
    return page.answer(selection, _ORDER, as_of=page.day, members=members)
