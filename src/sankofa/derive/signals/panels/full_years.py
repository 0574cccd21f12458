"""Panels of the full years of issuers: their factors, the quality of their earnings (accruals, conversion
into cash, how steady the margin is), for how many years in a row they made a profit and grew, and how far and
which way their figures moved across vintages.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Annotated, Final, Literal, NamedTuple

from sankofa.derive.issuers import Issuer, item_of
from sankofa.derive.metrics.derive import Computed, computed, stretches
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList, YearOnDay
from sankofa.derive.metrics.lines import Figure, same_figures
from sankofa.derive.signals.contract import (
    METHOD,
    Observation,
    PanelRow,
    filed,
    issuer_fields,
    panel,
    year_fields,
)
from sankofa.ledger.reports import Identity, Report
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.figures import relative_change, rounded_root
from sankofa.model.line_items import LINE_ITEMS
from sankofa.model.rows import Figure as ExactFigure
from sankofa.model.rows import doc, one_of
from sankofa.model.vintages import Vintage

FACTORS: Final = (
    "asset_turnover",
    "debt_to_equity",
    "free_cash_flow_margin",
    "liabilities_to_assets",
    "net_margin",
    "operating_margin",
    "payout_ratio",
    "profit_growth",
    "return_on_assets",
    "return_on_equity",
    "revenue_growth",
)


class FullYearRow(PanelRow, frozen=True, kw_only=True):
    """The first fields of rows about one full year of one issuer."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, doc("Last day of the full year.")]


class FundamentalsFactorsRow(FullYearRow, frozen=True, kw_only=True):
    """One factor of one issuer in one full year."""

    metric: Annotated[str, one_of(FACTORS, "Slug of the metrics-v1 set.")]
    value: Annotated[Decimal, doc("Value, computed exactly and rounded half-even to 10 significant digits.")]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[Literal["signals-v1/fundamentals-factors"], METHOD] = (
        "signals-v1/fundamentals-factors"
    )


@panel(
    "fundamentals-factors",
    of="issuer",
    access="licensed",
    sku="AF-FUND",
    row=FundamentalsFactorsRow,
    order=("service_id", "-period_end", "metric"),
)
def fundamentals_factors(issuer: Issuer) -> Iterator[Observation]:
    """Profitability, growth, efficiency and leverage of every issuer in every full year.

    The values of asset_turnover, debt_to_equity, free_cash_flow_margin, liabilities_to_assets, net_margin,
    operating_margin, payout_ratio, profit_growth, return_on_assets, return_on_equity and revenue_growth, with
    the formulas at `/methodology/metrics-v1/<slug>`. They are computed from today's figures, for every full
    year that has the inputs. `available_at` is the day the last input became public. With `as_of` you get the
    rows available by that day, without those revised or completed later. With `basis=as_known` you get the
    values as known on that day instead. (`/v1/metrics` with as_of has the latest full year of that day only.)

    A year and factor without a value has no row. Ordered by service_id, period_end descending and metric.
    """
    years = issuer.years
    for year in reversed(years.published):
        for slug in FACTORS:
            spans = stretches(years.days(year), partial(computed, years, year, slug), Computed.same_as)
            for first, until, known in spans:
                if known.value is not None:
                    fields, sources = year_fields(issuer, year, known.figures)
                    row = FundamentalsFactorsRow(**fields, metric=slug, value=known.value)
                    yield Observation(row, year.end, first, sources, until)


_MARGIN: Final = "net_margin"
_LOOKED_AT: Final = 5
_NEEDED: Final = 3


class FundamentalsQualityRow(FullYearRow, frozen=True, kw_only=True):
    """The quality of one issuer's earnings in one full year."""

    accruals_ratio: Annotated[Decimal | None, doc("(profit - operating cash flow) / average assets.")]
    cash_conversion: Annotated[Decimal | None, doc("Operating cash flow / EBITDA.")]
    margin_volatility: Annotated[
        Decimal | None, doc("Standard deviation of net margin; null with fewer than three.")
    ]
    margin_years: Annotated[int, doc("Number of net margins of the last five years used.", ge=0)]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[Literal["signals-v1/fundamentals-quality"], METHOD] = (
        "signals-v1/fundamentals-quality"
    )


class _KnownQuality(NamedTuple):
    """The metrics of a year, and the net margins of the last years that have one, as known on a day."""

    accruals: Computed
    conversion: Computed
    margin: Computed
    margins: tuple[Computed, ...]

    def same_as(self, other: "_KnownQuality") -> bool:
        mine, others = (*self[:3], *self.margins), (*other[:3], *other.margins)
        return len(mine) == len(others) and all(a.same_as(b) for a, b in zip(mine, others, strict=True))


@panel(
    "fundamentals-quality",
    of="issuer",
    access="licensed",
    sku="AF-FUND",
    row=FundamentalsQualityRow,
    order=("service_id", "-period_end"),
)
def fundamentals_quality(issuer: Issuer) -> Iterator[Observation]:
    """How much of an issuer's profit is cash, and how steady its margin is, in every full year.

    - accruals_ratio and cash_conversion: by the formulas at `/methodology/metrics-v1/<slug>`
    - margin_volatility = the population standard deviation of net_margin over those of the five full years up
      to this one that have it: sqrt(sum of (margin - mean)^2 / number of margins). Years before a gap do not
      count. Null with fewer than three margins, or if this year has none. The margins are not rounded first.

    Computed from today's figures, or with `basis=as_known` from those known that day. `available_at` is the
    day the last of them became public. A year without any of the three measures has no row. Ordered by
    service_id, then period_end descending.
    """
    years = issuer.years
    for year in reversed(years.published):
        days = years.days_with_earlier(year)
        for first, until, now in stretches(days, partial(_quality_on, years, year), _KnownQuality.same_as):
            yield from _quality_observed(issuer, year, now, first, until)


def _quality_on(years: IssuerYearList, year: FullYear, day: int) -> _KnownQuality:
    last = islice(years.back(year, day), _LOOKED_AT)
    margins = [computed(years, earlier, _MARGIN, day) for earlier in last]
    return _KnownQuality(
        computed(years, year, "accruals_ratio", day),
        computed(years, year, "cash_conversion", day),
        computed(years, year, _MARGIN, day),
        tuple(margin for margin in margins if margin.value is not None),
    )


def _quality_observed(
    issuer: Issuer, year: FullYear, now: _KnownQuality, first: int, until: int
) -> Iterator[Observation]:
    volatility = None
    if len(now.margins) >= _NEEDED and now.margin.value is not None:
        volatility = _deviation([_exact(margin) for margin in now.margins])
    used = [one for one in (now.accruals, now.conversion) if one.value is not None]
    used += now.margins if volatility is not None else []
    figures: list[Figure] = [figure for one in used for figure in one.figures]
    if not figures:
        return
    fields, sources = year_fields(issuer, year, figures)
    row = FundamentalsQualityRow(
        **fields,
        accruals_ratio=now.accruals.value,
        cash_conversion=now.conversion.value,
        margin_volatility=volatility,
        margin_years=len(now.margins),
    )
    yield Observation(row, year.end, first, sources, until)


def _exact(margin: Computed) -> Fraction:
    figures = dict(zip(margin.names, margin.figures, strict=True))
    return Fraction(figures["profit"].value) / Fraction(figures["revenue"].value)


def _deviation(margins: list[Fraction]) -> Decimal:
    mean = sum(margins, Fraction()) / len(margins)
    return rounded_root(sum(((margin - mean) ** 2 for margin in margins), Fraction()) / len(margins))


class IssuerPersistenceRow(FullYearRow, frozen=True, kw_only=True):
    """How steadily one issuer earned and grew up to one full year."""

    years_held: Annotated[int, doc("Full years held without a gap up to this one.", ge=1)]
    profit_years: Annotated[
        int | None,
        doc("Consecutive years with a profit, including this one; 0 after a loss, null if unknown."),
    ]
    revenue_growth_years: Annotated[
        int | None, doc("Consecutive years of revenue growth, including this one; null if unknown.")
    ]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[Literal["signals-v1/issuer-persistence"], METHOD] = (
        "signals-v1/issuer-persistence"
    )


_YearResult = tuple[bool, list[Figure]]
"""Whether a year was good, and the figures that show it."""


class _KnownCounts(NamedTuple):
    """The counts up to a year and their figures, as known on a day."""

    years_held: int
    profit: int | None
    growth: int | None
    figures: list[Figure]

    def same_as(self, other: "_KnownCounts") -> bool:
        return self[:3] == other[:3] and same_figures(self.figures, other.figures)


@panel(
    "issuer-persistence",
    of="issuer",
    access="licensed",
    sku="AF-FUND",
    row=IssuerPersistenceRow,
    order=("service_id", "-period_end"),
)
def issuer_persistence(issuer: Issuer) -> Iterator[Observation]:
    """For how many full years in a row an issuer made a profit, and for how many its revenue grew.

    - profit_years = full years in a row, back from this one, with a profit above zero. 0 if this year has
      none; null if its profit is not reported.
    - revenue_growth_years = full years in a row, back from this one, with revenue above that of the year
      before in the same currency and by the same route. 0 if it did not grow; null if one of the two is not
      reported.
    - years_held = full years held without a gap, back from this one. A count that reaches the oldest of them
      may be longer than the history that is held.

    A year with an unreported figure ends a count. Computed from today's figures, or with `basis=as_known`
    from those known that day. `available_at` is the day the last of them became public. A year without either
    count has no row. Ordered by service_id, then period_end descending.
    """
    years = issuer.years
    for year in reversed(years.published):
        days = years.days_with_earlier(year)
        for first, until, now in stretches(days, partial(_counts_on, years, year), _KnownCounts.same_as):
            if now.figures:
                fields, sources = year_fields(issuer, year, now.figures)
                row = IssuerPersistenceRow(
                    **fields,
                    years_held=now.years_held,
                    profit_years=now.profit,
                    revenue_growth_years=now.growth,
                )
                yield Observation(row, year.end, first, sources, until)


def _counts_on(years: IssuerYearList, year: FullYear, day: int) -> _KnownCounts:
    consecutive = list(years.back(year, day))
    views = [years.on(one, day) for one in consecutive]
    profit, profit_figures = _in_a_row(_profit(view) if view else None for view in views)
    growth, growth_figures = _in_a_row(_growth(view) if view else None for view in views)
    return _KnownCounts(len(consecutive), profit, growth, profit_figures + growth_figures)


def _in_a_row(years: Iterable[_YearResult | None]) -> tuple[int | None, list[Figure]]:
    """How many good years there are in a row, and their figures; None if unknown."""
    count: int | None = None
    figures: list[Figure] = []
    for year in years:
        if year is None:
            break
        good, used = year
        figures += used
        count = (count or 0) + good
        if not good:
            break
    return count, figures


def _profit(year: YearOnDay) -> _YearResult | None:
    profit = year.lines.figure("profit")
    return (profit.value > 0, [profit]) if profit else None


def _growth(year: YearOnDay) -> _YearResult | None:
    pair = year.both("revenue")
    return (pair[0].value > pair[1].value, list(pair)) if pair else None


class FundamentalsRevisionsRow(PanelRow, frozen=True, kw_only=True):
    """A full-year figure that was revised: as first reported, and as it stands today."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_start: Annotated[date | None, doc("First day of the period; null for an instant.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    line_item: Annotated[str, doc("Financial line item, e.g. revenue.")]
    concept: Annotated[str | None, doc("The source's own concept, e.g. us-gaap:Revenues.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    vintages: Annotated[int, doc("Number of figures reported one after another.", ge=2)]
    first_value: Annotated[ExactFigure, doc("Figure as first reported, with every digit.")]
    latest_value: Annotated[
        ExactFigure | None, doc("Figure as reported last, with every digit; null if withdrawn.")
    ]
    revision_size: Annotated[
        Decimal | None, doc("(latest - first) / |first|; null if first is 0 or latest withdrawn.")
    ]
    direction: Annotated[
        str | None,
        one_of(
            ("up", "down", "none", None),
            "Direction from the first figure to the latest; null if withdrawn.",
        ),
    ]
    first_available_at: Annotated[date, doc("Day on which the first figure became public.")]
    available_at: Annotated[date, doc("Day on which the latest figure became public.")]
    methodology_ref: Annotated[Literal["signals-v1/fundamentals-revisions"], METHOD] = (
        "signals-v1/fundamentals-revisions"
    )


@panel(
    "fundamentals-revisions",
    of="issuer",
    access="licensed",
    sku="AF-FUND",
    row=FundamentalsRevisionsRow,
    order=("service_id", "-period_end", "line_item", "concept|line_item", "unit", "period_start"),
)
def fundamentals_revisions(issuer: Issuer) -> Iterator[Observation]:
    """How full-year figures were revised after they were first reported: how often, how far, and which way.

    One row for each fact (issuer, concept, unit and period) that has more than one vintage, whose line item
    is one of ours (see the reference) and whose period is a full year or the day on which one ends.

    - revision_size = (latest - first) / |first|; null if the first figure is 0, and where the latest was
      withdrawn
    - direction = up, down or none, of the latest figure against the first: a figure that was revised and then
      restored has three vintages and direction none

    With `basis=as_known` a view of a past day has the row of that day, whatever was revised later. Ordered by
    service_id, period_end descending, line_item, concept, unit and period_start.
    """
    ranked = []
    for identity, history in issuer.vintages.items():
        concept, unit, period_end, period_start = identity
        if len(history) < 2 or (item := item_of(identity, issuer.reports)) not in LINE_ITEMS:
            continue
        start, end = ordinal(period_start) if period_start else None, ordinal(period_end)
        if issuer.names.name(start, end, history[0].report.available).period_type == "FY":
            ranked.append(((-end, item, concept, unit, period_start), identity, history))
    for (day, item, *_), identity, history in sorted(ranked, key=itemgetter(0)):
        untils = [*(vintage.known_from for vintage in history[2:]), FOREVER]
        for known, (latest, until) in enumerate(zip(history[1:], untils, strict=True), 2):
            if latest.known_from < until:
                row, sources = _revision(issuer, identity, item, history[:known])
                yield Observation(row, -day, latest.known_from, sources, until)


def _revision(
    issuer: Issuer, identity: Identity, item: str, history: list[Vintage[Report]]
) -> tuple[FundamentalsRevisionsRow, frozenset[str]]:
    concept, unit, period_end, period_start = identity
    first, latest = history[0].report, history[-1].report
    earliest = Decimal(first.value or 0)
    current = None if latest.value is None else Decimal(latest.value)
    provenance, sources = filed(vintage.report for vintage in history)
    row = FundamentalsRevisionsRow(
        **issuer_fields(issuer.entity),
        period_start=date.fromisoformat(period_start) if period_start else None,
        period_end=date.fromisoformat(period_end),
        line_item=item,
        concept=concept if ":" in concept else None,
        unit=unit or None,
        vintages=len(history),
        first_value=earliest,
        latest_value=current,
        revision_size=relative_change(earliest, current),
        direction=_direction(earliest, current),
        first_available_at=date.fromordinal(first.available),
        available_at=date.fromordinal(latest.available),
        **provenance,
    )
    return row, sources


def _direction(first: Decimal, latest: Decimal | None) -> str | None:
    if latest is None:
        return None
    return "up" if latest > first else "down" if latest < first else "none"
