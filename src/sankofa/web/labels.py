"""Names of line items, metrics, panels and reasons for people; the catalogues translate them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from sankofa.web.languages import Language

LABELS: Final[Mapping[str, str]] = {
    "revenue": "Revenue",
    "cost_of_sales": "Cost of sales",
    "gross_profit": "Gross profit",
    "operating_profit": "Operating profit",
    "depreciation_amortisation": "Depreciation and amortisation",
    "finance_costs": "Finance costs",
    "profit_before_tax": "Profit before tax",
    "income_tax": "Income tax",
    "profit": "Profit for the period",
    "profit_owners": "Profit of the owners",
    "eps_basic": "Earnings per share, basic",
    "eps_diluted": "Earnings per share, diluted",
    "headline_eps": "Headline earnings per share",
    "assets": "Assets",
    "current_assets": "Current assets",
    "cash": "Cash and cash equivalents",
    "receivables": "Receivables",
    "inventories": "Inventories",
    "liabilities": "Liabilities",
    "current_liabilities": "Current liabilities",
    "payables": "Payables",
    "short_term_debt": "Short-term debt",
    "long_term_debt": "Long-term debt",
    "total_debt": "Total debt",
    "equity": "Equity",
    "equity_owners": "Equity of the owners",
    "shares_outstanding": "Shares outstanding",
    "operating_cash_flow": "Operating cash flow",
    "capex": "Capital expenditure",
    "dividends_paid": "Dividends paid",
    "loans": "Loans to customers",
    "deposits": "Deposits of customers",
    "accruals_ratio": "Accruals ratio",
    "asset_turnover": "Asset turnover",
    "capex_intensity": "Capital intensity",
    "cash_conversion": "Cash conversion",
    "cash_ratio": "Cash ratio",
    "current_ratio": "Current ratio",
    "debt_to_equity": "Debt to equity",
    "ebitda_margin": "EBITDA margin",
    "effective_tax_rate": "Effective tax rate",
    "free_cash_flow_margin": "Free cash flow margin",
    "gross_margin": "Gross margin",
    "interest_cover": "Interest cover",
    "inventory_days": "Inventory days",
    "liabilities_to_assets": "Liabilities to assets",
    "loan_to_deposit": "Loans to deposits",
    "net_debt_to_ebitda": "Net debt to EBITDA",
    "net_margin": "Net margin",
    "operating_margin": "Operating margin",
    "payable_days": "Payable days",
    "payout_ratio": "Payout ratio",
    "pretax_margin": "Pre-tax margin",
    "profit_growth": "Profit growth",
    "quick_ratio": "Quick ratio",
    "receivable_days": "Receivable days",
    "return_on_assets": "Return on assets",
    "return_on_capital_employed": "Return on capital employed",
    "return_on_equity": "Return on equity",
    "revenue_growth": "Revenue growth",
    "fundamentals-factors": "Factors of issuers",
    "fundamentals-quality": "Quality of earnings",
    "fundamentals-revisions": "Revisions of reported figures",
    "issuer-persistence": "Persistence of issuers",
    "macro-momentum": "Momentum of macro series",
    "procurement-demand": "Demand of public buyers",
    "public-buyer-concentration": "Concentration of public buyers",
    "supplier-issuer-demand": "Public awards to issuers",
    "tender-award-concentration": "Concentration of awards",
    "input_absent": "An input is absent",
    "denominator_not_positive": "The denominator is not positive",
    "not_published": "No full year was published by that day",
    "currency_mixed": "The inputs are in several currencies",
    "completed_after_as_of": "An input became known only later",
    "revised_after_as_of": "An input was revised later",
    "AF-FUND": "Companies",
    "AF-TENDER": "Tenders",
    "AF-MACRO": "Macro",
    "issuers": "companies",
    "releases": "tender releases",
    "series": "series",
    "indicators": "indicators",
    "annual": "annual",
    "monthly": "monthly",
    "quarterly": "quarterly",
    "daily": "daily",
    "buyer": "Buyer",
    "supplier": "Supplier",
    "tenderer": "Tenderer",
    "procuringEntity": "Procuring entity",
    "lei": "LEI",
    "registry": "Register",
    "legal_form": "Legal form",
    "public_body": "Public body",
}
_SHARES: Final = frozenset(
    {
        *("accruals_ratio", "capex_intensity", "ebitda_margin", "effective_tax_rate", "gross_margin"),
        *("free_cash_flow_margin", "liabilities_to_assets", "loan_to_deposit", "net_margin"),
        *("operating_margin", "payout_ratio", "pretax_margin", "profit_growth", "return_on_assets"),
        *("return_on_capital_employed", "return_on_equity", "revenue_growth"),
    }
)
"""Metrics that people read as percentages; the others are multiples, or days."""


def label(language: Language, name: object) -> str:
    """The name of a line item, a metric or another word of the API in this language."""
    known = LABELS.get(str(name))
    if known is not None:
        return language.text(known)
    kind, colon, detail = str(name).partition(": ")
    if colon and kind in LABELS:
        return f"{language.text(LABELS[kind])}: {detail}"
    words = str(name).replace("_", " ")
    return words[:1].upper() + words[1:]


def metric_value(language: Language, slug: str, value: Decimal | float | None) -> str:
    """A metric as people read it, rounded: a percentage, a multiple, or days."""
    if value is None:
        return language.rounded(None)
    if slug in _SHARES:
        return language.share(value)
    if slug.endswith("_days"):
        return language.text("%(count)s days", count=language.rounded(value, 1))
    return language.rounded(value, 2) + "\N{MULTIPLICATION SIGN}"
