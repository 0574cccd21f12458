"""Tenders by period: in each period an ocid is one tender, described by its first release there."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from sankofa.derive.tenders import Resolved, Tender
from sankofa.ledger.party_matching import normalised
from sankofa.ledger.reader import CaptureInfo


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
            if earlier is None or instant_of(tender) < instant_of(earlier):
                first[tender.row.ocid] = tender
        yield TenderPeriod(period, list(first.values()), frozenset(captures))


def first_ref(tenders: Iterable[Tender], captures: Mapping[int, CaptureInfo]) -> str:
    """The `source_ref` of the release that came first."""
    row = min(tenders, key=lambda tender: (*instant_of(tender), tender.row.ocid)).row
    return captures[row.capture_id].ref(row.location)


def instant_of(tender: Tender) -> tuple[str, str]:
    """Orders the releases of an ocid; those of one instant by their ids.

    Without the Z, which would put a whole second after its fractions.
    """
    return tender.row.release_date[:-1], tender.row.release_id


def buyer_key(tender: Tender) -> str | None:
    """Identifies the buyer: its service_id where resolved, else its normalised name.

    None where the release names no buyer, or one that is not established to be an organisation.
    """
    buyers = (party for party, roles in tender.parties if "buyer" in roles)
    resolved = next((party.match.service_id for party in buyers if party.match.service_id), None)
    name = tender.summary.buyer_name
    return resolved or (normalised(name) if name else "") or None


def party_key(party: Resolved) -> str:
    """As `buyer_key`, for a party that is already resolved."""
    return party.match.service_id or normalised(party.name) or party.name


def concentration(weights: Iterable[int | Fraction]) -> Fraction | None:
    """The Herfindahl-Hirschman index, 0 to 1; None where there is nothing to share."""
    fractions = [Fraction(weight) for weight in weights]
    total = sum(fractions)
    return sum((weight * weight for weight in fractions), Fraction()) / (total * total) if total else None
