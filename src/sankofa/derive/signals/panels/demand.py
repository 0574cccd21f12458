"""Demand from public tenders: for categories of goods, works and services by month, and the awards that
issuers won as suppliers by quarter.

See contract: SIG-1, SIG-2, SIG-4.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Final, Literal, NamedTuple

from sankofa.derive.metrics.contract import EXACT
from sankofa.derive.signals.contract import (
    METHOD,
    Basis,
    Observation,
    PanelRow,
    issuer_fields,
    origin,
    panel,
)
from sankofa.derive.signals.tenders import (
    QuarterAward,
    buyer_key,
    by_period,
    captured_until,
    closed_awards,
    concentration,
    first_award_ref,
    first_ref,
    month,
    month_number,
    quarter,
)
from sankofa.derive.tenders import Tender
from sankofa.ledger.entities import Entity
from sankofa.model.days import ordinal
from sankofa.model.figures import rounded
from sankofa.model.provenance import LICENSE_CLASSES, strictness
from sankofa.model.rows import Figure, doc

_SPAN: Final = 3
_HISTORY: Final = 2 * _SPAN


class ProcurementDemandRow(PanelRow, frozen=True, kw_only=True):
    """One category of one country in one closed month."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    category: Annotated[str, doc("Category as published by the source portal.", min_length=1)]
    month: Annotated[
        str, doc("Month of the release dates in UTC, as YYYY-MM.", pattern="^[0-9]{4}-[0-9]{2}$")
    ]
    closed_at: Annotated[date, doc("Last day of the month.")]
    tender_count: Annotated[int, doc("Number of tenders of the category in the month.", ge=1)]
    category_share: Annotated[
        Decimal, doc("Share of the category among the country's tenders of the month, 0 to 1.")
    ]
    buyer_hhi: Annotated[
        Decimal | None, doc("Concentration of buyers, 0 to 1; null if a buyer is withheld or not named.")
    ]
    momentum_3m: Annotated[
        Decimal | None,
        doc("Tenders of three months divided by those of the previous three, minus 1; null without those."),
    ]
    value_coverage: Annotated[Decimal, doc("Share of the tenders with a published amount, 0 to 1.")]
    methodology_ref: Annotated[Literal["signals-v1/procurement-demand"], METHOD] = (
        "signals-v1/procurement-demand"
    )


class _Category(NamedTuple):
    tenders: int
    valued: int
    buyers: Counter[str | None]
    captures: frozenset[int]
    first: str
    """`source_ref` of the first release."""


class _Month(NamedTuple):
    tenders: int
    captures: frozenset[int]
    categories: dict[str, _Category]


@panel(
    "procurement-demand",
    access="open",
    sku="AF-TENDER",
    row=ProcurementDemandRow,
    order=("-month", "category"),
    filters=("country", "category"),
)
def procurement_demand(basis: Basis) -> Iterator[Observation]:
    """How many tenders each category drew in a month, how concentrated its buyers are, and its momentum.

    A release belongs to the month of its date in UTC. Within a month an ocid is one tender. Its first release
    there gives the category, the buyer and the amount; among releases of one instant, the one with the
    smallest id counts. A tender without a category counts among all tenders of the country and has no row.

    - category_share = tenders of the category / all tenders of the country in that month
    - buyer_hhi = sum over buyers of (tenders of the buyer / tenders of the category)^2. Buyers are identified
      by service_id if resolved, else by normalised name. Null if the buyer of one of the tenders is withheld
      or not named, because the shares are then unknown.
    - momentum_3m = tenders of the category in the months m-2..m / those in m-5..m-3, minus 1. Null if the
      earlier sum is 0, or if fewer than six months, this one included, have closed since the country's first
      month with a release.
    - value_coverage = tenders of the category with a published amount / tenders of the category

    A month closes on its last day and uses only releases dated by then: a later as_of shows more months, but
    never another value for the same month. A month has rows only if releases of the country were captured on
    its last day or after. A category without tenders in a month has no row. Ordered by country, month
    descending and category.
    """
    for country in basis.tenders.countries:
        yield from _of_country(basis, country)


def _of_country(basis: Basis, country: str) -> Iterator[Observation]:
    months: dict[int, _Month] = {}
    captures: set[int] = set()
    for period in by_period(basis.tenders.of(country), month_number):
        months[period.number] = _summarise(basis, period.tenders)
        captures |= period.captures
    captured = captured_until(basis.captures[n] for n in captures)
    since = _first_months(basis, months)
    for number in sorted(months, reverse=True):
        closing = month(number).last_day.toordinal()
        if closing > captured:
            continue
        for category in sorted(months[number].categories):
            row, sources = _row(basis, country, category, months, number, since)
            yield Observation(row, closing, closing, sources)


_FirstMonths = list[tuple[int, int]]
"""Months with a release, each with a capture: the first, then each with a freer licence."""


def _first_months(basis: Basis, months: dict[int, _Month]) -> _FirstMonths:
    freer: _FirstMonths = []
    freest_so_far = len(LICENSE_CLASSES)
    for number in sorted(months):
        by_strictness = {
            strictness(basis.captures[n].license_class): n for n in sorted(months[number].captures)
        }
        if (freest := min(by_strictness)) < freest_so_far:
            freest_so_far = freest
            freer.append((number, by_strictness[freest]))
    return freer


def _summarise(basis: Basis, tenders: Iterable[Tender]) -> _Month:
    grouped: defaultdict[str | None, list[Tender]] = defaultdict(list)
    for tender in tenders:
        grouped[tender.summary.category].append(tender)
    categories = {
        category: _Category(
            len(members),
            sum(t.summary.value_amount is not None for t in members),
            Counter(map(buyer_key, members)),
            frozenset(t.row.capture_id for t in members),
            first_ref(members, basis.captures),
        )
        for category, members in grouped.items()
        if category
    }
    every = [tender for members in grouped.values() for tender in members]
    return _Month(len(every), frozenset(t.row.capture_id for t in every), categories)


def _row(
    basis: Basis, country: str, category: str, months: dict[int, _Month], number: int, since: _FirstMonths
) -> tuple[ProcurementDemandRow, frozenset[str]]:
    total, of_category = months[number], months[number].categories[category]
    momentum, history = _momentum(category, months, number, since)
    hhi = None if None in of_category.buyers else concentration(of_category.buyers.values())
    name, closed_at = month(number)
    provenance, sources = origin(of_category.first, (basis.captures[n] for n in total.captures | history))
    row = ProcurementDemandRow(
        country=country,
        category=category,
        month=name,
        closed_at=closed_at,
        tender_count=of_category.tenders,
        category_share=rounded(Fraction(of_category.tenders, total.tenders)),
        buyer_hhi=None if hhi is None else rounded(hhi),
        momentum_3m=momentum,
        value_coverage=rounded(Fraction(of_category.valued, of_category.tenders)),
        **provenance,
    )
    return row, sources


def _momentum(
    category: str, months: dict[int, _Month], number: int, since: _FirstMonths
) -> tuple[Decimal | None, frozenset[int]]:
    """The momentum, and the captures it depends on."""
    proof = [capture_id for month, capture_id in since if number - month + 1 >= _HISTORY]
    if not proof:
        return None, frozenset()
    counts, captures = [], frozenset(proof[-1:])
    for earlier in range(number - _HISTORY + 1, number + 1):
        of_category = months[earlier].categories.get(category) if earlier in months else None
        counts.append(of_category.tenders if of_category else 0)
        captures |= of_category.captures if of_category else frozenset()
    before, recent = sum(counts[:_SPAN]), sum(counts[_SPAN:])
    return (rounded(Fraction(recent, before) - 1), captures) if before else (None, frozenset())


class SupplierIssuerDemandRow(PanelRow, frozen=True, kw_only=True):
    """The awards that one issuer won in one country in one closed quarter, by currency."""

    service_id: Annotated[str, doc("Organisation identifier of the issuer.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country of the issuer, ISO 3166-1 alpha-2.")]
    tender_country: Annotated[str, doc("Country of the tenders, ISO 3166-1 alpha-2.")]
    quarter: Annotated[str, doc("Quarter of the release dates in UTC, as YYYY-Qn.")]
    closed_at: Annotated[date, doc("Last day of the quarter.")]
    award_count: Annotated[int, doc("Number of awards won in the quarter, in any currency.", ge=1)]
    buyer_count: Annotated[
        int | None, doc("Number of buyers of these awards; null if one is withheld or not named.")
    ]
    value_coverage: Annotated[
        Decimal, doc("Share of these awards whose published amount belongs to the issuer alone, 0 to 1.")
    ]
    currency: Annotated[str | None, doc("Currency code, ISO 4217; null if no amount is published.")]
    award_value: Annotated[Figure | None, doc("Sum of the amounts in this currency, with every digit.")]
    methodology_ref: Annotated[Literal["signals-v1/supplier-issuer-demand"], METHOD] = (
        "signals-v1/supplier-issuer-demand"
    )


@panel(
    "supplier-issuer-demand",
    access="licensed",
    sku="AF-TENDER",
    row=SupplierIssuerDemandRow,
    order=("service_id", "-quarter", "tender_country", "currency"),
)
def supplier_issuer_demand(basis: Basis) -> Iterator[Observation]:
    """The public awards that issuers won: how many, from how many buyers, and for how much.

    An issuer is an organisation with reported figures or a listed share, from its first figure or listing on.
    It won an award if a winner was resolved to it by the end of the quarter. Awards are identified by ocid
    and award id. They belong to the quarter (UTC) of the first release that has them, and count as that
    release describes them; cancelled or unsuccessful ones are left out. A quarter closes on its last day and
    uses nothing released later.

    - award_count and buyer_count: in the quarter, whatever the currency. Buyers are identified by service_id
      if resolved, else by normalised name. buyer_count is null if one is withheld or not named.
    - value_coverage = awards whose published amount belongs to the issuer alone / awards. An award with
      several winners counts as one without such an amount.
    - award_value = sum of these amounts in one currency. There is one row for each currency; amounts are
      never converted. If no award has an amount, one row has neither.

    Ordered by service_id, quarter descending, tender_country and currency.
    """
    since = dict(basis.first_figures)
    for entity in basis.entities:
        if listed := [claim.first for claim in entity.claims if claim.identifier.startswith("ticker:")]:
            first = ordinal(min(listed)) if min(listed) else 0
            since[entity.service_id] = min(first, since.get(entity.service_id, first))
    issuers = {entity.service_id: entity for entity in basis.entities if entity.service_id in since}
    won_by: defaultdict[tuple[str, int, str], list[QuarterAward]] = defaultdict(list)
    for country in basis.tenders.countries:
        for number, awards, _ in closed_awards(basis, country):
            closing = quarter(number).last_day.toordinal()
            for won in awards:
                matches = (supplier.match for supplier in won.award.suppliers)
                for winner in {one.service_id for one in matches if one.begins <= closing}:
                    if winner in issuers:
                        won_by[winner, -number, country].append(won)
    for (winner, number, country), awards in sorted(won_by.items(), key=lambda item: item[0]):
        for one in _awards_observed(basis, issuers[winner], -number, country, awards):
            yield one._replace(seen_from=max(one.seen_from, since[winner]))


def _awards_observed(
    basis: Basis, issuer: Entity, number: int, country: str, awards: list[QuarterAward]
) -> Iterator[Observation]:
    amounts: defaultdict[str, list[Decimal]] = defaultdict(list)
    for won in awards:
        amount, currency = won.award.amount, won.award.currency
        if amount is not None and currency and len(won.shares()) == 1:
            amounts[currency].append(amount)
    buyers = {won.buyer for won in awards}
    name, closed_at = quarter(number)
    closing = closed_at.toordinal()
    sums: dict[str | None, Decimal | None] = {}
    with localcontext(EXACT):
        for money in sorted(amounts):
            sums[money] = sum(amounts[money], Decimal())
    inputs = (basis.captures[won.capture_id] for won in awards)
    provenance, sources = origin(first_award_ref(awards, basis.captures), inputs)
    for currency, total in (sums or {None: None}).items():
        row = SupplierIssuerDemandRow(
            **issuer_fields(issuer),
            tender_country=country,
            quarter=name,
            closed_at=closed_at,
            award_count=len(awards),
            buyer_count=None if None in buyers else len(buyers),
            value_coverage=rounded(Fraction(sum(map(len, amounts.values())), len(awards))),
            currency=currency,
            award_value=total,
            **provenance,
        )
        yield Observation(row, closing, closing, sources)
