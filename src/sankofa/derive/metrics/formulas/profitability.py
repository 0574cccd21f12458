"""Margins, returns on capital, growth against the year before, and cash flow. Outflows (capex, dividends) are
positive.
"""

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


@metric("ratio")
def return_on_assets(profit: Decimal, assets: Decimal, prior_assets: Decimal) -> Ratio:
    """Profit for the year on the average of opening and closing assets.

    profit / ((prior_assets + assets) / 2)
    """
    return Ratio(2 * profit, prior_assets + assets)


@metric("ratio")
def return_on_equity(profit_owners: Decimal, equity_owners: Decimal, prior_equity_owners: Decimal) -> Ratio:
    """Profit of the owners on the average of their opening and closing equity.

    profit_owners / ((prior_equity_owners + equity_owners) / 2)
    """
    return Ratio(2 * profit_owners, prior_equity_owners + equity_owners)


@metric("ratio")
def return_on_capital_employed(
    operating_profit: Decimal, assets: Decimal, current_liabilities: Decimal
) -> Ratio:
    """Operating profit on assets less current liabilities, at the end of the year.

    operating_profit / (assets - current_liabilities)
    """
    return Ratio(operating_profit, assets - current_liabilities)


@metric("ratio")
def asset_turnover(revenue: Decimal, assets: Decimal, prior_assets: Decimal) -> Ratio:
    """Revenue on the average of opening and closing assets.

    revenue / ((prior_assets + assets) / 2)
    """
    return Ratio(2 * revenue, prior_assets + assets)


@metric("ratio")
def accruals_ratio(
    profit: Decimal, operating_cash_flow: Decimal, assets: Decimal, prior_assets: Decimal
) -> Ratio:
    """The part of profit that did not come in as cash, on the average of opening and closing assets.

    (profit - operating_cash_flow) / ((prior_assets + assets) / 2)
    """
    return Ratio(2 * (profit - operating_cash_flow), prior_assets + assets)


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


@metric("ratio")
def free_cash_flow_margin(operating_cash_flow: Decimal, capex: Decimal, revenue: Decimal) -> Ratio:
    """Operating cash flow less capital expenditure (a positive outflow) as a share of revenue.

    (operating_cash_flow - capex) / revenue
    """
    return Ratio(operating_cash_flow - capex, revenue)


@metric("ratio")
def cash_conversion(
    operating_cash_flow: Decimal, operating_profit: Decimal, depreciation_amortisation: Decimal
) -> Ratio:
    """Operating cash flow against operating profit before depreciation and amortisation.

    operating_cash_flow / (operating_profit + depreciation_amortisation)
    """
    return Ratio(operating_cash_flow, operating_profit + depreciation_amortisation)


@metric("ratio")
def capex_intensity(capex: Decimal, revenue: Decimal) -> Ratio:
    """Capital expenditure as a share of revenue.

    capex / revenue
    """
    return Ratio(capex, revenue)


@metric("ratio")
def payout_ratio(dividends_paid: Decimal, profit_owners: Decimal) -> Ratio:
    """Dividends paid as a share of the owners' profit.

    dividends_paid / profit_owners
    """
    return Ratio(dividends_paid, profit_owners)
