"""What is left of revenue at each step of the income statement."""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


@metric("ratio")
def gross_margin(gross_profit: Decimal, revenue: Decimal) -> Ratio:
    """Gross profit as a share of revenue; where gross profit is not reported, revenue less cost of sales.

    gross_profit / revenue
    (revenue - cost_of_sales) / revenue
    """
    return Ratio(gross_profit, revenue)


@gross_margin.otherwise
def _from_cost(revenue: Decimal, cost_of_sales: Decimal) -> Ratio:
    return Ratio(revenue - cost_of_sales, revenue)


@metric("ratio")
def operating_margin(operating_profit: Decimal, revenue: Decimal) -> Ratio:
    """Operating profit as a share of revenue.

    operating_profit / revenue
    """
    return Ratio(operating_profit, revenue)


@metric("ratio")
def ebitda_margin(operating_profit: Decimal, depreciation_amortisation: Decimal, revenue: Decimal) -> Ratio:
    """Operating profit before depreciation and amortisation as a share of revenue.

    (operating_profit + depreciation_amortisation) / revenue
    """
    return Ratio(operating_profit + depreciation_amortisation, revenue)


@metric("ratio")
def pretax_margin(profit_before_tax: Decimal, revenue: Decimal) -> Ratio:
    """Profit before tax as a share of revenue.

    profit_before_tax / revenue
    """
    return Ratio(profit_before_tax, revenue)


@metric("ratio")
def net_margin(profit: Decimal, revenue: Decimal) -> Ratio:
    """Profit for the year as a share of revenue.

    profit / revenue
    """
    return Ratio(profit, revenue)


@metric("ratio")
def effective_tax_rate(income_tax: Decimal, profit_before_tax: Decimal) -> Ratio:
    """Income tax as a share of profit before tax. A tax credit is negative.

    income_tax / profit_before_tax
    """
    return Ratio(income_tax, profit_before_tax)
