"""Whether the members of a total that a filing reports add up to it, so that nothing is left for any other.

Members are taken as the breakdown orders them: a sum stands for what is within it. Notes repeat parts of lines
(the taxes among what is accrued): where all that is reported is more than the total, up to two members that are
not of any kind asked for may be left out to make it. Figures are matched to the last digit, and come from one
filing.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations
from typing import NamedTuple

from sankofa.derive.metrics.figures import Fact, last_change
from sankofa.model.routes import Breakdown

UNCLEAR = "unclear"
_LEFT_OUT_AT_MOST = 2
_SEARCHED_AT_MOST = 24


class Closed(NamedTuple):
    """A total of a filing, and the members that add up to it."""

    document: str
    known: int
    """The day on which the filing was known."""
    total: tuple[str, ...]
    """The concepts that it is had from."""
    members: tuple[str, ...]
    settled: int
    """The day from which nothing that was left out changed."""


def closed(breakdown: Breakdown, facts: Mapping[str, Fact], values: Mapping[str, Decimal]) -> Closed | None:
    """How a breakdown closes, in the first filing in which it does; `values` are those that stand today."""
    there = [concept for concept in breakdown.members if values.get(concept)]
    for terms in breakdown.totals:
        if any(term.concept not in values for term in terms):
            continue
        total = sum((term.sign * values[term.concept] for term in terms), Decimal(0))
        of_total = [facts[term.concept].documents for term in terms]
        filings = sorted(
            (max(documents[name] for documents in of_total), name)
            for name in set.intersection(*(set(documents) for documents in of_total))
        )
        for known, document in filings:
            filed = [c for c in there if document in facts[c].documents]
            for members in _candidates(breakdown, filed):
                if (used := _adding_up(breakdown, members, values, total)) is not None:
                    settled = last_change(facts[c] for c in there if c not in used)
                    concepts = tuple(term.concept for term in terms)
                    return Closed(document, known, concepts, used, settled)
    return None


def _candidates(breakdown: Breakdown, filed: list[str]) -> Iterator[list[str]]:
    """What may be the lines of the statement: sums in the place of what is within them; then the other way."""
    wholes = {whole: parts for whole, parts in breakdown.within.items() if whole in filed}
    inside = {part for parts in wholes.values() for part in parts}
    yield [concept for concept in filed if concept not in inside]
    split = {whole for whole, parts in wholes.items() if not parts.isdisjoint(filed)}
    if split:
        yield [concept for concept in filed if concept not in split]


def _adding_up(
    breakdown: Breakdown, members: list[str], values: Mapping[str, Decimal], total: Decimal
) -> tuple[str, ...] | None:
    signed = {concept: breakdown.members[concept][0] * values[concept] for concept in members}
    surplus = sum(signed.values(), Decimal(0)) - total
    if not surplus:
        return tuple(members)
    if len(members) > _SEARCHED_AT_MOST:
        return None
    removable = [c for c in members if not breakdown.members[c][1] or _twice(breakdown, c, members, signed)]
    for count in range(1, _LEFT_OUT_AT_MOST + 1):
        for left_out in combinations(removable, count):
            if sum((signed[concept] for concept in left_out), Decimal(0)) == surplus:
                rest = tuple(concept for concept in members if concept not in left_out)
                return rest if rest or not total else None
    return None


def _twice(breakdown: Breakdown, concept: str, members: list[str], signed: Mapping[str, Decimal]) -> bool:
    """Whether one amount is reported under two names of its kind: the later name may be left out."""
    kind = breakdown.members[concept][1]
    before = members[: members.index(concept)]
    return any(breakdown.members[c][1] == kind and signed[c] == signed[concept] for c in before)
