"""Metrics through the real ledger, build and edition, against a replay of the rules for each day."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import Ranking, dated, screen
from sankofa.model.identifiers import service_id
from sankofa.model.vintages import Mode
from tests.patience import wait
from tests.torture import rounds
from tests.world.desk import Desk, around, as_row
from tests.world.metrics_reference import ITEMS, SLUGS, Issuer, Worked
from tests.world.reference import FiledFigure

TODAY = date(2024, 6, 1)
STOCKS = sorted(
    {
        *("assets", "current_assets", "cash", "receivables", "inventories", "liabilities", "payables"),
        *("current_liabilities", "short_term_debt", "long_term_debt", "equity", "equity_owners"),
        *("loans", "deposits", "total_debt"),
    }
)
REPORTED_ITEMS = ITEMS | {"short_term_debt", "long_term_debt"}
FLOWS = sorted(REPORTED_ITEMS - set(STOCKS))
ISSUERS = rounds(10, 24, here=4)


def full_years(chance: random.Random) -> list[tuple[date, date]]:
    """Five years: calendar, 52/53 weeks, ending in February, or with another year-end from the third on."""
    kind = chance.choice(("calendar", "weeks", "february", "changed"))
    if kind == "calendar":
        return [(date(y, 1, 1), date(y, 12, 31)) for y in range(2018, 2023)]
    if kind == "february":
        ends = [date(y, 2, 29 if y == 2020 else 28) for y in range(2017, 2023)]
        return [(a + timedelta(days=1), b) for a, b in pairwise(ends)]
    if kind == "weeks":
        start = date(2018, 1, 1)
        years = []
        for _ in range(5):
            end = start + timedelta(days=7 * chance.choice((52, 53)) - 1)
            years.append((start, end))
            start = end + timedelta(days=1)
        return years
    return [
        (date(2017, 1, 1), date(2017, 12, 31)),
        (date(2018, 1, 1), date(2018, 12, 31)),
        (date(2020, 7, 1), date(2021, 6, 30)),  # after a period of eighteen months
        (date(2021, 7, 1), date(2022, 6, 30)),
        (date(2022, 7, 1), date(2023, 6, 30)),
    ]


def history(chance: random.Random) -> list[FiledFigure]:
    """Filings of five years: late ones, partial ones completed later, restatements, some restated back."""
    filed_figures: list[FiledFigure] = []
    years = full_years(chance)
    change = chance.choice((None, None, None, 2, 3))
    items = [i for i in sorted(REPORTED_ITEMS) if chance.random() < (0.4 if i == "total_debt" else 0.85)]
    lag = timedelta(days=chance.randrange(30, 150))
    interim = chance.random() < 0.4
    evidence = (date(2016, 1, 1), date(2016, 12, 31)) if years[0][1].month == 12 else years[0]
    start, end = evidence
    filed_figures.append(
        FiledFigure("finance_income", "", start, end, "d0", Decimal(1), end + timedelta(days=1), TODAY)
    )
    for number, (start, end) in enumerate(years):
        unit = "USD" if change is not None and number >= change else "ZAR"
        filed = end + (lag if chance.random() < 0.8 else timedelta(days=chance.randrange(200, 600)))
        if years[number - 1][1].month != end.month or chance.random() < 0.5:
            filed_figures.append(
                FiledFigure("other_income", unit, start, end, f"f{number}", Decimal(1), filed, TODAY)
            )
        figures = {item: _figure(chance) for item in sorted(REPORTED_ITEMS)}
        if chance.random() < 0.7:  # otherwise the filing contradicts itself
            figures["gross_profit"] = figures["revenue"] - figures["cost_of_sales"]
            figures["equity"] = figures["assets"] - figures["liabilities"]
            figures["profit"] = figures["profit_before_tax"] - figures["income_tax"]
        for item in items:
            if chance.random() < 0.03:
                continue
            begin = None if item in STOCKS else start
            partial = chance.random() < 0.06
            first = filed + timedelta(days=chance.randrange(1, 400)) if partial else filed
            available, figure = first, figures[item]
            filed_figures.append(FiledFigure(item, unit, begin, end, f"f{number}", figure, available, TODAY))
            filed_figures += _later(chance, filed_figures[-1])
            if chance.random() < 0.06:  # a convenience translation
                translated = Decimal(str(figure)) / 4
                filed_figures.append(
                    FiledFigure(item, "EUR", begin, end, f"f{number}", translated, available, TODAY)
                )
        if interim and number:  # from when the issuer's year is known
            filed_figures += _half_year(chance, number, (start, end), unit, lag)
        if chance.random() < 0.15:  # opening balances under a new standard, a day after the year-end
            opened = end + timedelta(days=1)
            day = filed + timedelta(days=60)
            filed_figures.append(
                FiledFigure("assets", unit, None, opened, f"q{number}", _figure(chance), day, TODAY)
            )
    return [t for t in filed_figures if t.available is not None and t.available <= TODAY]


def _half_year(
    chance: random.Random, number: int, year: tuple[date, date], unit: str, lag: timedelta
) -> Iterator[FiledFigure]:
    """An interim report: the half-year, and for fewer figures the twelve months to its end."""
    start, middle = year[0], year[0] + timedelta(days=181)
    for position, item in enumerate(sorted(FLOWS)):
        filed = middle + lag
        yield FiledFigure(item, unit, start, middle, f"h{number}", _figure(chance), filed, TODAY)
        if position % 3 == 0:
            before = middle - timedelta(days=364)
            yield FiledFigure(item, unit, before, middle, f"h{number}", _figure(chance), filed, TODAY)
    yield FiledFigure("assets", unit, None, middle, f"h{number}", _figure(chance), middle + lag, TODAY)


def _later(chance: random.Random, first: FiledFigure) -> Iterator[FiledFigure]:
    """The history of a figure: repeated, restated, restated back, withdrawn, filed again."""
    assert first.available is not None
    kind = chance.choices(
        ("nothing", "repeated", "restated", "back", "withdrawn", "same day"), (70, 10, 10, 5, 2, 2)
    )[0]
    later = first.available + timedelta(days=chance.randrange(1, 500))
    again = later + timedelta(days=chance.randrange(1, 300))
    if kind == "repeated":
        yield first._replace(document="g1", available=later)
    elif kind in ("restated", "back"):
        yield first._replace(document="g1", available=later, value=_figure(chance))
        if kind == "back":
            yield first._replace(document="g2", available=again)
    elif kind == "withdrawn":
        yield first._replace(document="g1", available=later, value=None)
        if chance.random() < 0.3:
            yield first._replace(document="g2", available=again)
    elif kind == "same day":
        yield first._replace(document="g1", value=_figure(chance))


def _figure(chance: random.Random) -> Decimal:
    size = chance.choice((10**12, 10**12, 10**5, 50))
    sign = chance.choices((1, -1, 0), (90, 7, 3))[0]
    return Decimal(sign * chance.randrange(1, size)) / chance.choice((1, 1, 1, 100))


class World:
    """Some issuers, published, and their histories in the form of the reference."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.desk = Desk(folder / "home", TODAY)
        self.issuers: dict[str, Issuer] = {}
        rows = []
        for number in range(ISSUERS):
            name = f"ticker:JSE:T{number}"
            filed = history(self.chance)
            self.issuers[service_id(name)] = Issuer(filed, TODAY)
            rows += [as_row(name, report, f"p. {n}") for n, report in enumerate(filed)]
        self.chance.shuffle(rows)
        for part in range(3):
            summary = self.desk.filings(f"{part}.csv", rows[part::3])
            assert (summary.failures, summary.rejects) == ([], None)
        self.edition = self.desk.publish()


@pytest.fixture(scope="module", params=range(rounds(1, 2, 4)))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("metrics"), request.param)


def events(filed: Iterable[FiledFigure]) -> list[date]:
    """The days on which anything can change, and the days before and after each."""
    return around({day for t in filed for day in (t.end, t.available) if day is not None and day < TODAY})


def of_issuer(
    edition: Edition, key: str, day: date, *, as_known: bool = False
) -> tuple[list[dict[str, Any]], Counter[str]]:
    modes = AS_KNOWN if as_known else int(Mode.LATEST)

    async def ask() -> tuple[list[dict[str, Any]], Counter[str]]:
        selection = await edition.select("metrics", key, day=day.toordinal(), modes=modes)
        missing = await edition.select("omitted", key, day=day.toordinal(), modes=modes)
        rows = json.loads(
            b"[%b]" % dated(selection.rows if selection else b"", day), parse_int=Decimal, parse_float=Decimal
        )
        reasons = json.loads(b"[%b]" % missing.rows) if missing and missing.count else []
        return rows, Counter(one["reason"] for one in reasons)

    return wait(ask())


@pytest.mark.deep
@pytest.mark.rule("MET-1", "MET-12", "MET-13")
@pytest.mark.parametrize("as_known", [False, True])
def test_every_day_matches_the_values_and_reasons_of_a_replay_of_the_rules(
    world: World, *, as_known: bool
) -> None:
    compared = 0
    for key, issuer in world.issuers.items():
        for day in world.chance.sample(all_days := events(issuer.filed), min(25, len(all_days))):
            rows, missing = of_issuer(world.edition, key, day, as_known=as_known)
            expected = issuer.as_known(day) if as_known else issuer.current(day)
            values = {slug: answer for slug, answer in expected.items() if answer[0] == "stands"}
            assert {r["metric"]: as_worked(r) for r in rows} == {
                slug: as_expected(worked, end) for slug, (_, worked, end) in values.items()
            }, (key, day)
            reasons = Counter(why for why, _, _ in expected.values() if why != "stands")
            if as_known:  # nothing shows that a full year will be published later
                del reasons["not_published"]
            assert missing == reasons, (key, day)
            assert [r["metric"] for r in rows] == sorted(values)
            compared += len(values)
    assert compared > 100 * ISSUERS  # otherwise the histories are too short to prove anything


def as_worked(row: dict[str, Any]) -> tuple[Any, ...]:
    inputs = tuple((Decimal(i["value"]), i["period_end"], int(i["vintage"])) for i in row["inputs"])
    return Decimal(row["value"]), row["period_end"], row["available_at"], Counter(inputs)


def as_expected(worked: Worked | None, end: date | None) -> tuple[Any, ...]:
    assert worked is not None
    inputs = tuple((row.value, str(row.end), row.vintage) for row in worked.inputs)
    return worked.value, str(end), str(worked.available), Counter(inputs)


@pytest.mark.rule("MET-8")
def test_no_value_appears_before_its_filing(world: World) -> None:
    for key, issuer in world.issuers.items():
        for day in world.chance.sample(all_days := events(issuer.filed), min(10, len(all_days))):
            for row in of_issuer(world.edition, key, day)[0]:
                ends = [i["period_end"] for i in row["inputs"]]
                assert max(row["available_at"], row["period_end"], *ends) <= str(day)
                assert row["as_of"] == str(day)


@pytest.mark.deep
@pytest.mark.rule("MET-13")
@pytest.mark.parametrize("as_known", [False, True])
def test_a_screen_ranks_exactly_the_rows_of_the_issuers_and_counts_the_others(
    world: World, *, as_known: bool
):
    every = sorted({day for issuer in world.issuers.values() for day in events(issuer.filed)})
    for day in [date(1990, 1, 1), *world.chance.sample(every, 12), TODAY, date(2031, 1, 1)]:
        by_issuer = {key: of_issuer(world.edition, key, day, as_known=as_known) for key in world.issuers}
        for slug in SLUGS:
            rows = [r for rows, _ in by_issuer.values() for r in rows if r["metric"] == slug]
            for order in ("asc", "desc"):
                sign = 1 if order == "asc" else -1
                ranked = sorted(rows, key=lambda r: (sign * r["value"], r["service_id"]))
                expected = [{"rank": n, **r} for n, r in enumerate(ranked, 1)]
                for most in (1, 7, 100):
                    ranking = Ranking(slug, None, day, smallest_first=order == "asc", known=as_known)
                    screened, omitted = wait(screen(world.edition, ranking, most=most))
                    served = json.loads(b"[%b]" % screened.rows, parse_int=Decimal, parse_float=Decimal)
                    assert served == expected[:most], (slug, day, order)
                    assert screened.truncated == (len(expected) > most)
                    counted_issuers = sum(omitted.values()) + len(expected)
                    # On a known day, issuers whose first full year comes later are not counted.
                    assert counted_issuers == len(world.issuers) or (
                        as_known and not omitted["not_published"]
                    )
        total = Counter[str]()
        for _, missing in by_issuer.values():
            total += missing
        if as_known:
            del total["not_published"]
        counted = Counter[str]()
        for slug in SLUGS:
            _, omitted = wait(screen(world.edition, Ranking(slug, None, day, known=as_known), most=1))
            counted += Counter(omitted)
        assert counted == total


@pytest.mark.deep
@pytest.mark.rule("MET-8")
def test_a_later_filing_never_adds_a_value_to_a_day_before_it(tmp_path: Path) -> None:
    """Rule 4, between two editions: the values of a past day can disappear, but not change otherwise."""
    chance = random.Random(7)
    desk = Desk(tmp_path / "home", date(2021, 6, 1))
    stories = {service_id(f"ticker:JSE:T{n}"): history(chance) for n in range(10)}
    names = {service_id(f"ticker:JSE:T{n}"): f"ticker:JSE:T{n}" for n in range(10)}
    cut = date(2021, 6, 1)
    filed = [(names[key], t) for key, story in stories.items() for t in story]
    desk.filings("early.csv", [as_row(name, t) for name, t in filed if t.available and t.available <= cut])
    before = desk.publish()
    desk.set_day(TODAY)
    desk.filings("late.csv", [as_row(name, t) for name, t in filed if t.available and t.available > cut])
    after = desk.publish()
    removed = 0
    for key, story in stories.items():
        for day in chance.sample(days := [d for d in events(story) if d < cut], min(12, len(days))):
            old = {r["metric"]: as_worked(r) for r in of_issuer(before, key, day)[0]}
            new = {r["metric"]: as_worked(r) for r in of_issuer(after, key, day)[0]}
            assert new.items() <= old.items(), (key, day)
            removed += len(old) - len(new)
    assert removed > 0
