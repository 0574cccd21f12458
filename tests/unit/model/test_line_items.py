"""The concepts of each line item (contract: MET-5)."""

import pytest

from sankofa.model.line_items import LINE_ITEMS, line_item, routes
from sankofa.model.text import snake_case
from tests.every import every

DECIDED = """revenue cost_of_sales gross_profit operating_profit depreciation_amortisation finance_costs
profit_before_tax income_tax profit profit_owners eps_basic eps_diluted headline_eps assets current_assets
cash receivables inventories liabilities current_liabilities payables short_term_debt long_term_debt equity
equity_owners total_debt operating_cash_flow capex dividends_paid shares_outstanding loans deposits"""

WITH_MINORITIES = "us-gaap:StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"


@pytest.mark.rule("FUND-7")
def test_the_line_items_are_those_decided() -> None:
    assert sorted(LINE_ITEMS) == sorted(DECIDED.split())


@pytest.mark.rule("FUND-7")
@every(
    ("concept", "name"),
    [
        ("us-gaap:Revenues", "revenue"),
        ("us-gaap:SalesRevenueNet", "revenue"),
        ("us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax", "revenue"),
        ("ifrs-full:Revenue", "revenue"),
        ("ifrs-full:RevenueFromContractsWithCustomers", "revenue"),
        ("us-gaap:AccountsPayableCurrent", "payables"),
        ("us-gaap:NetIncomeLoss", "profit_owners"),
        ("us-gaap:ProfitLoss", "profit"),
        ("us-gaap:StockholdersEquity", "equity_owners"),
        (WITH_MINORITIES, "equity"),
        ("dei:EntityCommonStockSharesOutstanding", "shares_outstanding"),
    ],
)
def test_a_mapped_concept_is_served_under_its_line_item(concept: str, name: str) -> None:
    assert line_item(concept) == name


@pytest.mark.rule("FUND-6")
@every(
    ("concept", "name"),
    [
        ("us-gaap:FooBarUSD2", "foo_bar_usd2"),
        (
            "us-gaap:GoodwillAndIntangibleAssetsDisclosureTextBlock",
            "goodwill_and_intangible_assets_disclosure_text_block",
        ),
        ("custom:IFRSAdjustment", "ifrs_adjustment"),
        ("custom:Net_revenue.Total", "net_revenue_total"),
    ],
)
def test_an_unmapped_concept_keeps_its_own_name(concept: str, name: str) -> None:
    assert line_item(concept) == name


@pytest.mark.rule("FUND-6")
@every(
    "concept", ["us-gaap:Cash", "ifrs-full:Cash", "custom:Revenue", "custom:Loans", "custom:CurrentAssets"]
)
def test_an_unmapped_concept_never_passes_for_one_of_our_items(concept: str) -> None:
    assert line_item(concept) not in LINE_ITEMS
    assert line_item(concept) == snake_case(concept)


@every(
    ("look_alike", "is_a_route"),
    [
        *((f"us-gaap:{name}", False) for name in ("LongTermDebt", "DebtInstrumentCarryingAmount")),
        ("us-gaap:CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents", False),
        ("ifrs-full:CashFlowsFromUsedInOperations", False),
        *((f"us-gaap:{name}", True) for name in ("SalesRevenueGoodsNet", "LiabilitiesAndStockholdersEquity")),
    ],
)
def test_a_look_alike_is_served_under_its_own_name(look_alike: str, is_a_route: bool) -> None:
    assert line_item(look_alike) not in LINE_ITEMS
    items = [item for item in LINE_ITEMS for route in routes(item) if route.single == look_alike]
    assert bool(items) is is_a_route


@every(
    "part",
    [
        "us-gaap:SalesRevenueGoodsNet",
        "us-gaap:CostOfGoodsSold",
        "us-gaap:NetIncomeLossAvailableToCommonStockholdersBasic",
    ],
)
def test_a_part_counts_as_the_whole_only_if_the_filing_proves_it(part: str) -> None:
    assert all(route.guarded for item in LINE_ITEMS for route in routes(item) if route.single == part)


def test_a_plain_line_item_is_served_as_itself() -> None:
    assert line_item("headline_eps") == "headline_eps"
    assert line_item("tonnes_milled") == "tonnes_milled"


@every(
    ("item", "order"),
    [
        ("profit", ["us-gaap:ProfitLoss", "us-gaap:NetIncomeLoss"]),
        ("profit_owners", ["us-gaap:NetIncomeLoss", "us-gaap:ProfitLoss"]),
        (
            "profit_owners",
            ["ifrs-full:ProfitLossAttributableToOwnersOfParent", "profit", "ifrs-full:ProfitLoss"],
        ),
        ("equity", [WITH_MINORITIES, "us-gaap:StockholdersEquity"]),
        ("equity_owners", ["us-gaap:StockholdersEquity", WITH_MINORITIES]),
        ("revenue", ["revenue", "us-gaap:Revenues", "us-gaap:SalesRevenueNet"]),
    ],
)
def test_the_order_of_concepts_for_a_line_item(item: str, order: list[str]) -> None:
    singles = [route.single for route in routes(item)]
    positions = [singles.index(concept) for concept in order]
    assert positions == sorted(positions)


def test_a_figure_under_its_own_name_comes_first() -> None:
    assert all(routes(item)[0].single == item for item in LINE_ITEMS)
    assert routes("tonnes_milled") == ()
