"""Demand that issuers draw as suppliers: the public awards they won."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Literal

from sankofa.derive.metrics.contract import EXACT
from sankofa.derive.rounding import rounded
from sankofa.derive.signals.contract import (
    METHOD,
    Basis,
    Observation,
    PanelRow,
    issuer_fields,
    origin,
    panel,
    reporting,
)
from sankofa.derive.signals.tenders import QuarterAward, closed_awards, first_award_ref, quarter
from sankofa.ledger.entities import Entity
from sankofa.model.rows import Figure, doc


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
        Decimal, doc("Share of these awards with a published amount that is the issuer's alone, 0 to 1.")
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

    An issuer is an organisation with reported figures or a listed share; it won an award where a winner is
    resolved to it. Awards are told by ocid and award id, in the quarter (UTC) of the first release that
    has them and as that release has them; one that is cancelled or unsuccessful there is left out. A quarter
    is closed on its last day, and uses nothing released later.

    - award_count and buyer_count: in the quarter, whatever the currency. Buyers are told apart by service_id
      where resolved, else by normalised name; with one that is withheld or not named their number is null.
    - value_coverage = awards with a published amount that is the issuer's alone / awards. What several won
      together has no amount that is one's own, and counts as an award without.
    - award_value = sum of these amounts in one currency. One row for each currency; amounts are never
      converted. One row with neither if no award has an amount.

    Ordered by service_id, quarter descending, tender_country and currency.
    """
    issuers = {entity.service_id: entity for entity in reporting(basis)}
    issuers |= {entity.service_id: entity for entity in basis.entities if _listed(entity)}
    won_by: defaultdict[tuple[str, int, str], list[QuarterAward]] = defaultdict(list)
    for country in basis.tenders.countries:
        for number, awards, _ in closed_awards(basis, country):
            for won in awards:
                for winner in {supplier.match.service_id for supplier in won.award.suppliers}:
                    if winner in issuers:
                        won_by[winner, -number, country].append(won)
    for (winner, number, country), awards in sorted(won_by.items(), key=lambda item: item[0]):
        yield from _observed(basis, issuers[winner], -number, country, awards)


def _observed(
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


def _listed(entity: Entity) -> bool:
    return any(claim.identifier.startswith("ticker:") for claim in entity.claims)
