"""How routes are tried, and whether the members of a total add up to it.

Notes of a filing repeat parts of its lines, and a line may cover less than its name says. So up to two
members may be left out of a total, or added even though another member includes them; never a marked member,
such as debt. Figures match to the last digit.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import NamedTuple

from sankofa.derive.metrics.contract import PRIOR, metrics
from sankofa.model.line_items import Breakdown, Route, table

UNCLEAR = "unclear"
_SEARCHED_AT_MOST = 32
_ZERO = Decimal(0)


class Closed(NamedTuple):
    """A total of a filing, and the members that add up to it."""

    total: tuple[str, ...]
    """The concepts that the total is computed from."""
    members: tuple[str, ...]


def closed(breakdown: Breakdown, values: Mapping[str, Decimal]) -> Closed | None:
    """How a breakdown adds up with the figures of one filing, by its first total that does."""
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
    breakdown: Breakdown, lines: list[str], within: list[str], values: Mapping[str, Decimal], total: Decimal
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


class RouteStep(NamedTuple):
    """A route, prepared for trying."""

    route: Route
    first: str
    """The first concept that the route requires; empty if it has only members."""
    needed: frozenset[str]
    """The concepts that the route requires."""
    plain: str
    """The concept, if the route is only that concept without conditions; else empty."""


@cache
def steps_to(item: str) -> tuple[RouteStep, ...]:
    return tuple(
        RouteStep(
            route,
            route.terms[0].concept if route.terms else "",
            frozenset(term.concept for term in route.terms),
            "" if route.guarded else route.single,
        )
        for route in table().routes.get(item, ())
    )


@cache
def metric_inputs() -> frozenset[str]:
    """The line items that enter a metric."""
    return frozenset(name.removeprefix(PRIOR) for m in metrics() for form in m.forms for name in form.inputs)
