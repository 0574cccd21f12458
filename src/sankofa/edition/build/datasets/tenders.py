"""Releases by country, newest first; who is named in them; and the indexes a page is found by.

- `tender`: a country leads to its releases, as many in every block, so that a row is found by its number;
- `tender_day`: a country leads to pairs of a day and the number of its first row, newest first;
- `tender_word`: a word of title or description (`CC|word`) leads to the numbers of the rows that have it;
- `tender_party`: parties under every question that may be asked of them, most releases first.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from functools import partial
from itertools import groupby
from typing import Final

import msgspec

from sankofa.derive.tenders import Resolved, Tender
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.format.keys import TENDERS_PER_BLOCK, party_key, searched_words
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.model.days import ordinal
from sankofa.model.rows import PartyIdentifier, TenderPartyRow, TenderRow, wire

_NUMBERS_PER_BLOCK: Final = 16_384


@dataset("tender", TenderRow, partial(pack, rows_per_block=TENDERS_PER_BLOCK))
def releases(context: BuildContext) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        rows = (Entry(wire.encode(_row(context, t))) for t in context.tenders.of(country, bodies=True))
        yield KeyRows(country, rows)


@dataset("tender_day", None)
def days(context: BuildContext) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        starts = array("i")
        dates = (tender.row.release_date[:10] for tender in context.tenders.of(country))
        number = 0
        for day, rows in groupby(dates):
            starts.extend((ordinal(day), number))
            number += sum(1 for _ in rows)
        starts.extend((0, number))
        yield KeyRows(country, _numbers(starts))


@dataset("tender_word", None)
def words(context: BuildContext) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        postings: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            for word in searched_words(f"{tender.summary.title or ''} {tender.summary.description or ''}"):
                postings[word].append(number)
        for word in sorted(postings):
            yield KeyRows(f"{country}|{word}", _numbers(postings.pop(word)))


def _numbers(numbers: "array[int]") -> Iterator[Entry]:
    for start in range(0, len(numbers), _NUMBERS_PER_BLOCK):
        yield Entry(numbers[start : start + _NUMBERS_PER_BLOCK].tobytes())


def _row(context: BuildContext, tender: Tender) -> TenderRow:
    row, summary = tender.row, tender.summary
    capture = context.captures[row.capture_id]
    return TenderRow(
        buyer_service_id=_buyer(tender),
        country=row.country,
        ocid=row.ocid,
        release_id=row.release_id,
        release_date=row.release_date,
        tag=summary.tag,
        title=summary.title,
        category=summary.category,
        procurement_method=summary.procurement_method,
        status=summary.status,
        value_amount=summary.value_amount,
        value_currency=summary.value_currency,
        buyer_name=summary.buyer_name,
        award_count=summary.award_count,
        withheld_parties=summary.withheld_parties,
        release=msgspec.Raw(row.body.encode()),
        source_ref=capture.ref(row.location),
        license_class=capture.license_class,
        observed_at=capture.observed_at,
    )


def _buyer(tender: Tender) -> str | None:
    buyers = (party.match.service_id for party, roles in tender.parties if "buyer" in roles)
    return next((found for found in buyers if found), None)


class _Sightings:
    """In how many releases a party was seen in a role, and the newest of them."""

    __slots__ = ("capture_id", "count", "first", "last", "location")

    def __init__(self) -> None:
        self.count = 0
        self.first = self.last = ""
        self.location = ""
        self.capture_id = 0

    def see(self, tender: Tender) -> None:
        row = tender.row
        day = row.release_date[:10]
        if not self.count or day > self.last:
            self.last, self.location, self.capture_id = day, row.location, row.capture_id
        self.first = min(self.first or day, day)
        self.count += 1


@dataset("tender_party", TenderPartyRow)
def parties(context: BuildContext) -> Iterator[KeyRows]:
    seen: defaultdict[tuple[Resolved, str], _Sightings] = defaultdict(_Sightings)
    for country in context.tenders.countries:
        for tender in context.tenders.of(country):
            for party, roles in tender.parties:
                for role in roles:
                    seen[party, role].see(tender)
    ordered = sorted(seen, key=lambda k: (-seen[k].count, k[0].name, k[1], *k[0][1:4]))
    aliases = {entity.service_id: entity.aliases for entity in context.entities}
    asked: defaultdict[str, list[tuple[Resolved, str]]] = defaultdict(list)
    for key in ordered:
        party, role = key
        for place in {None, party.country or None}:
            asked[party_key(place)].append(key)
            asked[party_key(place, role)].append(key)
        if party.match.service_id:
            asked[party_key(service_id=party.match.service_id)].append(key)
    for question in sorted(asked):
        rows = (Entry(wire.encode(_party(context, *key, seen[key]))) for key in asked[question])
        yield KeyRows(question, rows, aliases.get(question, ()))


def _party(context: BuildContext, party: Resolved, role: str, sightings: _Sightings) -> TenderPartyRow:
    capture = context.captures[sightings.capture_id]
    own = party.identifiers[0] if party.identifiers else None
    return TenderPartyRow(
        service_id=party.match.service_id,
        name=party.name,
        role=role,
        country=party.country or None,
        identifier=None if own is None else PartyIdentifier(*own),
        org_evidence=party.org_evidence,
        match_method=party.match.method,
        release_count=sightings.count,
        first_seen=date.fromisoformat(sightings.first),
        last_seen=date.fromisoformat(sightings.last),
        source_ref=capture.ref(sightings.location),
        license_class=capture.license_class,
        observed_at=capture.observed_at,
    )
