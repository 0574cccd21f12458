"""Organisations known from tenders alone: whoever a number of a companies register was published for.

A number that one name comes with is an organisation's, under the service_id of that number. A number that
comes with different names, and that no held organisation has, is nobody's: a placeholder, or somebody's slip.
Once an organisation that is held turns out to be the party, the service_id of the number is its alias.

See contract: ENT-5.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.party_matching import PartyMatcher, normalised, register_numbers
from sankofa.ledger.persons import Persons
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.identifiers import service_id
from sankofa.model.records import Profile

Identifiers = tuple[tuple[str, str], ...]


class Party(NamedTuple):
    """A party of releases as published, and the evidence that it is an organisation; None where it fails."""

    party_id: str
    name: str
    country: str
    identifiers: Identifiers
    org_evidence: str | None
    capture_id: int


def with_parties(
    entities: list[Entity],
    parties: Iterable[Party],
    captures: Mapping[int, CaptureInfo],
    persons: Persons,
) -> list[Entity]:
    """The organisations held, and those that only tenders tell of, by service_id."""
    named = defaultdict[str, list[Party]](list)
    for party in parties:
        if party.org_evidence is not None:
            for number in register_numbers(party.identifiers):
                if number not in persons:
                    named[number].append(party)
    matcher = PartyMatcher(entities)
    plain = {number for number, own in named.items() if len({normalised(party.name) for party in own}) == 1}
    aliases = defaultdict[str, set[str]](set)
    by_number: dict[str, Entity] = {}
    for number in sorted(plain):
        party = min(named[number], key=lambda p: (p.capture_id, p.name, p.country, p.party_id))
        holder = matcher.match(party.name, party.country, party.identifiers).service_id
        if holder:
            aliases[holder].add(service_id(number))
        elif not matcher.holds(number) and number not in by_number:
            others = (n for n in register_numbers(party.identifiers) if n in plain and n not in by_number)
            numbers = [n for n in others if not matcher.holds(n)]
            by_number |= dict.fromkeys(numbers, _entity(party, number, numbers, captures))
    held = [
        replace(entity, aliases=tuple(sorted({*entity.aliases, *more} - {entity.service_id})))
        if (more := aliases.get(entity.service_id))
        else entity
        for entity in entities
    ]
    minted = {entity.service_id: entity for entity in by_number.values()}
    return sorted([*held, *minted.values()], key=lambda entity: entity.service_id)


def _entity(party: Party, number: str, numbers: list[str], captures: Mapping[int, CaptureInfo]) -> Entity:
    capture = captures[party.capture_id]
    profile = Profile(
        legal_name=party.name,
        country=party.country or None,
        identifiers=tuple(numbers),
        document=capture.file_name,
    )
    return Entity(
        service_id=service_id(number),
        aliases=tuple(sorted(service_id(other) for other in numbers if other != number)),
        subjects=(number,),
        first_capture=party.capture_id,
        statements=[Statement(number, capture.source_id, profile, party.capture_id)],
        claims=[
            Claim(identifier, capture.ref(identifier), party.capture_id) for identifier in sorted(numbers)
        ],
    )
