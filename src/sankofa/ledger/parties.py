"""Matches tender parties with organisations, and issues organisations known from tenders alone.

A party matches by identifier, by a decision of the operator, by a name that only one organisation of its
country has, or by a name that is written a little differently from that of only one. A register number
published with one name is an organisation under the service_id of that number. A number published with
different names, and of no known organisation, is nobody's: a placeholder or an error. Once a known
organisation proves to be the party, the service_id of the number is its alias.

See contract: ENT-3, ENT-4, ENT-5, ENT-9, ENT-10.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, TypeVar

from sankofa.ledger.capture import Persons
from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.identifiers import make_identifier, service_id
from sankofa.model.ocds.parties import Gate, Identifiers
from sankofa.model.organisations import LEI_SCHEMES, in_companies_register, org_evidence
from sankofa.model.organisations.similarity import NameWords, name_words, similarity
from sankofa.model.records import Profile
from sankofa.model.text import search_form

Key = TypeVar("Key")

_SEVERAL: Final = ""
_SPELLED: Final = {
    "limited": "ltd", "proprietary": "pty", "private": "pvt", "incorporated": "inc", "corporation": "corp",
    "company": "co", "and": "",
}  # fmt: skip
"""Words that registers and portals spell either way."""


METHODS: Final = ("lei", "identifier", "review", "name", "similar_name")
THRESHOLD: Final = 0.95
"""Least score of a similar name, unless a setting says otherwise."""
_WORTH_REVIEW: Final = 0.7
_BLOCK: Final = 4
_LARGEST_BLOCK: Final = 500
_BLOCKS: Final = 3


class Match(NamedTuple):
    """The organisation, how it was recognised (one of `METHODS`), and how sure that is."""

    service_id: str | None
    method: str | None
    score: float | None = None


class Candidate(NamedTuple):
    """An organisation that a party may be."""

    score: float
    service_id: str


UNRESOLVED: Final = Match(None, None)
UNLIKE: Final = Candidate(0.0, "")


class Reviews(NamedTuple):
    """Decisions of the operator, by the keyed hash of a name in a country and by service_id."""

    verdicts: Mapping[tuple[str, str], str]
    token: Callable[[str], str]

    def key(self, name: str, country: str) -> str:
        """Tells a name in a country from others, without repeating it."""
        return self.token(f"match:{country}:{normalised(name)}")

    def verdict(self, name: str, country: str, service_id: str) -> str:
        """`confirmed`, `refused`, or `open`."""
        return self.verdicts.get((self.key(name, country), service_id), "open") if self.verdicts else "open"


NO_REVIEWS: Final = Reviews({}, str)


class _SimilarNames:
    """The names of one country, found by words that begin alike."""

    def __init__(self, country: str, names: Iterable[tuple[str, str]]) -> None:
        self._country = country
        self._names = list(dict.fromkeys((name_words(name, country), holder) for name, holder in names))
        self._blocks: defaultdict[str, list[int]] = defaultdict(list)
        for number, (words, _) in enumerate(self._names):
            for block in _blocks(words):
                self._blocks[block].append(number)

    def like(self, name: str) -> list[Candidate]:
        """The organisations with a name like it, the most alike first."""
        asked = name_words(name, self._country)
        blocks = sorted((self._blocks.get(block, ()) for block in _blocks(asked)), key=len)
        near = {number for block in blocks[:_BLOCKS] if len(block) <= _LARGEST_BLOCK for number in block}
        best: dict[str, float] = {}
        for number in near:
            words, holder = self._names[number]
            score = similarity(asked, words, self._country)
            if score >= _WORTH_REVIEW:
                best[holder] = max(score, best.get(holder, 0.0))
        return sorted((Candidate(score, holder) for holder, score in best.items()), reverse=True)


def _blocks(words: NameWords) -> set[str]:
    """The letters that the words begin with, and those of all words together."""
    return {word[:_BLOCK] for word in words.words} | {f" {words.joined}"}


class PartyMatcher:
    """Made once from everything that is resolved; every question after that is a look-up."""

    def __init__(
        self, entities: Iterable[Entity], reviews: Reviews = NO_REVIEWS, threshold: float | None = None
    ) -> None:
        """Without a `threshold`, similar names are not searched."""
        self._reviews = reviews
        self._threshold = threshold
        self._similar: dict[str, _SimilarNames] = {}
        self._own_id: dict[str, str] = {}
        """By service_id and alias."""
        self._holders: dict[str, str] = {}
        self._names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """By country, each name as written, with the service_id of its organisation."""
        self._former: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._named: dict[str, dict[str, str]] = {}
        """By country that was asked for, and name in its normal form."""
        self._registered: set[tuple[str, str]] = set()
        for entity in entities:
            self._own_id |= dict.fromkeys((entity.service_id, *entity.aliases), entity.service_id)
            for claim in entity.claims:
                if claim.identifier.startswith(("lei:", "registry:")):
                    _see(self._holders, claim.identifier, entity.service_id)
                if claim.identifier.startswith("registry:"):
                    self._registered.add((entity.service_id, register_of(claim.identifier)))
            for statement in (*entity.statements, *entity.earlier):
                profile = statement.profile
                if profile.country:
                    names = (self._former if statement in entity.earlier else self._names)[profile.country]
                    if profile.legal_name:
                        names.append((profile.legal_name, entity.service_id))
                    names += [(name, entity.service_id) for name in profile.other_names if name]

    def holds(self, identifier: str) -> bool:
        """Whether an organisation has it, or several."""
        return identifier in self._holders

    def match(self, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> Match:
        """Matches by LEI, then by other identifiers, then by the operator's decision, then by name. A name
        never matches an organisation with another number in the same register, or one that the operator
        refused."""
        match = UNRESOLVED
        for scheme, value in identifiers:
            is_lei = scheme.upper() in LEI_SCHEMES
            try:
                identifier = make_identifier("lei" if is_lei else "registry", value, scheme)
            except ValueError:
                continue
            if holder := self._holders.get(str(identifier)):
                if is_lei:
                    return Match(holder, "lei", 1.0)
                match = match if match.service_id else Match(holder, "identifier", 1.0)
        if match.service_id:
            return match
        if confirmed := self._confirmed(name, country):
            return Match(confirmed, "review", 1.0)
        holder = self._named_in(country).get(normalised(name))
        if holder and self._may_be(holder, name, country, identifiers):
            return Match(holder, "name", 1.0)
        if self._threshold is not None and holder is None:
            best, *others = [*self.candidates(name, country, identifiers), UNLIKE]
            if best.score >= self._threshold and (not others or others[0].score < best.score):
                return Match(best.service_id, "similar_name", best.score)
        return match

    def candidates(self, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> list[Candidate]:
        """The organisations of its country with a name like it that it may be, the most alike first."""
        if country not in self._similar:
            self._similar[country] = _SimilarNames(
                country, (*self._names.get(country, ()), *self._former.get(country, ()))
            )
        like = self._similar[country].like(name)
        return [one for one in like if self._may_be(one.service_id, name, country, identifiers)]

    def own_id(self, service_id: str) -> str | None:
        """The service_id of the organisation that has this one, or had it."""
        return self._own_id.get(service_id)

    def _confirmed(self, name: str, country: str) -> str | None:
        if not self._reviews.verdicts:
            return None
        key = self._reviews.key(name, country)
        confirmed = (
            s for (k, s), verdict in self._reviews.verdicts.items() if k == key and verdict == "confirmed"
        )
        return next(filter(None, map(self.own_id, confirmed)), None)

    def _may_be(self, holder: str, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> bool:
        strange = (number for number in register_numbers(tuple(identifiers)) if not self.holds(number))
        return self._reviews.verdict(name, country, holder) != "refused" and not any(
            (holder, register_of(number)) in self._registered for number in strange
        )

    def _named_in(self, country: str) -> dict[str, str]:
        """Who has a name in a country. Registers have names of all countries, and releases are of few."""
        if (known := self._named.get(country)) is None:
            known = self._named[country] = {}
            former: dict[str, str] = {}
            for names, index in ((self._names, known), (self._former, former)):
                for name, service_id in names.get(country, ()):
                    _see(index, normalised(name), service_id)
            for name, service_id in former.items():  # a name belongs to who has it, then to who had it
                known.setdefault(name, service_id)
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
Recall = Callable[[Callable[[], Evidence]], Evidence]


class EvidencedParties:
    """The parties of a ledger, checked by the gate again: a record may be withdrawn, a table corrected."""

    def __init__(self, ledger: LedgerReader, recall: Recall = lambda make: make()) -> None:
        """`recall` gives what was made of the same parties by the same code before, or has it made."""
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
        known = self._recall(lambda: {party.party_id: self._now(party) for party in parties if _alone(party)})
        return [
            party._replace(
                org_evidence=known[party.party_id]
                if party.party_id in known and not self._proven(party)
                else self._now(party)
            )
            for party in parties
        ]

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
