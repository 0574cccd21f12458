"""Vintages of the amounts that releases tell: of tenders, and of the awards an organisation won.

A release that does not repeat an amount takes nothing back. The same amount again adds nothing, another one
is the next vintage, from the day of its release on (`model.vintages`). An amount of zero is no amount.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from sankofa.derive.awards import Award, awards
from sankofa.derive.tenders import Tender, Tenders
from sankofa.ledger.store import ReleaseRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.figures import exact
from sankofa.model.vintages import Vintage, vintages

NOT_WON: Final = ("cancelled", "unsuccessful")
"""Statuses (OCDS awardStatus) under which an award is no award: from that release on there is none."""


class ToldValue(NamedTuple):
    """The value of a tender in one release, by the number of the release in its country's order."""

    value: str
    available: int
    order: tuple[int, int]
    number: int


class TenderValues:
    """Which releases of a country told a value first; see `numbers` and `untils`, one for each release."""

    def __init__(self, tenders: Iterable[Tender]) -> None:
        self.numbers = array("i")
        """The vintage that the release began; 0 where it told nothing new."""
        self.untils = array("i")
        """The day it was replaced."""
        days, moments = array("i"), array("i")
        amounts: list[str] = []  # as many as there are values
        places = array("i")
        told: defaultdict[tuple[str, str], array[int]] = defaultdict(lambda: array("i"))
        moment, last = 0, ""
        for number, tender in enumerate(tenders):
            self.numbers.append(0)
            self.untils.append(FOREVER)
            row, summary = tender.row, tender.summary
            if row.release_date != last:
                moment, last = moment + 1, row.release_date
            if amount := amount_of(summary.value_amount):
                told[row.ocid, summary.value_currency or ""].append(len(amounts))
                amounts.append(amount)
                places.append(number)
                days.append(ordinal(row.release_date[:10]))
                moments.append(moment)
        for tellings in told.values():
            # The newest release has the lowest moment; of one instant, the higher id is the later.
            self._tell(
                vintages([ToldValue(amounts[n], days[n], (-moments[n], n), places[n]) for n in tellings], 0)
            )

    def _tell(self, told: list[Vintage[ToldValue]]) -> None:
        for vintage in told:
            number = vintage.report.number
            self.numbers[number] = vintage.number
            if vintage.successor is not None:
                self.untils[number] = vintage.successor.available


class Won(NamedTuple):
    """An award to one organisation in one release; see `model.vintages.Reported`."""

    value: str | None
    """None where the release says that it is no award (any more)."""
    available: int
    order: tuple[object, ...]
    award_id: str
    currency: str | None
    day: str
    supplier: str
    """The winner as published."""
    row: ReleaseRow
    """Without its body."""


def won(tenders: Tenders) -> dict[str, list[Vintage[Won]]]:
    """By service_id the vintages of every award it won, the newest release first, then by ocid and award."""
    told: defaultdict[str, defaultdict[tuple[str, ...], list[Won]]] = defaultdict(lambda: defaultdict(list))
    for country in tenders.countries:
        for tender in tenders.of(country):
            for place, award in enumerate(awards(tender)):
                for service_id, report in _won(tender, place, award):
                    told[service_id][tender.row.ocid, award.award_id, award.currency or ""].append(report)
    return {service_id: _newest_first(told[service_id]) for service_id in sorted(told)}


def _won(tender: Tender, place: int, award: Award) -> Iterator[tuple[str, Won]]:
    amount = amount_of(award.amount)
    if amount is None:
        return
    row = tender.row._replace(body="", summary="", parties="")
    released = row.release_date[:10]
    stands = (award.status or "").lower() not in NOT_WON
    seen: set[str] = set()
    for supplier in award.suppliers:
        service_id = supplier.match.service_id
        if service_id and service_id not in seen:
            seen.add(service_id)
            yield service_id, Won(
                amount if stands else None, ordinal(released), (_instant(row), row.release_id, place),
                award.award_id, award.currency, _day(award, released), supplier.name, row,
            )  # fmt: skip


def _day(award: Award, released: str) -> str:
    """The day of the award; of one that is said to be still to come, the day it was told."""
    return award.day if award.day and award.day <= released else released


def _newest_first(told: dict[tuple[str, ...], list[Won]]) -> list[Vintage[Won]]:
    found = [vintage for identity in sorted(told) for vintage in vintages(told[identity], 0)]
    found.sort(key=lambda vintage: _instant(vintage.report.row), reverse=True)
    return found


def _instant(row: ReleaseRow) -> str:
    """As text that sorts by time: without the Z, a second comes before its fractions."""
    return row.release_date.rstrip("Z")


def amount_of(amount: Decimal | None) -> str | None:
    """An amount in the one spelling that tells equal ones; None where there is none."""
    return None if not amount else exact(format(amount, "f"))
