"""Routes as they are tried, and which of them a filing can begin.

Of some 350 routes a filing reports the first concept of a third. Each has a bit, those of an item next to one
another, so that they are found with one look at each concept that is reported.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from sankofa.derive.metrics.contract import PRIOR, metrics
from sankofa.model.line_items import Route, table


class RouteStep(NamedTuple):
    """A route as it is tried."""

    number: int
    """Of the route."""
    route: Route
    first: str
    """The first concept that it must have; empty for one of members alone."""
    needed: frozenset[str]
    """The concepts that it must have."""
    plain: str
    """The concept, where the route is nothing but that and nothing else decides; else empty."""
    totals: tuple[tuple[frozenset[str], ...], ...]
    """Of each breakdown that has to close, the concepts of each of its totals."""


class _Bits(NamedTuple):
    """A bit for every route to an item."""

    steps: dict[str, tuple[RouteStep, ...]]
    """By item."""
    shift: dict[str, int]
    """By item, the place of its first bit."""
    first: dict[str, int]
    """By concept, the bits of the routes that begin with it."""
    always: int
    """The bits of those that begin with none."""


@cache
def items_asked() -> frozenset[str]:
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
    return tuple(step for place, step in enumerate(_bits().steps[item]) if bits >> place & 1)


@cache
def _bits() -> _Bits:
    steps = {item: tuple(map(_step, routes)) for item, routes in sorted(table().routes.items())}
    shift: dict[str, int] = {}
    first: dict[str, int] = {}
    always = place = 0
    for item, own in steps.items():
        shift[item] = place
        for step in own:
            if step.first:
                first[step.first] = first.get(step.first, 0) | 1 << place
            else:
                always |= 1 << place
            place += 1
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
