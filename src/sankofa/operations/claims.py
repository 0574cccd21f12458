"""GET /v1/check: whether a claimed figure was reported (contract: CLM-1)."""

from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.keys import ENTITIES
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.issuer_figures import line_item_of
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.model.catalogue_rows import VERDICTS, CheckRow
from sankofa.model.errors import InvalidParameter
from sankofa.model.figures import ClaimedPeriod, ClaimedValue, read_claim, read_period
from sankofa.model.identifiers import FREE_ID_TYPES
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import wire
from sankofa.model.vintages import Mode
from sankofa.operations import parameters
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.nearest import having_name, identified

_SUPPORTED, _THEN, _CONTRADICTED, _UNKNOWN = VERDICTS
_ID: Final = 26
_ANNUAL: Final = "annual"


class ClaimFigure(NamedTuple):
    """One vintage of a figure that the claim may be about."""

    value: Decimal | None
    unit: str | None
    available_at: date | None
    vintage: int | None
    replaced_at: date | None
    source: tuple[str, str, str]
    """Reference, licence class and time of capture."""


class _Fact(msgspec.Struct):
    value_reported: Decimal | None
    unit: str | None
    period_start: date | None
    period_end: date
    period_type: str
    fiscal_year: int | None
    available_at: date
    vintage: int
    superseded_at: date | None
    source_ref: str
    license_class: str
    observed_at: str | None


class _Metric(msgspec.Struct):
    metric: str
    value: Decimal
    unit: str
    period_end: date
    available_at: date
    source_ref: str
    license_class: str
    observed_at: str | None


_facts = msgspec.json.Decoder(list[_Fact]).decode
_metrics = msgspec.json.Decoder(list[_Metric]).decode


@operation("/v1/check", row=CheckRow, errors=(400, 401, 429, 503), tool="check_claim", extension=True)
async def check_claim(
    call: Call,
    *,
    subject: parameters.ClaimSubject,
    period: parameters.ClaimPeriod,
    value: parameters.ClaimValue,
    measure: parameters.ClaimMeasure = None,
    unit: parameters.ClaimUnit = None,
    as_of: parameters.AsOf = None,
) -> Answer:
    """Whether a claimed figure was reported, as known on a day.

    The answer is one row. `supported`: the latest figure known on `as_of` rounds to the claim as written.
    `supported_then`: only an earlier vintage does; it was restated on `restated_at`. `contradicted`: there is
    a figure, but no vintage rounds to the claim; the row shows the latest. `unknown`: no figure is known for
    that subject, measure and period, or its unit differs. Units and currencies are never guessed.
    """
    try:
        claim = read_claim(value, unit)
    except ValueError as failure:
        raise InvalidParameter("value", str(failure)) from None
    try:
        when = read_period(period)
    except ValueError as failure:
        raise InvalidParameter("period", str(failure)) from None
    day = as_of or call.today
    figures = await _figures(call, subject, measure, when, day)
    verdict, figure = judge(claim, figures)
    return Answer(Selection([wire.encode(_row(call, verdict, figure))], 1, truncated=False), as_of=day)


def judge(claim: ClaimedValue, figures: Iterable[ClaimFigure]) -> tuple[str, ClaimFigure | None]:
    comparable = [
        (figure, figure.value is not None and claim.bears_out(figure.value, figure.unit))
        for figure in figures
        if figure.value is None or claim.bears_out(figure.value, figure.unit) is not None
    ]
    for verdict, is_latest in ((_SUPPORTED, True), (_THEN, False)):
        for figure, matches in comparable:
            if matches and (figure.replaced_at is None) is is_latest:
                return verdict, figure
    latest = [figure for figure, _ in comparable if figure.replaced_at is None and figure.value is not None]
    return (_CONTRADICTED, latest[0]) if latest else (_UNKNOWN, None)


async def _figures(
    call: Call, subject: str, measure: str | None, when: ClaimedPeriod, day: date
) -> list[ClaimFigure]:
    if not measure:
        return await _of_series(call, subject, when, day)
    service_id = await _organisation(call, subject)
    if service_id is None:
        return []
    if measure in slugs():
        return await _of_metric(call, service_id, measure, when, day)
    return await _of_line_item(call, service_id, measure, when, day)


async def _organisation(call: Call, subject: str) -> str | None:
    """The one organisation with this identifier or exact name."""
    text = subject.strip()
    if len(text) == _ID and await call.edition.holds(ENTITIES, text.upper()):
        return text.upper()
    ids = {one.service_id for one in await identified(call, text, FREE_ID_TYPES)}
    ids = ids or {hit.id for hit in await having_name(call, text, 20)}
    return ids.pop() if len(ids) == 1 else None


async def _of_line_item(
    call: Call, service_id: str, measure: str, when: ClaimedPeriod, day: date
) -> list[ClaimFigure]:
    wanted = measure.encode()
    selection = await call.edition.select(
        "fundamentals",
        service_id,
        day=day.toordinal(),
        modes=int(Mode.ALL),
        where=lambda row: line_item_of(row) == wanted,
    )
    if selection is None:
        return []
    facts = [one for chunk in selection.lists() for one in _facts(chunk) if _is_of(when, one)]
    if when.year is None and when.start is None:  # periods of several lengths may end on one day
        lengths: tuple[Callable[[_Fact], bool], ...] = (
            lambda one: one.period_type == "FY",
            lambda one: one.period_start is None,
        )
        for is_meant in lengths:
            if any(map(is_meant, facts)):
                facts = [one for one in facts if is_meant(one)]
                break
        if len({one.period_start for one in facts}) > 1:
            return []
    return [_figure(one, one.value_reported, one.vintage, one.superseded_at) for one in facts]


def _figure(one: Any, value: Decimal | None, vintage: int, replaced_at: date | None) -> ClaimFigure:
    source = one.source_ref, one.license_class, one.observed_at or ""
    return ClaimFigure(value, one.unit, one.available_at, vintage, replaced_at, source)


def _is_of(when: ClaimedPeriod, one: _Fact) -> bool:
    if when.year is not None:
        return one.period_type == "FY" and one.fiscal_year == when.year
    return one.period_end == when.end and when.start in (None, one.period_start)


async def _of_metric(
    call: Call, service_id: str, metric: str, when: ClaimedPeriod, day: date
) -> list[ClaimFigure]:
    """The metric for the latest full year, as computable on the day; other years have no value."""
    selection = await call.edition.select("metrics", service_id, day=day.toordinal(), modes=AS_KNOWN)
    if selection is None or not selection.count:
        return []
    return [
        _figure(one, one.value, 1, None)
        for one in _metrics(b"[%b]" % selection.rows)
        if one.metric == metric and (one.period_end == when.end or one.period_end.year == when.year)
    ]


async def _of_series(call: Call, subject: str, when: ClaimedPeriod, day: date) -> list[ClaimFigure]:
    figures: list[ClaimFigure] = []
    for column in await columns_of_series(call.edition, subject.strip().upper()):
        if when.year is not None and column.split("|")[2] != _ANNUAL:
            continue
        vintages: dict[date, list[Any]] = {}
        async for one in every_vintage(call.edition, column, day):
            if one.date.year == when.year or (
                when.end is not None and (when.start or when.end) <= one.date <= when.end
            ):
                vintages.setdefault(one.date, []).append(one)
        if when.start is not None and len(vintages) > 1:
            continue  # no figure covers the whole period
        for own in vintages.values():
            own.sort(key=lambda one: one.vintage)
            later = [*(one.available_at for one in own[1:]), None]
            figures += [
                _figure(one, one.value, one.vintage, replaced)
                for one, replaced in zip(own, later, strict=True)
            ]
    return figures


def _row(call: Call, verdict: str, figure: ClaimFigure | None) -> CheckRow:
    if figure is None:
        own = source_ref(SERVICE, "check", verdict), "public-domain", str(call.edition.manifest["built_from"])
        figure = ClaimFigure(None, None, None, None, None, own)
    reference, license_class, observed_at = figure.source
    return CheckRow(
        verdict=verdict,
        value=figure.value,
        unit=figure.unit,
        available_at=figure.available_at,
        vintage=figure.vintage,
        restated_at=figure.replaced_at,
        source_ref=reference,
        license_class=license_class,
        observed_at=observed_at,
    )
