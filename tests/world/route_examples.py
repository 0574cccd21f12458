"""A real filing for each route: `route_examples.csv`, one line per route.

The filings themselves are not part of the project. `tests/unit/derive/test_routes.py` checks that every route
has a line here, and `test_routes_on_real_filings.py` checks every line against its filing.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sankofa.derive.metrics.routes import metric_inputs
from sankofa.model.line_items import Route, table

FILE = Path(__file__).with_name("route_examples.csv")
COLUMNS = ("item", "route", "confirm", "issuer", "period_end", "document", "value")
NEWER_THAN_THE_FILES = frozenset(
    (
        "us-gaap:InterestExpenseNonoperating",
        "us-gaap:FinancingReceivableExcludingAccruedInterestAfterAllowanceForCreditLoss",
    )
)
"""Concepts of the taxonomies of 2020 and 2023 that name a line item; the newest real file is of 2021."""


class RouteKey(NamedTuple):
    """The marks that distinguish one route of an item from the others."""

    item: str
    route: str
    confirm: str


class RouteExample(NamedTuple):
    """A real filing, and the figure that a route gives for it."""

    issuer: str
    period_end: str
    document: str
    value: str


def route_key(route: Route) -> RouteKey:
    return RouteKey(route.item, route.text, route.confirm)


def routes_with_a_filing() -> list[Route]:
    """The routes that read tagged filings, not those of items under their own name."""
    items = sorted(metric_inputs())
    return [
        route
        for item in items
        for route in table().routes[item]
        if route.since not in ("", "-") and route.single not in NEWER_THAN_THE_FILES
    ]


def read_examples() -> dict[RouteKey, RouteExample]:
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        RouteKey(row["item"], row["route"], row["confirm"]): RouteExample(
            row["issuer"], row["period_end"], row["document"], row["value"]
        )
        for row in rows
    }


def write_examples(examples: Mapping[RouteKey, RouteExample]) -> None:
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*key, *example) for key, example in examples.items())
