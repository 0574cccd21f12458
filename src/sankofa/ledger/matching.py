"""Which organisation a party of a release is.

A party matches by identifier, by a decision of the operator, by a name that only one organisation of its
country has, or by a name that is close to that of only one. Matching uses what was known on the day of the
release. If nobody has the name or number yet, it uses the day on which the first organisation with it is
known. So an organisation that comes later changes no earlier match (contract: LOCK-5).

See contract: ENT-3, ENT-4, ENT-9, ENT-10.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from sankofa.ledger.capture import Persons
from sankofa.ledger.entities import Claim, Entity, Statement
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.spells import identifier_days, is_dated, profiles_by_day
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.identifiers import make_identifier, service_id
from sankofa.model.ocds.release import Gate, Identifiers
from sankofa.model.organisations import LEI_SCHEMES, in_companies_register, org_evidence
from sankofa.model.organisations.similarity import NameWords, name_words, similarity
from sankofa.model.records import Profile
from sankofa.model.text import search_form

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
    begins: int = 0
    """The day on which it was recognised; 0 if that is the day of the release."""


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


class _Holder(NamedTuple):
    """An organisation that has a name or an identifier, and the days on which it does."""

    service_id: str
    begins: int = 0
    """The first day on which records know the organisation."""
    spells: tuple[tuple[int, int], ...] = ((0, FOREVER),)
    """Each from its first day until the day after its last."""

    def is_known(self, day: int, on: int) -> bool:
        """Whether `on` a day it is known to have had it by the day of a release, or since it is known."""
        return self.spells[0][0] <= max(day, self.begins) <= on

    def has(self, on: int) -> bool:
        return any(first <= on < until for first, until in self.spells)

    @property
    def bounds(self) -> Iterator[int]:
        yield self.begins
        for spell in self.spells:
            yield from spell


_Holders = tuple[_Holder, ...]


def _holders(
    entity: Entity, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[tuple[str, str], _Holder]]:
    """The names of an organisation, each with its country, and its identifiers, without one."""
    if not is_dated(entity):
        always = _Holder(entity.service_id)
        yield from ((name, always) for name in _names(entity.statements))
        yield from ((("", claim.identifier), always) for claim in entity.claims)
        return
    spells = defaultdict[tuple[str, str], list[tuple[int, int]]](list)
    profiles = list(profiles_by_day(entity, captures))
    first_day = identifier_days(profiles)
    for day, until, one in profiles:
        for name in _names([one]):
            spells[name].append((ordinal(day) if day else 0, ordinal(until) if until else FOREVER))
    for claim in entity.claims:
        first = claim.first or first_day.get(claim.identifier, "")
        spells["", claim.identifier].append((ordinal(first) if first else 0, FOREVER))
    begins = min((day for day, _, _ in profiles), default="")
    for name, own in spells.items():
        yield name, _Holder(entity.service_id, ordinal(begins) if begins else 0, tuple(sorted(own)))


def _names(statements: Iterable[Statement]) -> Iterator[tuple[str, str]]:
    for statement in statements:
        profile = statement.profile
        if profile.country:
            names = (name for name in (profile.legal_name, *profile.other_names) if name)
            yield from dict.fromkeys((profile.country, name) for name in names)


class _SimilarNames:
    """The names of one country, found by words that begin alike."""

    def __init__(self, country: str, names: Iterable[tuple[str, _Holder]]) -> None:
        self._country = country
        self._names = list(dict.fromkeys((name_words(name, country), holder) for name, holder in names))
        self._blocks: defaultdict[str, list[int]] = defaultdict(list)
        for number, (words, _) in enumerate(self._names):
            for block in _blocks(words):
                self._blocks[block].append(number)

    def like(self, name: str) -> Iterator[tuple[float, _Holder]]:
        """Organisations with a similar name, with the score of each name."""
        own_words = name_words(name, self._country)
        blocks = sorted((self._blocks.get(block, ()) for block in _blocks(own_words)), key=len)
        near = {number for block in blocks[:_BLOCKS] if len(block) <= _LARGEST_BLOCK for number in block}
        for number in near:
            words, holder = self._names[number]
            score = similarity(own_words, words, self._country)
            if score >= _WORTH_REVIEW:
                yield score, holder


def _blocks(words: NameWords) -> set[str]:
    """The first letters of each word, and of all words together."""
    return {word[:_BLOCK] for word in words.words} | {f" {words.joined}"}


class PartyMatcher:
    """Built once from all resolved organisations; every question after that is a look-up."""

    def __init__(
        self,
        entities: Iterable[Entity],
        captures: Mapping[int, CaptureInfo] = MappingProxyType({}),
        reviews: Reviews = NO_REVIEWS,
        threshold: float | None = None,
    ) -> None:
        """Without a `threshold`, similar names are not searched."""
        self.reviews = reviews
        self.threshold = threshold
        self._similar: dict[str, _SimilarNames] = {}
        self._own_id: dict[str, str] = {}
        """By service_id and alias."""
        self._identified: dict[str, _Holders] = {}
        self._names: defaultdict[str, list[tuple[str, _Holder]]] = defaultdict(list)
        """By country, each name as written."""
        self._named: dict[str, dict[str, _Holders]] = {}
        """By country asked for and normalised name."""
        self._registered: dict[tuple[str, str], _Holder] = {}
        """By service_id and register."""
        for entity in entities:
            self._own_id |= dict.fromkeys((entity.service_id, *entity.aliases), entity.service_id)
            former: list[tuple[str, _Holder]] = []
            for (country, text), holder in _holders(entity, captures):
                if country:
                    self._names[country].append((text, holder))
                elif text.startswith(("lei:", "registry:")):
                    self._identified[text] = (*self._identified.get(text, ()), holder)
                    if text.startswith("registry:"):
                        former.append((register_of(text), holder))
            for register, holder in sorted(former, key=lambda one: one[1].spells[0], reverse=True):
                self._registered[entity.service_id, register] = holder

    def holders(self, identifier: str) -> _Holders:
        """The organisations that have, or will have, an identifier."""
        return self._identified.get(identifier, ())

    def number_in(self, service_id: str, register: str) -> _Holder | None:
        """Since when an organisation has a number in a register."""
        return self._registered.get((service_id, register))

    def ask(self, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> "PartyQuestion":
        """Which organisation a party is, for any day of release."""
        return PartyQuestion(self, name, country, identifiers)

    def match(self, name: str, country: str, identifiers: Sequence[tuple[str, str]]) -> Match:
        """Which organisation a party is, for a release of today."""
        return self.ask(name, country, identifiers).on(FOREVER - 1)

    def own_id(self, service_id: str) -> str | None:
        """The service_id of the organisation that has or had this identifier."""
        return self._own_id.get(service_id)

    def like(self, name: str, country: str) -> list[tuple[float, _Holder]]:
        if country not in self._similar:
            self._similar[country] = _SimilarNames(country, self._names.get(country, ()))
        return list(self._similar[country].like(name))

    def named(self, name: str, country: str) -> _Holders:
        """Organisations that have, had or will have this name in a country.

        Registers have names for all countries; releases come from few.
        """
        if (known := self._named.get(country)) is None:
            known = self._named[country] = {}
            for text, holder in self._names.get(country, ()):
                key = normalised(text)
                if holder not in (others := known.get(key, ())):
                    known[key] = (*others, holder)
        return known.get(normalised(name), ())


class PartyQuestion:
    """A party of releases, and its candidate organisations."""

    def __init__(
        self, matcher: PartyMatcher, name: str, country: str, identifiers: Sequence[tuple[str, str]]
    ) -> None:
        self._matcher = matcher
        self._party = name, country
        self._numbers = register_numbers(tuple(identifiers))
        self._identified = list(_as_identifiers(identifiers))
        self._named = matcher.named(name, country)
        holders = (holder for _, one in self._identified for holder in matcher.holders(one))
        self._days = Days((*self._named, *holders, *self._registered(self._named)))

    def on(self, day: int) -> Match:
        """The organisation, by what was known on the day of a release.

        If nobody matches then, it uses the first later day on which somebody is recognised.
        """
        while True:
            days = self._days
            bucket = bisect_right(days.bounds, day)
            if bucket not in days.matches:
                days.matches[bucket] = self._first(day)
            if days is self._days:  # similar names may have added days
                return days.matches[bucket]

    def _first(self, day: int) -> Match:
        match = self._on(day, day)
        if match.service_id is None and self._matcher.threshold is not None:
            _ = self._like
        for begins in self._days.begins if match.service_id is None else ():
            if begins > day and (match := self._on(day, begins)).service_id:
                return match._replace(begins=begins)
        return match

    def _on(self, day: int, on: int) -> Match:
        """Matches by LEI, then by other identifiers, then by the operator's decision, then by name. A name
        never matches an organisation with another number in the same register, or one that the operator
        refused."""
        match = UNRESOLVED
        for is_lei, identifier in self._identified:
            if holder := self._holder(identifier, day, on):
                if is_lei:
                    return Match(holder, "lei", 1.0)
                match = match if match.service_id else Match(holder, "identifier", 1.0)
        if match.service_id:
            return match
        if confirmed := self._confirmed():
            return Match(confirmed, "review", 1.0)
        known = [one for one in self._named if one.is_known(day, on)]
        # A name belongs to its current holder, else to a former one.
        holder = _only([one for one in known if one.has(on)] or known)
        if holder and self._may_be(holder, day, on):
            return Match(holder, "name", 1.0)
        if self._matcher.threshold is not None and holder is None:
            best, *others = [*self.candidates(day, on), UNLIKE]
            if best.score >= self._matcher.threshold and (not others or others[0].score < best.score):
                return Match(best.service_id, "similar_name", best.score)
        return match

    def candidates(self, day: int = FOREVER - 1, on: int = FOREVER - 1) -> list[Candidate]:
        """Candidate organisations of its country with a similar name, most similar first."""
        best: dict[str, float] = {}
        for score, holder in self._like:
            if holder.is_known(day, on):
                best[holder.service_id] = max(score, best.get(holder.service_id, 0.0))
        like = sorted((Candidate(score, holder) for holder, score in best.items()), reverse=True)
        return [one for one in like if self._may_be(one.service_id, day, on)]

    @cached_property
    def _like(self) -> list[tuple[float, _Holder]]:
        like = self._matcher.like(*self._party)
        holders = tuple(holder for _, holder in like)
        self._days = Days((*self._days.holders, *holders, *self._registered(holders)))
        return like

    def _registered(self, holders: _Holders) -> Iterator[_Holder]:
        for holder in holders if self._numbers else ():
            for number in self._numbers:
                if own := self._matcher.number_in(holder.service_id, register_of(number)):
                    yield own

    def _holder(self, identifier: str, day: int, on: int) -> str | None:
        return _only(one for one in self._matcher.holders(identifier) if one.is_known(day, on))

    def _confirmed(self) -> str | None:
        reviews = self._matcher.reviews
        if not reviews.verdicts:
            return None
        key = reviews.key(*self._party)
        confirmed = (s for (k, s), verdict in reviews.verdicts.items() if k == key and verdict == "confirmed")
        return next(filter(None, map(self._matcher.own_id, confirmed)), None)

    def _may_be(self, holder: str, day: int, on: int) -> bool:
        if self._matcher.reviews.verdict(*self._party, holder) == "refused":
            return False
        for number in self._numbers:
            own = self._matcher.number_in(holder, register_of(number))
            if own and own.is_known(day, on) and self._holder(number, day, on) is None:
                return False
        return True


class Days:
    """The days on which organisations with a name or number change, and who was recognised between them."""

    def __init__(self, holders: _Holders) -> None:
        self.holders = holders
        self.bounds = sorted({day for one in holders for day in one.bounds})
        self.begins = sorted({one.begins for one in holders})
        self.matches: dict[int, Match] = {}


def _only(holders: Iterable[_Holder]) -> str | None:
    """The one organisation; `_SEVERAL` if there are more, None if there is none."""
    ids = {one.service_id for one in holders}
    return _SEVERAL if len(ids) > 1 else next(iter(ids), None)


def _as_identifiers(identifiers: Sequence[tuple[str, str]]) -> Iterator[tuple[bool, str]]:
    """The well-formed identifiers, as `str(Identifier)`, each with whether it is a LEI."""
    for scheme, value in identifiers:
        is_lei = scheme.upper() in LEI_SCHEMES
        with suppress(ValueError):
            yield is_lei, str(make_identifier("lei" if is_lei else "registry", value, scheme))


@lru_cache(maxsize=1 << 16)  # used several times for each party
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


def normalised(name: str) -> str:
    """A name normalised for comparison: case, accents, punctuation and spelling of its form removed."""
    return " ".join(filter(None, (_SPELLED.get(word, word) for word in search_form(name).split())))


def named_key(name: str, country: str = "") -> str:
    """The keyed hash by which a natural person who trades under a company's name is remembered.

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
    """The evidence that a party is an organisation. A register's record outweighs the name."""
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
        """`recall` returns a stored result for the same name, parties and code, or computes it."""
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
        return self._first_days[party.party_id] or ""

    @cached_property
    def _first_days(self) -> Evidence:
        return self._recall("party-days", lambda: {**self.ledger.party_days()})

    @property
    def proven(self) -> int:
        """The newest capture that proved a party a natural person; 0 if none."""
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
    """Whether the evidence depends only on the party's name and identifiers. For a LEI the record counts."""
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
    known_before = [
        replace(entity, aliases=tuple(sorted({*entity.aliases, *more} - {entity.service_id})))
        if (more := aliases.get(entity.service_id))
        else entity
        for entity in entities
    ]
    minted = {entity.service_id: entity for entity in by_number.values()}
    return sorted([*known_before, *minted.values()], key=lambda entity: entity.service_id)


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
