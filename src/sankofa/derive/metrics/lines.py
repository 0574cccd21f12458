"""The line items of one period in one standard and currency, each by its first route that a filing allows.

A route is decided within one filing: the first filing with all terms of the route, and with its proof if it
needs one. Only that filing's figures count for the conditions. This module does not handle days:
`period_views` passes in the figures public by a day.

Contradictory figures of one year are counted in quality, never changed. Most are filer errors: a loss per
share tagged without its minus, share counts tagged in thousands. A figure that explains a contradiction is
part of the check: preferred dividends turn the sign of earnings per share, minorities with a negative share
make the owners' equity more than the whole.

See contract: MET-15.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.metrics.routes import UNCLEAR, Closed, RouteStep, closed, steps_to
from sankofa.ledger.reports import Report
from sankofa.model.line_items import SELF, Route, Sum, table


class Fact(msgspec.Struct, frozen=True, gc=False):
    """The figure of one concept for one period, as known on a day."""

    vintage: int
    value: Decimal
    report: Report
    """The first report of the figure."""
    earlier: tuple[Decimal, ...] = ()
    """The figures of the earlier vintages."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """A reported figure that another is computed from or proven by."""

    concept: str
    value: Decimal
    vintage: int
    report: Report


class Figure(msgspec.Struct, frozen=True, gc=False):
    """The figure of a line item, as known on a day."""

    value: Decimal
    end: int
    """The last day of the period."""
    route: int
    """Number of its route."""
    parts: tuple[Part, ...]

    @property
    def reports(self) -> Iterable[Report]:
        return (part.report for part in self.parts)

    def same_as(self, other: "Figure") -> bool:
        """Whether both use one route and the same vintages of the same figures."""
        if self is other:
            return True
        return (self.route, self.end, len(self.parts)) == (other.route, other.end, len(other.parts)) and all(
            (a.concept, a.vintage, a.value) == (b.concept, b.vintage, b.value)
            for a, b in zip(self.parts, other.parts, strict=True)
        )


def same_figures(some: Sequence[Figure], others: Sequence[Figure]) -> bool:
    return len(some) == len(others) and all(a.same_as(b) for a, b in zip(some, others, strict=True))


_ZERO, _ONE = Decimal(0), Decimal(1)
_Proof = tuple[Decimal, list[str]]
"""The amount that members add to the value, and the concepts that prove it."""


class _Equation(NamedTuple):
    """An equation of a confirmation, without the value of the route."""

    sign: int
    """The sign of the value."""
    others: Sum
    concepts: frozenset[str]


class Lines:
    """The figures of each line item, best route first. Routes are tried on first use."""

    def __init__(self, facts: Mapping[str, Fact], filings: Sequence[frozenset[str]], end: int) -> None:
        self.facts = facts
        """The reported figures, by concept."""
        self.filings = filings
        """The concepts whose known figures each filing reports, earliest filing first."""
        self.conflicts = 0
        """Number of routes skipped because a figure of their filing contradicts them."""
        self.unmet = set[str]()
        """Identities that the figures of one filing contradict by every route."""
        self._end = end
        self._by_item: dict[str, list[Figure]] = {}
        self._untried: dict[str, Iterator[RouteStep]] = {}
        self._passed_over: dict[str, int] = {}
        self._closed: dict[tuple[str, int], Closed | None] = {}

    def figure(self, item: str, number: int = 0) -> Figure | None:
        """The figure of an item by the open route of this number; 0 is the first."""
        number += self._passed_over.get(item, 0)
        figures = self._by_item.get(item)
        if figures is None:
            figures = self._by_item[item] = []
            begin = (step for step in steps_to(item) if not step.first or step.first in self.facts)
            self._untried[item] = begin
        if len(figures) > number:
            return figures[number]
        for step in self._untried[item]:
            if step.route.of and figures:
                continue
            figure = self._tried(step)
            if figure is not None and not figure.value and self._is_placeholder(item, step.route.single):
                self.conflicts += 1
                continue
            if figure is not None and item in _checked_items():
                figure = self._checked(item, step, figure)
            if figure is not None:
                figures.append(figure)
                if len(figures) > number:
                    return figure
        return None

    def figures(self, item: str) -> Iterator[Figure]:
        number = 0
        while (figure := self.figure(item, number)) is not None:
            yield figure
            number += 1

    def all_conflicts(self) -> int:
        """The conflicts in every checked item, used or not."""
        for item in sorted(_checked_items()):
            self.figure(item)
        return self.conflicts

    def pass_over(self, item: str, count: int) -> None:
        """Skips the first routes of an item."""
        self._passed_over[item] = self._passed_over.get(item, 0) + count
        self.conflicts += count

    def _is_placeholder(self, item: str, concept: str) -> bool:
        """Whether another concept with the same meaning, or a kind of the item, has a figure that is not
        zero."""
        others = _same_or_kinds(item) - {concept} if concept in _served_concepts(item) else ()
        return any(self.facts[other].value for other in others if other in self.facts)

    def in_one_filing(self, concepts: frozenset[str]) -> bool:
        """Whether one filing reports the known figures of all these concepts."""
        return any(filing >= concepts for filing in self.filings)

    def _tried(self, step: RouteStep) -> Figure | None:
        if step.plain:
            return self._made_of(step.route.number, self.facts[step.plain].value, [step.plain])
        if not self.facts.keys() >= step.needed:
            return None
        route = step.route
        value = self._sum(route.terms)
        if value and route.is_nothing:
            return None
        for number, filing in enumerate(self.filings):
            if not filing >= step.needed:
                continue
            proof = self._proof(route, value, number) if route.members or route.confirm else (_ZERO, [])
            if proof is None:
                continue
            if self._forbidden(route, value, filing):
                return None
            added, proving = proof
            terms = [term.concept for term in route.terms]
            return self._made_of(route.number, value + added, list(dict.fromkeys([*terms, *proving])))
        return None

    def _checked(self, item: str, step: RouteStep, figure: Figure) -> Figure | None:
        """The figure; None if a part of it is larger, its total smaller or its sign wrong.

        The sign is turned if the filing proves it.
        """
        if figure.value < _ZERO and item in table().magnitudes:
            turned = self._turned(item, step, figure)
            self.conflicts += turned is None
            return turned
        if figure.value < _ZERO and item in table().never_negative:
            self.conflicts += 1
            return None
        for terms in table().parts.get(item, ()):
            if self.facts.keys() >= {term.concept for term in terms} and figure.value < self._sum(terms):
                self.conflicts += 1
                return None
        wholes = [one.value for one in self.figures(table().wholes[item])] if item in table().wholes else []
        if wholes and figure.value > max(*wholes, _ZERO):
            self.conflicts += 1
            return None
        if item in table().signed and self._has_other_sign(item, step.route.single):
            return _with_turned_sign(figure)
        return figure

    def _has_other_sign(self, item: str, concept: str) -> bool:
        """Whether an equation of a filing holds with the figure's opposite sign, and none with its own
        sign."""
        turned = False
        value = self.facts[concept].value if concept else _ZERO
        for sign, others, concepts in _equations(item) if value else ():
            if any(concept in filing and filing >= concepts for filing in self.filings):
                rest = self._sum(others)
                values = [value, *(self.facts[term.concept].value for term in others)]
                if is_rounding(sign * value + rest, values):
                    return False
                turned = turned or is_rounding(sign * value - rest, values)
        return turned

    def _turned(self, item: str, step: RouteStep, figure: Figure) -> Figure | None:
        """An outflow with its sign turned, if an equation or a breakdown of a filing proves the sign."""
        concept = step.route.single
        if not concept:
            return None
        fact = self.facts[concept]
        facts = {**self.facts, concept: msgspec.structs.replace(fact, value=-fact.value)}
        for filing in self.filings:
            if concept in filing and Lines(facts, [filing], self._end).proves(item, concept):
                return _with_turned_sign(figure)
        return None

    def proves(self, item: str, concept: str) -> bool:
        """Whether an equation of the item, or a breakdown with the concept, holds in the first filing."""
        value, filing = self.facts[concept].value, self.filings[0]
        for sign, others, concepts in _equations(item) if item in table().confirmations else ():
            if (
                sign
                and concept not in concepts
                and filing >= concepts
                and not sign * value + self._sum(others)
            ):
                return True
        return any(
            (closing := self._closing(name, 0)) is not None and concept in closing.members
            for name, breakdown in table().breakdowns.items()
            if concept in breakdown.members
        )

    def _made_of(self, route: int, value: Decimal, concepts: list[str]) -> Figure:
        facts = [(concept, self.facts[concept]) for concept in concepts]
        parts = tuple([Part(concept, fact.value, fact.vintage, fact.report) for concept, fact in facts])
        return Figure(value, self._end, route, parts)

    def _sum(self, terms: Sum) -> Decimal:
        facts = self.facts
        total = _ZERO
        for sign, concept in terms:
            if sign > 0:
                total += facts[concept].value
            else:
                total -= facts[concept].value
        return total

    def _forbidden(self, route: Route, value: Decimal, filing: frozenset[str]) -> bool:
        """Whether the filing shows that the route would be incomplete."""
        if filing.isdisjoint(route.guards):
            return False
        if any(concept in filing and self.facts[concept].value for concept in route.unless):
            return True
        smaller = any(
            filing.issuperset([term.concept for term in terms]) and value < self._sum(terms)
            for terms in route.at_least
        )
        larger = bool(route.within) and abs(value) > abs(self.facts[route.within].value)
        self.conflicts += smaller or larger
        return smaller or larger

    def _proof(self, route: Route, value: Decimal, number: int) -> _Proof | None:
        """The proof of a route in a filing; None without one."""
        added, concepts = _ZERO, list[str]()
        for name in route.of:
            closing = self._closing(name, number)
            if closing is None:
                return None
            kinds = table().breakdowns[name].members
            if any(kinds[concept][1] == UNCLEAR for concept in closing.members):
                return None
            own = [self.facts[c].value for c in closing.members if kinds[c][1] == route.members]
            added += sum(own, _ZERO)
            concepts += [*closing.total, *closing.members]
        if route.confirm:
            confirming = self._confirming(route, value + added, concepts, self.filings[number])
            if confirming is None:
                return None
            concepts += confirming
        return added, concepts

    def _confirming(
        self, route: Route, value: Decimal, proof: list[str], filing: frozenset[str]
    ) -> list[str] | None:
        """The concepts of the first equation that holds with the value, all of them reported and not zero."""
        used = {term.concept for term in route.terms}.union(proof)
        for sign, others, concepts in _equations(route.confirm):
            if not filing >= concepts or not used.isdisjoint(concepts):
                continue
            if any(not self.facts[concept].value for concept in concepts):
                continue
            if not sign * value + self._sum(others):
                return [term.concept for term in others]
        return None

    def _closing(self, name: str, number: int) -> Closed | None:
        if (name, number) not in self._closed:
            filing, facts = self.filings[number], self.facts
            breakdown = table().breakdowns[name]
            values = {concept: facts[concept].value for concept in breakdown.concepts & filing}
            self._closed[name, number] = closed(breakdown, values)
        return self._closed[name, number]


def is_rounding(remainder: Decimal, values: Sequence[Decimal]) -> bool:
    """Whether a remainder is tiny and can come from rounding each figure to its last place."""
    units = sum([_ONE.scaleb(_last_digit(value)) for value in values], _ZERO)
    return abs(remainder) * 2 <= units and abs(remainder) * 1000 <= max(map(abs, values), default=_ZERO)


def _last_digit(value: Decimal) -> int:
    """The precision of a nonzero figure: the largest power of ten that divides it."""
    _, digits, exponent = value.as_tuple()
    last = int(exponent)
    for digit in reversed(digits):
        if digit:
            break
        last += 1
    return last


def _with_turned_sign(figure: Figure) -> Figure:
    part = msgspec.structs.replace(figure.parts[0], value=-figure.value)
    return msgspec.structs.replace(figure, value=-figure.value, parts=(part,))


@cache
def _equations(name: str) -> list[_Equation]:
    return [
        _Equation(
            sum(term.sign for term in terms if term.concept == SELF),
            others := tuple(term for term in terms if term.concept != SELF),
            frozenset(term.concept for term in others),
        )
        for terms in table().confirmations[name]
    ]


@cache
def _checked_items() -> frozenset[str]:
    return table().magnitudes.union(table().never_negative, table().parts, table().wholes, table().signed)


@cache
def _served_concepts(item: str) -> frozenset[str]:
    return frozenset(route.single for route in table().routes[item] if route.served and not route.confirm)


@cache
def _same_or_kinds(item: str) -> frozenset[str]:
    kinds = frozenset(route.single for route in table().routes[item] if route.confirm == item)
    return _served_concepts(item) | kinds


_FACTOR: Final = 50
"""Shares tagged in thousands are off by more, buy-backs and new shares within a year by less."""
_SCALES: Final = [(scale / 2, scale * 2) for exponent in (3, 6, -3, -6) if (scale := Decimal(10) ** exponent)]
_TOLERANCE: Final = Decimal("0.001")


class Check(NamedTuple):
    measure: str
    names: str
    """Line items and concepts: `a|b` is the first known one, `a?` is zero if unknown."""
    is_odd: Callable[..., bool]


def _unlike(eps: Decimal, profit: Decimal, shares: Decimal) -> bool:
    implied = abs(eps) * shares
    return bool(shares and profit and eps) and not abs(profit) < implied * _FACTOR < abs(profit) * _FACTOR**2


_COMMON: Final = "us-gaap:NetIncomeLossAvailableToCommonStockholdersBasic|profit_owners"
_CHECKS: Final = (
    Check("eps_of_other_sign_years", f"eps_basic {_COMMON}", lambda eps, profit: eps * profit < 0),
    Check(
        "interest_above_revenue_years", "finance_costs revenue", lambda costs, revenue: 0 < revenue < costs
    ),
    Check(
        "negative_balance_years", "cash? receivables? payables? revenue?", lambda *balances: min(balances) < 0
    ),
    Check(
        "owners_above_equity_years",
        "equity_owners equity us-gaap:MinorityInterest|ifrs-full:NoncontrollingInterests?",
        lambda owners, equity, minorities: owners + min(minorities, 0) - equity > abs(equity) * _TOLERANCE,
    ),
    Check("shares_unlike_eps_years", f"eps_basic {_COMMON} shares_outstanding", _unlike),
    Check("tax_above_profit_years", "income_tax profit_before_tax", lambda tax, profit: 0 < profit < tax),
)
_BY_IDENTITY: Final = {"balance_sheet": "unbalanced_years", "profit": "profit_not_after_tax_years"}
MEASURES: Final = (*(check.measure for check in _CHECKS), *_BY_IDENTITY.values())
"""The measures that quality counts, each a number of full years."""


def pass_over_misscaled(lines: Lines) -> None:
    """Pass over earnings per share in cents or above the whole profit, and shares off by thousands."""
    profit = _value(lines, _COMMON)
    shares = _value(lines, "|".join((*table().groups["shares_of_earnings"], "shares_outstanding"))) or _ZERO
    for item in ("eps_basic", "eps_diluted"):
        while profit and (figure := lines.figure(item)):
            if abs(figure.value) <= abs(profit) and not 50 < abs(figure.value * shares / profit) < 200:
                break
            lines.pass_over(item, 1)
    eps = _value(lines, "eps_basic|eps_diluted")
    while profit and eps and (figure := lines.figure("shares_outstanding")):
        times = abs(figure.value * eps / profit)
        if not any(low < times < high for low, high in _SCALES):
            break
        lines.pass_over("shares_outstanding", 1)


def odd_measures(lines: Lines) -> list[str]:
    odd = [_BY_IDENTITY[name] for name in sorted(lines.unmet & _BY_IDENTITY.keys())]
    for check in _CHECKS:
        values = [_value(lines, name) for name in check.names.split()]
        if None not in values and check.is_odd(*values):
            odd.append(check.measure)
    return odd


def _value(lines: Lines, name: str) -> Decimal | None:
    for one in name.removesuffix("?").split("|"):
        known = lines.facts.get(one) if ":" in one else lines.figure(one)
        if known is not None:
            return known.value
    return Decimal(0) if name.endswith("?") else None
