"""Our line items, and the concepts of the standard taxonomies that are served under each.

A concept is served under the one item it is exact for (`served` in `routes.toml`). Others lead to an item by
a route of that file alone, and keep their own name. A concept that merely looks alike is in neither: cash
with restricted cash is not cash. An inexact figure is worse than none.
"""

import re
from functools import cache
from typing import Final

from sankofa.model.routes import Route, table

LINE_ITEMS: Final = tuple(table().routes)

STATEMENT_KINDS: Final = ("income", "balance", "cash")
_CASH_FLOW: Final = ("operating_cash_flow", "capex", "dividends_paid")

_SERVED_AS: Final = {
    route.single: item for item, routes in table().routes.items() for route in routes[1:] if route.served
}
_ITEMS: Final = frozenset(LINE_ITEMS)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@cache
def statement_kind(line_item: str) -> str:
    """The statement that one of our line items belongs to."""
    if line_item in _CASH_FLOW:
        return "cash"
    return "income" if LINE_ITEMS.index(line_item) < LINE_ITEMS.index("assets") else "balance"


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
    return _SERVED_AS.get(concept) or (snake_case(concept) if own_name in _ITEMS else own_name)


def routes(line_item: str) -> tuple[Route, ...]:
    """The routes to a line item, the first that is open to be taken; the first is always the item itself."""
    return table().routes.get(line_item, ())


def snake_case(name: str) -> str:
    """`AccountsPayableUSD2` and `Accounts payable USD2` as `accounts_payable_usd2`."""
    return _BETWEEN_WORDS.sub("_", _WORD_START.sub("_", name)).strip("_").lower()
