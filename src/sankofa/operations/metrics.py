"""Derived values: GET /v1/screen, /v1/metrics/{service_id} and /v1/signals/{signal_key}."""

from calendar import monthrange
from datetime import date

import msgspec
from msgspec.structs import replace

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.signals.contract import panels
from sankofa.derive.signals.panels.demand import ProcurementDemandRow
from sankofa.edition.format.keys import COVERAGE, coverage_key, panel_kind
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.format.visibility import ANY_TAG, AS_KNOWN
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import TOO_OLD, Ranking, dated, rank_of, screen, screen_order, year_end
from sankofa.edition.read.macro import read_one_series
from sankofa.edition.read.seek import find_in_list
from sankofa.model.days import FOREVER, months_before
from sankofa.model.errors import Absence, InvalidParameter, NotFound, Suggestion
from sankofa.model.provenance import FUND, TENDER
from sankofa.model.rows import REASONS, MetricsRow, ScreenRow, State, decoder_of, panel_key, wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import BASIS, MEMBERS, NO_ROWS, AgentView, Answer, Call, Encoded, operation
from sankofa.operations.locked import named_on
from sankofa.operations.nearest import predecessor_hint, refuse_other_identifier
from sankofa.operations.paging import first_page


class _Missing(msgspec.Struct):
    metric: str
    reason: str
    changes: list[dict[str, str | None]]


_ORDER = RowOrder("metric")
_TAGS = {slug: tag for tag, slug in enumerate(slugs())}
_REASON_MARKS = {reason: b'"reason":"%b"' % reason.encode() for reason in REASONS.values()}
_read = msgspec.json.Decoder(list[_Missing]).decode
_read_metrics = decoder_of([("metric", str)]).decode
_OMITTED = {"omitted": MEMBERS["omitted"]}
_MISSING = {"missing": MEMBERS["missing"]}
_MISSING["missing"]["items"]["properties"]["metric"]["enum"] = list(slugs())
_MISSING["missing"]["items"]["properties"]["reason"]["enum"] = [*REASONS.values(), TOO_OLD]


@operation(
    "/v1/screen",
    dataset=FUND,
    row=ScreenRow,
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
    or completed later is left out, not replaced, and `omitted` counts it. With `basis=as_known` each value is
    computed from the figures known that day, so no later event leaves one out. Rows are ordered by `rank`,
    the position by size in the whole result; ties are ordered by service_id. It is not a rating.
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
    ranked, omitted = await screen(page.edition, ranking, most=call.grant.rows(limit), after=after)
    own_order = screen_order(smallest_first=ranking.smallest_first)
    members: dict[str, object] = {"basis": applied, "omitted": omitted}
    selection = await named_on(call, page.edition, page.day, ranked)
    return page.answer(selection, own_order, as_of=page.day, members=members)


def _oldest(day: date, max_age: int | None) -> int:
    """The earliest year end that is recent enough; 0 if any is."""
    return months_before(day, max_age).toordinal() if max_age else 0


@operation(
    "/v1/metrics/{service_id}",
    dataset=FUND,
    row=MetricsRow,
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

    The values are those that `/v1/screen` ranks, with the same rules for `as_of` and `basis`, ordered by
    metric. `omitted` counts the metrics without a value, by reason. `missing` names them; if a later filing
    restated or added figures, it lists those. Each row's `methodology_ref` names its formula, explained at
    `/methodology/<methodology_ref>`. For information only.
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
    missing = listed.rows
    if not (rows or missing or cursor):
        figures = await edition.select("fundamentals", key, day=day, modes=int(Mode.LATEST), limit=1)
        if figures is not None and figures.count:
            unpublished = REASONS[State.NOT_PUBLISHED]
            every_slug = slugs() if metric is None else (metric,)
            missing = wire.encode([_Missing(slug, unpublished, []) for slug in every_slug])[1:-1]
    omitted = {reason: missing.count(mark) for reason, mark in _REASON_MARKS.items()}
    if max_age:
        omitted[TOO_OLD] = 0
        if rows and year_end(rows) < _oldest(page.day, max_age):
            every = await edition.select("metrics", key, day=day, modes=modes, tag=tag) or NO_ROWS
            too_old = [_Missing(one.metric, TOO_OLD, []) for one in _read_metrics(b"[%b]" % every.rows)]
            omitted[TOO_OLD] = len(too_old)
            both = sorted([*_read(b"[%b]" % missing), *too_old], key=lambda one: one.metric)
            missing = wire.encode(both)[1:-1]
            values, rows = NO_ROWS, b""
    slices = (dated(rows, page.day),) if rows else ()
    selection = replace(values, slices=slices, row_filter=None)
    members = {
        "basis": applied,
        "omitted": omitted,
        "missing": Encoded((b"[%b]" % missing,)),
        **await predecessor_hint(edition, key, selection, call.today),
    }
    selection = await named_on(call, edition, page.day, selection)
    answer = page.answer(selection, _ORDER, as_of=page.day, members=members)
    if rows or call.lock is not None or cursor is not None:
        return answer
    arguments = {"metric": metric, "as_of": as_of, "basis": basis}
    texts = {name: str(value) for name, value in arguments.items() if value}
    return replace(answer, absent=_left_out(_read(b"[%b]" % missing), f"/v1/metrics/{key}", page.day, texts))


def _left_out(missing: list[_Missing], path: str, day: date, texts: dict[str, str]) -> Absence | None:
    """Why the metrics have no value for a published year; None if no year was published."""
    reasons = dict.fromkeys(one.reason for one in missing if one.reason != REASONS[State.NOT_PUBLISHED])
    if not reasons:
        return None
    what = missing[0].metric if len(missing) == 1 else f"Each of {len(missing)} metrics"
    meanings = MEMBERS["omitted"]["properties"]
    why = " ".join(meanings[reason]["description"] for reason in reasons)
    detail = f"{what} is left out on {day}. {why}"
    as_known = Suggestion(path, texts | {"basis": "as_known"}, "With the figures known on that day.")
    other = Suggestion(path, texts, "Of whatever age.") if TOO_OLD in reasons else as_known
    return Absence("left_out", detail, suggestions=(other,))


_DEMAND_ORDER = RowOrder(*panels()["procurement-demand"].order)
_EVERY_ROW = 2**31 - 1
_months = decoder_of([("month", str)]).decode
_raw_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode
_PANEL_BASIS = {"basis": {**MEMBERS["panel_basis"], "enum": [*MEMBERS["basis"]["enum"], None]}}
_SIGNAL_FOR_AGENTS = f"""\
One published signal panel, whole, under `observations`: {", ".join(panels())}. 100 rows if `limit` is
omitted; continue with `cursor`. get_procurement_demand filters.
Example: {{"signal_key":"macro-momentum","limit":20}}"""


@operation(
    "/v1/signals/procurement-demand",
    dataset=TENDER,
    row=ProcurementDemandRow,
    rows_under="observations",
    members=_PANEL_BASIS,
    tool="get_procurement_demand",
    extensions=("cursor",),
)
async def get_procurement_demand(
    call: Call,
    *,
    country: parameters.TenderCountry = "ZA",
    category: parameters.Category = None,
    as_of: parameters.AsOf = None,
    from_: parameters.FromMonth = None,
    to: parameters.ToMonth = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Category share, buyer concentration and momentum of public procurement, by month.

    Has months closed by `as_of` only, computed from releases dated by then. Ordered by month descending, then
    category. The method is at `/methodology/signals-v1/procurement-demand`.
    """
    filters = ("procurement-demand", country, category, str(from_), str(to))
    page = await first_page(call, *filters, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    key = panel_key(country, category) if category else panel_key(country)
    span = DayRange(
        page.day.toordinal(),
        since=from_.toordinal() if from_ else 0,  # the month of `from` ends on that day or later
        until=_end_of_month(to) if to else FOREVER,
    )
    kind = panel_kind("procurement-demand")
    passed = 0
    if page.key:
        month_end = _end_of_month(date.fromisoformat(f"{page.key[0]}-01"))
        span = span._replace(until=min(span.until, month_end))
        own_month = await read_one_series(page.edition, kind, key, span._replace(since=month_end), _EVERY_ROW)
        is_behind = _DEMAND_ORDER.behind(page.key)
        rows = [row for some in (own_month or NO_ROWS).lists() for row in _raw_rows(some)]
        passed = sum(1 for row in rows if not is_behind(row))
    selection = await read_one_series(page.edition, kind, key, span, most, passed=passed)
    answer = page.answer(selection or NO_ROWS, _DEMAND_ORDER, as_of=page.day, members={"basis": None})
    if not answer.selection.count and cursor is None and call.lock is None:
        return replace(answer, absent=await _no_demand(page.edition, country, page.day))
    return answer


async def _no_demand(edition: Edition, country: str, day: date) -> Absence | None:
    """Why a country has no row on a day, whatever the filters; None if it has rows."""
    whole = DayRange(FOREVER - 1, since=0, until=FOREVER)
    kind = panel_kind("procurement-demand")
    rows = await read_one_series(edition, kind, panel_key(country), whole, _EVERY_ROW) or NO_ROWS
    months = [month.month for some in rows.lists() for month in _months(some)]
    if months:
        ends = date.fromordinal(_end_of_month(date.fromisoformat(f"{min(months)}-01")))
        detail = f"No month was closed on {day}: the first, {min(months)}, ends on {ends}."
        return Absence("not_yet_known", detail, ends) if day < ends else None
    if await edition.holds(COVERAGE, coverage_key(country, TENDER)):
        return Absence("no_match", f"No release of {country} in a closed month names a category.")
    return None


def _end_of_month(day: date) -> int:
    return day.replace(day=monthrange(day.year, day.month)[1]).toordinal()


@operation(
    "/v1/signals/{signal_key}",
    row=ProcurementDemandRow,
    also=tuple(panel.row for panel in panels().values() if panel.row is not ProcurementDemandRow),
    rows_under="observations",
    tool="get_signal",
    members=_PANEL_BASIS,
    extensions=("as_of", "basis", "cursor"),
    agent=AgentView(_SIGNAL_FOR_AGENTS, narrow_by=("limit",)),
)
async def get_signal(
    call: Call,
    *,
    signal_key: parameters.SignalKey,
    as_of: parameters.AsOf = None,
    basis: parameters.ChosenBasis = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """One published signal panel.

    Each panel has its own columns: `/methodology/signals-v1/<signal_key>` explains them, their order and the
    method. `basis` is for panels of issuers: fundamentals-factors, fundamentals-quality,
    fundamentals-revisions and issuer-persistence.
    """
    panel = panels().get(signal_key)
    has_basis = panel is not None and panel.has_basis
    if basis is not None and not has_basis:
        raise InvalidParameter("basis", f"{signal_key} has no basis: it does not use issuers' figures")
    if panel is not None and panel.filters:  # the same as at its own path, which also takes filters
        answer = await get_procurement_demand(call, as_of=as_of, limit=limit, cursor=cursor)
        return replace(answer, dataset=panel.sku)
    applied = call.basis(basis) if has_basis else None
    page = await first_page(call, "signal", signal_key, applied, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    if panel is None:
        raise NotFound(f"No signal panel {signal_key}.")
    kind, day = panel_kind(panel.key), page.day.toordinal()
    order = RowOrder(*panel.order)
    modes = AS_KNOWN if applied == "as_known" else int(Mode.LATEST)
    start = await page.start(
        lambda edition, key: find_in_list(edition, kind, order.behind(key), day=day, modes=modes)
    )
    selection = await page.edition.select_list(kind, day=day, modes=modes, limit=most, start=start)
    return page.answer(selection, order, as_of=page.day, members={"basis": applied}, dataset=panel.sku)
