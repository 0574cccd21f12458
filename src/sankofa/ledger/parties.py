"""Matches tender parties with organisations, and issues organisations known from tenders alone.

A party matches by identifier, or by a name that only one organisation of its country has. A register number
published with one name is an organisation under the service_id of that number. A number published with
different names, and of no known organisation, is nobody's: a placeholder or an error. Once a known
organisation proves to be the party, the service_id of the number is its alias.

See contract: ENT-3, ENT-4, ENT-5.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from sankofa.ledger.capture import Persons
from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.identifiers import make_identifier, service_id
from sankofa.model.organisations import LEI_SCHEMES, in_companies_register
from sankofa.model.records import Profile
from sankofa.model.text import search_form

Key = TypeVar("Key")

_SEVERAL: Final = ""
_SPELLED: Final = {
    "limited": "ltd", "proprietary": "pty", "private": "pvt", "incorporated": "inc", "corporation": "corp",
    "company": "co", "and": "",
}  # fmt: skip
"""Words that registers and portals spell either way."""


class Match(NamedTuple):
    """The organisation, and how it was recognised: `lei`, `identifier` or `name`."""

    service_id: str | None
    method: str | None


UNRESOLVED: Final = Match(None, None)


class PartyMatcher:
    """Made once from everything that is resolved; every question after that is a look-up."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._holders: dict[str, str] = {}
        self._names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """By country, each name as written, with the service_id of its organisation."""
        self._named: dict[str, dict[str, str]] = {}
        """By country that was asked for, and name in its normal form."""
        self._registered: set[tuple[str, str]] = set()
        for entity in entities:
            for claim in entity.claims:
                if claim.identifier.startswith(("lei:", "registry:")):
                    _see(self._holders, claim.identifier, entity.service_id)
                if claim.identifier.startswith("registry:"):
                    self._registered.add((entity.service_id, register_of(claim.identifier)))
            for statement in entity.statements:
                profile = statement.profile
                if profile.country:
                    names = self._names[profile.country]
                    if profile.legal_name:
                        names.append((profile.legal_name, entity.service_id))
                    names += [(name, entity.service_id) for name in profile.other_names if name]

    def holds(self, identifier: str) -> bool:
        """Whether an organisation has it, or several."""
        return identifier in self._holders

    def match(self, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> Match:
        """By LEI before any other identifier, by an identifier before the name.

        A name leads to nobody who has another number in the register that the party's number is of.
        """
        match = UNRESOLVED
        for scheme, value in identifiers:
            is_lei = scheme.upper() in LEI_SCHEMES
            try:
                identifier = make_identifier("lei" if is_lei else "registry", value, scheme)
            except ValueError:
                continue
            if holder := self._holders.get(str(identifier)):
                if is_lei:
                    return Match(holder, "lei")
                match = match if match.service_id else Match(holder, "identifier")
        if not match.service_id and (holder := self._named_in(country).get(normalised(name))):
            strange = (number for number in register_numbers(tuple(identifiers)) if not self.holds(number))
            if not any((holder, register_of(number)) in self._registered for number in strange):
                return Match(holder, "name")
        return match

    def _named_in(self, country: str) -> dict[str, str]:
        """Who has a name in a country. Registers have names of all countries, and releases are of few."""
        if (known := self._named.get(country)) is None:
            known = self._named[country] = {}
            for name, service_id in self._names.get(country, ()):
                _see(known, normalised(name), service_id)
        return known


@lru_cache(maxsize=1 << 16)  # asked for several times of each party
def register_numbers(identifiers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The well-formed numbers of companies registers among identifiers, as `str(Identifier)`."""
    numbers = []
    for scheme, value in identifiers:
        if in_companies_register(scheme, value):
            with suppress(ValueError):
                numbers.append(str(make_identifier("registry", value, scheme)))
    return tuple(dict.fromkeys(numbers))


def register_of(identifier: str) -> str:
    """The register of `registry:SCHEME:VALUE`."""
    return identifier.rpartition(":")[0]


def _see(index: dict[Key, str], key: Key, service_id: str) -> None:
    if index.setdefault(key, service_id) != service_id:
        index[key] = _SEVERAL


def normalised(name: str) -> str:
    """A name as two writers of it agree: case, accents, punctuation and the spelling of its form aside."""
    return " ".join(filter(None, (_SPELLED.get(word, word) for word in search_form(name).split())))


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
    """The known organisations, and those known from tenders alone, by service_id."""
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
