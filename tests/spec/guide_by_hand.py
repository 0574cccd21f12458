"""The guide's indicators over whole compiled releases, written once more and as plainly as possible.

It shares no code with the service, and takes its quantiles from numpy.
"""

import operator
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

Json = dict[str, Any]
Flag = tuple[str, str, str]
CODES = """R001 R004 R005 R013 R014 R015 R016 R017 R019 R020 R021 R022 R023 R031 R039 R040 R050 R052 R053 R059
R060 R061 R062 R063 R064 R065 R066 R067 R068 R069 R071 R072""".split()
KEY = {"tenderNotice", "biddingDocuments", "technicalSpecifications", "evaluationCriteria"}
PLANS = {"plannedProcurementNotice", "procurementPlan", "marketStudies", "feasibilityStudy", "projectPlan"}


def by_hand(releases: list[Json]) -> set[Flag]:
    """The flags of a population."""
    known = [one for one in releases if one.get("tender", {}).get("status") != "cancelled"]
    flags = {(code, "process", one["ocid"]) for one in known for code in _alone(one)}
    return flags | _outliers(known) | _shares(known) | _purchases(known) | _rivals(known)


def _instant(text: Any) -> datetime | None:
    instant = datetime.fromisoformat(text) if isinstance(text, str) and len(text) > 10 else None
    return instant if instant and instant.tzinfo else None


def _days(start: Any, end: Any) -> float | None:
    one, other = _instant(start), _instant(end)
    return (other - one).total_seconds() / 86400 if one and other else None


def _price(value: Json | None) -> tuple[float, str] | None:
    if not value or value.get("amount") is None or not value.get("currency"):
        return None
    return float(value["amount"]), value["currency"]


def _ratio(part: Json | None, whole: Json | None) -> float | None:
    one, other = _price(part), _price(whole)
    if one is None or other is None or one[1] != other[1] or other[0] <= 0:
        return None
    return one[0] / other[0]


def _award(release: Json, contract: Json) -> Json | None:
    awards = release.get("awards") or []
    if contract.get("awardID"):
        return next((one for one in awards if str(one.get("id")) == str(contract["awardID"])), None)
    return awards[0] if len(awards) == 1 else None


def _types(part: Json) -> set[str]:
    return {one["documentType"] for one in part.get("documents") or [] if one.get("documentType")}


def _alone(release: Json) -> set[str]:
    tender, flags = release.get("tender") or {}, set()
    period = tender.get("tenderPeriod") or {}
    opened = _instant(period.get("startDate"))
    dates = [
        date
        for one in tender.get("documents") or []
        if one.get("documentType") in ("tenderNotice", "biddingDocuments")
        and (date := _instant(one.get("datePublished")))
    ]
    if opened and dates and min(dates) > opened:
        flags.add("R004")
    if release.get("complaints"):
        flags.add("R020")
    if tender.get("status") == "complete" and any(
        not one.get("answer") and not one.get("dateAnswered") for one in tender.get("enquiries") or []
    ):
        flags.add("R039")
    for contract in release.get("contracts") or []:
        flags |= _of_contract(release, contract)
    for award in release.get("awards") or []:
        own = award.get("subcontracting")
        if award.get("hasSubcontracting") and own:
            share = _ratio(own.get("value"), award.get("value")) or 0
            if max(float(own.get("minimumPercentage") or 0), share) > 0.5:
                flags.add("R071")
    return flags


def _of_contract(release: Json, contract: Json) -> set[str]:
    flags = set()
    active, last = contract.get("status") == "active", contract.get("amendment") or {}
    amended = bool(contract.get("amendments")) or any(last.get(n) for n in ("id", "date", "description"))
    if amended:
        flags.add("R064")
    done = contract.get("implementation") or {}
    for one in (done.get("milestones") or []) if active else []:
        late = _days(one.get("dueDate"), one.get("dateMet"))
        if one.get("type") == "delivery" and late is not None and late > 0:
            flags.add("R067")
    paid = _ratio(done.get("finalValue"), contract.get("value"))
    if paid is None:
        whole = contract.get("value")
        prices = [one.get("value") or one.get("amount") for one in done.get("transactions") or []]
        sums: list[float] = [float(one["amount"]) for one in prices if _ratio(one, whole) is not None]
        paid = sum(sums) / float(whole["amount"]) if whole and sums else 0
    if paid > 1:
        flags.add("R068")
    award = _award(release, contract)
    if active and amended and award:
        if (_ratio(contract.get("value"), award.get("value")) or 0) > 1:
            flags.add("R069")
        before, after = (
            {str(one["id"]): one.get("quantity") for one in part.get("items") or []}
            for part in (award, contract)
        )
        if before and after:
            pairs = [
                (before[one], after[one])
                for one in before.keys() & after.keys()
                if before[one] is not None and after[one] is not None
            ]
            if before.keys() - after.keys() or any(new < old for old, new in pairs):
                flags.add("R065")
            if after.keys() - before.keys() or any(new > old for old, new in pairs):
                flags.add("R066")
    return flags


def _category(release: Json) -> tuple[str, str] | None:
    items = (release.get("tender") or {}).get("items") or []
    items = items or [item for award in release.get("awards") or [] for item in award.get("items") or []]
    codes = {
        (one["classification"].get("scheme") or "", str(one["classification"]["id"])[:2])
        for one in items
        if (one.get("classification") or {}).get("id")
    }
    return codes.pop() if len(codes) == 1 else None


def _values(release: Json) -> list[tuple[str, Any, float]]:
    """Indicator, group, value."""
    tender, awards = release.get("tender") or {}, release.get("awards") or []
    contracts, period = release.get("contracts") or [], tender.get("tenderPeriod") or {}
    method, opening = tender.get("procurementMethod"), (tender.get("bidOpening") or {}).get("date")
    active = [one for one in awards if one.get("status") == "active"]
    category, price = _category(release), _price(tender.get("value"))
    found: list[tuple[str, Any, float | None]] = [
        ("R014", method, _days(period.get("startDate"), opening)),
        ("R015", method, _days(opening, (tender.get("awardPeriod") or {}).get("startDate"))),
    ]
    if release.get("planning"):
        found.append(("R001", None, float(not _types(release["planning"]) & PLANS)))
    if tender:
        known = _types(tender) & KEY or period.get("startDate") or period.get("endDate")
        found.append(("R005", None, float(not known)))
    signed_ones = ["contractSigned" in _types(one) for one in contracts if one.get("status") == "active"]
    if signed_ones:
        found.append(("R063", None, float(not all(signed_ones))))
    if price and category:
        found.append(("R016", (method, category, price[1]), price[0]))
    for items in (one.get("items") or [] for one in (tender, *awards, *contracts)):
        units = [
            (
                (one["classification"].get("scheme"), str(one["classification"]["id"])),
                str(one["unit"].get("name") or one["unit"].get("id") or ""),
                _price(one["unit"].get("value")),
            )
            for one in items
            if (one.get("classification") or {}).get("id") and one.get("unit")
        ]
        if any(one[2] for one in units):
            found += [("R017", (code, name, own[1]), own[0]) for code, name, own in units if own]
            break
    number = tender.get("numberOfTenderers")
    if method in ("open", "selective") and number is not None and category:
        found.append(("R019", category, float(number)))
    every_bid = (release.get("bids") or {}).get("details") or []
    bids = [own for one in every_bid if one.get("status") == "valid" and (own := _price(one.get("value")))]
    amounts: list[float] = [amount for amount, _ in bids]
    if len(bids) > 1 and len({currency for _, currency in bids}) == 1 and any(amounts):
        found.append(("R022", None, (max(amounts) - min(amounts)) / (sum(amounts) / len(amounts))))
    if price and price[0]:
        winning = _winning(release, price[1], every_bid, awards, active)
        found.append(("R031", None, None if winning is None else winning / price[0]))
    for contract in contracts:
        award = _award(release, contract)
        if award and award.get("status") == "active" and contract.get("status") in ("active", "pending"):
            ratio = _ratio(contract.get("value"), award.get("value"))
            found.append(("R059", None, None if ratio is None else _change(contract, award)))
    signed = [
        days
        for one in contracts
        if (award := _award(release, one))
        and (days := _days(award.get("date"), one.get("dateSigned"))) is not None
    ]
    found.append(("R060", method, max(signed, default=None)))
    decided = [days for one in active if (days := _days(period.get("endDate"), one.get("date"))) is not None]
    found += [(code, method, min(decided, default=None)) for code in ("R061", "R062")]
    return [(code, group, value) for code, group, value in found if value is not None]


def _change(contract: Json, award: Json) -> float:
    now, before = float(contract["value"]["amount"]), float(award["value"]["amount"])
    return (now - before) / before


def _winning(
    release: Json, currency: str, bids: list[Json], awards: list[Json], active: list[Json]
) -> float | None:
    if any(one.get("value") for one in bids):
        done = (None, "active", "cancelled", "unsuccessful")
        final = all(one.get("status") in done for one in awards)
        suppliers = active[0].get("suppliers") or [] if len(active) == 1 else []
        if not final or len(suppliers) != 1 or not suppliers[0].get("id"):
            return None
        own = [
            price[0]
            for one in bids
            if one.get("status") == "valid"
            and (price := _price(one.get("value")))
            and price[1] == currency
            and [str(who["id"]) for who in one.get("tenderers") or [] if who.get("id")]
            == [str(suppliers[0]["id"])]
        ]
        return min(own, default=None)
    value = _price(active[0].get("value")) if len(active) == 1 else None
    return value[0] if value and value[1] == currency else None


def _fences(values: list[float]) -> tuple[float, float, float, float]:
    q1, q3 = (float(one) for one in np.quantile(values, [0.25, 0.75], method="median_unbiased"))
    return q1, q3, q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)


SIDES = {
    "R001": [operator.ge], "R005": [operator.ge], "R063": [operator.ge],
    "R014": [operator.lt], "R015": [operator.gt], "R016": [operator.le, operator.ge],
    "R017": [operator.le, operator.ge], "R019": [operator.le], "R022": [operator.ge], "R031": [operator.ge],
    "R059": [operator.gt], "R060": [operator.gt], "R061": [operator.lt], "R062": [operator.gt],
}  # fmt: skip


def _outliers(releases: list[Json]) -> set[Flag]:
    groups = defaultdict(list)
    for one in releases:
        for code, group, value in _values(one):
            groups[code, group].append((value, one["ocid"]))
    flags = set()
    for (code, _), own in groups.items():
        q1, q3, lower, upper = _fences([value for value, _ in own])
        for value, ocid in own:
            for side in SIDES[code]:
                low = side in (operator.lt, operator.le)
                if (value < q1 and side(value, lower)) if low else (value > q3 and side(value, upper)):
                    flags.add((code, "process", ocid))
    return flags


def _shares(releases: list[Json]) -> set[Flag]:
    numbers: defaultdict[tuple[str, str], defaultdict[str, list[bool]]]
    numbers = defaultdict(lambda: defaultdict(list))
    for one in releases:
        tender = one.get("tender") or {}
        subcontracts = [award.get("hasSubcontracting") for award in one.get("awards") or []]
        subcontracts = [said for said in subcontracts if said is not None]
        method, criteria = tender.get("procurementMethod"), tender.get("awardCriteria")
        facts = {
            "R013": method in ("limited", "direct") if method else None,
            "R021": criteria in ("qualityOnly", "ratedCriteria") if criteria else None,
            "R072": any(subcontracts) if subcontracts else None,
        }
        for kind, who in (("buyer", one.get("buyer")), ("procuring_entity", tender.get("procuringEntity"))):
            for code, fact in facts.items():
                if who and who.get("id") and fact is not None:
                    numbers[code, kind][str(who["id"])].append(fact)
    flags = set()
    for (code, kind), parties in numbers.items():
        shares = {who: sum(own) / len(own) for who, own in parties.items() if len(own) > 1}
        if shares:
            _, q3, _, upper = _fences(list(shares.values()))
            high = [who for who, share in shares.items() if share > q3 and share >= upper > 0]
            flags |= {(code, kind, who) for who in high}
    return flags


class Purchase(NamedTuple):
    buyer: str | None
    supplier: str | None
    currency: str
    category: tuple[str, str] | None
    day: str | None
    amount: float


def _bought(release: Json) -> list[Purchase]:
    known = [release.get("buyer"), (release.get("tender") or {}).get("procuringEntity")]
    buyers = [str(one["id"]) for one in known if one and one.get("id")]
    purchases = []
    for award in release.get("awards") or []:
        price, suppliers = _price(award.get("value")), award.get("suppliers") or []
        named = len(suppliers) == 1 and suppliers[0].get("id")
        if award.get("status") == "active" and price and price[0] > 0:
            purchases.append(
                Purchase(
                    buyers[0] if buyers else None,
                    str(suppliers[0]["id"]) if named else None,
                    price[1],
                    _category(release),
                    award["date"][:10] if award.get("date") else None,
                    price[0],
                )
            )
    return purchases


def _high(values: Mapping[Any, float], above: float = 0) -> list[Any]:
    if not values:
        return []
    _, q3, _, upper = _fences(list(values.values()))
    return [pair for pair, value in values.items() if value > q3 and value >= upper and value > above]


def _purchases(releases: list[Json]) -> set[Flag]:
    bought = [one for release in releases for one in _bought(release)]
    flags = set()
    for code, name in (("R040", "buyer"), ("R050", "category")):
        for group in {(getattr(one, name), one.currency) for one in bought if getattr(one, name)}:
            own = [one for one in bought if (getattr(one, name), one.currency) == group]
            total = sum(one.amount for one in own)
            shares: defaultdict[str, float] = defaultdict(float)
            for one in own:
                if one.supplier:
                    shares[one.supplier] += one.amount / total
            if len(shares) >= 10:
                flags |= {(code, "tenderer", supplier) for supplier in _high(shares)}
    growth = {}
    dated = [one for one in bought if one.day and one.buyer and one.supplier]
    for pair in {(one.buyer, one.supplier, one.currency) for one in dated}:
        own = [one for one in dated if (one.buyer, one.supplier, one.currency) == pair]
        first = min(str(one.day) for one in own)
        later = [one.amount for one in own if one.day != first]
        if later:
            growth[pair] = sum(later) / len(later) / sum(one.amount for one in own if one.day == first)
    return flags | {("R052", "tenderer", str(supplier)) for _, supplier, _ in _high(growth, above=1)}


def _winner(release: Json) -> str | None:
    awards = release.get("awards") or []
    active = [one for one in awards if one.get("status") == "active"]
    done = (None, "active", "cancelled", "unsuccessful")
    if len(active) != 1 or any(one.get("status") not in done for one in awards):
        return None
    suppliers = active[0].get("suppliers") or []
    return str(suppliers[0]["id"]) if len(suppliers) == 1 and suppliers[0].get("id") else None


def _rivals(releases: list[Json]) -> set[Flag]:
    differences: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    wins: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for release in releases:
        bids: defaultdict[str, list[Json]] = defaultdict(list)
        for bid in (release.get("bids") or {}).get("details") or []:
            who = bid.get("tenderers") or []
            if bid.get("status") == "valid" and len(who) == 1 and who[0].get("id"):
                bids[str(who[0]["id"])].append(bid)
        winner = _winner(release)
        for pair in combinations(sorted(bids), 2) if len(bids) <= 20 else ():
            prices: list[dict[str, float]] = []
            for one in pair:
                own: dict[str, float] = {}
                for amount, currency in (price for bid in bids[one] if (price := _price(bid.get("value")))):
                    own[currency] = min(amount, own.get(currency, amount))
                prices.append(own)
            shared = sorted(prices[0].keys() & prices[1].keys())
            if shared and prices[0][shared[0]] != prices[1][shared[0]]:
                first, second = (own[shared[0]] for own in prices)
                differences[pair].append(round((second - first) / first * 100, 2))
            if winner:
                wins[pair].append(winner)
    same = {pair: max(Counter(own).values()) for pair, own in differences.items() if len(own) > 1}
    shares = {
        pair: max(own.count(one) for one in pair) / len(own) for pair, own in wins.items() if len(own) > 2
    }
    return {("R023", "tenderer", one) for pair in _high(same, above=1) for one in pair} | {
        ("R053", "tenderer", one) for pair in _high(shares) for one in pair
    }
