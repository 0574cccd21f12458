"""Awards by quarter: an award is told by ocid and award id, in the first release that has it."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from sankofa.derive.awards import Award, awards
from sankofa.derive.signals.calendar import captured_until, quarter, quarter_number
from sankofa.derive.signals.contract import Basis
from sankofa.derive.signals.tendering import buyer_of, instant_of, told_apart

_NOT_WON: Final = ("cancelled", "unsuccessful")


class Won(NamedTuple):
    """An award, and who gave it."""

    quarter: int
    award: Award
    buyer: str | None
    """See `tendering.buyer_of`."""
    capture_id: int

    def shares(self) -> dict[str, Fraction]:
        """Who won which part of it, in equal parts; empty where a winner is not named."""
        suppliers = {told_apart(supplier) for supplier in self.award.suppliers}
        return {} if self.award.withheld else dict.fromkeys(suppliers, Fraction(1, len(suppliers) or 1))


def closed_awards(basis: Basis, country: str) -> Iterator[tuple[int, list[Won]]]:
    """The awards of a country by closed quarter, the oldest first.

    A quarter is there only if releases of the country were captured on its last day or after.
    """
    first: dict[tuple[str, str], tuple[tuple[str, str], Won]] = {}
    seen: set[int] = set()
    for tender in basis.tenders.of(country, bodies=True):
        seen.add(tender.row.capture_id)
        moment = instant_of(tender)
        for award in awards(tender):
            name = (tender.row.ocid, award.award_id)
            known = first.get(name)
            if known is None or moment < known[0]:
                number = quarter_number(tender.row.release_date)
                first[name] = moment, Won(number, award, buyer_of(tender), tender.row.capture_id)
    captured = captured_until(basis.captures[n] for n in seen)
    quarters: dict[int, list[Won]] = {}
    for _, won in first.values():
        if (won.award.status or "").lower() not in _NOT_WON:
            quarters.setdefault(won.quarter, []).append(won)
    for number in sorted(quarters):
        if quarter(number).last_day.toordinal() <= captured:
            yield number, quarters[number]
