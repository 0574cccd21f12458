"""Who is named in releases: parties under every question that may be asked of them, most releases first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from sankofa.derive.tenders import Resolved, Tender
from sankofa.edition.format.keys import TENDERS, party_key
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Built, KeyRows, dataset
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.model.facts import TENDER
from sankofa.model.rows import PartyIdentifier, TenderPartyRow, wire


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


@dataset("tender_party", TenderPartyRow, needs=(TENDERS,), reads=())
def parties(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
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


class _EachPartyOnce(TableRows):
    """A party is kept under every question it answers: here it is taken from the one about all."""

    def take(self, key: str, row: Any) -> Iterable[object]:
        return (row,) if key == party_key() else ()


table(
    Table(
        "af-tender-parties",
        TenderPartyRow,
        TENDER,
        "Buyers and suppliers named in releases, as `/v1/tender-parties` serves them.",
        takes_from="tender_party",
        rows=_EachPartyOnce,
        sorted_by=("-release_count",),
    )
)
