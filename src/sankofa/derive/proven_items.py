"""Facts that the figures published with them prove to be one of our line items.

`us-gaap:GoldProductsAndServicesRevenue` is all revenue of one miner and a part of it at another. What the
concept alone does not tell, an equation of the filing does: a fact is named for the item that a route with
`confirm` leads to, where the equation holds with what was known on the day of its first report. Later
reports change neither the name of a fact nor what was said of it before.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from sankofa.ledger.reports import Identity, Reports
from sankofa.model.line_items import NOTHING, SELF, Route, line_item, table


class _Candidates(NamedTuple):
    """What can be proven to be a line item."""

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
