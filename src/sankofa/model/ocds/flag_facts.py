"""The facts that red flag indicators read from one compiled release, and the results that need only these.

The indicators are those of Cardinal, with its defaults (`red_flags`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from sankofa.model.ocds.guide_flags import fixed_findings
from sankofa.model.ocds.guide_outliers import Facts, measure_all, shares_of
from sankofa.model.ocds.guide_pairs import NO_RIVALS, Purchase, Rivals, purchases_of, rivals_of
from sankofa.model.ocds.process_facts import (
    BUYER,
    COMPETITIVE,
    DIGITS,
    MOST_LISTED,
    PROCESS,
    PROCURING_ENTITY,
    TENDERER,
    Bid,
    Classification,
    PeriodFacts,
    ProcessFacts,
    Reading,
    TenderFacts,
    all_bids,
    final_awards,
    ids_of,
    instant_of,
    only_supplier,
)

_SHORTEST: Final = 15


class _Prices(NamedTuple):
    """The bids of a process in one currency: the ratio for R024 and R058, and the result of R036."""

    ratio: float | None
    reason: str | None
    winner: str
    runner_up: str
    inputs: dict[str, Any]
    lowest: Reading


class Examined(msgspec.Struct, frozen=True, gc=False):
    """The facts of one process, before comparison with its population."""

    ocid: str
    cancelled: bool
    findings: list[Reading] = []
    """Results of the indicators that need no population."""
    currencies: dict[str, int] = {}
    """Number of bids in each currency."""
    prices: dict[str, _Prices] = {}
    no_prices: str = ""
    """Why prices cannot be compared in any currency."""
    entered: dict[str, bool] = {}
    """Tenderers with a valid bid, and whether each won the only award."""
    shares: dict[tuple[str, str, str], tuple[int, int]] = {}
    """The two numbers of `SHARES`, by indicator, type and id of the party."""
    classes: dict[str, set[str]] = {}
    """Classifications of awarded items, by supplier."""
    measured: dict[str, Facts] = {}
    """What `measure_all` gives."""
    purchases: list[Purchase] = []
    rivals: Rivals | None = NO_RIVALS
    """None if there are too many to compare."""


def examine(ocid: str, facts: ProcessFacts, *, every: bool = False) -> Examined:
    """Reads one process. `every`: with the indicators that cannot be computed, and the reasons."""
    if facts.tender and facts.tender.status == "cancelled":
        return Examined(ocid, cancelled=True)
    findings = [*_period(ocid, facts), *_single(ocid, facts), *fixed_findings(ocid, facts, every=every)]
    measured = measure_all(facts, every=every)
    shares = dict(shares_of(facts))
    if not every and not facts.bids and not facts.awards:
        return Examined(ocid, False, findings, shares=shares, measured=measured)
    findings += [*_identical(ocid, facts), *_late(ocid, facts), *_alone(ocid, facts)]
    currencies = Counter(bid.value.currency for bid in all_bids(facts) if bid.value and bid.value.currency)
    supplier, reason = only_supplier(facts)
    return Examined(
        ocid,
        False,
        findings,
        currencies,
        {currency: _prices(ocid, facts, currency, supplier, reason) for currency in currencies},
        reason or "No bid has an amount.",
        _entered(facts, supplier) if supplier else {},
        shares | _disqualified(facts),
        _classes(facts),
        measured,
        purchases_of(facts),
        rivals_of(facts),
    )


def _submitted(facts: ProcessFacts) -> list[Bid]:
    return [bid for bid in all_bids(facts) if bid.status and bid.status not in ("invited", "withdrawn")]


def _amount(bid: Bid, currency: str) -> float | None:
    value = bid.value
    if not value or value.currency != currency or not isinstance(value.amount, Decimal):
        return None
    amount = float(value.amount)
    return amount if isfinite(amount) else None


def _period(ocid: str, facts: ProcessFacts) -> Iterator[Reading]:
    period = (facts.tender and facts.tender.tender_period) or PeriodFacts()
    start, end = instant_of(period.start_date), instant_of(period.end_date)
    if start is None or end is None:
        reason = "The tender period has no start or no end with a time and its zone."
        yield Reading("R003", PROCESS, ocid, None, threshold=_SHORTEST, reason=reason)
        return
    days = int((end - start).total_seconds() / 86400)
    inputs = {"start": period.start_date, "end": period.end_date, "days": days}
    short = days < _SHORTEST
    yield Reading("R003", PROCESS, ocid, short, float(short), _SHORTEST, inputs)


def _single(ocid: str, facts: ProcessFacts) -> Iterator[Reading]:
    tender = facts.tender or TenderFacts()
    method, number = tender.procurement_method, tender.number_of_tenderers
    reason = None
    if method not in COMPETITIVE:
        reason = "The procedure is not published as open or selective."
    elif number is UNSET or number is None:
        reason = "The number of tenderers is not published."
    if reason:
        yield Reading("R018", PROCESS, ocid, None, threshold=1, reason=reason)
        return
    inputs = {"number_of_tenderers": number, "procurement_method": method}
    yield Reading("R018", PROCESS, ocid, number == 1, float(number == 1), 1, inputs)


def _identical(ocid: str, facts: ProcessFacts) -> Iterator[Reading]:
    prices: dict[tuple[float, str], set[str]] = {}
    tenderers: dict[str, None] = {}
    inputs: dict[str, Any] = {}
    for bid in _submitted(facts):
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
        reason = "No submitted bid has a tenderer and an amount."
        yield Reading("R028", PROCESS, ocid, None, reason=reason)
        return
    inputs["tenderers"] = list(tenderers)[:MOST_LISTED]
    yield Reading("R028", PROCESS, ocid, bool(tenderers), float(bool(tenderers)), None, inputs)
    for tenderer in tenderers:
        yield Reading("R028", TENDERER, tenderer, True, 1.0, None, {"ocid": ocid})


def _late(ocid: str, facts: ProcessFacts) -> Iterator[Reading]:
    end = facts.tender and facts.tender.tender_period and facts.tender.tender_period.end_date
    if not end or not facts.awards or not all_bids(facts):
        reason = "The end of the tender period, awards or bids are not published."
        yield Reading("R030", PROCESS, ocid, None, reason=reason)
        return
    winners = {one for award in facts.awards if award.status == "active" for one in ids_of(award.suppliers)}
    dated = [bid for bid in all_bids(facts) if bid.status == "valid" and bid.date]
    late = dict.fromkeys(
        one for bid in dated if str(bid.date) > end for one in ids_of(bid.tenderers) if one in winners
    )
    if not winners or not dated:
        reason = "No active award names a supplier." if dated else "No valid bid has a date."
        yield Reading("R030", PROCESS, ocid, None, reason=reason)
        return
    inputs = {"end": end, "late_winners": list(late)[:MOST_LISTED]}
    yield Reading("R030", PROCESS, ocid, bool(late), float(bool(late)), None, inputs)
    for tenderer in late:
        yield Reading("R030", TENDERER, tenderer, True, 1.0, None, {"ocid": ocid})


def _alone(ocid: str, facts: ProcessFacts) -> Iterator[Reading]:
    awards = final_awards(facts)
    if isinstance(awards, str):
        yield Reading("R035", PROCESS, ocid, None, threshold=1, reason=awards)
        return
    winners = {one for award in awards for one in ids_of(award.suppliers)}
    by_status = {
        status: {one for bid in all_bids(facts) if bid.status == status for one in ids_of(bid.tenderers)}
        for status in ("valid", "disqualified")
    }
    valid, others = by_status["valid"], by_status["disqualified"] - by_status["valid"]
    if len(valid) != 1 or valid != winners:
        reason = "There is not exactly one tenderer with a valid bid, who won."
        yield Reading("R035", PROCESS, ocid, None, threshold=1, reason=reason)
        return
    inputs = {"winner": min(valid), "disqualified": sorted(others)[:MOST_LISTED]}
    yield Reading("R035", PROCESS, ocid, bool(others), float(len(others)), 1, inputs)
    if others:
        yield Reading("R035", TENDERER, min(valid), True, 0.0, 1, {"ocid": ocid})


def _prices(ocid: str, facts: ProcessFacts, currency: str, supplier: str, reason: str) -> _Prices:
    winning = lowest_other = None
    other = ""
    for bid in all_bids(facts) if supplier else ():
        amount, ids = _amount(bid, currency), ids_of(bid.tenderers)
        if bid.status != "valid" or amount is None or len(bid.tenderers or ()) != 1 or not ids:
            continue
        if ids[0] == supplier:
            winning = amount if winning is None else min(winning, amount)
        elif lowest_other is None or amount < lowest_other:
            lowest_other, other = amount, ids[0]
    ratio, inputs = None, dict[str, Any]()
    if reason:
        pass
    elif not winning or lowest_other is None:
        reason = (
            f"No valid bid of {'another tenderer' if winning else 'the winner'} has an amount in {currency}."
        )
    elif lowest_other < winning:
        reason = "The lowest bid did not win: the price was not all that counted."
    else:
        ratio = (lowest_other - winning) / winning
        inputs = {"winning_bid": winning, "second_lowest_bid": lowest_other, "currency": currency}
    return _Prices(ratio, reason or None, supplier, other, inputs, _lowest(ocid, facts, currency))


def _lowest(ocid: str, facts: ProcessFacts, currency: str) -> Reading:
    lowest: tuple[float, str] | None = None
    has_valid = False
    for bid in _submitted(facts):
        amount = _amount(bid, currency)
        if amount is not None:
            has_valid = has_valid or bid.status == "valid"
            if lowest is None or amount < lowest[0]:
                lowest = amount, str(bid.status)
    is_awarded = any(award.status == "active" for award in facts.awards or ())
    if not is_awarded or not has_valid or lowest is None:
        reason = "No valid bid has an amount." if is_awarded else "There is no active award."
        return Reading("R036", PROCESS, ocid, None, reason=reason)
    flagged = lowest[1] == "disqualified"
    inputs = {"lowest_bid": lowest[0], "currency": currency, "status": lowest[1]}
    return Reading("R036", PROCESS, ocid, flagged, float(flagged), None, inputs)


def _entered(facts: ProcessFacts, supplier: str) -> dict[str, bool]:
    return {
        one: one == supplier
        for bid in all_bids(facts)
        if bid.status == "valid" and len(bid.tenderers or ()) == 1
        for one in ids_of(bid.tenderers)
    }


def _disqualified(facts: ProcessFacts) -> dict[tuple[str, str, str], tuple[int, int]]:
    submitted = _submitted(facts)
    bids: dict[tuple[str, str, str], tuple[int, int]] = {}
    if not submitted:
        return bids
    disqualified = sum(bid.status == "disqualified" for bid in submitted)
    procuring = facts.tender and facts.tender.procuring_entity
    for subject_type, party in ((BUYER, facts.buyer), (PROCURING_ENTITY, procuring)):
        for one in ids_of([party] if party else []):
            bids["R038", subject_type, one] = disqualified, len(submitted)
    for bid in submitted:
        for one in ids_of(bid.tenderers):
            lost, all_of = bids.get(("R038", TENDERER, one), (0, 0))
            bids["R038", TENDERER, one] = lost + (bid.status == "disqualified"), all_of + 1
    return bids


def _classes(facts: ProcessFacts) -> dict[str, set[str]]:
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for award in facts.awards or ():
        suppliers = award.suppliers or []
        if award.status == "active" and len(suppliers) == 1 and (ids := ids_of(suppliers)):
            codes = {
                one for item in award.items or () for one in ids_of([item.classification or Classification()])
            }
            if codes:
                classes[ids[0]] |= {code[:DIGITS] for code in codes}
    return dict(classes)
