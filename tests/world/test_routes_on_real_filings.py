"""Routes on real filings: worked out by brute force beside the product, and each of them met somewhere."""

import os
from collections import Counter
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import compress
from pathlib import Path
from typing import Any, cast

import pytest

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import Computed, MetricYears, derive, windows
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList
from sankofa.derive.metrics.lines import Lines
from sankofa.derive.metrics.routes import items_asked
from sankofa.edition.write.context import BuildContext
from sankofa.ledger.capture import FactColumns
from sankofa.ledger.reader import Facts
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import table
from sankofa.model.rows import State
from tests.real_inputs import companyfacts_of, statements_of
from tests.torture import ALL_ROUNDS, rounds
from tests.world.desk import Desk
from tests.world.metrics_reference import ITEMS
from tests.world.reference import Seen
from tests.world.route_examples import (
    RouteExample,
    RouteKey,
    read_examples,
    route_key,
    routes_with_a_filing,
    write_examples,
)
from tests.world.routes_reference import Filed, line_items

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> BuildContext:
    """What a route may read in the files, of the registrants that are looked at and some others; with every
    round all that is in them."""
    folder = tmp_path_factory.mktemp("real")
    desk = Desk(folder / "home", date(2026, 1, 1))
    facts = shared_data / "fundamentals"
    registrants = sorted((facts / "companyfacts-2021").iterdir())
    quarters = facts / "sec-fsds"
    if not (ALL_ROUNDS or "UPDATE_SNAPSHOTS" in os.environ):
        concepts = table().concepts
        tags = {concept.partition(":")[2] for concept in concepts}
        registrants = companyfacts_of(registrants, folder / "registrants", is_looked_at, concepts)
        quarters = statements_of(quarters, folder / "quarters", is_looked_at, tags.__contains__)
    ours = shared_data.parent / "starter" / "filings" / "companyfacts"
    for source, paths in (
        ("sec-companyfacts", registrants),
        ("sec-companyfacts", sorted(path for path in ours.iterdir() if path.is_file())),
        ("sec-financial-statements", sorted(quarters.iterdir())),
    ):
        summary = desk.take(source, *paths)
        assert not summary.failures
    return BuildContext(desk.ledger())


def is_looked_at(number: int, name: str) -> bool:
    """Whether a registrant may be one that a test here compares with, or is of the half taken besides.

    By the first word of its name, as the two sources write the rest in different ways.
    """
    return number % 2 == 0 or name.split()[0].casefold() in _listed()


@cache
def _listed() -> frozenset[str]:
    return frozenset(example.issuer.split()[0].casefold() for example in read_examples().values())


@pytest.fixture(scope="module")
def years(world: BuildContext) -> list[tuple[str, int, Lines]]:
    """Every full year of every issuer of the real files, by standard and currency."""
    return [
        (entity.legal_name or entity.service_id, year.end, view.lines(basis))
        for entity in world.entities
        for year in Issuer(entity, world.ledger, world.captures).years.published
        for view in year.history.views[-1:]
        for basis in sorted(view.bases())
    ]


def as_filed(lines: Lines, end: int) -> Filed:
    """The facts of a year in the words of the reference."""
    rows = {}
    for concept, fact in lines.facts.items():
        day = date.fromordinal(fact.report.available)
        rows[concept] = Seen(
            concept, "", None, date.fromordinal(end), fact.vintage, fact.value, day, "", False, None, None
        )
    return Filed(rows, lines.filings)


def test_every_line_item_of_real_filings_is_what_brute_force_finds(years: list[tuple[str, int, Lines]]):
    compared: Counter[str] = Counter()
    for name, end, lines in years[::4]:
        expected = line_items(sorted(ITEMS), as_filed(lines, end))
        for item in sorted(ITEMS):
            figure = lines.figure(item)
            way = expected[item][0] if expected[item] else None
            found = figure and (figure.route, Fraction(figure.value), [p.concept for p in figure.parts])
            told = way and (way.route, way.value, [row.concept for row in way.inputs])
            assert found == told, (name, date.fromordinal(end), item)
            compared[item] += found is not None
    assert all(compared[item] for item in ITEMS)


def test_every_route_leads_to_its_figure_in_the_real_filing_listed_for_it(
    years: list[tuple[str, int, Lines]],
) -> None:
    """`UPDATE_SNAPSHOTS=1` lists the first filing of each route again."""
    met: dict[RouteKey, RouteExample] = {}
    every: dict[RouteKey, set[RouteExample]] = {}
    for name, end, lines in years:
        for item in sorted(items_asked()):
            for figure in lines.figures(item):
                key = route_key(table().routes[item][figure.route])
                last = max((part.report for part in figure.parts), key=lambda r: (r.available, r.document))
                ending = date.fromordinal(end).isoformat()
                example = RouteExample(name, ending, last.document, str(figure.value))
                met.setdefault(key, example)
                every.setdefault(key, set()).add(example)
    if "UPDATE_SNAPSHOTS" in os.environ:
        write_examples({route_key(r): met[route_key(r)] for r in routes_with_a_filing()})
    listed = read_examples()
    wrong = {key: example for key, example in listed.items() if example not in every.get(key, ())}
    assert not wrong
    assert len(listed) > 200


def latest_year(years: IssuerYearList) -> tuple[FullYear, tuple[Computed, ...]] | None:
    """The latest full year published, and every metric of it as today computes it."""
    asked = windows(years)
    if not asked:
        return None
    year, known = asked[-1][0], MetricYears(years)
    return year, tuple(known.computed(year, slug, FOREVER) for slug in slugs())


class Truncated:
    """A ledger as it would be had nothing been filed after a day."""

    def __init__(self, held: Mapping[str, FactColumns], day: str) -> None:
        self._held, self._day = held, day

    def facts(self, subject: str) -> FactColumns:
        facts = self._held[subject]
        by_then = [filed <= self._day for filed in facts.available_at]
        columns: list[list[Any]] = [list(compress(column, by_then)) for column in facts]
        return FactColumns(*columns)


@pytest.mark.rule("MET-2", "MET-8")
def test_every_filing_day_serves_what_only_the_filings_of_that_day_give(world: BuildContext) -> None:
    """Value, inputs, routes and reason equal those of a ledger that holds nothing filed later.

    `make torture` looks at every filing day of every registrant, other runs at six or more of each.
    """
    compared: Counter[str] = Counter()
    for entity in world.entities:
        issuer = Issuer(entity, world.ledger, world.captures)
        held = {subject: world.ledger.facts(subject) for subject in entity.subjects}
        found = derive(issuer.years)
        filed = sorted({day for facts in held.values() for day in facts.available_at if day})
        some = max(1, len(filed) // 6)
        step = rounds(some, some, 1)
        for day in filed[::step]:
            ledger = cast(Facts, Truncated(held, day))
            then = latest_year(Issuer(entity, ledger, world.captures).years)
            for number, history in enumerate(found.histories):
                told = ordinal(day)
                stretch = next((one for one in history if one.first <= told < one.until), None)
                where = (entity.legal_name, day, slugs()[number])
                if then is None:
                    assert stretch is None or stretch.state is State.NOT_PUBLISHED, where
                    continue
                assert stretch is not None, where
                computed = then[1][number]
                compared[stretch.state.name] += 1
                if stretch.state is State.STANDS:
                    (value,) = [
                        v for v in found.values if v.metric.slug == where[2] and v.first <= told < v.until
                    ]
                    assert (value.value, value.end, value.names) == (
                        computed.value, then[0].end, computed.names,
                    ), where  # fmt: skip
                    pairs = zip(value.figures, computed.figures, strict=True)
                    assert all(one.same_as(other) for one, other in pairs), where
                elif stretch.state not in (State.COMPLETED_AFTER_AS_OF, State.REVISED_AFTER_AS_OF):
                    assert stretch.state is computed.state, where
    assert compared["STANDS"] > 2_000
    assert all(compared[state.name] for state in State if state is not State.NOT_PUBLISHED)
