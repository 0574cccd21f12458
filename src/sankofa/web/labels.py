"""Names of line items, metrics, panels and reasons for people; the catalogues translate them."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from sankofa.web.languages import Language

_NAMED_AS_WRITTEN: Final = (
    "revenue cost_of_sales gross_profit operating_profit finance_costs profit_before_tax income_tax "
    "assets current_assets receivables inventories liabilities current_liabilities payables total_debt "
    "equity shares_outstanding operating_cash_flow dividends_paid accruals_ratio asset_turnover "
    "cash_conversion cash_ratio current_ratio debt_to_equity effective_tax_rate free_cash_flow_margin "
    "gross_margin interest_cover inventory_days liabilities_to_assets net_margin operating_margin "
    "payable_days payout_ratio profit_growth quick_ratio receivable_days return_on_assets "
    "return_on_capital_employed return_on_equity revenue_growth buyer supplier tenderer legal_form "
    "public_body attributed_share category country currency date direction first_value frequency "
    "latest_value line_item metric month quarter tender_count unit value vintages years_held rank code "
    "known_from known_on public_on figures today vintage year countries facts periods share_audited "
    "withheld observations parties processes share_resolved ticker"
)
"""Words of the API that people say as they stand: `cost_of_sales` is "Cost of sales"."""
_SAME: Final = "series indicators annual monthly quarterly daily restated PASS FAIL UNMEASURED up down"
"""Those that are shown to the letter."""


def _in_words(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


LABELS: Final[Mapping[str, str]] = {
    **{name: _in_words(name) for name in _NAMED_AS_WRITTEN.split()},
    **{name: name for name in _SAME.split()},
    "depreciation_amortisation": "Depreciation and amortisation",
    "profit": "Profit for the period",
    "profit_owners": "Profit of the owners",
    "eps_basic": "Earnings per share, basic",
    "eps_diluted": "Earnings per share, diluted",
    "headline_eps": "Headline earnings per share",
    "cash": "Cash and cash equivalents",
    "short_term_debt": "Short-term debt",
    "long_term_debt": "Long-term debt",
    "equity_owners": "Equity of the owners",
    "capex": "Capital expenditure",
    "loans": "Loans to customers",
    "deposits": "Deposits of customers",
    "capex_intensity": "Capital intensity",
    "ebitda_margin": "EBITDA margin",
    "loan_to_deposit": "Loans to deposits",
    "net_debt_to_ebitda": "Net debt to EBITDA",
    "pretax_margin": "Pre-tax margin",
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
    "procuringEntity": "Procuring entity",
    "lei": "LEI",
    "registry": "Register",
    "available_at": "Public on",
    "award_count": "Awards",
    "award_value": "Value of awards",
    "buyer_count": "Buyers",
    "buyer_hhi": "Concentration of buyers (HHI)",
    "category_share": "Share of the category",
    "closed_at": "Closed on",
    "effective_buyers": "Effective number of buyers",
    "effective_suppliers": "Effective number of suppliers",
    "first_available_at": "First public on",
    "known_at": "Known on",
    "legal_name": "Company",
    "margin_volatility": "Volatility of the margin",
    "margin_years": "Years of margins",
    "momentum_1p": "Momentum, one period",
    "momentum_3m": "Momentum, three months",
    "momentum_3p": "Momentum, three periods",
    "period_end": "Period to",
    "profit_years": "Years of profit",
    "repeat_winner_share": "Share of repeat winners",
    "revenue_growth_years": "Years of growing revenue",
    "revision_size": "Size of the revision",
    "series_type": "Type of series",
    "source_ref": "Source",
    "supplier_count": "Suppliers",
    "supplier_hhi": "Concentration of suppliers (HHI)",
    "tender_country": "Country of the tender",
    "top_buyer_share": "Share of the largest buyer",
    "top_supplier_share": "Share of the largest supplier",
    "value_coverage": "Share with a value",
    "then": "Known then",
    "size": "Revision",
    "entities": "Organisations",
    "facts_in_ledger": "Facts in the ledger",
    "freshness_days": "Age in days",
    "identity_conflicts": "Conflicts of identity",
    "rejected": "Rejected rows",
    "restatement_rate": "Share restated",
    "share_with_evidenced_available_at": "Share with an evidenced day of publication",
    "share_with_lei": "Share with an LEI",
    "releases_in_ledger": "Releases in the ledger",
    "share_with_value": "Share with a value",
}
"""What each word of the API is called in English; the catalogues translate it."""
_KNOWN_ON: Final = re.compile(r"known_(\d{4}-\d{2}-\d{2})")
"""The column of a chart of what was known on a day."""
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
    if day := _KNOWN_ON.fullmatch(str(name)):
        return language.text("Known on %(day)s", day=language.day(day[1]))
    return _in_words(str(name))


def metric_value(language: Language, slug: str, value: Decimal | float | None) -> str:
    """A metric as people read it, rounded: a percentage, a multiple, or days."""
    if value is None:
        return language.rounded(None)
    if slug in _SHARES:
        return language.share(value)
    if slug.endswith("_days"):
        return language.text("%(count)s days", count=language.rounded(value, 1))
    return language.rounded(value, 2) + "\N{MULTIPLICATION SIGN}"
