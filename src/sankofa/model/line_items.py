"""Our line items, and the concepts of the standard taxonomies that can stand for each.

A concept is *exact* for the one item it is served under. A *stand_in* is exact for another item,
or for none; a metric takes it only where no exact concept was reported (an issuer without
minorities reports one profit, under either name). A concept that merely looks alike is in neither
list: goods-only sales are not revenue, non-production depreciation is not all of it, cash with
restricted cash is not cash. An inexact figure is worse than none.
"""

import re
from functools import cache
from typing import Final, NamedTuple


class _Item(NamedTuple):
    exact: str = ""
    stand_in: str = ""


_TABLE: Final = {
    # --- income statement
    "revenue": _Item(
        "ifrs-full:Revenue us-gaap:Revenues us-gaap:SalesRevenueNet"
        " us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax"
    ),
    "cost_of_sales": _Item("ifrs-full:CostOfSales us-gaap:CostOfRevenue us-gaap:CostOfGoodsAndServicesSold"),
    "gross_profit": _Item("ifrs-full:GrossProfit us-gaap:GrossProfit"),
    "operating_profit": _Item("ifrs-full:ProfitLossFromOperatingActivities us-gaap:OperatingIncomeLoss"),
    "depreciation_amortisation": _Item(
        "ifrs-full:DepreciationAndAmortisationExpense"
        " ifrs-full:AdjustmentsForDepreciationAndAmortisationExpense"
        " us-gaap:DepreciationDepletionAndAmortization"
    ),
    "finance_costs": _Item(
        "ifrs-full:FinanceCosts us-gaap:InterestExpense us-gaap:InterestExpenseNonoperating"
    ),
    "profit_before_tax": _Item(
        "ifrs-full:ProfitLossBeforeTax us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxes"
        "ExtraordinaryItemsNoncontrollingInterest",
        # Before the share of associates' profit, so not always the same; the only one until 2011.
        "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxes"
        "MinorityInterestAndIncomeLossFromEquityMethodInvestments",
    ),
    "income_tax": _Item("ifrs-full:IncomeTaxExpenseContinuingOperations us-gaap:IncomeTaxExpenseBenefit"),
    "profit": _Item("ifrs-full:ProfitLoss us-gaap:ProfitLoss", "us-gaap:NetIncomeLoss"),
    "profit_owners": _Item(
        "ifrs-full:ProfitLossAttributableToOwnersOfParent us-gaap:NetIncomeLoss",
        "profit ifrs-full:ProfitLoss us-gaap:ProfitLoss",
    ),
    "eps_basic": _Item(
        "ifrs-full:BasicEarningsLossPerShare us-gaap:EarningsPerShareBasic",
        "us-gaap:EarningsPerShareBasicAndDiluted",
    ),
    "eps_diluted": _Item(
        "ifrs-full:DilutedEarningsLossPerShare us-gaap:EarningsPerShareDiluted",
        "us-gaap:EarningsPerShareBasicAndDiluted",
    ),
    "headline_eps": _Item(),  # a Johannesburg listing rule; no taxonomy has a concept for it
    # --- financial position
    "assets": _Item("ifrs-full:Assets us-gaap:Assets"),
    "current_assets": _Item("ifrs-full:CurrentAssets us-gaap:AssetsCurrent"),
    "cash": _Item("ifrs-full:CashAndCashEquivalents us-gaap:CashAndCashEquivalentsAtCarryingValue"),
    "receivables": _Item(
        "ifrs-full:TradeAndOtherCurrentReceivables us-gaap:AccountsReceivableNetCurrent",
        "ifrs-full:CurrentTradeReceivables us-gaap:ReceivablesNetCurrent",
    ),
    "inventories": _Item("ifrs-full:Inventories us-gaap:InventoryNet"),
    "liabilities": _Item("ifrs-full:Liabilities us-gaap:Liabilities"),
    "current_liabilities": _Item("ifrs-full:CurrentLiabilities us-gaap:LiabilitiesCurrent"),
    "payables": _Item(
        "ifrs-full:TradeAndOtherCurrentPayables us-gaap:AccountsPayableCurrent",
        "ifrs-full:TradeAndOtherCurrentPayablesToTradeSuppliers us-gaap:AccountsPayableTradeCurrent",
    ),
    # Short-term debt includes what falls due of long-term debt; long-term debt excludes it. Concepts
    # that draw the line elsewhere (ShortTermBorrowings, LongTermDebt) would be missed or counted twice.
    "short_term_debt": _Item(
        "ifrs-full:CurrentBorrowingsAndCurrentPortionOfNoncurrentBorrowings us-gaap:DebtCurrent"
    ),
    "long_term_debt": _Item(
        "ifrs-full:LongtermBorrowings us-gaap:LongTermDebtNoncurrent",
        "us-gaap:LongTermDebtAndCapitalLeaseObligations",
    ),
    "equity": _Item(
        "ifrs-full:Equity us-gaap:StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
        "us-gaap:StockholdersEquity",
    ),
    "equity_owners": _Item(
        "ifrs-full:EquityAttributableToOwnersOfParent us-gaap:StockholdersEquity",
        "equity ifrs-full:Equity"
        " us-gaap:StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
    ),
    "shares_outstanding": _Item(
        "ifrs-full:NumberOfSharesOutstanding us-gaap:CommonStockSharesOutstanding"
        " dei:EntityCommonStockSharesOutstanding"
    ),
    # --- cash flows
    "operating_cash_flow": _Item(
        "ifrs-full:CashFlowsFromUsedInOperatingActivities us-gaap:NetCashProvidedByUsedInOperatingActivities"
    ),
    "capex": _Item(
        "ifrs-full:PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities"
        " us-gaap:PaymentsToAcquirePropertyPlantAndEquipment",
        "ifrs-full:PurchaseOfPropertyPlantAndEquipmentIntangibleAssetsOtherThanGoodwill"
        "InvestmentPropertyAndOtherNoncurrentAssets us-gaap:PaymentsToAcquireProductiveAssets",
    ),
    "dividends_paid": _Item(
        "ifrs-full:DividendsPaidToEquityHoldersOfParentClassifiedAsFinancingActivities"
        " ifrs-full:DividendsPaidClassifiedAsFinancingActivities us-gaap:PaymentsOfDividends",
        "us-gaap:PaymentsOfDividendsCommonStock",
    ),
    # --- banks
    "loans": _Item(
        "ifrs-full:LoansAndAdvancesToCustomers us-gaap:LoansAndLeasesReceivableNetReportedAmount"
        " us-gaap:FinancingReceivableExcludingAccruedInterestAfterAllowanceForCreditLoss"
    ),
    "deposits": _Item("ifrs-full:DepositsFromCustomers us-gaap:Deposits"),
}

LINE_ITEMS: Final = tuple(_TABLE)

_SERVED_AS: Final = {concept: name for name, item in _TABLE.items() for concept in item.exact.split()}
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@cache
def line_item(concept: str) -> str:
    """The one name a concept is served under; a plain line item is served as itself.

    An unmapped concept keeps its own name in snake_case. Where that would read as one of our items
    (`us-gaap:Cash`, an issuer's own `Revenue`), its taxonomy goes before it: it is not that item.
    """
    _, colon, local_name = concept.partition(":")
    if not colon:
        return concept
    own_name = snake_case(local_name)
    return _SERVED_AS.get(concept) or (snake_case(concept) if own_name in _TABLE else own_name)


def candidates(line_item: str) -> tuple[str, ...]:
    """The concepts that can stand for a line item, the first reported one to be taken.

    First the item under its own name (figures taken from documents), then its exact concepts, then
    the stand-ins. An item outside our list stands for itself.
    """
    item = _TABLE.get(line_item, _Item())
    return (line_item, *item.exact.split(), *item.stand_in.split())


def snake_case(name: str) -> str:
    """`AccountsPayableUSD2` and `Accounts payable USD2` as `accounts_payable_usd2`."""
    return _BETWEEN_WORDS.sub("_", _WORD_START.sub("_", name)).strip("_").lower()
