"""The indicators of the Open Contracting Partnership's guide, "Red flags in public procurement" (2024).

An indicator is a function of a compiled release and a line in a table. `FIXED` has those that need no other
process: their value is above a figure, or says yes or no. `guide_outliers` has the others. A function answers
with a sentence where the indicator cannot be computed.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sankofa.model.ocds.process_facts import (
    MOST_LISTED,
    PROCESS,
    AwardFacts,
    ContractFacts,
    PeriodFacts,
    ProcessFacts,
    Reading,
    active_contracts,
    award_of,
    both_amounts,
    instant_of,
    tender_of,
)

Inputs = dict[str, Any]
Fact = tuple[float, Inputs] | str
"""The value of an indicator and its inputs; or why it cannot be computed."""

_ADVERTISED: Final = {"tenderNotice", "biddingDocuments"}
_MOST: Final = 0.5
_NUMBERS: Final = (int, Decimal)


def _yes(flagged: bool, **inputs: Any) -> Fact:
    return float(flagged), inputs


def _amended(contract: ContractFacts) -> bool:
    last = contract.amendment
    return bool(contract.amendments) or bool(last and (last.id or last.date or last.description))


def _first(one: tuple[float, Inputs]) -> float:
    return one[0]


def _advertised_late(facts: ProcessFacts) -> Fact:
    tender = tender_of(facts)
    start = (tender.tender_period or PeriodFacts()).start_date
    opened = instant_of(start)
    published = [
        (instant, one.date_published)
        for one in tender.documents or ()
        if one.document_type in _ADVERTISED and (instant := instant_of(one.date_published))
    ]
    if opened is None or not published:
        return "The start of the tender period or the date of a notice or bidding document is not published."
    first, text = min(published)
    return _yes(first > opened, first_published=text, start=start)


def _complaint(facts: ProcessFacts) -> Fact:
    if not isinstance(facts.complaints, list):
        return "The release has no list of complaints."
    return _yes(bool(facts.complaints), complaints=len(facts.complaints))


def _unanswered(facts: ProcessFacts) -> Fact:
    tender = tender_of(facts)
    if tender.status != "complete" or not tender.enquiries:
        return "The tender is not complete, or its enquiries are not published."
    open_ones = [one for one in tender.enquiries if not one.answer and not one.date_answered]
    return _yes(bool(open_ones), unanswered=len(open_ones), enquiries=len(tender.enquiries))


def _modified(facts: ProcessFacts) -> Fact:
    if not facts.contracts:
        return "No contract is published."
    amended = [one for one in facts.contracts if _amended(one)]
    return _yes(bool(amended), contracts=[str(one.id) for one in amended if one.id][:MOST_LISTED])


def _amended_pairs(facts: ProcessFacts) -> list[tuple[ContractFacts, AwardFacts]] | str:
    """The active contracts with amendments, each with its award."""
    active = active_contracts(facts)
    if not active:
        return "No active contract is published."
    amended = [one for one in active if _amended(one)]
    pairs = [(one, award) for one in amended if (award := award_of(facts, one))]
    return pairs if pairs or not amended else "The award of an amended contract is not published."


def _changed_items(facts: ProcessFacts, *, more: bool) -> Fact:
    pairs = _amended_pairs(facts)
    if isinstance(pairs, str):
        return pairs
    changed: dict[str, None] = {}
    comparable = not pairs
    for contract, award in pairs:
        before, after = (
            {str(item.id): item for item in items or () if item.id or item.id == 0}
            for items in (award.items, contract.items)
        )
        if not before or not after:
            continue
        comparable = True
        added = after.keys() - before.keys() if more else before.keys() - after.keys()
        changed |= dict.fromkeys(sorted(added))
        for name in sorted(before.keys() & after.keys()):
            old, new = before[name].quantity, after[name].quantity
            if isinstance(old, _NUMBERS) and isinstance(new, _NUMBERS) and old != new and (new > old) == more:
                changed[name] = None
    if not comparable:
        return "The items of an amended contract and of its award are not both published."
    return _yes(bool(changed), items=list(changed)[:MOST_LISTED])


def _items_reduced(facts: ProcessFacts) -> Fact:
    return _changed_items(facts, more=False)


def _items_increased(facts: ProcessFacts) -> Fact:
    return _changed_items(facts, more=True)


def _price_increased(facts: ProcessFacts) -> Fact:
    pairs = _amended_pairs(facts)
    if isinstance(pairs, str):
        return pairs
    ratios = [
        (both[0] / both[1], {"contract": both[0], "award": both[1], "currency": both[2]})
        for contract, award in pairs
        if (both := both_amounts(contract.value, award.value))
    ]
    if pairs and not ratios:
        return "The values of an amended contract and of its award are not both published in one currency."
    return max(ratios, key=_first) if ratios else (0.0, {"amended_contracts": 0})


def _late_delivery(facts: ProcessFacts) -> Fact:
    compared = late = 0
    for contract in active_contracts(facts):
        for one in (contract.implementation and contract.implementation.milestones) or ():
            due, met = instant_of(one.due_date), instant_of(one.date_met)
            if one.type == "delivery" and due is not None and met is not None:
                compared += 1
                late += met > due
    if not compared:
        return "No delivery milestone of an active contract has a due date and the date it was met."
    return _yes(bool(late), late=late, deliveries=compared)


def _paid(contract: ContractFacts) -> tuple[float, float, str] | None:
    """The sum of payments, the value of the contract, and the field that the payments come from."""
    parts = contract.implementation
    if not parts:
        return None
    if both := both_amounts(parts.final_value, contract.value):
        return both[0], both[1], "finalValue"
    prices = [one.value or one.amount for one in parts.transactions or ()]
    paid = [both for one in prices if (both := both_amounts(one, contract.value))]
    return (sum(one[0] for one in paid), paid[0][1], "transactions") if paid else None


def _overpaid(facts: ProcessFacts) -> Fact:
    ratios = [
        (own[0] / own[1], {"paid": own[0], "contract": own[1], "field": own[2]})
        for contract in facts.contracts or ()
        if (own := _paid(contract))
    ]
    return max(ratios, key=_first) if ratios else "No contract has a value and payments in its currency."


def _subcontracted(facts: ProcessFacts) -> Fact:
    shares: list[tuple[float, Inputs]] = []
    for award in facts.awards or ():
        own = award.subcontracting
        if award.has_subcontracting and own:
            named = {"award": str(award.id)}
            if own.minimum_percentage:
                shares.append((float(own.minimum_percentage), {**named, "field": "minimumPercentage"}))
            if both := both_amounts(own.value, award.value):
                shares.append((both[0] / both[1], {**named, "field": "value"}))
    return max(shares, key=_first) if shares else "No award says how much is subcontracted."


class Fixed(NamedTuple):
    """An indicator that is flagged if its value is above a figure."""

    section: str
    """The section of a release that it needs: without it, it cannot be computed."""
    fact: Callable[[ProcessFacts], Fact]
    limit: float | None = None
    """None for yes and no."""


FIXED: Final[dict[str, Fixed]] = {
    "R004": Fixed("tender", _advertised_late),
    "R020": Fixed("complaints", _complaint),
    "R039": Fixed("tender", _unanswered),
    "R064": Fixed("contracts", _modified),
    "R065": Fixed("contracts", _items_reduced),
    "R066": Fixed("contracts", _items_increased),
    "R067": Fixed("contracts", _late_delivery),
    "R068": Fixed("contracts", _overpaid, 1),
    "R069": Fixed("contracts", _price_increased, 1),
    "R071": Fixed("awards", _subcontracted, _MOST),
}


def fixed_findings(ocid: str, facts: ProcessFacts, *, every: bool) -> Iterator[Reading]:
    """The results of `FIXED` for a process. `every`: with those that cannot be computed."""
    for indicator, (section, fact, limit) in FIXED.items():
        if not every and not getattr(facts, section):
            continue
        result = fact(facts)
        if not isinstance(result, str):
            value, inputs = result
            yield Reading(indicator, PROCESS, ocid, value > (limit or 0), value, limit, inputs)
        elif every:
            yield Reading(indicator, PROCESS, ocid, None, threshold=limit, reason=result)
