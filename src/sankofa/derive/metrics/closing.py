"""Whether the members of a total that a filing reports add up to it, so that nothing is left for any other.

Members are taken as the breakdown orders them: a sum stands for what is within it. Notes repeat parts of
lines (the taxes among what is accrued), and a line may be less than its name says (what is accrued but for
the taxes): to make the total, up to two members may be left out that are not of any kind asked for, or
added though they could be within another. Figures are matched to the last digit, and come from one filing.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from sankofa.derive.metrics.figures import Fact, last_change
from sankofa.model.routes import Breakdown

UNCLEAR = "unclear"
_SEARCHED_AT_MOST = 32
_ZERO = Decimal(0)


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
    there: list[str] = []
    for terms in breakdown.totals:
        concepts = [term.concept for term in terms]
        if not values.keys() >= set(concepts):
            continue
        there = there or _members_there(breakdown, values)
        total = sum([term.sign * values[term.concept] for term in terms], _ZERO)
        tried: list[list[str]] = []
        for known, document in _filings([facts[concept].documents for concept in concepts]):
            filed = [c for c in there if facts[c].is_in(document)]
            if filed in tried:  # as in a filing before
                continue
            tried.append(filed)
            for lines, within in _candidates(breakdown, filed):
                if (used := _adding_up(breakdown, lines, within, values, total)) is not None:
                    settled = last_change(facts[c] for c in there if c not in used)
                    return Closed(document, known, tuple(concepts), used, settled)
    return None


def _filings(of_total: list[dict[str, int]]) -> list[tuple[int, str]]:
    """The filings that have all of a total, and when each was known, the first first."""
    if len(of_total) == 1:
        return sorted([(known, name) for name, known in of_total[0].items()])
    shared = set.intersection(*[set(documents) for documents in of_total])
    return sorted([(max([documents[name] for documents in of_total]), name) for name in shared])


def _members_there(breakdown: Breakdown, values: Mapping[str, Decimal]) -> list[str]:
    """The members that are reported and not zero, as the breakdown orders them."""
    order = breakdown.order
    return sorted([c for c, value in values.items() if value and c in order], key=order.__getitem__)


def _candidates(breakdown: Breakdown, filed: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """What may be the lines of the statement, and what may be within one of them.

    First sums in the place of what is within them; then the other way.
    """
    within = breakdown.within
    wholes = [(whole, within[whole]) for whole in filed if whole in within]
    if not wholes:
        yield filed, []
        return
    inside = set().union(*[parts for _, parts in wholes])
    yield [c for c in filed if c not in inside], [c for c in filed if c in inside]
    split = {whole for whole, parts in wholes if not parts.isdisjoint(filed)}
    if split:
        yield [c for c in filed if c not in split], []


def _adding_up(
    breakdown: Breakdown,
    lines: list[str],
    within: list[str],
    values: Mapping[str, Decimal],
    total: Decimal,
) -> tuple[str, ...] | None:
    """The members that make the total: the lines, with at most two left out or added."""
    if breakdown.positive and not total:
        return ()
    members = breakdown.members
    amounts = {c: values[c] if members[c][0] > 0 else -values[c] for c in chain(lines, within)}
    surplus = sum([amounts[c] for c in lines], _ZERO) - total
    if not surplus:
        return tuple(lines)
    moves = [(amounts[c], c) for c in lines if _may_go(breakdown, c, lines, amounts)]
    moves += [(-amounts[c], c) for c in within]
    if len(moves) > _SEARCHED_AT_MOST:
        return None
    moved = _one_or_two([amount for amount, _ in moves], surplus)
    if moved is None:
        return None
    names = {moves[place][1] for place in moved}
    return tuple([c for c in lines if c not in names] + [c for c in within if c in names]) or None


def _one_or_two(amounts: list[Decimal], total: Decimal) -> tuple[int, ...] | None:
    """The places of the first amount, or else of the first two, that make a total."""
    if total in amounts:
        return (amounts.index(total),)
    last = {amount: place for place, amount in enumerate(amounts)}
    for place, amount in enumerate(amounts):
        rest = total - amount
        if last.get(rest, -1) > place:
            return place, amounts.index(rest, place + 1)
    return None


def _may_go(breakdown: Breakdown, concept: str, lines: list[str], amounts: Mapping[str, Decimal]) -> bool:
    """Whether a line may be left out: it is of no kind asked for, or one amount under two names of a kind."""
    kind = breakdown.members[concept][1]
    if not kind:
        return True
    before = lines[: lines.index(concept)]
    return any(breakdown.members[c][1] == kind and amounts[c] == amounts[concept] for c in before)
