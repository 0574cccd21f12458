"""How routes are tried: which routes a filing can start, and whether the members of a total add up to it.

Each route has a bit, so one lookup per reported concept finds the routes that can begin.

Notes of a filing repeat parts of its lines, and a line may cover less than its name says. So up to two
members may be left out of a total, or added even though another member includes them; never a marked member,
such as debt. Figures match to the last digit.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache, lru_cache
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

    number: int
    """The number of the route."""
    route: Route
    first: str
    """The first concept that the route requires; empty if it has only members."""
    needed: frozenset[str]
    """The concepts that the route requires."""
    plain: str
    """The concept, if the route is only that concept without conditions; else empty."""
    totals: tuple[tuple[frozenset[str], ...], ...]
    """The concepts of each total, for each breakdown that must add up."""


class _Bits(NamedTuple):
    """A bit for every route to an item."""

    steps: dict[str, tuple[RouteStep, ...]]
    """By item."""
    shift: dict[str, int]
    """By item, the place of its first bit."""
    first: dict[str, int]
    """By concept, the bits of the routes that begin with it."""
    always: int
    """The bits of routes that begin with no concept."""


@cache
def metric_inputs() -> frozenset[str]:
    """The line items that enter a metric."""
    return frozenset(name.removeprefix(PRIOR) for m in metrics() for form in m.forms for name in form.inputs)


def routes_that_can_begin(concepts: Iterable[str]) -> int:
    """The bits of the routes whose first concept is reported."""
    bits = _bits()
    routes, first = bits.always, bits.first
    for concept in concepts:
        if concept in first:
            routes |= first[concept]
    return routes


def steps_to(item: str, can_begin: int) -> tuple[RouteStep, ...]:
    """The routes to an item that can begin, by their bits, in order."""
    bits = _bits()
    steps = bits.steps.get(item)
    return _chosen(item, can_begin >> bits.shift[item] & (1 << len(steps)) - 1) if steps else ()


@lru_cache(maxsize=65536)
def _chosen(item: str, bits: int) -> tuple[RouteStep, ...]:
    """Most filings are alike."""
    return tuple(step for bit, step in enumerate(_bits().steps[item]) if bits >> bit & 1)


@cache
def _bits() -> _Bits:
    steps = {item: tuple(map(_step, routes)) for item, routes in sorted(table().routes.items())}
    shift: dict[str, int] = {}
    first: dict[str, int] = {}
    always = bit = 0
    for item, own in steps.items():
        shift[item] = bit
        for step in own:
            if step.first:
                first[step.first] = first.get(step.first, 0) | 1 << bit
            else:
                always |= 1 << bit
            bit += 1
    return _Bits(steps, shift, first, always)


def _step(route: Route) -> RouteStep:
    first = route.terms[0].concept if route.terms else ""
    needed = frozenset(term.concept for term in route.terms)
    plain = "" if route.guarded else route.single
    totals = tuple(
        tuple(frozenset(term.concept for term in terms) for terms in table().breakdowns[name].totals)
        for name in route.of
    )
    return RouteStep(route.number, route, first, needed, plain, totals)
