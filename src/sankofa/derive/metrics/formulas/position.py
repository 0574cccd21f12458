"""Liquidity and debt: whether what is owed can be paid; and the days of business for which the working
capital is bound. Every year counts 365 days.
"""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


@metric("ratio")
def current_ratio(current_assets: Decimal, current_liabilities: Decimal) -> Ratio:
    """Current assets against current liabilities.

    current_assets / current_liabilities
    """
    return Ratio(current_assets, current_liabilities)


@metric("ratio")
def quick_ratio(current_assets: Decimal, inventories: Decimal, current_liabilities: Decimal) -> Ratio:
    """Current assets without inventories against current liabilities.

    (current_assets - inventories) / current_liabilities
    """
    return Ratio(current_assets - inventories, current_liabilities)


@metric("ratio")
def cash_ratio(cash: Decimal, current_liabilities: Decimal) -> Ratio:
    """Cash and cash equivalents against current liabilities.

    cash / current_liabilities
    """
    return Ratio(cash, current_liabilities)


@metric("ratio")
def debt_to_equity(total_debt: Decimal, equity: Decimal) -> Ratio:
    """Short-term and long-term debt against equity.

    total_debt / equity
    """
    return Ratio(total_debt, equity)


@metric("ratio")
def net_debt_to_ebitda(
    total_debt: Decimal, cash: Decimal, operating_profit: Decimal, depreciation_amortisation: Decimal
) -> Ratio:
    """Debt less cash against operating profit before depreciation and amortisation. Net cash is negative.

    (total_debt - cash) / (operating_profit + depreciation_amortisation)
    """
    return Ratio(total_debt - cash, operating_profit + depreciation_amortisation)


@metric("ratio")
def interest_cover(operating_profit: Decimal, finance_costs: Decimal) -> Ratio:
    """How many times operating profit pays the finance costs of the year.

    operating_profit / finance_costs
    """
    return Ratio(operating_profit, finance_costs)


@metric("ratio")
def liabilities_to_assets(liabilities: Decimal, assets: Decimal) -> Ratio:
    """Liabilities as a share of assets.

    liabilities / assets
    """
    return Ratio(liabilities, assets)


@metric("ratio")
def loan_to_deposit(loans: Decimal, deposits: Decimal) -> Ratio:
    """Loans to customers against their deposits: of banks.

    loans / deposits
    """
    return Ratio(loans, deposits)


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
