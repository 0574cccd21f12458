"""Tenders and awards by month and quarter, each counted once.

A period is closed on its last day: its rows use nothing dated later. An edition has a period only if releases
were captured on that day or later. In each period an ocid is one tender, described by its first release
there. An award is identified by ocid and award id, and dated by its first release.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple

from sankofa.derive.signals.contract import Basis
from sankofa.derive.tenders import Award, Resolved, Tender
from sankofa.ledger.matching import normalised
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import ordinal

MONTHS_IN_A_QUARTER: Final = 3


class CalendarPeriod(NamedTuple):
    """The name of a month or a quarter in rows."""

    name: str
    last_day: date


def month_number(day: str) -> int:
    """The month of a day or instant that begins YYYY-MM; months that follow each other differ by one."""
    return int(day[:4]) * 12 + int(day[5:7]) - 1


def quarter_number(day: str) -> int:
    """The quarter of a day or instant that begins YYYY-MM."""
    return month_number(day) // MONTHS_IN_A_QUARTER


@cache
def month(number: int) -> CalendarPeriod:
    year, index = divmod(number, 12)
    last = date(year, index + 1, monthrange(year, index + 1)[1])
    return CalendarPeriod(f"{year:04d}-{index + 1:02d}", last)


@cache
def quarter(number: int) -> CalendarPeriod:
    year, index = divmod(number, 4)
    last = month(number * MONTHS_IN_A_QUARTER + MONTHS_IN_A_QUARTER - 1).last_day
    return CalendarPeriod(f"{year:04d}-Q{index + 1}", last)


def captured_until(captures: Iterable[CaptureInfo]) -> int:
    """The last day on which any of these captures was made; 0 if there is none."""
    return ordinal(max((capture.observed_at[:10] for capture in captures), default="0001-01-01"))


class TenderPeriod(NamedTuple):
    """A period: its tenders, each by its first release there, and the captures that any release came with."""

    number: int
    tenders: list[Tender]
    captures: frozenset[int]


def by_period(tenders: Iterable[Tender], number: Callable[[str], int]) -> Iterator[TenderPeriod]:
    """Every period that has a release, the newest first. Expects releases in the order of `Tenders.of`."""
    for period, released in groupby(tenders, key=lambda tender: number(tender.row.release_date)):
        first: dict[str, Tender] = {}
        captures: set[int] = set()
        for tender in released:
            captures.add(tender.row.capture_id)
            earlier = first.get(tender.row.ocid)
            if earlier is None or tender.row.moment < earlier.row.moment:
                first[tender.row.ocid] = tender
        yield TenderPeriod(period, list(first.values()), frozenset(captures))


def first_ref(tenders: Iterable[Tender], captures: Mapping[int, CaptureInfo]) -> str:
    """The `source_ref` of the release that came first."""
    row = min((tender.row for tender in tenders), key=lambda row: (*row.moment, row.ocid))
    return captures[row.capture_id].ref(row.location)


def buyer_key(tender: Tender) -> str | None:
    """Identifies the buyer: its service_id if resolved, else its normalised name.

    None if the release names no buyer, or if the buyer is not shown to be an organisation.
    """
    buyers = (party for party, roles in tender.parties if "buyer" in roles)
    resolved = next((own for party in buyers if (own := _recognised(party))), None)
    name = tender.summary.buyer_name
    return resolved or (normalised(name) if name else "") or None


def party_key(party: Resolved) -> str:
    """As `buyer_key`, for a party that is already resolved."""
    return _recognised(party) or normalised(party.name) or party.name


def _recognised(party: Resolved) -> str | None:
    """The organisation, if it was recognised on the day of the release; panels ignore later matches."""
    return None if party.match.begins else party.match.service_id


def concentration(weights: Iterable[int | Fraction]) -> Fraction | None:
    """The Herfindahl-Hirschman index, 0 to 1; None if there is nothing to share."""
    fractions = [Fraction(weight) for weight in weights]
    total = sum(fractions)
    return sum((weight * weight for weight in fractions), Fraction()) / (total * total) if total else None


class QuarterAward(NamedTuple):
    quarter: int
    award: Award
    buyer: str | None
    """See `buyer_key`."""
    capture_id: int
    sort_key: tuple[str, str, str]
    """Date and id of the release that first has the award, and its location in the file."""

    def shares(self) -> dict[str, Fraction]:
        """Each winner's equal share of the award; empty if a winner is not named."""
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
    """Captures that affected the count, also by repeating or cancelling an earlier award."""


def closed_awards(basis: Basis, country: str) -> Iterator[AwardedQuarter]:
    """The awards of a country by closed quarter, the oldest first.

    A quarter is there only if releases of the country were captured on its last day or after.
    """
    first: dict[tuple[str, str], tuple[tuple[str, str], QuarterAward]] = {}
    named_in: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    capture_ids: set[int] = set()
    for tender in basis.tenders.of(country):
        capture_ids.add(tender.row.capture_id)
        moment = tender.row.moment
        for award in tender.awards:
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
