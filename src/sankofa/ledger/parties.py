"""Parties that may be named, and the organisations known from tenders alone.

A register number published with one name is an organisation under the service_id of that number, from the
first release with it on. A number published with different names, and of no known organisation, is nobody's:
a placeholder or an error. Once a known organisation proves to be the party, the service_id of the number is
its alias.

See contract: ENT-5.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from sankofa.ledger.capture import Persons
from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.matching import PartyMatcher, normalised, register_numbers
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.days import ordinal
from sankofa.model.identifiers import make_identifier, service_id
from sankofa.model.ocds.parties import Gate, Identifiers
from sankofa.model.organisations import LEI_SCHEMES, org_evidence
from sankofa.model.records import Profile


def named_key(name: str, country: str = "") -> str:
    """How a natural person who trades under the name of a company is remembered (by keyed hash alone).

    Older versions remembered the country too."""
    return f"name:{country}:{normalised(name)}"


def person_keys(name: str, identifiers: Identifiers, country: str) -> list[str]:
    """The keys under which a register may have proven a party a natural person."""
    keys = [named_key(name), named_key(name, country)]
    for scheme, value in identifiers:
        if scheme.strip().upper() in LEI_SCHEMES:
            with suppress(ValueError):
                keys.append(str(make_identifier("lei", value)))
    return keys


def party_evidence(
    name: str, identifiers: Identifiers, country: str, persons: Persons, holds_record: Callable[[str], bool]
) -> str | None:
    """The evidence that a party is an organisation. What a register says about it outweighs its name."""
    if persons.proven_by(person_keys(name, identifiers, country)):
        return None

    def is_organisation(lei: str) -> bool:
        return holds_record(f"lei:{lei}") and f"lei:{lei}" not in persons

    evidence = org_evidence(name, identifiers, is_organisation, country)
    return None if evidence is None else str(evidence)


class Party(NamedTuple):
    """A party of releases as published, and the evidence that it is an organisation; None if it fails."""

    party_id: str
    name: str
    country: str
    identifiers: Identifiers
    org_evidence: str | None
    capture_id: int


Evidence = dict[str, str | None]
"""By party_id."""
Recall = Callable[[str, Callable[[], Evidence]], Evidence]


class EvidencedParties:
    """The parties of a ledger, checked by the gate again: a record may be withdrawn, a table corrected."""

    def __init__(self, ledger: LedgerReader, recall: Recall = lambda _, make: make()) -> None:
        """`recall` gives what was made under a name of the same parties by the same code before, or has it
        made."""
        self.ledger = ledger
        self.gate = Gate(self._evidence)
        self._recall = recall

    def __iter__(self) -> Iterator[Party]:
        return iter(self._parties)

    @cached_property
    def _parties(self) -> list[Party]:
        parties = [
            Party(party_id, name, country, tuple(identifiers), stored or None, capture_id)
            for party_id, name, country, identifiers, stored, capture_id in self.ledger.parties()
        ]
        known = self._recall(
            "party-evidence", lambda: {party.party_id: self._now(party) for party in parties if _alone(party)}
        )
        return [
            party._replace(
                org_evidence=known[party.party_id]
                if party.party_id in known and not self._proven(party)
                else self._now(party)
            )
            for party in parties
        ]

    def first_day(self, party: Party) -> str:
        """The day of the first release that names a party."""
        return self._first_days[party.party_id] or ""

    @cached_property
    def _first_days(self) -> Evidence:
        return self._recall("party-days", lambda: {**self.ledger.party_days()})

    @property
    def proven(self) -> int:
        """The newest capture that proved a party a natural person; 0 for none."""
        return max(map(self._proven, self._parties), default=0)

    def _proven(self, party: Party) -> int:
        return self.persons.proven_by(person_keys(party.name, party.identifiers, party.country))

    def _now(self, party: Party) -> str | None:
        """The evidence that there is today."""
        return self.gate(party.name, party.identifiers, party.country) if party.org_evidence else None

    def _evidence(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        return party_evidence(name, identifiers, country, self.persons, self.ledger.holds_record)

    @cached_property
    def persons(self) -> Persons:
        return self.ledger.persons()


def _alone(party: Party) -> bool:
    """Whether the evidence follows from what the party is called and known by: of a LEI the record counts."""
    return not any(scheme.strip().upper() in LEI_SCHEMES for scheme, _ in party.identifiers)


def with_parties(
    entities: list[Entity], parties: EvidencedParties, captures: Mapping[int, CaptureInfo]
) -> list[Entity]:
    """The known organisations, and those known from tenders alone, by service_id."""
    named = defaultdict[str, list[Party]](list)
    for party in parties:
        if party.org_evidence is not None:
            for number in register_numbers(party.identifiers):
                if number not in parties.persons:
                    named[number].append(party)
    matcher = PartyMatcher(entities, captures)
    plain = {number for number, own in named.items() if len({normalised(party.name) for party in own}) == 1}
    aliases = defaultdict[str, set[str]](set)
    by_number: dict[str, Entity] = {}
    for number in sorted(plain):
        party = min(named[number], key=lambda p: (p.capture_id, p.name, p.country, p.party_id))
        first = min(parties.first_day(one) for one in named[number])
        holder = matcher.ask(party.name, party.country, party.identifiers).on(ordinal(first)).service_id
        if holder:
            aliases[holder].add(service_id(number))
        elif not matcher.holders(number) and number not in by_number:
            others = (n for n in register_numbers(party.identifiers) if n in plain and n not in by_number)
            numbers = [n for n in others if not matcher.holders(n)]
            by_number |= dict.fromkeys(numbers, _entity(party, number, numbers, first, captures))
    held = [
        replace(entity, aliases=tuple(sorted({*entity.aliases, *more} - {entity.service_id})))
        if (more := aliases.get(entity.service_id))
        else entity
        for entity in entities
    ]
    minted = {entity.service_id: entity for entity in by_number.values()}
    return sorted([*held, *minted.values()], key=lambda entity: entity.service_id)


def _entity(
    party: Party, number: str, numbers: list[str], first: str, captures: Mapping[int, CaptureInfo]
) -> Entity:
    capture = captures[party.capture_id]
    profile = Profile(
        legal_name=party.name,
        country=party.country or None,
        identifiers=tuple(numbers),
        document=capture.file_name,
        registered=first,
    )
    return Entity(
        service_id=service_id(number),
        aliases=tuple(sorted(service_id(other) for other in numbers if other != number)),
        subjects=(number,),
        first_capture=party.capture_id,
        statements=[Statement(number, capture.source_id, profile, party.capture_id)],
        from_tenders=True,
        claims=[
            Claim(identifier, capture.ref(identifier), party.capture_id) for identifier in sorted(numbers)
        ],
    )
