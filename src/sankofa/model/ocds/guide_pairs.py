"""The indicators of the guide (`red_flags`) about pairs of parties, and what they read from one process.

- R040, R050 and R052 compare what each supplier was awarded by one buyer, or in one market: an item category;
- R023 and R053 compare two tenderers over the processes in which both bid.

Amounts of different currencies are never compared or added up. Two tenderers are compared in processes with
at most `MOST_RIVALS` of them, so that the work grows with the bids; the others are counted.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.model.days import ordinal
from sankofa.model.ocds.guide_outliers import category_of
from sankofa.model.ocds.process_facts import (
    ProcessFacts,
    Text,
    amount_of,
    ids_of,
    instant_of,
)

MOST_RIVALS: Final = 20
"""Most tenderers of a process that are compared with each other: 190 pairs."""
FEWEST_SUPPLIERS: Final = 10
"""Suppliers that a buyer or a market needs for their shares to be compared."""
FEWEST_TOGETHER: Final = 3
"""Processes with one winner in which two tenderers both bid, for a winner to be recurrent."""
_PARTS: Final = 1_000_000


class PairIndicator(NamedTuple):
    """An indicator about pairs. A value stands out from its upper fence on, where it is above q3."""

    none: str
    """Why a process has no such pair."""
    reason: str
    """Why it cannot be computed for a pair."""
    share: str = ""
    """The name of the whole that the value is a share of; empty if the value is compared as it is."""
    above: float = 0
    """A value up to this never stands out."""
    rivals: bool = False
    """Whether it compares two tenderers."""


_NO_PURCHASE: Final = "No active award has a value and a single named supplier"
_NO_RIVALS: Final = f"Fewer than 2 tenderers, or more than {MOST_RIVALS}, are named with a valid bid"
PAIRS: Final[dict[str, PairIndicator]] = {
    "R023": PairIndicator(
        f"{_NO_RIVALS} and its amount.",
        "The two bid in fewer than 2 processes, or at one price.",
        above=1,
        rivals=True,
    ),
    "R040": PairIndicator(
        f"{_NO_PURCHASE}, or no buyer is named.",
        f"The buyer has awards to fewer than {FEWEST_SUPPLIERS} suppliers.",
        "awarded_by_buyer",
    ),
    "R050": PairIndicator(
        f"{_NO_PURCHASE}, or its items are not all of one published category.",
        f"Fewer than {FEWEST_SUPPLIERS} suppliers have awards in the item category.",
        "awarded_in_category",
    ),
    "R052": PairIndicator(
        f"{_NO_PURCHASE} and a date, or no buyer is named.",
        "The buyer's awards to the supplier are all of one day.",
        above=1,
    ),
    "R053": PairIndicator(
        f"{_NO_RIVALS}, or there is not one winner.",
        f"The two bid in fewer than {FEWEST_TOGETHER} processes with one winner.",
        rivals=True,
    ),
}


class Purchase(NamedTuple):
    """An active award to one supplier."""

    buyer: str
    """The buyer, or else the procuring entity; empty if neither is named."""
    supplier: str
    """Empty if there are several, or none is named."""
    currency: str
    category: str
    """The category of all items of the process; empty if they have several."""
    day: int
    """The day of the award; 0 if it is not published."""
    amount: int
    """In millionths, so that sums are exact."""


class Rivals(NamedTuple):
    """The tenderers of a process with a valid bid, if there are two or more, at most `MOST_RIVALS`."""

    prices: dict[str, dict[str, float]]
    """Their lowest bids by currency, in order."""
    winner: str
    """Empty if there is not one."""


NO_RIVALS: Final = Rivals({}, "")


class PairStep(msgspec.Struct, array_like=True, gc=False):
    """A value of a pair of parties on the days [first, until)."""

    first: int
    until: int
    value: float
    group: str
    """The buyer and currency, or category and currency, that it is compared within; empty for the country."""
    inputs: bytes
    """As MessagePack: few are served."""

    def known_inputs(self) -> dict[str, Any]:
        known: dict[str, Any] = msgspec.msgpack.decode(self.inputs)
        return known


def units(amount: float) -> float:
    """An amount of purchases, from millionths."""
    return amount / _PARTS


def _day_of(date: Text) -> int:
    if not date:
        return 0
    try:
        return ordinal(date[:10]) if len(date) == len("YYYY-MM-DD") or instant_of(date) else 0
    except ValueError:
        return 0


def purchases_of(facts: ProcessFacts) -> list[Purchase]:
    """The active awards with a value."""
    buyers = [one for one in (facts.buyer, facts.tender_facts.procuring_entity) if one]
    buyer = next(iter(ids_of(buyers)), "")
    category: str | None = None
    purchases = []
    for award in facts.awards or ():
        amount = amount_of(award.value) if award.status == "active" else None
        if not amount or amount < 0 or not award.value:
            continue
        suppliers = award.suppliers or []
        ids = ids_of(suppliers)
        supplier = ids[0] if len(suppliers) == 1 and ids else ""
        category = category_of(facts) if category is None else category
        day, millionths = _day_of(award.date), round(amount * _PARTS)
        if millionths:
            purchases.append(Purchase(buyer, supplier, str(award.value.currency), category, day, millionths))
    return purchases


def rivals_of(facts: ProcessFacts) -> Rivals | None:
    """The tenderers with a valid bid of their own; None if there are too many to compare each two."""
    prices: dict[str, dict[str, float]] = {}
    for bid in facts.all_bids:
        if bid.status == "valid" and len(bid.tenderers or ()) == 1:
            for tenderer in ids_of(bid.tenderers):
                own = prices.setdefault(tenderer, {})
                if (amount := amount_of(bid.value)) and amount > 0 and bid.value:
                    currency = str(bid.value.currency)
                    own[currency] = min(amount, own.get(currency, amount))
    if len(prices) > MOST_RIVALS:
        return None
    if len(prices) < 2:
        return NO_RIVALS
    ordered = {one: dict(sorted(own.items())) for one, own in sorted(prices.items())}
    return Rivals(ordered, facts.only_supplier()[0])


def differences(rivals: Rivals) -> Iterator[tuple[str, str, float]]:
    """Two tenderers, in the order of their ids, and by how many percent the price of the second is higher.

    Prices are in the first currency that both have. Equal ones are left out: R028 is about these.
    """
    for one, other in combinations(rivals.prices, 2):
        own, theirs = rivals.prices[one], rivals.prices[other]
        currency = next((one for one in own if one in theirs), None)
        if currency and own[currency] != theirs[currency]:
            yield one, other, round((theirs[currency] - own[currency]) / own[currency] * 100, 2)


def pair_key(indicator: str, *parts: str) -> str:
    """Names a pair among those of one party: by the buyer and currency, or by the other tenderer."""
    return "|".join((indicator, *parts))


class Pair(NamedTuple):
    """Where the values of a pair are stored: with the supplier, or with the first of two tenderers."""

    indicator: str
    party: str
    holder: str
    key: str


def pairs_of(purchases: list[Purchase], rivals: Rivals | None) -> Iterator[Pair]:
    """The pairs of a process."""
    for own in purchases:
        groups = {"R040": own.buyer, "R052": own.day and own.buyer, "R050": own.category}
        for indicator, group in groups.items() if own.supplier else ():
            if group:
                key = pair_key(indicator, str(group), own.currency)
                yield Pair(indicator, own.supplier, own.supplier, key)
    if rivals is None:
        return
    compared = {(one, other) for one, other, _ in differences(rivals)}
    for one, other in combinations(rivals.prices, 2):
        for party in (one, other):
            if (one, other) in compared:
                yield Pair("R023", party, one, pair_key("R023", other))
            if rivals.winner:
                yield Pair("R053", party, one, pair_key("R053", other))
