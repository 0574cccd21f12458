"""The indicators of the guide (`red_flags`) that compare values with those of other processes or parties.

- `OUTLIERS`: a measure of a process, against the quartiles of all its values or of a group of them, such as
  a procurement method;
- `SHARES`: two numbers of a party over its processes; their ratio is compared with those of other parties.

A function answers with a sentence where the indicator cannot be computed.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from msgspec import UnsetType

from sankofa.model.ocds.process_facts import (
    BUYER,
    COMPETITIVE,
    DIGITS,
    MOST_LISTED,
    PROCURING_ENTITY,
    BidOpening,
    Item,
    Measured,
    PeriodFacts,
    ProcessFacts,
    Text,
    amount_of,
    both_amounts,
    days_between,
    document_types,
    ids_of,
)

Facts = list[Measured] | str
"""Values that are compared with those of their groups; or why there are none."""

_NON_COMPETITIVE: Final = ("limited", "direct")
_NOT_PRICE: Final = ("qualityOnly", "ratedCriteria")
_PLANNING: Final = {
    "plannedProcurementNotice", "procurementPlan", "marketStudies", "feasibilityStudy", "projectPlan",
}  # fmt: skip
_KEY: Final = {"tenderNotice", "biddingDocuments", "technicalSpecifications", "evaluationCriteria"}


def _method(facts: ProcessFacts) -> str:
    return facts.tender_facts.procurement_method or ""


def _missing(missing: bool, **inputs: Any) -> Facts:
    """1 for a missing document: it stands out only where most processes publish theirs."""
    return [Measured("", float(missing), inputs)]


def _no_plan(facts: ProcessFacts) -> Facts:
    if not facts.planning:
        return "The release has no planning section."
    types = document_types(facts.planning.documents)
    return _missing(not _PLANNING.intersection(types), document_types=types[:MOST_LISTED])


def _no_key_information(facts: ProcessFacts) -> Facts:
    if not facts.tender:
        return "The release has no tender section."
    types, period = document_types(facts.tender.documents), facts.tender_dates
    known = bool(_KEY.intersection(types) or period.start_date or period.end_date)
    return _missing(not known, document_types=types[:MOST_LISTED])


def _no_contract_document(facts: ProcessFacts) -> Facts:
    active = facts.active_contracts
    if not active:
        return "No active contract is published."
    without = [one for one in active if "contractSigned" not in document_types(one.documents)]
    return _missing(bool(without), contracts=[str(one.id) for one in without if one.id][:MOST_LISTED])


def _period(facts: ProcessFacts, days: float | None, reason: str, **inputs: Any) -> Facts:
    if days is None:
        return reason
    method = _method(facts)
    return [Measured(method, days, {**inputs, "days": days, "procurement_method": method or None})]


def _to_opening(facts: ProcessFacts) -> Facts:
    tender = facts.tender_facts
    start = facts.tender_dates.start_date
    end = (tender.bid_opening or BidOpening()).date
    reason = "The start of the tender period or the opening of bids is not published with its time."
    return _period(facts, days_between(start, end), reason, start=start, bid_opening=end)


def _to_evaluation(facts: ProcessFacts) -> Facts:
    tender = facts.tender_facts
    start = (tender.bid_opening or BidOpening()).date
    end = (tender.award_period or PeriodFacts()).start_date
    reason = "The opening of bids or the start of the award period is not published with its time."
    return _period(facts, days_between(start, end), reason, bid_opening=start, award_period_start=end)


def _decision(facts: ProcessFacts) -> Facts:
    end = facts.tender_dates.end_date
    dates = [
        (days, one.date)
        for one in facts.awards or ()
        if one.status == "active" and (days := days_between(end, one.date)) is not None
    ]
    days, award = min(dates) if dates else (None, None)
    reason = "The end of the tender period or the date of an active award is not published with its time."
    return _period(facts, days, reason, end=end, award=award)


def _to_signature(facts: ProcessFacts) -> Facts:
    dates = [
        (days, award.date, one.date_signed)
        for one in facts.contracts or ()
        if (award := facts.award_of(one)) and (days := days_between(award.date, one.date_signed)) is not None
    ]
    days, awarded, signed = max(dates) if dates else (None, None, None)
    reason = "No contract has a date of signature and a date of its award, both with their time."
    return _period(facts, days, reason, award=awarded, signed=signed)


def category_of(facts: ProcessFacts) -> str:
    """The item category of a process: the scheme and first characters that all its items have; else empty."""
    items: list[Item] = list(facts.tender_facts.items or ())
    items = items or [item for award in facts.awards or () for item in award.items or ()]
    codes = {
        (item.classification.scheme or "", str(item.classification.id)[:DIGITS])
        for item in items
        if item.classification and item.classification.id
    }
    return " ".join(min(codes)).strip() if len(codes) == 1 else ""


_NO_CATEGORY: Final = "Its items are not all of one published category."


def _tender_value(facts: ProcessFacts) -> Facts:
    tender = facts.tender_facts
    amount = amount_of(tender.value)
    if amount is None or not tender.value:
        return "The value of the tender is not published."
    if not (category := category_of(facts)):
        return _NO_CATEGORY
    method, currency = _method(facts), str(tender.value.currency)
    inputs = {"currency": currency, "category": category, "procurement_method": method or None}
    return [Measured(f"{method}|{currency}|{category}", amount, inputs)]


def _line_items(facts: ProcessFacts) -> Facts:
    sources = [facts.tender_facts.items, *(one.items for one in facts.awards or ())]
    sources += [one.items for one in facts.contracts or ()]
    for items in sources:
        measured: dict[str, list[Measured]] = {}
        for item in items or ():
            code, unit = item.classification, item.unit
            amount = amount_of(unit.value) if unit else None
            if amount is None or not code or not code.id or not unit or not unit.value:
                continue
            name, currency = str(unit.name or unit.id or ""), str(unit.value.currency)
            category = f"{code.scheme or ''} {code.id}".strip()
            inputs = {"currency": currency, "category": category, "unit": name or None}
            one = Measured(f"{currency}|{name}|{category}", amount, inputs)
            measured.setdefault(one.group, []).append(one)
        if measured:
            return [one for own in measured.values() for one in own]
    return "No item has a classification and a value of its unit."


def _bidders(facts: ProcessFacts) -> Facts:
    tender = facts.tender_facts
    number = tender.number_of_tenderers
    if tender.procurement_method not in COMPETITIVE:
        return "The procedure is not published as open or selective."
    if number is None or isinstance(number, UnsetType):
        return "The number of tenderers is not published."
    if not (category := category_of(facts)):
        return _NO_CATEGORY
    return [Measured(category, float(number), {"number_of_tenderers": number, "category": category})]


def _price_range(facts: ProcessFacts) -> Facts:
    bids = [one for one in facts.all_bids if one.status == "valid" and amount_of(one.value) is not None]
    currencies = {str(one.value.currency) for one in bids if one.value}
    amounts = [amount for one in bids if (amount := amount_of(one.value)) is not None]
    if len(amounts) < 2 or len(currencies) != 1 or not sum(amounts):
        return "There are not two valid bids with an amount, all in one currency."
    mean = sum(amounts) / len(amounts)
    inputs = {
        "highest_bid": max(amounts),
        "lowest_bid": min(amounts),
        "mean_bid": mean,
        "currency": min(currencies),
    }
    return [Measured("", (max(amounts) - min(amounts)) / mean, inputs)]


def _winning_price(facts: ProcessFacts, currency: Text) -> float | None:
    """The winner's lowest valid bid; where no bid has an amount, the value of the only active award."""
    supplier, _ = facts.only_supplier()
    amounts = [
        amount
        for one in facts.all_bids
        if one.status == "valid" and one.value and one.value.currency == currency
        and ids_of(one.tenderers) == [supplier] and (amount := amount_of(one.value)) is not None
    ]  # fmt: skip
    if amounts or any(one.value for one in facts.all_bids):
        return min(amounts, default=None)
    active = [one for one in facts.awards or () if one.status == "active"]
    value = active[0].value if len(active) == 1 else None
    return amount_of(value) if value and value.currency == currency else None


def _estimate(facts: ProcessFacts) -> Facts:
    tender = facts.tender_facts
    estimate = amount_of(tender.value)
    if not estimate or not tender.value:
        return "The value of the tender is not published."
    winning = _winning_price(facts, tender.value.currency)
    if winning is None:
        return "There is no single winning price in the currency of the tender."
    inputs = {"winning_price": winning, "tender_value": estimate, "currency": tender.value.currency}
    return [Measured("", winning / estimate, inputs)]


def _award_to_contract(facts: ProcessFacts) -> Facts:
    measured = [
        Measured("", (own - base) / base, {"contract": own, "award": base, "currency": currency})
        for contract in facts.contracts or ()
        if contract.status in ("active", "pending")
        and (award := facts.award_of(contract))
        and award.status == "active"
        and (both := both_amounts(contract.value, award.value))
        for own, base, currency in [both]
    ]
    return measured or "No contract has a value and an active award with a value in its currency."


class Bound(NamedTuple):
    """The side on which a value is an outlier."""

    low: bool = False
    high: bool = False
    reached: bool = True
    """Whether a value on the fence is one."""


class Outliers(NamedTuple):
    """An indicator that compares a measure of a process with the quartiles of its group."""

    section: str
    """The section of a release that it needs; empty for any of several."""
    measure: Callable[[ProcessFacts], Facts]
    bound: Bound


HIGH: Final = Bound(high=True)
_BOTH, _LONG, _SHORT = (
    Bound(low=True, high=True),
    Bound(high=True, reached=False),
    Bound(low=True, reached=False),
)
OUTLIERS: Final[dict[str, Outliers]] = {
    "R001": Outliers("planning", _no_plan, HIGH),
    "R005": Outliers("tender", _no_key_information, HIGH),
    "R014": Outliers("tender", _to_opening, _SHORT),
    "R015": Outliers("tender", _to_evaluation, _LONG),
    "R016": Outliers("tender", _tender_value, _BOTH),
    "R017": Outliers("", _line_items, _BOTH),
    "R019": Outliers("tender", _bidders, Bound(low=True)),
    "R022": Outliers("bids", _price_range, HIGH),
    "R031": Outliers("awards", _estimate, HIGH),
    "R059": Outliers("contracts", _award_to_contract, _LONG),
    "R060": Outliers("contracts", _to_signature, _LONG),
    "R061": Outliers("awards", _decision, _SHORT),
    "R062": Outliers("awards", _decision, _LONG),
    "R063": Outliers("contracts", _no_contract_document, HIGH),
}


def measure_all(facts: ProcessFacts, *, every: bool) -> dict[str, Facts]:
    """The values of `OUTLIERS`. `every`: with the reasons of those that cannot be computed."""
    measured = {
        indicator: measure(facts)
        for indicator, (section, measure, _) in OUTLIERS.items()
        if every or not section or getattr(facts, section)
    }
    return {indicator: one for indicator, one in measured.items() if every or not isinstance(one, str)}


def _used(facts: ProcessFacts) -> tuple[int, int] | None:
    method = facts.tender_facts.procurement_method
    return (int(method in _NON_COMPETITIVE), 1) if method else None


def _discretionary(facts: ProcessFacts) -> tuple[int, int] | None:
    criteria = facts.tender_facts.award_criteria
    return (int(criteria in _NOT_PRICE), 1) if criteria else None


def _with_subcontracts(facts: ProcessFacts) -> tuple[int, int] | None:
    known = [one.has_subcontracting for one in facts.awards or () if isinstance(one.has_subcontracting, bool)]
    return (int(any(known)), 1) if known else None


class Share(NamedTuple):
    """An indicator that compares two numbers of a party, added up over its processes."""

    part: str
    whole: str
    reason: str
    """Why it cannot be computed for a party with fewer than 2."""
    none: str
    """Why a process has no such party."""
    of_process: Callable[[ProcessFacts], tuple[int, int] | None] | None = None
    """The numbers that a process adds to its buyer and procuring entity."""


def _share(part: str, published: str, of_process: Callable[[ProcessFacts], tuple[int, int] | None]) -> Share:
    reason = f"Fewer than 2 of its processes publish {published}."
    none = f"The process does not publish {published}, or names no buyer."
    return Share(part, "processes", reason, none, of_process)


SHARES: Final[dict[str, Share]] = {
    "R013": _share("non_competitive", "the procurement method", _used),
    "R021": _share("not_price_only", "the award criteria", _discretionary),
    "R038": Share(
        "disqualified",
        "submitted",
        "Fewer than 2 submitted bids.",
        "No bid was submitted, or nobody is named.",
    ),
    "R072": _share("with_subcontracts", "whether an award has subcontracts", _with_subcontracts),
}


def shares_of(facts: ProcessFacts) -> Iterator[tuple[tuple[str, str, str], tuple[int, int]]]:
    """What a process adds to the shares of its buyer and its procuring entity."""
    parties = [
        (kind, one)
        for kind, party in ((BUYER, facts.buyer), (PROCURING_ENTITY, facts.tender_facts.procuring_entity))
        for one in ids_of([party] if party else [])
    ]
    for indicator, share in SHARES.items() if parties else ():
        added = share.of_process and share.of_process(facts)
        if added:
            for kind, one in parties:
                yield (indicator, kind, one), added
