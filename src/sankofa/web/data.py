"""What several pages ask for: search, issuers, statements, series, sources and coverage.

One place, so that each is asked from the operation that has it.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from sankofa.web.visit import Result, Row, Visit

_TENDERS_SHOWN: Final = 10
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


async def search(visit: Visit, words: str, country: str) -> tuple[list[Row], bool]:
    """Organisations, series and indicators by name or identifier; and whether the tier holds some back."""
    result = await visit.ask("search_entities", query=words, country=country)
    rows = [
        {
            "type": "organisation",
            "id": row["service_id"],
            "name": row["legal_name"],
            "country": row["country"],
            "matched": row["match"]["value"],
        }
        for row in result.rows
    ]
    return rows, result.truncated


async def search_tenders(visit: Visit, words: str, country: str) -> list[Row]:
    """The newest releases that have the words, of each country that tenders are held of."""
    found: list[Row] = []
    for code in [country] if country else await tender_countries(visit):
        result = await visit.ask("search_tenders", country=code, query=words)
        found += result.rows[:_TENDERS_SHOWN]
    return sorted(found, key=lambda row: str(row["release_date"]), reverse=True)[:_TENDERS_SHOWN]


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


async def tender_countries(visit: Visit) -> list[str]:
    """The countries that tenders are held of."""
    return []


async def catalogue(visit: Visit, words: str, country: str, cursor: str) -> dict[str, Any]:
    """Series and indicators, those that have the words where some are given."""
    return {"series": [], "indicators": [], "next_cursor": None, "truncated": False}


async def releases(visit: Visit, series: str, rows: Sequence[Row]) -> list[date]:
    """The days on which a series was released."""
    return sorted({date.fromisoformat(row["available_at"]) for row in rows})


async def sources(visit: Visit) -> list[Row]:
    """Who publishes what, under which licence."""
    return []


async def coverage(visit: Visit) -> list[Row]:
    """Per dataset and country how much there is."""
    return []


async def issuers(visit: Visit) -> dict[str, Any]:
    """Issuers as knowable on the day of the address."""
    return {"rows": [], "next_cursor": None, "truncated": False}
