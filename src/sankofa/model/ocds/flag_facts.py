"""The facts that red flag indicators read from one compiled release, and the results that need only these."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import msgspec

from sankofa.model.ocds.fixed_flags import fixed_findings
from sankofa.model.ocds.guide_outliers import Facts, measure_all, shares_of
from sankofa.model.ocds.guide_pairs import NO_RIVALS, Purchase, Rivals, purchases_of, rivals_of
from sankofa.model.ocds.process_facts import (
    BUYER,
    DIGITS,
    PROCESS,
    PROCURING_ENTITY,
    TENDERER,
    Classification,
    ProcessFacts,
    Reading,
    amount_of,
    ids_of,
)


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
    currencies = Counter(bid.value.currency for bid in facts.all_bids if bid.value and bid.value.currency)
    supplier, reason = facts.only_supplier()
    return Examined(
        ocid,
        False,
        list(fixed_findings(ocid, facts, every=every)),
        currencies,
        {currency: _prices(ocid, facts, currency, supplier, reason) for currency in currencies},
        reason or "No bid has an amount.",
        _entered(facts, supplier) if supplier else {},
        dict(shares_of(facts)) | _disqualified(facts),
        _classes(facts),
        measure_all(facts, every=every),
        purchases_of(facts),
        rivals_of(facts),
    )


def _prices(ocid: str, facts: ProcessFacts, currency: str, supplier: str, reason: str) -> _Prices:
    winning = lowest_other = None
    other = ""
    for bid in facts.all_bids if supplier else ():
        amount, ids = amount_of(bid.value, currency), ids_of(bid.tenderers)
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
    for bid in facts.submitted_bids:
        amount = amount_of(bid.value, currency)
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
        for bid in facts.all_bids
        if bid.status == "valid" and len(bid.tenderers or ()) == 1
        for one in ids_of(bid.tenderers)
    }


def _disqualified(facts: ProcessFacts) -> dict[tuple[str, str, str], tuple[int, int]]:
    submitted = facts.submitted_bids
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
