"""What the capital employed brings in."""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


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
