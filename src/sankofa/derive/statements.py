"""Statements: for each line item and period, the one figure that represents it on a day.

The figure is the one that the metrics use, for every kind of period: one standard and one currency per
column, the same routes, conditions and identities. A row is always one reported figure. Where the metrics
compute an item from several figures, or use none, the statement has no row for it.

Some facts are proven to be a line item: `us-gaap:GoldProductsAndServicesRevenue` is all revenue of one miner
and a part of it at another. A route with `confirm` names such a fact where its equation held on the day of
the fact's first report. Later reports do not change the name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.lines import concepts_used
from sankofa.derive.metrics.period_views import History, PeriodView, ReportedFigure
from sankofa.ledger.reports import Identity, Report, Reports
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import LINE_ITEMS, NOTHING, SELF, Route, line_item, table
from sankofa.model.vintages import Vintage


class _Candidates(NamedTuple):
    """The concepts that may be proven to be a line item."""

    served: tuple[str, ...]
    """The concepts that are the item by themselves: beside one of them nothing else is."""
    routes: tuple[Route, ...]
    """The concepts to be proven, in the order of the routes."""


def item_of(identity: Identity, reports: Reports) -> str:
    """The line item that a fact is served under."""
    candidates = _candidates().get(identity[0])
    if candidates is None:
        return line_item(identity[0])
    day = min(report.available for report in reports[identity])
    known = _Known(identity, reports, day)
    if not any(known.value(concept) for concept in candidates.served):
        proven = next((route for route in candidates.routes if _is_proven(route, known)), None)
        if proven is not None and proven.single == identity[0]:
            return proven.item
    return line_item(identity[0])


class _Known:
    """The figures of one period and unit, as known on a day."""

    def __init__(self, identity: Identity, reports: Reports, day: int) -> None:
        self._of_period, self._reports, self._day = identity[1:], reports, day

    def value(self, concept: str) -> Decimal | None:
        reported = self._reports.get((concept, *self._of_period), ())
        known = [report for report in reported if report.available <= self._day]
        latest = max(known, key=lambda report: (report.available, report.order), default=None)
        return None if latest is None or latest.value is None else Decimal(latest.value)


def _is_proven(route: Route, known: _Known) -> bool:
    value = known.value(route.single)
    if not value or any(known.value(concept) for concept in route.unless):
        return False
    for equation in table().confirmations[route.confirm]:
        total = Decimal(0)
        for sign, concept in equation:
            figure = value if concept == SELF else known.value(concept)
            if not figure:
                break
            total += sign * figure
        else:
            if not total:
                return True
    return False


@cache
def _candidates() -> Mapping[str, _Candidates]:
    """By concept that is not served under any item, and that an equation may show to be one."""
    routes = table().routes
    own_names = {r.single for of_item in routes.values() for r in of_item if r.served}
    by_concept: dict[str, _Candidates] = {}
    for of_item in routes.values():
        to_prove = tuple(
            r
            for r in of_item
            if r.single and r.confirm not in ("", NOTHING) and not r.at_least and r.single not in own_names
        )
        served = tuple(r.single for r in of_item if r.served)
        by_concept |= {route.single: _Candidates(served, to_prove) for route in to_prove}
    return by_concept


_EVERY_DAY = range(FOREVER)


class StatementFigure(NamedTuple):
    """The figure of a line item for a period on the days [first, until)."""

    line_item: str
    identity: Identity
    vintage: Vintage[Report]
    turned: Decimal | None
    """The figure with its sign turned, where its filing proves that it has the wrong one."""
    alternatives: int
    """How many other figures of the period are served under the line item."""
    first: int
    until: int


def statement_figures(issuer: Issuer) -> Iterator[StatementFigure]:
    """Every figure of every statement of an issuer, by period and line item, earliest first."""
    for end, reported in _periods(issuer):
        views = History(ordinal(end), reported).views
        shown: dict[str, StatementFigure] = {}
        days = [*(view.day for view in views), FOREVER][1:]
        for view, until in zip(views, days, strict=True):
            chosen = {}
            for item, identity, vintage, turned, others in _chosen(view, end):
                own = issuer.vintages[identity][vintage - 1]
                chosen[item] = StatementFigure(item, identity, own, turned, others, view.day, until)
            for item in shown.keys() - chosen.keys():
                yield shown.pop(item)
            for item, now in chosen.items():
                before = shown.get(item)
                if before is not None and before[:5] == now[:5]:
                    now = before._replace(until=until)
                elif before is not None:
                    yield before
                shown[item] = now
        yield from shown.values()


def _periods(issuer: Issuer) -> Iterator[tuple[str, list[ReportedFigure]]]:
    """The figures a statement may show, by the end and the name of their period."""
    wanted = concepts_used() | _single_concepts()
    periods: defaultdict[tuple[str, str], list[ReportedFigure]] = defaultdict(list)
    for (concept, unit, period_end, period_start), reports in issuer.reports.items():
        if concept in wanted:
            start = ordinal(period_start) if period_start else None
            name = issuer.names.name(start, ordinal(period_end), reports[0].available)
            one = ReportedFigure(concept, unit, period_start, reports, _EVERY_DAY)
            periods[period_end, name.period_type].append(one)
    for (period_end, _), reported in periods.items():
        yield period_end, reported


def _chosen(view: PeriodView, end: str) -> Iterator[tuple[str, Identity, int, Decimal | None, int]]:
    """For each line item of a view: the fact that is chosen, its vintage, and the number of the others."""
    lines = view.lines()
    served = Counter(line_item(concept) for concept, _, _ in view.facts)
    for item in LINE_ITEMS:
        figure = lines.figure(item)
        concept = table().routes[item][figure.route].single if figure else ""
        if figure and concept:
            (_, unit, start) = lines_key = view.key(concept)
            value = figure.parts[0].value
            turned = value if value != view.facts[lines_key].value else None
            others = served[item] - (line_item(concept) == item)
            yield item, (concept, unit, end, start), figure.parts[0].vintage, turned, others


@cache
def _single_concepts() -> frozenset[str]:
    """The concepts that can represent a line item by themselves."""
    return frozenset(route.single for routes in table().routes.values() for route in routes if route.single)
