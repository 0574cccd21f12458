"""Names, places and identifiers of an organisation, from each day on that they changed (contract: LOCK-4)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from sankofa.ledger.entities import NEVER, Claim, Entity, Statement, strongest_first
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.identifiers import in_one_spelling


def states(
    entity: Entity, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[str, list[Statement], list[Claim]]]:
    """The profiles and identifiers of an organisation from each day on that they changed (contract: LOCK-4).

    The first profile of a source stands for the time before it, back to the day its register recorded the
    organisation. A later one is known from the day the source updated it. Where the source names no such day,
    or the one of the profile before, it is known from the day of its file.
    The first day is the empty text, unless nothing was known before a register recorded it.
    """
    dated = list(_dated(entity, captures))
    held = [*entity.claims, *entity.past]
    first_day: dict[str, str] = {}
    for day, one in dated:
        for identifier in map(in_one_spelling, one.profile.identifiers):
            first_day[identifier] = min(first_day.get(identifier, day), day)
    of_profiles = {one.capture_id for _, one in dated}
    for claim in held:
        if claim.capture_id not in of_profiles:  # by a link, or by the filings themselves
            first_day[claim.identifier] = ""
    days = {day for day, _ in dated}
    if any(claim.first for claim in held):
        days.add("")  # before the first of its spells
        beginning = min(days - {""}, default="")
        dated = [("" if day == beginning else day, one) for day, one in dated]
        first_day = {one: "" if day == beginning else day for one, day in first_day.items()}
    spells = [(claim.first or first_day.get(claim.identifier, ""), claim.until, claim) for claim in held]
    ends = {until for _, until, _ in spells} - {NEVER}
    for day in sorted(days | {first for first, _, _ in spells} | ends):
        known: dict[tuple[str, str], Statement] = {}
        for since, one in dated:
            if since <= day:
                known[one.subject, one.source_id] = one
        claims = sorted(claim for first, until, claim in spells if first <= day < until)
        yield day, strongest_first(known.values()), claims


class Placed(NamedTuple):
    """Where an organisation was from a day on; empty texts where that is not known."""

    day: str
    country: str
    exchanges: tuple[str, ...]
    """Those that it was listed on, in the order of its listings."""


def places(entity: Entity, captures: Mapping[int, CaptureInfo]) -> list[Placed]:
    """Its country and its exchanges, from each day on that they changed."""
    changes: list[Placed] = []
    for day, statements, claims in states(entity, captures):
        country = next((one.profile.country for one in statements if one.profile.country), "")
        listed = [one.identifier.split(":")[1] for one in claims if one.identifier.startswith("ticker:")]
        place = Placed(day, country, tuple(dict.fromkeys(listed)))
        if not changes or changes[-1][1:] != place[1:]:
            changes.append(place)
    return changes


def _dated(entity: Entity, captures: Mapping[int, CaptureInfo]) -> Iterator[tuple[str, Statement]]:
    """Every profile with the day from which on it is known, in order for each subject and source."""
    by_source = defaultdict[tuple[str, str], list[Statement]](list)
    for one in (*entity.earlier, *entity.statements):
        by_source[one.subject, one.source_id].append(one)
    for own in by_source.values():
        day = own[0].profile.registered
        yield day, own[0]
        for before, one in pairwise(own):
            updated = "" if one.effective == before.effective else one.effective[:10]
            day = max(day, updated or captures[one.capture_id].day)
            yield day, one
