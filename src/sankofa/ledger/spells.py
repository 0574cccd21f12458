"""Names, places, identifiers and relations of an organisation, each from its day on (contract: LOCK-4)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.ledger.entities import NEVER, Claim, Entity, Relation, Statement, strongest_first
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import ordinal
from sankofa.model.identifiers import free_location, in_one_spelling
from sankofa.model.rows import RELATIONSHIPS

PARENT: Final = "parent"


def states(
    entity: Entity, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[str, list[Statement], list[Claim]]]:
    """The profiles and identifiers of an organisation, by the day each changed (contract: LOCK-4).

    The first profile of a source also covers the time before it, back to the day its register recorded the
    organisation. A later profile is known from the day the source updated it, or from the day of its file if
    the source gives no update day or repeats that of the previous profile. If filings of several sources
    describe it, only the earliest covers the time before it (contract: ENTY-11). The first day is the empty
    text, unless nothing was known before a register recorded the organisation.
    """
    dated = list(profiles_by_day(entity, captures))
    every_claim = [*entity.claims, *entity.past]
    first_day = identifier_days(dated)
    of_profiles = {one.capture_id for _, _, one in dated}
    for claim in every_claim:
        if claim.capture_id not in of_profiles:  # by a link, or by the filings themselves
            first_day[claim.identifier] = ""
    days = {day for day, _, _ in dated}
    if any(claim.first for claim in every_claim):
        beginning = min(days, default="")
        start = min(beginning, *(claim.first for claim in every_claim if claim.first))
        # The first record also covers the time before an older spell.
        days = days - {beginning} | {start}
        dated = [(start if day == beginning else day, until, one) for day, until, one in dated]
        first_day = {one: start if day == beginning else day for one, day in first_day.items()}
    spells = [
        (claim.first or first_day.get(claim.identifier, ""), claim.until, claim) for claim in every_claim
    ]
    ends = {until for _, until, _ in spells} - {NEVER}
    days |= {first for first, _, _ in spells} | ends
    beginning = min(days, default="")
    for day in sorted(days | {day for day in _parent_days(entity) if day > beginning}):
        known: dict[tuple[str, str], Statement] = {}
        for since, _, one in dated:
            if since <= day:
                known[one.subject, one.register] = one
        claims = sorted(claim for first, until, claim in spells if first <= day < until)
        yield day, strongest_first(known.values()), claims


def date_numbers(entity: Entity, captures: Mapping[int, CaptureInfo]) -> None:
    """Set the first and last days of numbers that a register changed; only records have them."""
    profiles = list(profiles_by_day(entity, captures))
    first_of: dict[tuple[str, str], Statement] = {}
    days = defaultdict[str, list[tuple[str, str, Statement]]](list)
    for day, until, one in profiles:
        since = "" if first_of.setdefault((one.subject, one.register), one) is one else day
        for identifier in map(in_one_spelling, one.profile.identifiers):
            if identifier.startswith("registry:") and identifier not in entity.subjects:
                days[identifier].append((since, until or NEVER, one))
    by_profiles = {one.capture_id for _, _, one in profiles}
    for at, claim in enumerate(entity.claims):
        own = days.get(claim.identifier)
        if own and not claim.first and claim.capture_id in by_profiles:
            entity.claims[at] = claim._replace(first=min(since for since, _, _ in own))
    identifiers = {claim.identifier for claim in (*entity.claims, *entity.past)}
    for identifier in sorted(days.keys() - identifiers):
        since, _, _ = min(days[identifier])
        _, until, one = max(days[identifier], key=itemgetter(1))
        if since < until < NEVER:
            capture = captures[one.capture_id]
            ref = capture.ref(free_location(one.subject), one.profile.document)
            last = (date.fromisoformat(until) - timedelta(days=1)).isoformat()
            entity.past.append(Claim(identifier, ref, one.capture_id, since, last))
    entity.past.sort()


def is_dated(entity: Entity) -> bool:
    """Whether anything known about an organisation may be dated."""
    return bool(
        entity.past
        or entity.relations
        or entity.earlier
        or any(claim.first for claim in entity.claims)
        or any(one.profile.registered for one in entity.statements)
        or len({one.effective[:10] for one in entity.statements if one.filed}) > 1
    )


class DatedLocation(NamedTuple):
    """Location of an organisation from a day on; empty texts if unknown."""

    day: str
    country: str
    exchanges: tuple[str, ...]
    """The exchanges it was listed on, in the order of its listings."""


def dated_locations(entity: Entity, captures: Mapping[int, CaptureInfo]) -> list[DatedLocation]:
    """Its country and its exchanges, from each day on that they changed."""
    changes: list[DatedLocation] = []
    for day, statements, claims in states(entity, captures):
        country = next((one.profile.country for one in statements if one.profile.country), "")
        listed = [one.identifier.split(":")[1] for one in claims if one.identifier.startswith("ticker:")]
        location = DatedLocation(day, country, tuple(dict.fromkeys(listed)))
        if not changes or changes[-1][1:] != location[1:]:
            changes.append(location)
    return changes


def _parent_days(entity: Entity) -> Iterator[str]:
    """The days on which a parent or its name changed."""
    for one in entity.relations:
        if one.kind == PARENT:
            yield one.first
            yield from (day for day, _, _ in one.named if one.first < day < one.until)
            if one.until != NEVER:
                yield one.until


def profiles_by_day(
    entity: Entity, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[str, str, Statement]]:
    """Every profile with the day it is known from and the day of the next profile; empty if there is none.

    In order for each subject and register.
    """
    by_register = defaultdict[tuple[str, str], list[Statement]](list)
    for one in (*entity.earlier, *entity.statements):
        by_register[one.subject, one.register].append(one)
    filed = {one.effective[:10] for one, *_ in by_register.values() if one.filed}
    for own in by_register.values():
        first = own[0].effective[:10] if own[0].filed else ""
        first = own[0].profile.registered or ("" if first == min(filed, default="") else first)
        dated = _before_a_change(list(_days(own, first, captures)))
        for (day, one), (until, _) in zip(dated, [*dated[1:], ("", own[-1])], strict=True):
            yield day, until, one


def identifier_days(profiles: Iterable[tuple[str, str, Statement]]) -> dict[str, str]:
    """The first day of each identifier, from `profiles_by_day`."""
    first_day: dict[str, str] = {}
    for day, _, one in profiles:
        for identifier in map(in_one_spelling, one.profile.identifiers):
            first_day[identifier] = min(first_day.get(identifier, day), day)
    return first_day


def _before_a_change(dated: list[tuple[str, Statement]]) -> list[tuple[str, Statement]]:
    """The first record with its former name, up to the day on which the register recorded the present one."""
    (first, one), *later = dated
    profile = one.profile
    if not first < profile.renamed < (later[0][0] if later else NEVER):
        return dated
    others = tuple(name for name in profile.other_names if name != profile.former_name)
    former = msgspec.structs.replace(profile, legal_name=profile.former_name, other_names=others)
    return [(first, one._replace(profile=former)), (profile.renamed, one), *later]


def first_records(entity: Entity, captures: Mapping[int, CaptureInfo]) -> Iterator[tuple[str, int]]:
    """Each source that describes it, with the first day of its first record; 0 if that has no day."""
    first: dict[str, int] = {}
    for text, _, one in profiles_by_day(entity, captures):
        day = ordinal(text) if text else 0
        first[one.source_id] = min(day, first.get(one.source_id, day))
    yield from first.items()


def _days(
    own: Sequence[Statement], day: str, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[str, Statement]]:
    """Records in order: the first from `day` on, each later one from the day of its update."""
    yield day, own[0]
    for before, one in pairwise(own):
        updated = "" if one.effective == before.effective else one.effective[:10]
        day = max(day, updated or captures[one.capture_id].day)
        yield day, one


def relate(entities: Sequence[Entity], captures: Mapping[int, CaptureInfo]) -> None:
    """Find the successors, predecessors and parents of organisations, each with its days."""
    for entity in entities:
        if entity.earlier:
            date_numbers(entity, captures)
    identifiers = set[str | None]()
    for entity in entities:
        identifiers.update(one.profile.parent for one in entity.relationships)
        identifiers.update(one.profile.successor for one in (*entity.statements, *entity.earlier))
    identifiers.discard(None)
    if not identifiers:
        return
    holder = {
        claim.identifier: one for one in entities for claim in one.claims if claim.identifier in identifiers
    }
    holder |= {subject: one for one in entities for subject in one.subjects if subject in identifiers}
    first_file = dict[str, str]()
    for capture in captures.values():
        first_file[capture.source_id] = min(first_file.get(capture.source_id, NEVER), capture.day)
    relations = defaultdict[str, list[Relation]](list)
    for entity in entities:
        if any(one.profile.successor in holder for one in (*entity.statements, *entity.earlier)):
            for value, first, until, evidence in _successors(entity, holder, captures):
                known = max(first, _first_known(entity, captures))
                relations[entity.service_id].append(Relation("successor", "", value, first, until, evidence))
                relations[value].append(
                    Relation("predecessor", "", entity.service_id, known, until, evidence)
                )
        for relationship in RELATIONSHIPS if entity.relationships else ():
            relations[entity.service_id] += _parents(entity, relationship, holder, captures, first_file)
    for entity in entities:
        if entity.service_id in relations:
            entity.relations = tuple(relations[entity.service_id])


def _successors(
    entity: Entity, holder: Mapping[str, Entity], captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[str, str, str, Statement]]:
    """The service_id of each successor, its first day, the day after its last, and the record."""
    named: list[tuple[str, str, Statement]] = []
    for day, statements, _ in states(entity, captures):
        if not statements:
            continue
        pairs = ((holder.get(one.profile.successor or ""), one) for one in statements)
        successor, evidence = next((pair for pair in pairs if pair[0]), (None, statements[0]))
        value = "" if successor is None or successor is entity else successor.service_id
        if value != (named[-1][1] if named else ""):
            named.append((day, value, evidence))
    for at, (day, value, evidence) in enumerate(named):
        if value:
            yield value, day, named[at + 1][0] if at + 1 < len(named) else NEVER, evidence


def _parents(
    entity: Entity,
    relationship: str,
    holder: Mapping[str, Entity],
    captures: Mapping[int, CaptureInfo],
    first_file: Mapping[str, str],
) -> Iterator[Relation]:
    """The parents that consolidated it, with their days.

    The first record also covers the time before it, back to the day of registration, unless a file from a
    source of its records is older than its last update. Then that update counts, as for later records.
    """
    own = _changes(one for one in entity.relationships if one.profile.relationship == relationship)
    if not own:
        return
    first = own[0].profile.registered
    if own[0].effective[:10] > min(first_file[one.source_id] for one in entity.relationships):
        first = max(first, own[0].effective[:10])
    dated = list(_days(own, first, captures))
    for at, (day, one) in enumerate(dated):
        until = dated[at + 1][0] if at + 1 < len(dated) else NEVER
        if one.profile.parent and not one.profile.ended and day < until:
            parent = holder.get(one.profile.parent)
            named = tuple(_named(parent, captures)) if parent else ()
            lei = one.profile.parent.removeprefix("lei:")
            yield Relation(PARENT, relationship, lei, day, until, one, named)


def _changes(records: Iterable[Statement]) -> list[Statement]:
    """The records that changed the parent, oldest first, without those that end another relationship."""
    changes: list[Statement] = []
    for one in sorted(records, key=lambda one: (one.effective, not one.profile.ended)):
        last = changes[-1] if changes else None
        before = None if last is None or last.profile.ended else last.profile.parent
        if one.profile.ended is (one.profile.parent == before):
            if last and (one.effective, one.capture_id) == (last.effective, last.capture_id):
                changes.pop()  # one relationship ended and another began at once
            changes.append(one)
    return changes


def _named(entity: Entity, captures: Mapping[int, CaptureInfo]) -> Iterator[tuple[str, str, str | None]]:
    """From each day on, the service_id and the legal name of an organisation."""
    known, before = _first_known(entity, captures), None
    for day, statements, _ in states(entity, captures):
        name = next((one.profile.legal_name for one in statements if one.profile.legal_name), None)
        if before is None or before != name:
            yield max(day, known), entity.service_id, name
        before = name


def _first_known(entity: Entity, captures: Mapping[int, CaptureInfo]) -> str:
    """The day from which on records know an organisation."""
    first = next((day for day, _, _ in states(entity, captures) if day), NEVER)
    return min(first, captures[entity.first_capture].day)
