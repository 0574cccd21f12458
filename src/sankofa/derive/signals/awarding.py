"""Awards by quarter: an award is told by ocid and award id, in the first release that has it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from sankofa.derive.awards import Award, awards
from sankofa.derive.signals.calendar import captured_until, quarter, quarter_number
from sankofa.derive.signals.contract import Basis
from sankofa.derive.signals.tendering import buyer_of, instant_of, told_apart
from sankofa.ledger.store import CaptureInfo

_NOT_WON: Final = ("cancelled", "unsuccessful")


class Won(NamedTuple):
    """An award, and who gave it."""

    quarter: int
    award: Award
    buyer: str | None
    """See `tendering.buyer_of`."""
    capture_id: int
    place: tuple[str, str, str]
    """Orders awards by the release that first has them, and says where in its file that is."""

    def shares(self) -> dict[str, Fraction]:
        """Who won which part of it, in equal parts; empty where a winner is not named."""
        suppliers = {told_apart(supplier) for supplier in self.award.suppliers}
        return {} if self.award.withheld else dict.fromkeys(suppliers, Fraction(1, len(suppliers) or 1))


def first_award_ref(awards: Iterable[Won], captures: Mapping[int, CaptureInfo]) -> str:
    """The `source_ref` of the award that was released first."""
    won = min(awards, key=lambda won: won.place)
    return captures[won.capture_id].ref(won.place[2])


class AwardedQuarter(NamedTuple):
    """The awards that were first released in a quarter."""

    number: int
    awards: list[Won]
    captures: frozenset[int]
    """Those that decided what is counted here: also where an award was told before, or is no award."""


def closed_awards(basis: Basis, country: str) -> Iterator[AwardedQuarter]:
    """The awards of a country by closed quarter, the oldest first.

    A quarter is there only if releases of the country were captured on its last day or after.
    """
    first: dict[tuple[str, str], tuple[tuple[str, str], Won]] = {}
    told_in: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    seen: set[int] = set()
    for tender in basis.tenders.of(country):
        seen.add(tender.row.capture_id)
        moment = instant_of(tender)
        for award in awards(tender):
            name = (tender.row.ocid, award.award_id)
            told_in[quarter_number(tender.row.release_date)].add(name)
            known = first.get(name)
            if known is None or moment < known[0]:
                number = quarter_number(tender.row.release_date)
                row = tender.row
                place = (*moment, row.location)
                first[name] = moment, Won(number, award, buyer_of(tender), row.capture_id, place)
    captured = captured_until(basis.captures[n] for n in seen)
    quarters: dict[int, list[Won]] = {}
    for _, won in first.values():
        if (won.award.status or "").lower() not in _NOT_WON:
            quarters.setdefault(won.quarter, []).append(won)
    for number in sorted(quarters):
        if quarter(number).last_day.toordinal() <= captured:
            deciding = frozenset(first[name][1].capture_id for name in told_in[number])
            yield AwardedQuarter(number, quarters[number], deciding)
