"""The line items of one year in one currency, by the first route of each that the filing allows.

A day sees a value only where it would have had it then from the figures of today (`standing.py`). So a figure
stands from the day on which the last of its parts came to stand, and, where a better route was open before a
figure of it was restated or withdrawn, from that day.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from itertools import chain

from sankofa.derive.metrics.closing import UNCLEAR, Closed, closed
from sankofa.derive.metrics.contract import PRIOR, metrics
from sankofa.derive.metrics.figures import Fact, Figure, Part, common_filing, last_change
from sankofa.model.routes import SELF, Route, Sum, table
from sankofa.model.vintages import steps

_ZERO = Decimal(0)
NOTHING = "nothing"
"""The confirmation that a value is zero."""


class Lines:
    """The figures of each line item, the best route first; a route is tried when it is first asked about."""

    def __init__(self, facts: Mapping[str, Fact], end: int) -> None:
        self.facts = facts
        """What is reported, by concept."""
        self._end = end
        self._values: dict[str, Decimal] = {}
        self._found: dict[str, list[Figure]] = {}
        self._rest = {item: iter(routes) for item, routes in possible(frozenset(facts))}
        self._settled: dict[str, int] = {}
        self._passed_over: dict[str, int] = {}
        self._closed: dict[str, Closed | None] = {}

    @property
    def items(self) -> Iterable[str]:
        """The items that any route may lead to."""
        return self._rest

    def figure(self, item: str, place: int = 0) -> Figure | None:
        """The figure of an item by the first route, or by a later one, that is open."""
        place += self._passed_over.get(item, 0)
        found = self._found.setdefault(item, [])
        rest = self._rest.get(item, iter(()))
        while len(found) <= place:
            route = next(rest, None)
            if route is None:
                return None
            if route.members and found:
                continue
            self._try(item, route, found)
        return found[place]

    def figures(self, item: str) -> Iterator[Figure]:
        """By every route that is open."""
        place = 0
        while (figure := self.figure(item, place)) is not None:
            yield figure
            place += 1

    def withdrawn(self, item: str) -> int:
        """The day on which the last route that was open to an item was closed; 0 where none ever was."""
        return self._settled.get(item, 0)

    def pass_over(self, item: str, count: int, settled: int) -> None:
        """Use none of the first routes of an item; what is left of it stands from a day on."""
        self._passed_over[item] = self._passed_over.get(item, 0) + count
        self._settled[item] = max(self._settled.get(item, 0), settled)
        found = self._found[item]
        found[:] = [
            Figure(f.value, f.end, f.route, f.first_known, max(f.stands_from, settled), f.parts)
            for f in found
        ]

    def changes(self, concepts: frozenset[str]) -> list[tuple[str, int]]:
        """When anything of these concepts came to be known or was changed, but for the first day of all."""
        usual = min((fact.first_known for fact in self.facts.values()), default=0)
        found: list[tuple[str, int]] = []
        for concept, fact in self.facts.items():
            if fact.known_from > usual and concept in concepts:
                found.append((concept, fact.first_known))
                if fact.vintage > 1:
                    days = {max(report.available, self._end) for report in steps(fact.reports)}
                    found += [(concept, day) for day in days]
        return found

    def known_by(self, day: int, concepts: frozenset[str]) -> "Lines":
        """The same year, with what was known of these concepts by a day."""
        known = {c: fact.known_by(day, self._end) for c, fact in self.facts.items() if c in concepts}
        return Lines({concept: fact for concept, fact in known.items() if fact is not None}, self._end)

    def fact(self, concept: str) -> Fact | None:
        """What is reported of a concept, where it was not withdrawn."""
        fact = self.facts.get(concept)
        return fact if fact is not None and fact.report.value is not None else None

    def value(self, concept: str) -> Decimal:
        found = self._values.get(concept)
        if found is None:
            found = self._values[concept] = Decimal(self.facts[concept].report.value or 0)
        return found

    def _try(self, item: str, route: Route, found: list[Figure]) -> None:
        settled = self._settled.get(item, 0)
        if route.single and not route.guarded:
            concept = route.terms[0].concept
            fact = self.facts[concept]
            settled = max(settled, fact.known_from) if fact.report.value is None else settled
            if fact.report.value is not None:
                part = Part(concept, self.value(concept), fact.vintage, fact.report)
                stands = max(settled, fact.known_from)
                found.append(Figure(part.value, self._end, route.number, fact.first_known, stands, (part,)))
        else:
            figure, changed = self._made(route, settled)
            settled = max(settled, changed)
            if figure is not None:
                found.append(figure)
        if settled:
            self._settled[item] = settled

    def _made(self, route: Route, settled: int) -> tuple[Figure | None, int]:
        """The figure by a route of more than one part, and the last day on which what decides it changed."""
        facts = [self.facts[term.concept] for term in route.terms]
        guards = [self.facts[concept] for concept in route.guards & self.facts.keys()]
        if any(fact.report.value is None for fact in facts):
            return None, max(fact.known_from for fact in facts)
        value = self._sum(route.terms)
        if route.confirm == NOTHING and value and not route.members:
            return None, self._last_change(chain(facts, guards))
        if guards and self._forbidden(route, value):
            return None, max(fact.known_from for fact in chain(facts, guards))
        changed = self._last_change(chain(facts, guards))
        concepts = [term.concept for term in route.terms]
        if route.members:
            added = self._members(route)
            if added is None:
                return None, max(changed, self._last_change(self._members_there(route)))
            total, proof, since = added
            value += total
            settled = max(settled, since)
            concepts += [concept for concept in proof if concept not in concepts]
        if route.confirm:
            equation = self._confirming(route, value)
            if equation is None:
                return None, max(changed, self._last_change(self._confirmations_there(route)))
            concepts += [concept for concept in equation if concept not in concepts]
        filing = common_filing([self.facts[concept] for concept in concepts])
        if filing is None:
            proven = route.members or route.confirm
            of_route = [self.facts[concept] for concept in concepts]
            # Filings are only ever added: parts never restated had no filing in common before either.
            return None, max(fact.known_from for fact in of_route) if proven else self._last_change(of_route)
        parts = tuple(
            Part(concept, self.value(concept), self.facts[concept].vintage, self.facts[concept].report)
            for concept in concepts
        )
        first_known = max(self.facts[concept].first_known for concept in concepts)
        stands = max(filing[1], settled, self._last_change(guards))
        return Figure(value, self._end, route.number, first_known, stands, parts), 0

    def _last_change(self, facts: Iterable[Fact]) -> int:
        """The last day on which any of these was restated or withdrawn; of most years nothing ever was."""
        return last_change(facts) if self._restated else 0

    @cached_property
    def _restated(self) -> bool:
        return any(fact.vintage > 1 for fact in self.facts.values())

    def _sum(self, terms: Sum) -> Decimal:
        return sum((term.sign * self.value(term.concept) for term in terms), _ZERO)

    def _forbidden(self, route: Route, value: Decimal) -> bool:
        """Whether something that is reported shows that the route would not be the whole."""
        if any(self.fact(concept) and self.value(concept) for concept in route.unless):
            return True
        return any(
            all(self.fact(term.concept) for term in terms) and value < self._sum(terms)
            for terms in route.at_least
        )

    def _confirming(self, route: Route, value: Decimal) -> list[str] | None:
        """The concepts of the first equation that holds with the value."""
        own = [self.facts[term.concept] for term in route.terms]
        taken = {term.concept for term in route.terms}
        for sign, others, concepts in _equations(route.confirm):
            if not self.facts.keys() >= concepts or not taken.isdisjoint(concepts):
                continue
            if not all(self.fact(concept) and self.value(concept) for concept in concepts):
                continue
            if sign * value + self._sum(others):
                continue
            if common_filing([*own, *(self.facts[term.concept] for term in others)]):
                return [term.concept for term in others]
        return None

    def _members(self, route: Route) -> tuple[Decimal, list[str], int] | None:
        """What the breakdowns of a route hold of its kind, the concepts that prove it, and since when."""
        total, proof, since = _ZERO, list[str](), 0
        for name in route.of:
            found = self._closing(name)
            if found is None:
                return None
            kinds = table().breakdowns[name].members
            if any(kinds[concept][1] == UNCLEAR for concept in found.members):
                return None
            total += sum((self.value(c) for c in found.members if kinds[c][1] == route.members), _ZERO)
            proof += [c for c in (*found.total, *found.members) if c not in proof]
            since = max(since, found.settled)
        return total, proof, since

    def _closing(self, name: str) -> Closed | None:
        if name not in self._closed:
            breakdown = table().breakdowns[name]
            there = breakdown.concepts & self.facts.keys()
            values = {c: self.value(c) for c in there if self.facts[c].report.value is not None}
            self._closed[name] = closed(breakdown, self.facts, values)
        return self._closed[name]

    def _members_there(self, route: Route) -> Iterator[Fact]:
        for name in route.of:
            breakdown = table().breakdowns[name]
            yield from (self.facts[concept] for concept in breakdown.concepts & self.facts.keys())

    def _confirmations_there(self, route: Route) -> Iterator[Fact]:
        return (self.facts[concept] for concept in _confirming_concepts(route.confirm) & self.facts.keys())


@cache
def _equations(name: str) -> list[tuple[int, Sum, frozenset[str]]]:
    """Of each equation the sign of the value, the other terms, and their concepts."""
    return [
        (
            sum(term.sign for term in terms if term.concept == SELF),
            others := tuple(term for term in terms if term.concept != SELF),
            frozenset(term.concept for term in others),
        )
        for terms in table().confirmations[name]
    ]


@cache
def _confirming_concepts(name: str) -> frozenset[str]:
    return frozenset(term.concept for terms in table().confirmations[name] for term in terms)


@lru_cache(maxsize=4096)
def possible(concepts: frozenset[str]) -> tuple[tuple[str, tuple[Route, ...]], ...]:
    """The line items that anything of these concepts can stand for, and the routes that may be open."""
    of_concept = _by_first_concept()
    found: dict[str, list[Route]] = {}
    candidates = [of_concept[""], *(of_concept[concept] for concept in concepts & of_concept.keys())]
    for _, route, needed in sorted(chain.from_iterable(candidates)):
        if needed <= concepts and _totalled(route, concepts):
            found.setdefault(route.item, []).append(route)
    return tuple((item, tuple(routes)) for item, routes in found.items())


def _totalled(route: Route, concepts: frozenset[str]) -> bool:
    """Whether there is a total for each breakdown that has to close."""
    return not route.of or all(
        any(all(term.concept in concepts for term in terms) for terms in table().breakdowns[name].totals)
        for name in route.of
    )


@cache
def _by_first_concept() -> dict[str, list[tuple[int, Route, frozenset[str]]]]:
    """The routes to every line item that enters a metric: in which order, and what concepts each must have.

    By the first of those, so that what a filing reports leads to the few routes that it can open; empty for
    routes of members alone.
    """
    found: dict[str, list[tuple[int, Route, frozenset[str]]]] = {"": []}
    every = [route for item in sorted(items_asked()) for route in table().routes[item]]
    for order, route in enumerate(every):
        first = route.terms[0].concept if route.terms else ""
        needed = frozenset(term.concept for term in route.terms)
        found.setdefault(first, []).append((order, route, needed))
    return found


@cache
def items_asked() -> frozenset[str]:
    """The line items that enter a metric."""
    return frozenset(name.removeprefix(PRIOR) for m in metrics() for form in m.forms for name in form.inputs)


@cache
def concepts_used() -> frozenset[str]:
    """Every concept that takes part in a route, a proof or an identity."""
    return table().concepts
