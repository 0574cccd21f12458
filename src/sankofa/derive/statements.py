"""Statements: for each line item and period the one figure that stands for it on a day.

The figure is the one that the metrics take (`derive.metrics`), for every kind of period: one standard and one
currency per column, the same routes, guards and identities. A row is always one figure that was reported.
Where the metrics compute an item from several figures, or use none, the statement has no row for it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.lines import concepts_used
from sankofa.derive.metrics.period_views import History, PeriodView, ReportedFigure
from sankofa.ledger.reports import Identity, Report
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import LINE_ITEMS, line_item, table
from sankofa.model.vintages import Vintage, vintages

_EVERY_DAY = range(FOREVER)


class StatementFigure(NamedTuple):
    """What stands for a line item of a period on the days [first, until)."""

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
    stories: dict[Identity, list[Vintage[Report]]] = {}
    for end, reported in _periods(issuer):
        views = History(ordinal(end), reported).views
        shown: dict[str, StatementFigure] = {}
        days = [*(view.day for view in views), FOREVER][1:]
        for view, until in zip(views, days, strict=True):
            chosen = {}
            for item, identity, vintage, turned, others in _chosen(view, end):
                if identity not in stories:
                    stories[identity] = vintages(issuer.reports[identity], view.end)
                own = stories[identity][vintage - 1]
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
    """What can take part in a statement, by the end and the name of its period."""
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
    """The concepts that can stand for a line item by themselves."""
    return frozenset(route.single for routes in table().routes.values() for route in routes if route.single)
