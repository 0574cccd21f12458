"""Public tenders quarter by quarter: how concentrated their buyers and the winners of their awards are, and
how many processes, buyers and tenderers the indicators of red flags point at.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from sankofa.derive.signals.contract import METHOD, Basis, Observation, PanelRow, origin, panel
from sankofa.derive.signals.tenders import (
    AwardedQuarter,
    buyer_key,
    by_period,
    captured_until,
    closed_awards,
    concentration,
    first_award_ref,
    first_ref,
    quarter,
    quarter_number,
)
from sankofa.derive.tenders import Tender
from sankofa.model.figures import rounded
from sankofa.model.ocds.process_facts import BUYER, PROCESS, PROCURING_ENTITY, TENDERER
from sankofa.model.ocds.red_flags import INDICATORS, indicator_list
from sankofa.model.rows import doc, one_of


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
    methodology_ref: Annotated[Literal["signals-v1/public-buyer-concentration"], METHOD] = (
        "signals-v1/public-buyer-concentration"
    )


@panel(
    "public-buyer-concentration",
    access="open",
    sku="AF-TENDER",
    row=PublicBuyerConcentrationRow,
    order=("country", "-quarter"),
)
def public_buyer_concentration(basis: Basis) -> Iterator[Observation]:
    """How the tenders of a country were shared among its public buyers in a quarter.

    A release belongs to the quarter of its date in UTC. Within a quarter an ocid is one tender, described by
    its first release there. A quarter closes on its last day and uses nothing released later. It has rows
    only if releases of the country were captured on that day or after.

    - attributed_share = tenders whose buyer is named / tenders. A withheld buyer is not named, and none of
      the columns below counts its tenders.
    - Buyers are identified by service_id if resolved, else by normalised name.
    - buyer_hhi = sum over buyers of (attributed tenders of the buyer / attributed tenders)^2
    - top_buyer_share = the largest of these shares
    - effective_buyers = 1 / buyer_hhi

    Ordered by country, then quarter descending.
    """
    for country in basis.tenders.countries:
        quarters: dict[int, _BuyersOfQuarter] = {}
        captures: set[int] = set()
        for period in by_period(basis.tenders.of(country), quarter_number):
            inputs = frozenset(tender.row.capture_id for tender in period.tenders)
            first = first_ref(period.tenders, basis.captures)
            quarters[period.number] = _BuyersOfQuarter(Counter(map(buyer_key, period.tenders)), inputs, first)
            captures |= period.captures
        captured = captured_until(basis.captures[n] for n in captures)
        for number, summary in quarters.items():
            if quarter(number).last_day.toordinal() <= captured:
                yield _of_buyers(basis, country, number, summary)


class _BuyersOfQuarter(NamedTuple):
    """Tenders of each buyer, the captures they came from, and the `source_ref` of the first."""

    buyers: Counter[str | None]
    captures: frozenset[int]
    first: str


def _of_buyers(basis: Basis, country: str, number: int, summary: _BuyersOfQuarter) -> Observation:
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


class TenderAwardConcentrationRow(PanelRow, frozen=True, kw_only=True):
    """The awards of one country in one closed quarter."""

    country: Annotated[str, doc("Country of the tenders, ISO 3166-1 alpha-2.")]
    quarter: Annotated[str, doc("Quarter of the release dates in UTC, as YYYY-Qn.")]
    closed_at: Annotated[date, doc("Last day of the quarter.")]
    award_count: Annotated[int, doc("Number of awards first released in the quarter.", ge=1)]
    attributed_share: Annotated[Decimal, doc("Share of the awards whose winners are all named, 0 to 1.")]
    supplier_count: Annotated[int, doc("Number of winners of the attributed awards.", ge=0)]
    supplier_hhi: Annotated[
        Decimal | None, doc("Concentration of attributed awards, 0 to 1; null without any.")
    ]
    top_supplier_share: Annotated[
        Decimal | None, doc("Share of attributed awards of the largest winner, 0 to 1.")
    ]
    effective_suppliers: Annotated[
        Decimal | None, doc("Number of equal winners with the same concentration: 1 / supplier_hhi.")
    ]
    repeat_winner_share: Annotated[
        Decimal | None,
        doc("Share of attributed awards of earlier winners, 0 to 1; null in the first quarter."),
    ]
    methodology_ref: Annotated[Literal["signals-v1/tender-award-concentration"], METHOD] = (
        "signals-v1/tender-award-concentration"
    )


@panel(
    "tender-award-concentration",
    access="open",
    sku="AF-TENDER",
    row=TenderAwardConcentrationRow,
    order=("country", "-quarter"),
)
def tender_award_concentration(basis: Basis) -> Iterator[Observation]:
    """How the awards of a country's tenders were shared among their winners in a quarter.

    An award is identified by its ocid and award id. It belongs to the quarter (UTC) of the first release that
    has it, and counts as that release describes it. Awards that are cancelled or unsuccessful there are left
    out. A quarter closes on its last day and uses nothing released later.

    - attributed_share = awards whose winners are all named / awards. An award without winners, or with a
      withheld one, is not attributed, and none of the columns below counts it.
    - Winners are identified by service_id if resolved, else by normalised name. An award with several winners
      is shared equally among them.
    - supplier_hhi = sum over winners of (attributed awards of the winner / attributed awards)^2
    - top_supplier_share = the largest of these shares
    - effective_suppliers = 1 / supplier_hhi
    - repeat_winner_share = attributed awards of winners who had won an attributed award of the country in an
      earlier quarter / attributed awards. Null while no earlier quarter has one: who won before is not known.

    Ordered by country, then quarter descending.
    """
    for country in basis.tenders.countries:
        before = _EarlierWinners(set(), set())
        rows = []
        for awarded in closed_awards(basis, country):
            rows.append(_of_winners(basis, country, awarded, before))
        yield from reversed(rows)


class _EarlierWinners(NamedTuple):
    """Winners of attributed awards in earlier quarters, and the captures they came from."""

    winners: set[str]
    captures: set[int]


def _of_winners(basis: Basis, country: str, awarded: AwardedQuarter, before: _EarlierWinners) -> Observation:
    """The observation of one quarter. Adds its winners to `before`."""
    awards = awarded.awards
    parts = [shares for won in awards if (shares := won.shares())]
    won_by: defaultdict[str, Fraction] = defaultdict(Fraction)
    for shares in parts:
        for supplier, part in shares.items():
            won_by[supplier] += part
    hhi = concentration(won_by.values())
    repeated = sum((part for supplier, part in won_by.items() if supplier in before.winners), Fraction())
    name, closed_at = quarter(awarded.number)
    inputs = (basis.captures[n] for n in awarded.captures | before.captures)
    provenance, sources = origin(first_award_ref(awards, basis.captures), inputs)
    row = TenderAwardConcentrationRow(
        country=country,
        quarter=name,
        closed_at=closed_at,
        award_count=len(awards),
        attributed_share=rounded(Fraction(len(parts), len(awards))),
        supplier_count=len(won_by),
        supplier_hhi=None if hhi is None else rounded(hhi),
        top_supplier_share=rounded(max(won_by.values()) / len(parts)) if parts else None,
        effective_suppliers=None if hhi is None else rounded(1 / hhi),
        repeat_winner_share=rounded(repeated / len(parts)) if parts and before.winners else None,
        **provenance,
    )
    before.winners.update(won_by)
    before.captures.update(awarded.captures if won_by else ())
    closing = closed_at.toordinal()
    return Observation(row, closing, closing, sources)


class RedFlagsRow(PanelRow, frozen=True, kw_only=True):
    """One indicator over the processes of a country that were known when a quarter closed."""

    country: Annotated[str, doc("Country of the tenders, ISO 3166-1 alpha-2.")]
    quarter: Annotated[str, doc("Quarter of the release dates in UTC, as YYYY-Qn.")]
    closed_at: Annotated[date, doc("Last day of the quarter.")]
    indicator: Annotated[str, one_of(INDICATORS, "Code of the indicator, such as R018.")]
    population: Annotated[int, doc("Number of processes with a release by the last day.", ge=1)]
    computed_count: Annotated[
        int,
        doc(
            "Processes it can be computed for; parties for R013, R021, R025, R038, R048 and R072; pairs of "
            "parties for R023, R040, R050, R052 and R053.",
            ge=0,
        ),
    ]
    flagged_processes: Annotated[int, doc("Number of flagged processes.", ge=0)]
    flagged_buyers: Annotated[int, doc("Number of flagged buyers.", ge=0)]
    flagged_procuring_entities: Annotated[int, doc("Number of flagged procuring entities.", ge=0)]
    flagged_tenderers: Annotated[int, doc("Number of flagged tenderers.", ge=0)]
    methodology_ref: Annotated[Literal["signals-v1/red-flags"], METHOD] = "signals-v1/red-flags"


@panel(
    "red-flags",
    access="open",
    sku="AF-TENDER",
    row=RedFlagsRow,
    order=("country", "-quarter", "indicator"),
    appendix=indicator_list(),
)
def red_flags(basis: Basis) -> Iterator[Observation]:
    """Indicators of red flags in public procurement, counted when each quarter closed.

    A flag is a reason to look. It proves nothing and accuses nobody: flags have innocent explanations, and
    many come from errors in the published data. `/v1/flags` has the flags themselves, for any day.

    The indicators have the codes of "Red flags in public procurement", the guide of the Open Contracting
    Partnership (2024). Those of Cardinal, the Partnership's library, are computed as Cardinal does, with
    its defaults (https://cardinal.readthedocs.io/en/latest/cli/indicators/): R003, R018, R024, R025,
    R028, R030, R035, R036, R038, R048 and R058. The others follow the guide. Where the guide leaves a
    threshold open, it is the fence of the population, 1.5 interquartile ranges beyond the quartiles; a
    value within the quartiles never stands out. Where the guide prints a formula with a misprint (R016,
    R017, R065, R066), its definition counts.

    The population is every process of the country with a release by the last day of the quarter, compiled
    from its releases up to then. Cancelled tenders count in the population, but no indicator is computed
    for them. Thresholds come from this population only; quartiles q1 and q3 are those of Hyndman and Fan,
    type 8. Prices of Cardinal's indicators are compared in the currency that most bids of the population
    have. People are withheld, and so are their ids: no indicator counts them. A buyer's or procuring
    entity's share counts its own processes.

    R023, R040, R050, R052 and R053 compare pairs. R040 and R050 compare a supplier with the others of the
    same buyer (or else procuring entity) or item category; awards to several suppliers, or to one that may
    not be named, count in the whole only. R023 and R053 compare two tenderers by their valid bids, in
    processes with at most 20 tenderers; the others are counted. We found no
    formula of the guide for R052 and R053: the fence of all pairs decides how much larger a later purchase
    is, and how often the same tenderer wins.

    A quarter has rows if it has a release and releases of the country were captured on its last day or
    after. Ordered by country, quarter descending, then indicator.
    """
    for country in basis.tenders.countries:
        inputs: dict[int, set[int]] = {}
        oldest: Tender | None = None
        for tender in basis.tenders.of(country):
            inputs.setdefault(quarter_number(tender.row.release_date), set()).add(tender.row.capture_id)
            oldest = min(filter(None, (oldest, tender)), key=lambda one: one.row.moment)
        earliest = first_ref([oldest] if oldest else [], basis.captures)
        captured = captured_until(basis.captures[n] for of_quarter in inputs.values() for n in of_quarter)
        closed = [n for n in sorted(inputs) if quarter(n).last_day.toordinal() <= captured]
        counts = basis.flags.quarters(country)
        for number in reversed(closed):
            known = {n for earlier, of_quarter in inputs.items() if earlier <= number for n in of_quarter}
            provenance, sources = origin(earliest, (basis.captures[n] for n in known))
            name, closed_at = quarter(number)
            closing = closed_at.toordinal()
            population, computed, flagged = counts[closing]
            for indicator in INDICATORS:
                own = flagged.get(indicator, {})
                row = RedFlagsRow(
                    country=country,
                    quarter=name,
                    closed_at=closed_at,
                    indicator=indicator,
                    population=population,
                    computed_count=computed[indicator],
                    flagged_processes=own.get(PROCESS, 0),
                    flagged_buyers=own.get(BUYER, 0),
                    flagged_procuring_entities=own.get(PROCURING_ENTITY, 0),
                    flagged_tenderers=own.get(TENDERER, 0),
                    **provenance,
                )
                yield Observation(row, closing, closing, sources)
