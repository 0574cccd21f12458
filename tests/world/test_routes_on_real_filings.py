"""Routes on real filings: compared with brute force, and each of them used somewhere."""

import gzip
import json
import os
import random
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import compress
from pathlib import Path
from typing import Any, cast

import pytest

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.metrics.derive import Computed, computed, derive, windows
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList
from sankofa.derive.metrics.lines import Lines
from sankofa.derive.metrics.routes import metric_inputs
from sankofa.edition.write.context import BuildContext
from sankofa.ledger.capture import FactColumns
from sankofa.ledger.reader import LedgerReader
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.identifiers import cik, service_id
from sankofa.model.line_items import table
from sankofa.model.rows import State
from tests.real_inputs import companyfacts_of, statements_of
from tests.torture import ALL_ROUNDS, rounds
from tests.world.desk import Desk
from tests.world.metrics_reference import ITEMS
from tests.world.metrics_reference import Issuer as Replay
from tests.world.reference import ExpectedRow, FiledFigure
from tests.world.route_examples import (
    RouteExample,
    RouteKey,
    read_examples,
    route_key,
    routes_with_a_filing,
    write_examples,
)
from tests.world.routes_reference import Filed, line_items, options

pytestmark = pytest.mark.deep

REPLAYED = {
    "0001490366": 50,
    "0001105533": 50,
    "0001642545": 50,
    "0001051514": 50,
    "0001362925": 50,
    "0001744494": 10,
}
"""A borrower in two currencies; one that first tells of temporary equity, as nothing, in a later quarter; two
others; one that reports a figure of the twelve months to September beside its calendar years; and one founded
in June, whose first full year opens with the balance of half a year. With how many values to compare."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> BuildContext:
    """What a route may read in the files, for the registrants under test and some others; with every
    round, for all of them.
    """
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
    """Whether a test compares this registrant, or it belongs to the extra half.

    By the first word of its name, as the two sources write the rest in different ways.
    """
    return number % 2 == 0 or name.split()[0].casefold() in _listed() or f"{number:010}" in REPLAYED


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
    """The facts of a year in the form of the reference."""
    rows = {}
    for concept, fact in lines.facts.items():
        day = date.fromordinal(fact.report.available)
        rows[concept] = ExpectedRow(
            concept, "", None, date.fromordinal(end), fact.vintage, fact.value, day, "", False, None, None
        )
    return Filed(rows, lines.filings)


def test_every_line_item_of_real_filings_matches_brute_force(years: list[tuple[str, int, Lines]]):
    compared: Counter[str] = Counter()
    for name, end, lines in years[::4]:
        expected = line_items(sorted(ITEMS), as_filed(lines, end))
        for item in sorted(ITEMS):
            figure = lines.figure(item)
            way = expected[item][0] if expected[item] else None
            actual = figure and (figure.route, Fraction(figure.value), [p.concept for p in figure.parts])
            by_brute_force = way and (way.route, way.value, [row.concept for row in way.inputs])
            assert actual == by_brute_force, (name, date.fromordinal(end), item)
            compared[item] += actual is not None
    assert all(compared[item] for item in ITEMS)


def test_every_route_leads_to_its_figure_in_the_real_filing_listed_for_it(
    years: list[tuple[str, int, Lines]],
) -> None:
    """`UPDATE_SNAPSHOTS=1` writes the first filing of each route again."""
    met: dict[RouteKey, RouteExample] = {}
    every: dict[RouteKey, set[RouteExample]] = {}
    for name, end, lines in years:
        for item in sorted(metric_inputs()):
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


NAMES_OF_REVENUE = re.compile(
    r"(ifrs-full|us-gaap):(Revenues?|SalesRevenue|RevenueFromContract|InterestRevenue(?!Expense)|InterestAndDividendIncome"
    r"|NoninterestIncome|PremiumsEarned|InsuranceRevenue|OilAndGas(Sales)?Revenue|RevenueFrom(SaleOf|Rendering))"
    r"(?!.*(AccountingPolicy|PerformanceObligation|Acquisition|Associates|ProForma))"
)


def test_every_african_issuer_that_reports_revenue_has_a_net_margin(world: BuildContext, shared_data: Path):
    """Its last full year counts; banks and insurers have other names for revenue."""
    folder = shared_data.parent / "starter" / "filings" / "companyfacts"
    ours = {f"registry:US-SEC-CIK:{path.name[3:13]}" for path in folder.iterdir() if path.is_file()}
    number = slugs().index("net_margin")
    reporting, without = set(), set()
    for entity in world.entities:
        if ours.isdisjoint(entity.subjects):
            continue
        issuer = Issuer(entity, world.ledger, world.captures)
        last = issuer.years.published[-1]
        ending = date.fromordinal(last.end).isoformat()
        # From all its figures, whether a route reads them or not.
        if any(start and end == ending and NAMES_OF_REVENUE.match(c) for c, _, end, start in issuer.reports):
            reporting.add(entity.legal_name)
            if derive(issuer.years).histories[number][-1].state in (State.INPUT_ABSENT, State.CURRENCY_MIXED):
                without.add(entity.legal_name)
    assert not without
    assert len(reporting) >= 20


# How often a route gives exactly the figure that issuers report for the same item.
AGREEING = {
    "liabilities": ("us-gaap:LiabilitiesAndStockholdersEquity - us-gaap:StockholdersEquity", 0.93),
    "equity_owners": ("us-gaap:LiabilitiesAndStockholdersEquity - us-gaap:Liabilities", 0.93),
    "profit_owners": ("us-gaap:ProfitLoss - us-gaap:NetIncomeLossAttributableToNoncontrollingInterest", 0.93),
    "income_tax": ("us-gaap:CurrentIncomeTaxExpenseBenefit + us-gaap:DeferredIncomeTaxExpenseBenefit", 0.85),
}


@pytest.mark.parametrize("item", AGREEING)
def test_a_route_agrees_with_the_figure_that_issuers_report(years: list[tuple[str, int, Lines]], item: str):
    text, least = AGREEING[item]
    agree = together = 0
    for _, end, lines in years:
        ways = {table().routes[item][o.route]: o for o in options(item, as_filed(lines, end))}
        own = next((o for route, o in ways.items() if route.served), None)
        other = next((o for route, o in ways.items() if route.text == text), None)
        if own is not None and other is not None:
            together += 1
            agree += abs(own.value - other.value) * 100 <= abs(own.value)
    assert together > 100
    assert agree / together >= least


def filed_figures(path: Path) -> list[FiledFigure]:
    """The twelve-month figures and instants of a registrant, in the form of the reference."""
    figures = []
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    for taxonomy in ("us-gaap", "ifrs-full"):
        for concept, reported in document["facts"].get(taxonomy, {}).items():
            for unit, rows in reported["units"].items():
                for row in rows if len(unit) == 3 else ():
                    start = date.fromisoformat(row["start"]) if row.get("start") else None
                    end, filed = date.fromisoformat(row["end"]), date.fromisoformat(row["filed"])
                    if start is None or 345 <= (end - start).days + 1 <= 385:
                        figures.append(
                            FiledFigure(
                                f"{taxonomy}:{concept}", unit, start, end, row["accn"],
                                Decimal(str(row["val"])), filed, date(2026, 1, 1),
                            )
                        )  # fmt: skip
    return figures


@pytest.mark.parametrize("number", REPLAYED)
def test_a_day_of_a_real_registrant_matches_a_replay(
    world: BuildContext, shared_data: Path, number: str
) -> None:
    filed = filed_figures(shared_data / "fundamentals" / "companyfacts-2021" / f"CIK{number}.json.gz")
    own = service_id(str(cik(int(number))))
    (entity,) = [entity for entity in world.entities if entity.service_id == own]
    values = derive(Issuer(entity, world.ledger, world.captures).years).values
    began = min(t.available for t in filed if t.start and t.available)
    filed = [t for t in filed if t.available and t.available >= began]  # a year is known from then on
    days = sorted({t.available for t in filed if t.available})
    replay = Replay(filed, date(2026, 1, 1))
    compared = 0
    for day in random.Random(number).sample(days, min(5, len(days))):
        current = {
            v.metric.slug: (v.value, Counter((p.concept, p.value) for f in v.figures for p in f.parts))
            for v in values
            if v.current and v.first <= day.toordinal() < v.until
        }
        expected = {
            slug: (worked.value, Counter((row.concept, row.value) for row in worked.inputs))
            for slug, (state, worked, _) in replay.current(day).items()
            if state == "stands" and worked is not None
        }
        assert current == expected, day
        compared += len(current)
    assert compared > REPLAYED[number]


def latest_year(years: IssuerYearList) -> tuple[FullYear, tuple[Computed, ...]] | None:
    """The latest published full year, and every metric of it as computed today."""
    year_windows = windows(years)
    if not year_windows:
        return None
    year = year_windows[-1][0]
    return year, tuple(computed(years, year, slug, FOREVER) for slug in slugs())


class Truncated:
    """A ledger as if nothing had been filed after a day."""

    def __init__(self, facts: Mapping[str, FactColumns], day: str) -> None:
        self._facts, self._day = facts, day

    def facts(self, subject: str) -> FactColumns:
        facts = self._facts[subject]
        by_then = [filed <= self._day for filed in facts.available_at]
        columns: list[list[Any]] = [list(compress(column, by_then)) for column in facts]
        return FactColumns(*columns)


@pytest.mark.rule("MET-2", "MET-8")
def test_every_filing_day_depends_only_on_the_filings_of_that_day(world: BuildContext) -> None:
    """Value, inputs, routes and reason equal those of a ledger without later filings.

    `make torture` checks every filing day of every registrant, other runs six or more of each.
    """
    compared: Counter[str] = Counter()
    for entity in world.entities:
        issuer = Issuer(entity, world.ledger, world.captures)
        facts_by_subject = {subject: world.ledger.facts(subject) for subject in entity.subjects}
        derived = derive(issuer.years)
        filed = sorted({day for facts in facts_by_subject.values() for day in facts.available_at if day})
        some = max(1, len(filed) // 6)
        step = rounds(some, some, 1)
        for day in filed[::step]:
            ledger = cast(LedgerReader, Truncated(facts_by_subject, day))
            then = latest_year(Issuer(entity, ledger, world.captures).years)
            for number, history in enumerate(derived.histories):
                filing_day = ordinal(day)
                stretch = next((one for one in history if one.first <= filing_day < one.until), None)
                where = (entity.legal_name, day, slugs()[number])
                if then is None:
                    assert stretch is None or stretch.state is State.NOT_PUBLISHED, where
                    continue
                assert stretch is not None, where
                computed = then[1][number]
                compared[stretch.state.name] += 1
                if stretch.state is State.STANDS:
                    (value,) = [
                        v
                        for v in derived.values
                        if v.metric.slug == where[2] and v.first <= filing_day < v.until
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
