"""Statements: of each line item and period the one figure that stands for it on a day.

The rule is that of the metrics (`derive.metrics`): currency, stretch of days, order of routes, guards and
identities. Where they take one reported figure, it is that one; where they compute the item of several, or
use none, it is the first concept in the documented order that is served under its name. So a row is always
one figure that was reported, every line item that `/v1/fundamentals` has for a period is there once, and
what is computed is left to the metrics.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.figures import Fact
from sankofa.derive.metrics.full_years import HeldFacts, chosen_start, figures_by_currency
from sankofa.derive.metrics.identities import check_identities, items_in_doubt
from sankofa.derive.metrics.lines import Lines, concepts_used
from sankofa.derive.metrics.route_steps import items_asked
from sankofa.ledger.reports import Identity, Report
from sankofa.model.countries import currency
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import LINE_ITEMS, line_item
from sankofa.model.routes import Route, table
from sankofa.model.vintages import Vintage, vintages


class _Known(NamedTuple):
    """A vintage of a fact while it is the latest."""

    identity: Identity
    vintage: Vintage[Report]
    until: int
    reports: list[Report]
    """Every report of the fact."""

    @property
    def concept(self) -> str:
        return self.identity[0]

    @property
    def unit(self) -> str:
        return self.identity[1]

    @property
    def start(self) -> str:
        return self.identity[3]


class StatementFigure(NamedTuple):
    """What stands for a line item of a period on the days [first, until)."""

    line_item: str
    identity: Identity
    vintage: Vintage[Report]
    alternatives: int
    """How many other figures of the period are served under the line item."""
    first: int
    until: int


_Chosen = dict[str, tuple[_Known, int]]
"""By line item: the figure chosen, and the number of those that were not."""


def statement_figures(issuer: Issuer) -> Iterator[StatementFigure]:
    """Every figure of every statement of an issuer, by period and line item, earliest first."""
    for known in _periods(issuer).values():
        days = sorted({one.vintage.known_from for one in known})
        standing: dict[str, StatementFigure] = {}
        for day, following in zip(days, [*days[1:], FOREVER], strict=True):
            chosen = _choose([one for one in known if one.vintage.known_from <= day < one.until], day)
            for item in standing.keys() - chosen.keys():
                yield standing.pop(item)
            for item, (one, others) in chosen.items():
                now = StatementFigure(item, one.identity, one.vintage, others, day, following)
                before = standing.get(item)
                if before is not None and before[:4] == now[:4]:
                    now = before._replace(until=following)
                elif before is not None:
                    yield before
                standing[item] = now
        yield from standing.values()


def _periods(issuer: Issuer) -> dict[tuple[int, str], list[_Known]]:
    """What can take part in a statement, by the end and the name of its period."""
    wanted = concepts_used() | _single_concepts()
    periods: defaultdict[tuple[int, str], list[_Known]] = defaultdict(list)
    for identity, reported in issuer.reports.items():
        concept, _, period_end, period_start = identity
        if concept not in wanted:
            continue
        end = ordinal(period_end)
        start = ordinal(period_start) if period_start else None
        for vintage in vintages(reported, end):
            successor = vintage.successor
            until = FOREVER if successor is None else max(successor.available, vintage.known_from)
            if vintage.known_from < until:
                rounded = vintage.report.capture.rounds_dates
                name = issuer.names.name(start, end, vintage.report.available, rounded=rounded)
                periods[end, name.period_type].append(_Known(identity, vintage, until, reported))
    return periods


def _choose(known: list[_Known], day: int) -> _Chosen:
    """The figures of one period as known on a day."""
    candidates: defaultdict[str, list[_Known]] = defaultdict(list)
    for one in known:
        if one.vintage.report.value is not None:  # else it was withdrawn
            for item in _items_of().get(one.concept, ()):
                candidates[item].append(one)
    held = _held(known, day)
    start = chosen_start(held)
    doubtful = {item for item, own in candidates.items() if item in items_asked() and not _plain(item, own)}
    money, concepts = _by_routes(held, start, doubtful)
    chosen: _Chosen = {}
    for item, own in candidates.items():
        concept = concepts.get(item)
        allowed = [one for one in own if _stands(item, one.concept, concept)]
        if allowed:
            best = min(allowed, key=lambda one: _preference(item, one, money, start))
            others = sum(one is not best and line_item(one.concept) == item for one in own)
            chosen[item] = best, others
    return chosen


def _plain(item: str, own: list[_Known]) -> bool:
    """Whether there is but one figure, and it is served under the item's name: then no route decides."""
    return len(own) == 1 and own[0].concept in _served(item)


def _held(known: Iterable[_Known], day: int) -> HeldFacts:
    """The figures in money, as the routes read them."""
    used = concepts_used()
    held: HeldFacts = {}
    for one in known:
        money = currency(one.unit) if one.concept in used else None
        if money is not None:
            report, first = one.vintage.report, one.vintage.known_from
            reports = one.reports
            if len(reports) > 1:
                reports = [report for report in reports if report.available <= day]
            fact = Fact(one.vintage.number, first, first, report, reports)
            held.setdefault(money, {}).setdefault(one.start, {}).setdefault(one.concept, fact)
    return held


def _by_routes(held: HeldFacts, start: str, doubtful: set[str]) -> tuple[str, dict[str, str]]:
    """The currency of the statement, and of each item the concept that the metrics take it from."""
    lines = {
        money: Lines(by_start.get("", {}) | by_start.get(start, {}), 0) for money, by_start in held.items()
    }
    if len(lines) > 1 or not doubtful.isdisjoint(items_in_doubt()):
        for own in lines.values():
            check_identities(own)
    if not lines:
        return "", {}
    money = next(iter(figures_by_currency(lines))) if len(lines) > 1 else next(iter(lines))
    own, concepts = lines[money], dict[str, str]()
    for item in doubtful:
        figure = own.figure(item)
        if figure is not None and (concept := table().routes[item][figure.route].single):
            concepts[item] = concept
    return money, concepts


def _stands(item: str, concept: str, by_routes: str | None) -> bool:
    """Whether a figure may be chosen: the one that a route leads to, or one that is served under the name."""
    return concept == by_routes if by_routes is not None else concept in _served(item)


def _preference(item: str, one: _Known, money: str, start: str) -> tuple[bool, bool, int, str, str]:
    own_money = one.unit == money or one.unit.startswith(f"{money}/")
    return not own_money, one.start not in ("", start), _order(item)[one.concept], one.unit, one.start


@cache
def _order(item: str) -> dict[str, int]:
    """The concepts that are the item by themselves, and the place of each among its routes."""
    order: dict[str, int] = {}
    for route in table().routes[item]:
        if route.single:
            order.setdefault(route.single, route.number)
    return order


@cache
def _served(item: str) -> frozenset[str]:
    """The concepts whose figures are the item without a condition of the filing, or served under its name."""

    def unconditional(route: Route) -> bool:
        return route.served or (item not in items_asked() and not route.guarded)

    return frozenset(r.single for r in table().routes[item] if r.single and unconditional(r))


@cache
def _single_concepts() -> frozenset[str]:
    return frozenset(_items_of())


@cache
def _items_of() -> dict[str, tuple[str, ...]]:
    """The line items that a concept can stand for by itself."""
    items: defaultdict[str, list[str]] = defaultdict(list)
    for item in LINE_ITEMS:
        for concept in _order(item):
            items[concept].append(item)
    return {concept: tuple(own) for concept, own in items.items()}
