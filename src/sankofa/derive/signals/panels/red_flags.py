"""How many processes, buyers and tenderers the indicators of red flags point at, quarter by quarter."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal

from sankofa.derive.signals.contract import Basis, Observation, PanelRow, origin, panel
from sankofa.derive.signals.tenders import captured_until, first_ref, instant_of, quarter, quarter_number
from sankofa.derive.tenders import Tender
from sankofa.model.ocds.flag_facts import BUYER, PROCESS, PROCURING_ENTITY, TENDERER
from sankofa.model.ocds.red_flags import INDICATORS
from sankofa.model.rows import doc, one_of


class RedFlagsRow(PanelRow, frozen=True, kw_only=True):
    """One indicator over the processes of a country that were known when a quarter closed."""

    country: Annotated[str, doc("Country of the tenders, ISO 3166-1 alpha-2.")]
    quarter: Annotated[str, doc("Quarter of the release dates in UTC, as YYYY-Qn.")]
    closed_at: Annotated[date, doc("Last day of the quarter.")]
    indicator: Annotated[str, one_of(INDICATORS, "Code of the indicator, such as R018.")]
    population: Annotated[int, doc("Number of processes with a release by the last day.", ge=1)]
    computed_count: Annotated[
        int, doc("Processes it can be computed for; parties for R025, R038 and R048.", ge=0)
    ]
    flagged_processes: Annotated[int, doc("Number of flagged processes.", ge=0)]
    flagged_buyers: Annotated[int, doc("Number of flagged buyers.", ge=0)]
    flagged_procuring_entities: Annotated[int, doc("Number of flagged procuring entities.", ge=0)]
    flagged_tenderers: Annotated[int, doc("Number of flagged tenderers.", ge=0)]
    methodology_ref: Annotated[
        Literal["signals-v1/red-flags"], doc("Name of the method; /methodology/ explains it.")
    ] = "signals-v1/red-flags"


@panel(
    "red-flags", access="open", sku="AF-TENDER", row=RedFlagsRow, order=("country", "-quarter", "indicator")
)
def red_flags(basis: Basis) -> Iterator[Observation]:
    """Indicators of red flags in public procurement, counted when each quarter closed.

    A flag is a reason to look. It proves nothing, and accuses nobody: each has innocent explanations, and
    many are errors in what was published. `/v1/flags` has the flags themselves, for any day.

    The indicators are those of Cardinal, the library of the Open Contracting Partnership
    (https://cardinal.readthedocs.io/en/latest/cli/indicators/), with its defaults. The population is every
    process of the country with a release by the last day of the quarter, compiled from its releases up to
    then. Cancelled tenders are counted in it, and no indicator is computed for them. Thresholds follow from
    this population alone; quartiles q1 and q3 are those of Hyndman and Fan, type 8. Prices are compared in
    the currency that most bids of the population have. People are withheld, and so are their ids: no
    indicator counts them.

    - R003, short submission period: whole days from the start to the end of the tender period < 15
    - R018, single bid received: numberOfTenderers = 1 in an open or selective procedure
    - R024, price close to winning bid: (second-lowest valid bid - winning bid) / winning bid <=
      q1 - 1.5 * (q3 - q1), where both q1 and this are > 0
    - R025, excessive unsuccessful bids: processes won / processes with a valid bid <= q1 - 1.5 * (q3 - q1),
      where both q1 and this are > 0, for tenderers at or above the 75th percentile of processes with a valid
      bid
    - R028, identical bid prices: different tenderers submitted bids of one amount and currency
    - R030, late bid won: date of a valid bid of a winner > end of the tender period, as published
    - R035, all except winning bid disqualified: tenderers with disqualified bids besides the only valid one,
      which won, >= 1
    - R036, lowest bid disqualified: the lowest submitted bid is disqualified, and another bid is valid
    - R038, excessive disqualified bids: disqualified bids / submitted bids >= q3 + 1.5 * (q3 - q1), where
      this is > 0, with at least 2 bids; for buyers, procuring entities and tenderers
    - R048, heterogeneous supplier: different classifications (2 characters) of awarded items >=
      q3 + 1.5 * (q3 - q1), with awards in at least 20 processes
    - R058, heavily discounted bid: (second-lowest valid bid - winning bid) / winning bid >=
      q3 + 1.5 * (q3 - q1), where this is > 0

    A quarter is there if it has a release, and releases of the country were captured on its last day or
    after. Ordered by country, quarter descending, then indicator.
    """
    for country in basis.tenders.countries:
        inputs: dict[int, set[int]] = {}
        oldest: Tender | None = None
        for tender in basis.tenders.of(country):
            inputs.setdefault(quarter_number(tender.row.release_date), set()).add(tender.row.capture_id)
            oldest = tender if oldest is None else min(oldest, tender, key=instant_of)
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
