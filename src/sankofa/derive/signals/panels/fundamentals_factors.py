"""Factors of issuers: a documented set of metrics for every full year."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal

from msgspec import Meta

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import current_values
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import filed, issuer_panel, named

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

    service_id: Annotated[str, Meta(description="Organisation identifier.")]
    legal_name: Annotated[str | None, Meta(description="As registered; null where no source says.")]
    country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, Meta(description="The last day of the full year.")]
    metric: Annotated[
        str, Meta(description="Slug of the metrics-v1 set.", extra_json_schema={"enum": list(FACTORS)})
    ]
    value: Annotated[Decimal, Meta(description="Exact, rounded half-even to 10 significant digits.")]
    available_at: Annotated[date, Meta(description="The day the last of its inputs became public.")]
    methodology_ref: Annotated[
        Literal["signals-v1/fundamentals-factors"],
        Meta(description="Names the documented method; the service explains it under /methodology/."),
    ] = "signals-v1/fundamentals-factors"


@issuer_panel("fundamentals-factors", access="licensed", row=FundamentalsFactorsRow)
def fundamentals_factors(issuer: Issuer) -> Iterator[Observation]:
    """Profitability, growth, efficiency and leverage of every issuer in every full year.

    The values of asset_turnover, debt_to_equity, free_cash_flow_margin, liabilities_to_assets, net_margin,
    operating_margin, payout_ratio, profit_growth, return_on_assets, return_on_equity and revenue_growth, each
    by its formula at `/methodology/metrics-v1/` and its slug. They are computed from the figures as they
    stand today, for every full year that has the inputs. `available_at` says when the last of these became
    public: a view of a past day keeps the rows available by then, and leaves out what was revised or
    completed later. (`/v1/metrics` with as_of gives the latest full year of that day alone.)

    A year and factor without a value has no row. Ordered by service_id, period_end descending and metric.
    """
    rows = []
    for year, metric, value, inputs in current_values(issuer.years, FACTORS):
        reports = [report for _, figure in inputs for report in figure.reports]
        row = FundamentalsFactorsRow(
            **named(issuer.entity),
            period_end=date.fromordinal(year.end),
            metric=metric.slug,
            value=value,
            available_at=date.fromordinal(max(report.available for report in reports)),
            **filed(issuer.entity, year.end, reports),
        )
        stands_from = max(figure.stands_from for _, figure in inputs)
        rows.append(Observation(row, year.end, stands_from))
    yield from sorted(rows, key=lambda o: -o.day)  # within a year they come by metric
