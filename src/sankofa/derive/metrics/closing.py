"""Whether the members of a total that a filing reports add up to it, so that nothing is left for any other.

Members are taken as the breakdown orders them; a sum stands for the parts within it. Notes repeat parts of
lines (the taxes among what is accrued), and a line may be less than its name says (what is accrued but for
the taxes). So, to make the total, up to two members may be left out, or added though they are within another.
Only members without a mark may: never debt, where debt is asked for. Figures match to the last digit.
"""

from collections.abc import Mapping
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from sankofa.model.line_items import Breakdown

UNCLEAR = "unclear"
_SEARCHED_AT_MOST = 32
_ZERO = Decimal(0)


class Closed(NamedTuple):
    """A total of a filing, and the members that add up to it."""

    total: tuple[str, ...]
    """The concepts that the total is computed from."""
    members: tuple[str, ...]


def closed(breakdown: Breakdown, values: Mapping[str, Decimal]) -> Closed | None:
    """How a breakdown closes with the figures of one filing, by the first of its totals that does."""
    order = breakdown.order
    there = sorted([c for c, value in values.items() if value and c in order], key=order.__getitem__)
    inside = set().union(*[breakdown.within[whole] for whole in there if whole in breakdown.within])
    lines, within = [c for c in there if c not in inside], [c for c in there if c in inside]
    for terms in breakdown.totals:
        concepts = tuple([term.concept for term in terms])
        if values.keys() >= set(concepts):
            total = sum([term.sign * values[term.concept] for term in terms], _ZERO)
            used = _adding_up(breakdown, lines, within, values, total)
            if used is not None:
                return Closed(concepts, used)
    return None


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
    moves = [(amounts[c], c) for c in lines if not members[c][1]]
    moves += [(-amounts[c], c) for c in within if not members[c][1]]
    if len(moves) > _SEARCHED_AT_MOST:
        return None
    moved = _one_or_two([amount for amount, _ in moves], surplus)
    if moved is None:
        return None
    names = {moves[number][1] for number in moved}
    return tuple([c for c in lines if c not in names] + [c for c in within if c in names]) or None


def _one_or_two(amounts: list[Decimal], total: Decimal) -> tuple[int, ...] | None:
    """The numbers of the first amount, or else of the first two, that make a total."""
    if total in amounts:
        return (amounts.index(total),)
    last = {amount: number for number, amount in enumerate(amounts)}
    for number, amount in enumerate(amounts):
        rest = total - amount
        if last.get(rest, -1) > number:
            return number, amounts.index(rest, number + 1)
    return None
