"""Against the year before."""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


@metric("ratio")
def revenue_growth(revenue: Decimal, prior_revenue: Decimal) -> Ratio:
    """Revenue against that of the year before, less one.

    revenue / prior_revenue - 1
    """
    return Ratio(revenue - prior_revenue, prior_revenue)


@metric("ratio")
def profit_growth(profit: Decimal, prior_profit: Decimal) -> Ratio:
    """Profit for the year against that of the year before, less one. After a loss there is no value.

    profit / prior_profit - 1
    """
    return Ratio(profit - prior_profit, prior_profit)
