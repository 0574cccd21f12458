"""An issuer's full years, with the figures that each holds today.

A full year is named by its last day. It is published on the first day on which any full-year fact of it
was known. Its figures are those of `/v1/fundamentals` with `period_type=FY`, the latest vintage of each, by
currency and line item: of the concepts that can stand for an item the first in the documented order that
has a figure (`model.line_items.candidates`). Durations are taken of one stretch of days only: where two
end on the same day, of the one that more facts are reported for, so that no two inputs differ in length.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from sankofa.derive.metrics.contract import PRIOR, metrics
from sankofa.derive.metrics.year_ends import ANNIVERSARY_TOLERANCE, YearEnds
from sankofa.ledger.reports import Report, Reports
from sankofa.model.countries import currency
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.line_items import candidates
from sankofa.model.vintages import steps


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One figure as it stands today."""

    value: Decimal
    end: int
    vintage: int
    first_known: int
    """The day on which any figure of this fact was known."""
    stands_from: int
    """The day from which this one stood, and stood for its line item, as it does today."""
    report: Report


class FullYear(NamedTuple):
    """A full year: when it was published, and its figures by currency, best covered and earliest first."""

    end: int
    published: int
    figures: dict[str, dict[str, Figure]]
    withdrawn: dict[str, dict[str, int]]
    """By currency and line item, the day on which the last figure there was of it was withdrawn."""
    has_durations: bool


_Fact = tuple[int, int, int, Report]
"""Its vintage, the day on which any figure of it was known, the one from which this was, and the report."""
_Held = dict[str, dict[str, dict[str, _Fact]]]
"""Of one year: by currency, start of the period (empty for an instant) and concept."""


def full_years(reports: Reports, ends: YearEnds) -> list[FullYear]:
    """The full years of an issuer, oldest first."""
    used = _concepts()
    published: dict[int, int] = {}
    lasting: set[int] = set()
    held: defaultdict[int, _Held] = defaultdict(dict)
    for (concept, unit, period_end, period_start), told in reports.items():
        end = ordinal(period_end)
        story = steps(told) if len(told) > 1 or told[0].value is None else told
        full_on = ends.full(ordinal(period_start) if period_start else None, end)
        if period_start and full_on:
            lasting.add(end)
        full = [report for report in story if report.available in full_on]
        if not full:
            continue
        latest = story[-1]
        known = full[0].available
        known = known if known > end else end
        if known < published.get(end, FOREVER):
            published[end] = known
        if concept not in used or full[-1] is not latest:
            continue
        money = _money(unit)
        if money is not None:
            first, last = story[0].available, latest.available
            fact = (len(story), first if first > end else end, last if last > end else end, latest)
            held[end].setdefault(money, {}).setdefault(period_start, {}).setdefault(concept, fact)
    return [_year(end, published[end], held[end], end in lasting) for end in sorted(published)]


def year_before(years: Iterable[FullYear], year: FullYear) -> FullYear | None:
    """The full year that ended one year earlier, within the tolerance; the one closest to it."""
    ended = _year_earlier(year.end)
    near = [y for y in years if abs(y.end - ended) <= ANNIVERSARY_TOLERANCE]
    return min(near, key=lambda y: (not y.has_durations, abs(y.end - ended), y.end), default=None)


def _year(end: int, published: int, held: _Held, has_durations: bool) -> FullYear:
    starts: Counter[str] = Counter()
    for by_start in held.values():
        for start, facts in by_start.items():
            if start:
                starts[start] += len(facts)
    chosen = min(starts, key=lambda s: (-starts[s], s), default="")
    tables: dict[str, dict[str, Figure]] = {}
    withdrawn: dict[str, dict[str, int]] = {}
    for money, by_start in held.items():
        facts = by_start.get("", {}) | by_start.get(chosen, {})
        tables[money], withdrawn[money] = _line_items(facts, end)
    ordered = sorted(tables, key=lambda money: (-len(tables[money]), _first_known(tables[money]), money))
    return FullYear(end, published, {money: tables[money] for money in ordered}, withdrawn, has_durations)


def _first_known(figures: dict[str, Figure]) -> int:
    return min([figure.first_known for figure in figures.values()], default=FOREVER)


def _line_items(facts: dict[str, _Fact], end: int) -> tuple[dict[str, Figure], dict[str, int]]:
    """The figure of each line item; where a better concept was withdrawn, it counts only from that day."""
    table: dict[str, Figure] = {}
    withdrawn: dict[str, int] = {}
    for item, concepts in _standing_for(frozenset(facts)):
        settled = 0
        for concept in concepts:
            vintage, first_known, known_from, report = facts[concept]
            if known_from > settled:
                settled = known_from
            if report.value is not None:
                table[item] = Figure(Decimal(report.value), end, vintage, first_known, settled, report)
                break
        else:
            withdrawn[item] = settled
    return table, withdrawn


@lru_cache(maxsize=4096)
def _standing_for(concepts: frozenset[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The line items that any of these concepts can stand for, and those that can, in order."""
    found = ((item, tuple(c for c in order if c in concepts)) for item, order in _order())
    return tuple((item, there) for item, there in found if there)


@cache
def _order() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every line item that enters a metric, and the concepts that can stand for it, in order."""
    items = {name.removeprefix(PRIOR) for m in metrics() for form in m.forms for name in form.inputs}
    return tuple((item, candidates(item)) for item in sorted(items))


@cache
def _concepts() -> frozenset[str]:
    return frozenset(concept for _, concepts in _order() for concept in concepts)


@lru_cache(maxsize=4096)
def _money(unit: str) -> str | None:
    return currency(unit)


@lru_cache(maxsize=65536)
def _year_earlier(end: int) -> int:
    day = date.fromordinal(end)
    last = 28 if (day.month, day.day) == (2, 29) else day.day
    return date(day.year - 1, day.month, last).toordinal()
