"""How concentrated the buyers behind public tenders are, quarter by quarter."""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from sankofa.derive.rounding import rounded
from sankofa.derive.signals.contract import Basis, Observation, PanelRow, origin, panel
from sankofa.derive.signals.tenders import (
    buyer_key,
    by_period,
    captured_until,
    concentration,
    first_ref,
    quarter,
    quarter_number,
)
from sankofa.model.rows import doc


class PublicBuyerConcentrationRow(PanelRow, frozen=True, kw_only=True):
    """The buyers of one country in one closed quarter."""

    country: Annotated[str, doc("Country of the tenders, ISO 3166-1 alpha-2.")]
    quarter: Annotated[str, doc("Quarter of the release dates in UTC, as YYYY-Qn.")]
    closed_at: Annotated[date, doc("Last day of the quarter.")]
    tender_count: Annotated[int, doc("Number of tenders with a release in the quarter.", ge=1)]
    attributed_share: Annotated[Decimal, doc("Share of the tenders whose buyer is named, 0 to 1.")]
    buyer_count: Annotated[int, doc("Number of buyers of the attributed tenders.", ge=0)]
    buyer_hhi: Annotated[
        Decimal | None, doc("Concentration of attributed tenders, 0 to 1; null without any.")
    ]
    top_buyer_share: Annotated[
        Decimal | None, doc("Share of attributed tenders of the largest buyer, 0 to 1.")
    ]
    effective_buyers: Annotated[
        Decimal | None, doc("Number of equal buyers with the same concentration: 1 / buyer_hhi.")
    ]
    methodology_ref: Annotated[
        Literal["signals-v1/public-buyer-concentration"],
        doc("Name of the method; /methodology/ explains it."),
    ] = "signals-v1/public-buyer-concentration"


@panel(
    "public-buyer-concentration",
    access="open",
    sku="AF-TENDER",
    row=PublicBuyerConcentrationRow,
    order=("country", "-quarter"),
)
def public_buyer_concentration(basis: Basis) -> Iterator[Observation]:
    """How the tenders of a country were shared among its public buyers in a quarter.

    A release belongs to the quarter of its date in UTC. In a quarter an ocid is one tender, told by the first
    of its releases there. A quarter is closed on its last day, and uses nothing released later; it is there
    only if releases of the country were captured on that day or after.

    - attributed_share = tenders whose buyer is named / tenders. A buyer that is withheld is not named, and
      none of the columns below counts its tenders.
    - Buyers are told apart by their service_id where they are resolved, else by their normalised name.
    - buyer_hhi = sum over buyers of (attributed tenders of the buyer / attributed tenders)^2
    - top_buyer_share = the largest of these shares
    - effective_buyers = 1 / buyer_hhi

    Ordered by country, then quarter descending.
    """
    for country in basis.tenders.countries:
        quarters: dict[int, _Quarter] = {}
        captures: set[int] = set()
        for period in by_period(basis.tenders.of(country), quarter_number):
            inputs = frozenset(tender.row.capture_id for tender in period.tenders)
            first = first_ref(period.tenders, basis.captures)
            quarters[period.number] = _Quarter(Counter(map(buyer_key, period.tenders)), inputs, first)
            captures |= period.captures
        captured = captured_until(basis.captures[n] for n in captures)
        for number, summary in quarters.items():
            if quarter(number).last_day.toordinal() <= captured:
                yield _observation(basis, country, number, summary)


class _Quarter(NamedTuple):
    """Tenders of each buyer, the captures they came from, and the `source_ref` of the first."""

    buyers: Counter[str | None]
    captures: frozenset[int]
    first: str


def _observation(basis: Basis, country: str, number: int, summary: _Quarter) -> Observation:
    buyers = summary.buyers
    provenance, sources = origin(summary.first, (basis.captures[n] for n in summary.captures))
    tenders = buyers.total()
    del buyers[None]
    attributed = buyers.total()
    hhi = concentration(buyers.values())
    name, closed_at = quarter(number)
    row = PublicBuyerConcentrationRow(
        country=country,
        quarter=name,
        closed_at=closed_at,
        tender_count=tenders,
        attributed_share=rounded(Fraction(attributed, tenders)),
        buyer_count=len(buyers),
        buyer_hhi=None if hhi is None else rounded(hhi),
        top_buyer_share=rounded(Fraction(max(buyers.values()), attributed)) if attributed else None,
        effective_buyers=None if hhi is None else rounded(1 / hhi),
        **provenance,
    )
    closing = closed_at.toordinal()
    return Observation(row, closing, closing, sources)
