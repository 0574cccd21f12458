"""Figures of one year that no analyst expects together: counted in quality, never changed.

Most of them are the filer's own: a loss per share tagged without its minus, numbers of shares tagged in
thousands. A figure that explains them takes part in the check: preferred dividends turn the sign of
earnings per share, minorities with a negative share make the owners' equity more than the whole.

See contract: MET-15.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

from sankofa.derive.metrics.lines import Lines

_FACTOR: Final = 50
"""Shares tagged in thousands are off by more, buy-backs and new shares within a year by less."""
_TOLERANCE: Final = Decimal("0.001")


class Check(NamedTuple):
    """One count of quality."""

    measure: str
    names: str
    """Line items and concepts: `a|b` is the first that is known, `a?` is zero where it is not."""
    is_odd: Callable[..., bool]


def _unlike(eps: Decimal, profit: Decimal, shares: Decimal) -> bool:
    implied = abs(eps) * shares
    return bool(shares and profit and eps) and not abs(profit) < implied * _FACTOR < abs(profit) * _FACTOR**2


_COMMON: Final = "us-gaap:NetIncomeLossAvailableToCommonStockholdersBasic|profit_owners"
_CHECKS: Final = (
    Check("eps_of_other_sign_years", f"eps_basic {_COMMON}", lambda eps, profit: eps * profit < 0),
    Check(
        "interest_above_revenue_years", "finance_costs revenue", lambda costs, revenue: 0 < revenue < costs
    ),
    Check(
        "negative_balance_years",
        "assets? current_assets? cash? receivables? inventories? liabilities? current_liabilities? payables? "
        "total_debt? revenue? shares_outstanding?",
        lambda *balances: min(balances) < 0,
    ),
    Check(
        "owners_above_equity_years",
        "equity_owners equity us-gaap:MinorityInterest|ifrs-full:NoncontrollingInterests?",
        lambda owners, equity, minorities: owners + min(minorities, 0) - equity > abs(equity) * _TOLERANCE,
    ),
    Check("shares_unlike_eps_years", f"eps_basic {_COMMON} shares_outstanding", _unlike),
    Check("tax_above_profit_years", "income_tax profit_before_tax", lambda tax, profit: 0 < profit < tax),
)
_BY_IDENTITY: Final = {"balance_sheet": "unbalanced_years", "profit": "profit_not_after_tax_years"}
MEASURES: Final = (*(check.measure for check in _CHECKS), *_BY_IDENTITY.values())
"""What quality counts, each a number of full years."""


def odd_measures(lines: Lines) -> list[str]:
    """The measures that a year counts for."""
    unmet = [_BY_IDENTITY[name] for name in sorted(lines.unmet & _BY_IDENTITY.keys())]
    return unmet + [check.measure for check in _CHECKS if _is_odd(lines, check)]


def _is_odd(lines: Lines, check: Check) -> bool:
    values = [_value(lines, name) for name in check.names.split()]
    return None not in values and check.is_odd(*values)


def _value(lines: Lines, name: str) -> Decimal | None:
    for one in name.removesuffix("?").split("|"):
        known = lines.facts.get(one) if ":" in one else lines.figure(one)
        if known is not None:
            return known.value
    return Decimal(0) if name.endswith("?") else None
