"""Factors of issuers: a documented set of metrics for every full year."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Annotated, Final, Literal

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import Computed, MetricYears, stretches
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import issuer_panel, year_fields
from sankofa.model.rows import doc, one_of

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


class FundamentalsFactorsRow(PanelRow, frozen=True, kw_only=True):
    """One factor of one issuer in one full year."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    metric: Annotated[str, one_of(FACTORS, "Slug of the metrics-v1 set.")]
    value: Annotated[Decimal, doc("Value, computed exactly and rounded half-even to 10 significant digits.")]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[
        Literal["signals-v1/fundamentals-factors"],
        doc("Name of the method; /methodology/ explains it."),
    ] = "signals-v1/fundamentals-factors"


@issuer_panel(
    "fundamentals-factors",
    access="licensed",
    row=FundamentalsFactorsRow,
    order=("service_id", "-period_end", "metric"),
)
def fundamentals_factors(issuer: Issuer) -> Iterator[Observation]:
    """Profitability, growth, efficiency and leverage of every issuer in every full year.

    The values of asset_turnover, debt_to_equity, free_cash_flow_margin, liabilities_to_assets, net_margin,
    operating_margin, payout_ratio, profit_growth, return_on_assets, return_on_equity and revenue_growth, each
    by its formula at `/methodology/metrics-v1/` and its slug. They are computed from the figures as they
    stand today, for every full year that has the inputs. `available_at` says when the last of these became
    public: a view of a past day keeps the rows available by then, and leaves out what was revised or
    completed later. With `basis=as_known` a view of a past day has the values of that day instead.
    (`/v1/metrics` with as_of gives the latest full year of that day alone.)

    A year and factor without a value has no row. Ordered by service_id, period_end descending and metric.
    """
    known = MetricYears(issuer.years)
    for year in reversed(issuer.years.published):
        for slug in FACTORS:
            spans = stretches(known.days(year), partial(known.computed, year, slug), Computed.same_as)
            for first, until, computed in spans:
                if computed.value is not None:
                    fields, sources = year_fields(issuer, year, computed.figures)
                    row = FundamentalsFactorsRow(**fields, metric=slug, value=computed.value)
                    yield Observation(row, year.end, first, sources, until)
