"""What several pages ask for: search, issuers, statements, series, sources and coverage.

One place, so that each is asked from the operation that has it.
"""

from collections.abc import Sequence
from typing import Final

from sankofa.web.visit import Result, Row, Visit

KINDS: Final = {
    "income": (
        "revenue",
        "cost_of_sales",
        "gross_profit",
        "operating_profit",
        "depreciation_amortisation",
        "finance_costs",
        "profit_before_tax",
        "income_tax",
        "profit",
        "profit_owners",
        "eps_basic",
        "eps_diluted",
        "headline_eps",
    ),
    "balance": (
        "assets",
        "current_assets",
        "cash",
        "receivables",
        "inventories",
        "loans",
        "liabilities",
        "current_liabilities",
        "payables",
        "deposits",
        "short_term_debt",
        "long_term_debt",
        "equity",
        "equity_owners",
        "shares_outstanding",
    ),
    "cash": ("operating_cash_flow", "capex", "dividends_paid"),
}
"""The line items of each statement, in the order in which they are shown."""


async def search(visit: Visit, words: str) -> list[Row]:
    """Organisations, series and indicators by name or identifier."""
    result = await visit.ask("search_entities", query=words)
    return [
        {
            "type": "organisation",
            "id": row["service_id"],
            "name": row["legal_name"],
            "country": row["country"],
            "matched": row["match"]["value"],
        }
        for row in result.rows
    ]


async def statement(
    visit: Visit, service_id: str, as_of: str, period_types: Sequence[str], kind: str
) -> tuple[list[Row], bool]:
    """One figure per line item and period; and whether the tier holds some back."""
    rows: list[Row] = []
    truncated = False
    for period_type in period_types:
        result = await visit.ask(
            "get_fundamentals",
            service_id=service_id,
            as_of=as_of,
            period_type=period_type,
            line_items=list(KINDS[kind]),
        )
        rows += result.rows
        truncated = truncated or result.truncated
    return rows, truncated


async def vintages(visit: Visit, service_id: str, line_item: str, *, shown: bool = True) -> Result:
    """Every vintage of a line item."""
    return await visit.ask(
        "get_fundamentals", shown=shown, service_id=service_id, vintages="all", line_items=[line_item]
    )


async def countries(visit: Visit) -> list[Row]:
    """The countries there is something of, with how much and where to look."""
    return []
