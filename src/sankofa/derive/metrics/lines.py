"""The line items of one year in one currency, by the first route of each that the filing allows.

A day sees a value only where it would have had it then from the figures of today (`standing.py`). So a figure
stands from the day on which the last of its parts came to stand, and, where a better route was open before a
figure of it was restated or withdrawn, from that day.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import NamedTuple

from sankofa.derive.metrics.closing import UNCLEAR, Closed, closed
from sankofa.derive.metrics.figures import Fact, Figure, Part, common_filing, last_change
from sankofa.derive.metrics.route_steps import RouteStep, routes_that_can_begin, steps_to
from sankofa.model.routes import SELF, Route, Sum, table
from sankofa.model.vintages import steps

_ZERO = Decimal(0)


class _Equation(NamedTuple):
    """An equation of a confirmation that a filing can satisfy, but for the value of the route."""

    sign: int
    """Of the value."""
    others: Sum
    concepts: frozenset[str]
    rest: Decimal
    """The sum of the others."""


class _Values(dict[str, Decimal]):
    """The figures of concepts, each read when it is first asked for."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = facts

    def __missing__(self, concept: str) -> Decimal:
        value = self[concept] = Decimal(self._facts[concept].report.value or 0)
        return value


class Lines:
    """The figures of each line item, the best route first; a route is tried when it is first asked about."""

    def __init__(self, facts: Mapping[str, Fact], end: int) -> None:
        self.facts = facts
        """What is reported, by concept."""
        self._end = end
        self._can_begin = routes_that_can_begin(facts)
        self._restated = max([fact.vintage for fact in facts.values()], default=1) > 1
        self._values = _Values(facts)
        self._by_item: dict[str, list[Figure]] = {}
        self._rest: dict[str, Iterator[RouteStep]] = {}
        self._settled: dict[str, int] = {}
        self._passed_over: dict[str, int] = {}
        self._closed: dict[str, Closed | None] = {}
        self._equations: dict[str, list[_Equation]] = {}

    def figure(self, item: str, place: int = 0) -> Figure | None:
        """The figure of an item by the first route, or by a later one, that is open."""
        if self._passed_over:
            place += self._passed_over.get(item, 0)
        figures = self._by_item.get(item)
        if figures is None:
            figures = self._by_item[item] = []
            self._rest[item] = iter(steps_to(item, self._can_begin))
        if len(figures) > place:
            return figures[place]
        facts = self.facts
        for step in self._rest[item]:
            if not step.plain:
                if step.totals and (figures or not _totalled(step, facts)):
                    continue
                if not facts.keys() >= step.needed:
                    continue
            self._try(item, step, figures)
            if len(figures) > place:
                return figures[place]
        return None

    def figures(self, item: str) -> Iterator[Figure]:
        """By every route that is open."""
        place = 0
        while (figure := self.figure(item, place)) is not None:
            yield figure
            place += 1

    def withdrawn(self) -> Iterable[tuple[str, int]]:
        """Of items that a route was open to before, the day on which the last such route was closed."""
        return self._settled.items()

    def pass_over(self, item: str, count: int, settled: int) -> None:
        """Use none of the first routes of an item; what is left of it stands from a day on."""
        self._passed_over[item] = self._passed_over.get(item, 0) + count
        self._settled[item] = max(self._settled.get(item, 0), settled)
        figures = self._by_item[item]
        figures[:] = [
            Figure(f.value, f.end, f.route, f.first_known, max(f.stands_from, settled), f.parts)
            for f in figures
        ]

    def changes(self, concepts: frozenset[str]) -> list[tuple[str, int]]:
        """When anything of these concepts came to be known or was changed, but for the first day of all."""
        usual = min([fact.first_known for fact in self.facts.values()], default=0)
        changes: list[tuple[str, int]] = []
        later = [(concept, fact) for concept, fact in self.facts.items() if fact.known_from > usual]
        for concept, fact in later:
            if concept in concepts:
                changes.append((concept, fact.first_known))
                if fact.vintage > 1:
                    days = {max(report.available, self._end) for report in steps(fact.reports)}
                    changes += [(concept, day) for day in days]
        return changes

    def known_by(self, day: int, concepts: frozenset[str]) -> "Lines":
        """The same year, with what was known of these concepts by a day."""
        known = {c: fact.known_by(day, self._end) for c, fact in self.facts.items() if c in concepts}
        return Lines({concept: fact for concept, fact in known.items() if fact is not None}, self._end)

    def fact(self, concept: str) -> Fact | None:
        """What is reported of a concept, where it was not withdrawn."""
        fact = self.facts.get(concept)
        return fact if fact is not None and fact.report.value is not None else None

    def value(self, concept: str) -> Decimal:
        """The figure of a concept that is reported; zero where it was withdrawn."""
        return self._values[concept]

    def _try(self, item: str, step: RouteStep, figures: list[Figure]) -> None:
        settled = self._settled.get(item, 0)
        if step.plain:
            fact = self.facts[step.plain]
            if fact.report.value is None:
                settled = max(settled, fact.known_from)
            else:
                part = Part(step.plain, self.value(step.plain), fact.vintage, fact.report)
                stands = fact.known_from if fact.known_from > settled else settled
                figures.append(Figure(part.value, self._end, step.number, fact.first_known, stands, (part,)))
        else:
            figure, changed = self._computed(step.route, settled)
            settled = max(settled, changed)
            if figure is not None:
                figures.append(figure)
        if settled:
            self._settled[item] = settled

    def _computed(self, route: Route, settled: int) -> tuple[Figure | None, int]:
        """The figure by a route of more than one part, and the last day on which what decides it changed."""
        held = self.facts
        value = self._sum(route.terms)
        if value and route.is_nothing and not self._restated:
            return None, 0
        concepts = [term.concept for term in route.terms]
        facts = [held[concept] for concept in concepts]
        guards = []
        if not held.keys().isdisjoint(route.guards):
            guards = [held[concept] for concept in route.guards & held.keys()]
        if self._restated and None in [fact.report.value for fact in facts]:
            return None, max([fact.known_from for fact in facts])
        if value and route.is_nothing:
            return None, self._last_change(chain(facts, guards))
        if guards and self._forbidden(route, value):
            return None, max([fact.known_from for fact in chain(facts, guards)])
        if route.members:
            added = self._members(route)
            if added is None:
                return None, self._last_change(chain(facts, guards, self._members_there(route)))
            total, proof, since = added
            value += total
            settled = max(settled, since)
            concepts += [concept for concept in proof if concept not in concepts]
        if route.confirm:
            equation = self._confirming(route, value)
            if equation is None:
                return None, self._last_change(chain(facts, guards, self._confirmations_there(route)))
            concepts += [concept for concept in equation if concept not in concepts]
        return self._of_one_filing(route, value, concepts, max(settled, self._last_change(guards)))

    def _of_one_filing(
        self, route: Route, value: Decimal, concepts: list[str], settled: int
    ) -> tuple[Figure | None, int]:
        """The figure, where one filing has all that it is made of and proven by."""
        facts = [self.facts[concept] for concept in concepts]
        filing = common_filing(facts)
        if filing is None:
            proven = route.members or route.confirm
            # Filings are only ever added: parts never restated had no filing in common before either.
            return None, max(fact.known_from for fact in facts) if proven else self._last_change(facts)
        parts = tuple(
            [
                Part(concept, self.value(concept), fact.vintage, fact.report)
                for concept, fact in zip(concepts, facts, strict=True)
            ]
        )
        first_known = max([fact.first_known for fact in facts])
        stands = max(filing[1], settled)
        return Figure(value, self._end, route.number, first_known, stands, parts), 0

    def _last_change(self, facts: Iterable[Fact]) -> int:
        """The last day on which any of these was restated or withdrawn; of most years nothing ever was."""
        return last_change(facts) if self._restated else 0

    def _sum(self, terms: Sum) -> Decimal:
        values = self._values
        total = _ZERO
        for sign, concept in terms:
            if sign > 0:
                total += values[concept]
            else:
                total -= values[concept]
        return total

    def _forbidden(self, route: Route, value: Decimal) -> bool:
        """Whether something that is reported shows that the route would not be the whole."""
        facts = self.facts
        if any(concept in facts and self.value(concept) for concept in route.unless):
            return True
        return any(
            all(self.fact(term.concept) for term in terms) and value < self._sum(terms)
            for terms in route.at_least
        )

    def _confirming(self, route: Route, value: Decimal) -> list[str] | None:
        """The concepts of the first equation that holds with the value."""
        taken = [term.concept for term in route.terms]
        for sign, others, concepts, rest in self._satisfiable(route.confirm):
            if (value if sign > 0 else -value) + rest if sign else rest:
                continue
            if not concepts.isdisjoint(taken):
                continue
            named = [term.concept for term in others]
            if common_filing([self.facts[concept] for concept in (*taken, *named)]):
                return named
        return None

    def _satisfiable(self, name: str) -> list[_Equation]:
        """The equations whose other terms are all reported and not zero."""
        equations = self._equations.get(name)
        if equations is None:
            there, values = self.facts.keys(), self._values
            equations = self._equations[name] = [
                _Equation(sign, others, concepts, self._sum(others))
                for sign, others, concepts in _equations(name)
                if there >= concepts and _ZERO not in [values[c] for c in concepts]
            ]
        return equations

    def _members(self, route: Route) -> tuple[Decimal, list[str], int] | None:
        """What the breakdowns of a route hold of its kind, the concepts that prove it, and since when."""
        total, proof, since = _ZERO, list[str](), 0
        for name in route.of:
            closing = self._closing(name)
            if closing is None:
                return None
            kinds = table().breakdowns[name].members
            if any(kinds[concept][1] == UNCLEAR for concept in closing.members):
                return None
            total += sum([self.value(c) for c in closing.members if kinds[c][1] == route.members], _ZERO)
            proof += [c for c in (*closing.total, *closing.members) if c not in proof]
            since = max(since, closing.settled)
        return total, proof, since

    def _closing(self, name: str) -> Closed | None:
        if name not in self._closed:
            breakdown = table().breakdowns[name]
            facts = self.facts
            there = breakdown.concepts & facts.keys()
            values = {c: self.value(c) for c in there if facts[c].report.value is not None}
            self._closed[name] = closed(breakdown, self.facts, values)
        return self._closed[name]

    def _members_there(self, route: Route) -> Iterator[Fact]:
        for name in route.of:
            breakdown = table().breakdowns[name]
            yield from (self.facts[concept] for concept in breakdown.concepts & self.facts.keys())

    def _confirmations_there(self, route: Route) -> Iterator[Fact]:
        for concept in _confirming_concepts(route.confirm) & self.facts.keys():
            yield self.facts[concept]


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


def _totalled(step: RouteStep, facts: Mapping[str, Fact]) -> bool:
    """Whether there is a total for each breakdown that has to close."""
    return all(any(facts.keys() >= total for total in totals) for totals in step.totals)


@cache
def concepts_used() -> frozenset[str]:
    """Every concept that takes part in a route, a proof or an identity."""
    return table().concepts
