"""Awards by quarter: an award is identified by ocid and award id, and dated by its first release."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from sankofa.derive.awards import Award, awards
from sankofa.derive.signals.calendar import captured_until, quarter, quarter_number
from sankofa.derive.signals.contract import Basis
from sankofa.derive.signals.tendering import buyer_key, instant_of, party_key
from sankofa.ledger.reader import CaptureInfo


class QuarterAward(NamedTuple):
    """An award, and who gave it."""

    quarter: int
    award: Award
    buyer: str | None
    """See `tendering.buyer_key`."""
    capture_id: int
    sort_key: tuple[str, str, str]
    """Date and id of the release that first has the award, and its location in the file."""

    def shares(self) -> dict[str, Fraction]:
        """Each winner's equal share of the award; empty where a winner is not named."""
        suppliers = {party_key(supplier) for supplier in self.award.suppliers}
        return {} if self.award.withheld else dict.fromkeys(suppliers, Fraction(1, len(suppliers) or 1))


def first_award_ref(awards: Iterable[QuarterAward], captures: Mapping[int, CaptureInfo]) -> str:
    """The `source_ref` of the award that was released first."""
    first = min(awards, key=lambda won: won.sort_key)
    return captures[first.capture_id].ref(first.sort_key[2])


class AwardedQuarter(NamedTuple):
    """The awards that were first released in a quarter."""

    number: int
    awards: list[QuarterAward]
    captures: frozenset[int]
    """Captures that decided what is counted, also by repeating an earlier award or cancelling one."""


def closed_awards(basis: Basis, country: str) -> Iterator[AwardedQuarter]:
    """The awards of a country by closed quarter, the oldest first.

    A quarter is there only if releases of the country were captured on its last day or after.
    """
    first: dict[tuple[str, str], tuple[tuple[str, str], QuarterAward]] = {}
    named_in: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    capture_ids: set[int] = set()
    for tender in basis.tenders.of(country):
        capture_ids.add(tender.row.capture_id)
        moment = instant_of(tender)
        for award in awards(tender):
            key = (tender.row.ocid, award.award_id)
            named_in[quarter_number(tender.row.release_date)].add(key)
            earlier = first.get(key)
            if earlier is None or moment < earlier[0]:
                number = quarter_number(tender.row.release_date)
                row = tender.row
                sort_key = (*moment, row.location)
                first[key] = moment, QuarterAward(number, award, buyer_key(tender), row.capture_id, sort_key)
    captured = captured_until(basis.captures[n] for n in capture_ids)
    quarters: dict[int, list[QuarterAward]] = {}
    for _, won in first.values():
        if won.award.is_valid:
            quarters.setdefault(won.quarter, []).append(won)
    for number in sorted(quarters):
        if quarter(number).last_day.toordinal() <= captured:
            deciding = frozenset(first[key][1].capture_id for key in named_in[number])
            yield AwardedQuarter(number, quarters[number], deciding)
