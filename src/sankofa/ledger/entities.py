"""Who is who: records that share a strong identifier are one organisation.

Two different LEIs are never merged: an identifier that both claim is a conflict, reported and
left unresolved. A subject proven to be a natural person is no organisation, whatever else was
filed under its identifier. The oldest service_id of a merged organisation survives, the others go on
answering as aliases.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sankofa.ledger.book import Ledger
from sankofa.model.identifiers import STRONG, Identifier, parse_identifier, service_id
from sankofa.model.records import Profile


class Statement(NamedTuple):
    """The profile in force of one subject in one source, and the capture that brought it."""

    subject: str
    source_id: str
    profile: Profile
    capture_id: int


@dataclass
class Entity:
    """One organisation: its surviving service_id, and everything held under it."""

    service_id: str
    aliases: tuple[str, ...]
    subjects: tuple[str, ...]
    first_capture: int
    statements: list[Statement] = field(default_factory=list)

    @property
    def identifiers(self) -> list[Identifier]:
        """Every identifier currently held for it, in a stable order."""
        found = set(self.subjects) | {i for s in self.statements for i in s.profile.identifiers}
        return sorted(
            (parse_identifier(i) for i in found), key=lambda i: (i.id_type, i.scheme or "", i.value)
        )


class Conflict(NamedTuple):
    """An identifier that two different LEIs claim."""

    identifier: str
    claimed_by: tuple[str, ...]


def resolve(ledger: Ledger) -> tuple[list[Entity], list[Conflict]]:
    """Every organisation of the ledger, by service_id, and the conflicts that were left alone."""
    persons = ledger.persons()
    first_seen = {subject: first for subject, first in ledger.fact_subjects() if subject not in persons}
    in_force: dict[tuple[str, str], Statement] = {}
    for subject, source_id, _, profile, capture_id in ledger.entity_records():
        if subject in persons:
            continue
        first_seen[subject] = min(first_seen.get(subject, capture_id), capture_id)
        in_force[subject, source_id] = Statement(subject, source_id, profile, capture_id)
    groups, conflicts = _merge(first_seen, in_force.values())
    statements: defaultdict[str, list[Statement]] = defaultdict(list)
    for statement in in_force.values():
        statements[statement.subject].append(statement)
    entities = []
    for subjects in groups:
        oldest = min(subjects, key=lambda s: (first_seen[s], _rank(s), s))
        surviving = service_id(oldest)
        aliases = sorted({service_id(s) for s in subjects} - {surviving})
        said = sorted(
            (statement for s in subjects for statement in statements[s]),
            key=lambda s: (_rank(s.subject), s.source_id, s.subject),
        )
        first = min(first_seen[s] for s in subjects)
        entities.append(Entity(surviving, tuple(aliases), tuple(sorted(subjects)), first, said))
    return sorted(entities, key=lambda e: e.service_id), conflicts


def _merge(
    subjects: Iterable[str], statements: Iterable[Statement]
) -> tuple[list[list[str]], list[Conflict]]:
    parent = {subject: subject for subject in subjects}
    leis: dict[str, str] = {s: s for s in parent if s.startswith("lei:")}

    def root(subject: str) -> str:
        while parent[subject] != subject:
            parent[subject] = subject = parent[parent[subject]]
        return subject

    claims: defaultdict[str, set[str]] = defaultdict(set)
    for statement in statements:
        for identifier in statement.profile.identifiers:
            if identifier.partition(":")[0] in STRONG:
                claims[identifier].add(statement.subject)
    for subject in parent:
        claims[subject].add(subject)
    conflicts = []
    for identifier in sorted(claims, key=lambda i: (_rank(i), i)):
        roots = sorted({root(s) for s in claims[identifier]})
        different = {leis[r] for r in roots if r in leis} | (
            {identifier} if identifier.startswith("lei:") else set()
        )
        if len(different) > 1:
            conflicts.append(Conflict(identifier, tuple(sorted(different))))
            continue
        for other in roots[1:]:
            parent[other] = roots[0]
        if different:
            leis[roots[0]] = different.pop()
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for subject in parent:
        groups[root(subject)].append(subject)
    return [sorted(group) for group in groups.values()], conflicts


def _rank(identifier: str) -> int:
    return STRONG.index(identifier.partition(":")[0])
