"""Days of business for which the working capital is bound. Every year counts 365 days."""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


@metric("days")
def receivable_days(receivables: Decimal, revenue: Decimal) -> Ratio:
    """Receivables at the end of the year, in days of revenue.

    365 * receivables / revenue
    """
    return Ratio(365 * receivables, revenue)


@metric("days")
def inventory_days(inventories: Decimal, cost_of_sales: Decimal) -> Ratio:
    """Inventories at the end of the year, in days of cost of sales.

    365 * inventories / cost_of_sales
    """
    return Ratio(365 * inventories, cost_of_sales)


@metric("days")
def payable_days(payables: Decimal, cost_of_sales: Decimal) -> Ratio:
    """Payables at the end of the year, in days of cost of sales.

    365 * payables / cost_of_sales
    """
    return Ratio(365 * payables, cost_of_sales)
