"""The indicators that need no other process: some of Cardinal, others of the guide (`red_flags`).

Each is a function of a compiled release and a line in `FIXED`. A function answers with a sentence where the
indicator cannot be computed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sankofa.model.ocds.process_facts import (
    COMPETITIVE,
    MOST_LISTED,
    PROCESS,
    TENDERER,
    AwardFacts,
    ContractFacts,
    ProcessFacts,
    Reading,
    both_amounts,
    ids_of,
    instant_of,
)

Inputs = dict[str, Any]

_ADVERTISED: Final = {"tenderNotice", "biddingDocuments"}
_SHORTEST: Final = 15
_MOST: Final = 0.5
_NUMBERS: Final = (int, Decimal)


class _Result(NamedTuple):
    """The value of an indicator for a process, and the tenderers that are flagged with it."""

    flagged: bool
    value: float
    inputs: Inputs
    tenderers: Sequence[str] = ()


def _yes(flagged: bool, tenderers: Sequence[str] = (), **inputs: Any) -> _Result:
    return _Result(flagged, float(flagged), inputs, tenderers)


def _period(facts: ProcessFacts) -> _Result | str:
    period = facts.tender_dates
    start, end = instant_of(period.start_date), instant_of(period.end_date)
    if start is None or end is None:
        return "The tender period has no start or no end with a time and its zone."
    days = int((end - start).total_seconds() / 86400)
    return _yes(days < _SHORTEST, start=period.start_date, end=period.end_date, days=days)


def _single(facts: ProcessFacts) -> _Result | str:
    method, number = facts.tender_facts.procurement_method, facts.tender_facts.number_of_tenderers
    if method not in COMPETITIVE:
        return "The procedure is not published as open or selective."
    if not isinstance(number, _NUMBERS):
        return "The number of tenderers is not published."
    return _yes(number == 1, number_of_tenderers=number, procurement_method=method)


def _identical(facts: ProcessFacts) -> _Result | str:
    prices: dict[tuple[float, str], set[str]] = {}
    tenderers: dict[str, None] = {}
    inputs: Inputs = {}
    for bid in facts.submitted_bids:
        ids, value = set(ids_of(bid.tenderers)), bid.value
        if not ids or not value or not value.currency or not isinstance(value.amount, Decimal):
            continue
        price = float(value.amount), value.currency
        other = prices.get(price)
        if other is not None and other != ids:
            inputs = {"amount": value.amount, "currency": value.currency}
            tenderers |= dict.fromkeys(sorted(ids | other))
        prices[price] = ids
    if not prices:
        return "No submitted bid has a tenderer and an amount."
    inputs["tenderers"] = list(tenderers)[:MOST_LISTED]
    return _Result(bool(tenderers), float(bool(tenderers)), inputs, list(tenderers))


def _late(facts: ProcessFacts) -> _Result | str:
    end = facts.tender_dates.end_date
    if not end or not facts.awards or not facts.all_bids:
        return "The end of the tender period, awards or bids are not published."
    winners = {one for award in facts.awards if award.status == "active" for one in ids_of(award.suppliers)}
    dated = [bid for bid in facts.all_bids if bid.status == "valid" and bid.date]
    if not winners or not dated:
        return "No active award names a supplier." if dated else "No valid bid has a date."
    late = dict.fromkeys(
        one for bid in dated if str(bid.date) > end for one in ids_of(bid.tenderers) if one in winners
    )
    return _yes(bool(late), list(late), end=end, late_winners=list(late)[:MOST_LISTED])


def _alone(facts: ProcessFacts) -> _Result | str:
    awards = facts.final_awards()
    if isinstance(awards, str):
        return awards
    winners = {one for award in awards for one in ids_of(award.suppliers)}
    valid, disqualified = (
        {one for bid in facts.all_bids if bid.status == status for one in ids_of(bid.tenderers)}
        for status in ("valid", "disqualified")
    )
    others = disqualified - valid
    if len(valid) != 1 or valid != winners:
        return "There is not exactly one tenderer with a valid bid, who won."
    inputs = {"winner": min(valid), "disqualified": sorted(others)[:MOST_LISTED]}
    return _Result(bool(others), float(len(others)), inputs, list(valid) if others else ())


def _amended(contract: ContractFacts) -> bool:
    last = contract.amendment
    return bool(contract.amendments) or bool(last and (last.id or last.date or last.description))


def _highest(ratios: Iterable[tuple[float, Inputs]], limit: float) -> _Result | None:
    """The highest ratio; None if there are none."""
    value, inputs = max(ratios, key=itemgetter(0), default=(None, {}))
    return None if value is None else _Result(value > limit, value, inputs)


def _advertised_late(facts: ProcessFacts) -> _Result | str:
    tender = facts.tender_facts
    start = facts.tender_dates.start_date
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


def _complaint(facts: ProcessFacts) -> _Result | str:
    if not isinstance(facts.complaints, list):
        return "The release has no list of complaints."
    return _yes(bool(facts.complaints), complaints=len(facts.complaints))


def _unanswered(facts: ProcessFacts) -> _Result | str:
    tender = facts.tender_facts
    if tender.status != "complete" or not tender.enquiries:
        return "The tender is not complete, or its enquiries are not published."
    open_ones = [one for one in tender.enquiries if not one.answer and not one.date_answered]
    return _yes(bool(open_ones), unanswered=len(open_ones), enquiries=len(tender.enquiries))


def _modified(facts: ProcessFacts) -> _Result | str:
    if not facts.contracts:
        return "No contract is published."
    amended = [one for one in facts.contracts if _amended(one)]
    return _yes(bool(amended), contracts=[str(one.id) for one in amended if one.id][:MOST_LISTED])


def _amended_pairs(facts: ProcessFacts) -> list[tuple[ContractFacts, AwardFacts]] | str:
    """The active contracts with amendments, each with its award."""
    active = facts.active_contracts
    if not active:
        return "No active contract is published."
    amended = [one for one in active if _amended(one)]
    pairs = [(one, award) for one in amended if (award := facts.award_of(one))]
    return pairs if pairs or not amended else "The award of an amended contract is not published."


def _changed_items(facts: ProcessFacts, *, more: bool) -> _Result | str:
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


def _price_increased(facts: ProcessFacts) -> _Result | str:
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
    return _highest(ratios, 1) or _Result(False, 0.0, {"amended_contracts": 0})


def _late_delivery(facts: ProcessFacts) -> _Result | str:
    compared = late = 0
    for contract in facts.active_contracts:
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


def _overpaid(facts: ProcessFacts) -> _Result | str:
    ratios = [
        (own[0] / own[1], {"paid": own[0], "contract": own[1], "field": own[2]})
        for contract in facts.contracts or ()
        if (own := _paid(contract))
    ]
    return _highest(ratios, 1) or "No contract has a value and payments in its currency."


def _subcontracted(facts: ProcessFacts) -> _Result | str:
    shares: list[tuple[float, Inputs]] = []
    for award in facts.awards or ():
        own = award.subcontracting
        if award.has_subcontracting and own:
            named = {"award": str(award.id)}
            if own.minimum_percentage:
                shares.append((float(own.minimum_percentage), {**named, "field": "minimumPercentage"}))
            if both := both_amounts(own.value, award.value):
                shares.append((both[0] / both[1], {**named, "field": "value"}))
    return _highest(shares, _MOST) or "No award says how much is subcontracted."


class Fixed(NamedTuple):
    """An indicator that needs no other process."""

    section: str
    """The section of a release that it needs: without it, it cannot be computed."""
    fact: Callable[[ProcessFacts], _Result | str]
    threshold: float | None = None
    of_tenderer: float = 1.0
    """The value for a tenderer that is flagged with the process."""


FIXED: Final[dict[str, Fixed]] = {
    "R003": Fixed("tender", _period, _SHORTEST),
    "R004": Fixed("tender", _advertised_late),
    "R018": Fixed("tender", _single, 1),
    "R020": Fixed("complaints", _complaint),
    "R028": Fixed("bids", _identical),
    "R030": Fixed("bids", _late),
    "R035": Fixed("bids", _alone, 1, of_tenderer=0.0),
    "R039": Fixed("tender", _unanswered),
    "R064": Fixed("contracts", _modified),
    "R065": Fixed("contracts", partial(_changed_items, more=False)),
    "R066": Fixed("contracts", partial(_changed_items, more=True)),
    "R067": Fixed("contracts", _late_delivery),
    "R068": Fixed("contracts", _overpaid, 1),
    "R069": Fixed("contracts", _price_increased, 1),
    "R071": Fixed("awards", _subcontracted, _MOST),
}


def fixed_findings(ocid: str, facts: ProcessFacts, *, every: bool) -> Iterator[Reading]:
    """The results of `FIXED` for a process. `every`: with those that cannot be computed."""
    for indicator, (section, fact, threshold, of_tenderer) in FIXED.items():
        if not every and not getattr(facts, section):
            continue
        result = fact(facts)
        if not isinstance(result, str):
            yield Reading(indicator, PROCESS, ocid, result.flagged, result.value, threshold, result.inputs)
            for one in result.tenderers:
                yield Reading(indicator, TENDERER, one, True, of_tenderer, threshold, {"ocid": ocid})
        elif every:
            yield Reading(indicator, PROCESS, ocid, None, threshold=threshold, reason=result)
