"""Records that share a strong identifier are one organisation (contract: ENT-1, ENT-2, ENT-7).

Two different LEIs are never merged: an identifier that both claim is a conflict, reported and left
unresolved. Only a LEI stays with the organisation recorded under it. A subject proven to be a natural person
is never an organisation, whatever else was filed under its identifier. A merged organisation keeps its oldest
service_id; the others still answer, as aliases.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, NamedTuple

from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.identifiers import (
    SEC_CIK,
    STRONG,
    free_location,
    in_one_spelling,
    service_id,
    stored_identifier,
)
from sankofa.model.organisations import is_no_persons
from sankofa.model.records import Profile

_REGISTRANT: Final = f"registry:{SEC_CIK}:"


class Statement(NamedTuple):
    """The current profile of one subject in one source, and its capture."""

    subject: str
    source_id: str
    profile: Profile
    capture_id: int
    effective: str = ""
    """The instant or day on which the source last updated it; empty if it does not say."""
    filed: bool = False
    """Whether it comes with a filing of the day in `effective`, and no register keeps it."""

    @property
    def register(self) -> str:
        """The source; empty for records of the LEI register, because several sources hold copies of them."""
        return "" if self.subject.startswith("lei:") and not self.profile.secondary else self.source_id


class Relation(NamedTuple):
    """A successor, predecessor or parent of an organisation, and the days of the relationship."""

    kind: str
    relationship: str
    """`direct` or `ultimate` for a parent."""
    value: str
    """The service_id of a successor or predecessor, the LEI of a parent."""
    first: str
    """The first day; empty if there is no known beginning."""
    until: str
    """The day after the last; `NEVER` while it lasts."""
    evidence: Statement
    named: tuple[tuple[str, str, str | None], ...] = ()
    """The service_id and legal name of the parent from each day on; empty if unknown."""


class Claim(NamedTuple):
    """A source holds that an identifier, `str(Identifier)`, is the organisation's."""

    identifier: str
    source_ref: str
    capture_id: int
    first: str = ""
    """The first day; empty if no source gives it."""
    last: str = ""
    """The last day; empty while it lasts."""

    @property
    def until(self) -> str:
        """The day after the last; later than every day while it lasts."""
        return _following(self.last) if self.last else NEVER


@dataclass
class Entity:
    """One organisation: its surviving service_id, and everything held under it."""

    service_id: str
    aliases: tuple[str, ...]
    subjects: tuple[str, ...]
    first_capture: int
    statements: list[Statement] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    """One for each identifier currently held, in the order of the identifiers."""
    past: list[Claim] = field(default_factory=list)
    """Identifiers whose days ended, in the same order."""
    earlier: list[Statement] = field(default_factory=list)
    """Profiles replaced by a later one from the same subject and source, oldest first."""
    relationships: Sequence[Statement] = ()
    """What records of relationships say about its parents."""
    relations: Sequence[Relation] = ()
    """Made of all this once every organisation is known (`ledger.spells`)."""
    from_tenders: bool = False
    """Whether only tenders name it."""
    legal_name: str | None = field(init=False, default=None)
    """As the strongest of its records has it."""
    country: str | None = field(init=False, default=None)
    """As the strongest of its records has it; ISO 3166-1 alpha-2."""

    def __post_init__(self) -> None:
        """Asked for many times in a build: looked up once."""
        for statement in self.statements:
            profile = statement.profile
            self.legal_name = self.legal_name or profile.legal_name or None
            self.country = self.country or profile.country or None


NEVER = "~"


def _following(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


class Conflict(NamedTuple):
    """An identifier that two different LEIs claim."""

    identifier: str
    claimed_by: tuple[str, ...]


@dataclass
class Resolution:
    """Every organisation of the ledger by service_id, and what was left alone."""

    entities: list[Entity]
    conflicts: list[Conflict]
    crosswalk_since: str | None
    """The first day on which identifiers are known; empty if always, None if none were loaded."""
    proven: int
    """The newest capture that proved somebody a natural person after the ledger already held rows about them.
    Editions made earlier may name them. 0 if there is none."""
    first_seen: dict[str, int] = field(default_factory=dict)
    """By subject, the first capture that has it."""


def _keep_issued_ids(entities: list[Entity], whole: Resolution) -> None:
    """Give organisations the service_ids that they have in the whole ledger.

    An edition may leave sources out. An organisation keeps its id even if its first record is left out. If a
    left-out source had merged two organisations, they are separate again: the id stays with the organisation
    it was made for, else with the older one.
    """
    merged = {subject: entity for entity in whole.entities for subject in entity.subjects}
    parts = defaultdict[str, list[Entity]](list)
    for entity in entities:
        known = merged.get(entity.subjects[0])
        parts[known.service_id if known else entity.service_id].append(entity)

    def age(entity: Entity) -> tuple[int, int, str]:
        return min((whole.first_seen.get(s, 0), _rank(s), s) for s in entity.subjects)

    for issued, group in parts.items():
        group.sort(key=age)
        own = {service_id(s): entity for entity in group for s in entity.subjects}
        known = merged.get(group[0].subjects[0])
        for name in (issued, *(known.aliases if known else ())):
            holder = own.get(name, group[0])
            if name == issued:
                holder.aliases = tuple(sorted({holder.service_id, *holder.aliases} - {issued}))
                holder.service_id = issued
            elif name != holder.service_id:
                holder.aliases = tuple(sorted({name, *holder.aliases}))


def resolve(
    ledger: LedgerReader, captures: dict[int, CaptureInfo], whole: Resolution | None = None
) -> Resolution:
    """Resolve all organisations of the ledger. The order of ingestion does not matter.

    `whole` is the resolution of the whole ledger, if this one leaves sources out.
    """
    persons = ledger.persons()
    subjects = dict(ledger.fact_subjects())
    proven = persons.proven_by(subjects)
    first_seen = {subject: first for subject, first in subjects.items() if subject not in persons}
    named = defaultdict[str, list[Statement]](list)
    earlier = defaultdict[str, list[Statement]](list)
    relationships = defaultdict[str, list[Statement]](list)
    for replaced, statement in _histories(ledger, captures, relationships):
        if statement.subject in persons:
            proven = max(proven, persons.proven_by([statement.subject]))
        else:
            for one in (*replaced, statement):
                _see(first_seen, one.subject, one.capture_id)
            named[statement.subject].append(statement)
            if replaced:
                earlier[statement.subject] += replaced
    for subject, own in relationships.items():
        people = [one for one in (subject, *(str(each.profile.parent) for each in own)) if one in persons]
        proven = max(proven, persons.proven_by(people)) if people else proven
        own[:] = [one for one in own if one.profile.parent not in people]
    claims = defaultdict[str, list[Claim]](list)
    for identifier, subject, location, capture_id, *days in ledger.links():
        if subject in persons or identifier in persons:
            proven = max(proven, persons.proven_by([subject, identifier]))
        else:
            _see(first_seen, subject, capture_id)
            source_ref = captures[capture_id].ref(location)
            claims[subject].append(Claim(in_one_spelling(identifier), source_ref, capture_id, *days))
    known_since = [claim.first for linked in claims.values() for claim in linked]
    for subject, statements in named.items():
        if subject.startswith("lei:") and not all(one.profile.secondary for one in statements):
            known_since += [one.profile.registered for one in (earlier.get(subject) or statements)[:1]]
    for subject, statements in named.items():
        for statement in statements:
            claims[subject] += _own_claims(statement, earlier.get(subject, ()), captures)
    shared, recycled = _shared(first_seen, claims)
    groups, conflicts = _merge(first_seen, shared)
    unresolved = {c.identifier for c in conflicts if not c.identifier.startswith("registry:")}
    excluded = unresolved, unresolved | recycled
    everyone = (_entity(group, first_seen, (named, earlier), claims, excluded, captures) for group in groups)
    entities = [entity for entity in everyone if _is_organisation(entity)]
    for entity in entities if relationships else ():
        entity.relationships = [one for subject in entity.subjects for one in relationships.get(subject, ())]
    if whole is not None:
        _keep_issued_ids(entities, whole)
    entities.sort(key=lambda entity: entity.service_id)
    return Resolution(entities, conflicts, min(known_since, default=None), proven, first_seen)


def _histories(
    ledger: LedgerReader, captures: dict[int, CaptureInfo], relationships: defaultdict[str, list[Statement]]
) -> Iterator[tuple[list[Statement], Statement]]:
    """For each subject in each register, the replaced profiles and the newest, each as first received.

    Records of relationships are not profiles: they go into `relationships`.
    """

    def order(one: Statement) -> tuple[object, ...]:
        return one.effective, captures[one.capture_id].day, one.capture_id

    def is_filed(one: Statement) -> bool:
        return bool(one.register) and one.effective not in captures[one.capture_id].instants

    for subject, records in groupby(ledger.entity_records(), itemgetter(0)):
        histories = defaultdict[str, list[Statement]](list)
        for _, source_id, effective, profile, capture_id in records:
            one = Statement(subject, source_id, profile, capture_id, effective)
            if not profile.registered and is_filed(one):
                one = one._replace(filed=True)
            (relationships[subject] if profile.relationship else histories[one.register]).append(one)
        for own in histories.values():
            if len(own) > 1:
                own.sort(key=order)
                own = [one for at, one in enumerate(own) if not at or one.profile != own[at - 1].profile]
            yield own[:-1], own[-1]


def _own_claims(
    statement: Statement, earlier: Sequence[Statement], captures: Mapping[int, CaptureInfo]
) -> Iterator[Claim]:
    """The identifiers of a profile, each by the first record of its register that has it."""
    for identifier in statement.profile.identifiers:
        own = (one for one in earlier if one.register == statement.register)
        has_it = (one for one in own if identifier in one.profile.identifiers)
        one = next(has_it, statement) if earlier else statement
        ref = captures[one.capture_id].ref(free_location(one.subject), one.profile.document)
        yield Claim(in_one_spelling(identifier), ref, one.capture_id)


def strongest_first(statements: Iterable[Statement]) -> list[Statement]:
    """Sorts register records before names that come with figures; then by identifier, dated records first,
    and the latest filing before earlier ones."""

    def rank(one: Statement) -> tuple[object, ...]:
        name_only = one.profile.secondary and not (one.filed and one.subject.startswith(_REGISTRANT))
        return name_only, _rank(one.subject), not one.profile.registered

    ordered = list(statements)
    if len(ordered) > 1:  # of most organisations there is one
        ordered.sort(key=lambda one: (one.source_id, one.subject))
        ordered.sort(key=lambda one: one.effective if one.filed else "", reverse=True)
        ordered.sort(key=rank)
    return ordered


def _see(first_seen: dict[str, int], subject: str, capture_id: int) -> None:
    first_seen[subject] = min(first_seen.get(subject, capture_id), capture_id)


def _entity(
    subjects: list[str],
    first_seen: dict[str, int],
    records: tuple[Mapping[str, list[Statement]], Mapping[str, list[Statement]]],
    claims: dict[str, list[Claim]],
    excluded: tuple[set[str], set[str]],
    captures: dict[int, CaptureInfo],
) -> Entity:
    """`records` has the current and the earlier ones of each subject. `excluded` has the identifiers without
    an owner, and those that are not the subject's own."""
    unresolved, disputed = excluded
    named, replaced = records
    statements = [one for s in subjects for one in named.get(s, ())]
    earlier = [one for s in subjects for one in replaced.get(s, ())] if replaced else []
    several = len(subjects) > 1
    oldest = min(subjects, key=lambda s: (first_seen[s], _rank(s), s)) if several else subjects[0]
    surviving = service_id(oldest)
    aliases = sorted({service_id(s) for s in subjects} - {surviving}) if several else []
    statements = strongest_first(statements)
    earliest: dict[str, tuple[str, Claim]] = {}  # the claim that was known first, with its day
    recorded: dict[tuple[str, int], str] = {}
    for one in chain(earlier, statements):
        day = one.effective[:10] if one.filed else one.profile.registered
        if day <= recorded.get((one.subject, one.capture_id), day):
            recorded[one.subject, one.capture_id] = day
    spells: dict[str, list[Claim]] = {}
    own = {subject for subject in subjects if subject.startswith("lei:")}
    for subject in subjects:
        for claim in claims.get(subject, ()):
            identifier = claim.identifier
            if identifier in unresolved and identifier not in own:
                continue
            if claim.first or claim.last:
                spells.setdefault(identifier, []).append(claim)
            else:
                known = recorded.get((subject, claim.capture_id), ""), claim
                earliest[identifier] = min(known, earliest.get(identifier, known))
    for subject in subjects:  # an issuer known only by the identifier its filings give
        identifier = in_one_spelling(subject)
        if identifier not in earliest and (identifier not in disputed or subject in own):
            first = first_seen[subject]
            earliest[identifier] = "", Claim(identifier, captures[first].ref(subject), first)
    ordered = [
        claim
        for identifier in sorted({*earliest, *spells})
        for claim in (_joined(spells[identifier]) if identifier in spells else [earliest[identifier][1]])
    ]
    current = [claim for claim in ordered if not claim.last]
    past = [claim for claim in ordered if claim.last]
    names = tuple(aliases), tuple(sorted(subjects))
    return Entity(surviving, *names, first_seen[oldest], statements, current, past, earlier)


def _is_organisation(entity: Entity) -> bool:
    """Whether stored data shows that the subject is not a natural person (contract: GATE-9). A name does: it
    is stored only on evidence. An identifier with a first day does not: it would change earlier views."""
    if entity.legal_name:
        return True
    undated = (claim.identifier for claim in (*entity.claims, *entity.past) if not claim.first)
    identifiers = {*entity.subjects, *undated}
    return any(is_no_persons(stored_identifier(one)) for one in identifiers)


def _joined(spells: Iterable[Claim]) -> list[Claim]:
    """The spells of an identifier; spells that overlap or follow each other are joined."""
    joined: list[Claim] = []
    for claim in sorted(spells, key=lambda one: (one.first, one)):
        if joined and claim.first <= joined[-1].until:
            last = "" if NEVER in (claim.until, joined[-1].until) else max(claim.last, joined[-1].last)
            joined[-1] = joined[-1]._replace(last=last)
        else:
            joined.append(claim)
    return joined


def _merge(
    subjects: Iterable[str], shared: Iterable[tuple[str, set[str]]]
) -> tuple[list[list[str]], list[Conflict]]:
    """Join subjects that claim one strong identifier, strongest first; never two different LEIs."""
    parent = {subject: subject for subject in subjects}
    leis = {subject: subject for subject in parent if subject.startswith("lei:")}

    def root(subject: str) -> str:
        while parent[subject] != subject:
            parent[subject] = subject = parent[parent[subject]]
        return subject

    conflicts = []
    for identifier, claimants in sorted(shared, key=lambda one: (_rank(one[0]), one[0], min(one[1]))):
        roots = sorted({root(s) for s in claimants})
        different = {leis[r] for r in roots if r in leis}
        if identifier.startswith("lei:"):
            different.add(identifier)
        if len(different) > 1:
            conflicts.append(Conflict(identifier, tuple(sorted(different))))
            continue
        for other in roots[1:]:
            parent[other] = roots[0]
        if different:
            leis[roots[0]] = different.pop()
    groups = defaultdict[str, list[str]](list)
    for subject in parent:
        groups[root(subject)].append(subject)
    return [sorted(group) for group in groups.values()], conflicts


def _shared(
    subjects: Iterable[str], claims: dict[str, list[Claim]]
) -> tuple[list[tuple[str, set[str]]], set[str]]:
    """The strong identifiers that more than one subject claims (always few), and the reused ones, which join
    only subjects that claim them on the same days."""
    owner: dict[str, str] = {}
    dated = defaultdict[str, list[tuple[str, str, str]]](list)
    shared: dict[str, set[str]] = {}
    for subject in subjects:
        first = owner.setdefault(in_one_spelling(subject), subject)
        if first != subject:
            shared.setdefault(in_one_spelling(subject), {first}).add(subject)
    for subject, own in claims.items():
        for claim in own:
            identifier = claim.identifier
            if identifier.partition(":")[0] in STRONG:
                if claim.first or claim.last:
                    dated[identifier].append((claim.first, claim.until, subject))
                first = owner.setdefault(identifier, subject)
                if first != subject:
                    shared.setdefault(identifier, {first}).add(subject)
                elif identifier.startswith("lei:") and identifier != subject:
                    shared.setdefault(identifier, {first})  # a LEI this subject may carry into a merger
    at_once = {identifier: _at_once(dated[identifier]) for identifier in shared if identifier in dated}
    recycled = {identifier for identifier, groups in at_once.items() if len(groups) > 1}
    joining = [
        (identifier, group)
        for identifier, claimants in shared.items()
        for group in (at_once[identifier] if identifier in recycled else [claimants])
    ]
    return joining, recycled


def _at_once(spells: Iterable[tuple[str, str, str]]) -> list[set[str]]:
    """The subjects of spells (first day, day after the last, subject), grouped by overlap."""
    groups: list[set[str]] = []
    latest = ""
    for first, until, subject in sorted(spells):
        if not groups or first >= latest:
            groups.append(set())
        groups[-1].add(subject)
        latest = max(latest, until)
    return groups


def _rank(identifier: str) -> int:
    return STRONG.index(identifier.partition(":")[0])
