"""Cash flow metrics. Outflows (capex, dividends) are positive."""

from decimal import Decimal

from sankofa.derive.metrics.contract import Ratio, metric


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
