"""An issuer's full years, with the figures that each holds today.

A full year is named by its last day. It is published on the first day on which any full-year fact of it
was known. Its figures are those of `/v1/fundamentals` with `period_type=FY`, the latest vintage of each, by
currency and line item: by the first of the documented routes to an item that is open (`lines.py`).
Durations are taken of one stretch of days only: where two end on the same day, of the one that more facts
are reported for, so that no two inputs differ in length. A year that follows no published one has its opening
balance from the reports that repeat it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import Final

from sankofa.derive.metrics.figures import Fact, Figure
from sankofa.derive.metrics.identities import pass_over_contradictions
from sankofa.derive.metrics.lines import Lines, concepts_used
from sankofa.derive.metrics.route_steps import items_asked
from sankofa.derive.metrics.year_ends import ANNIVERSARY_TOLERANCE, YearEnds
from sankofa.ledger.reports import Report, Reports
from sankofa.model.countries import currency
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.vintages import steps

_Held = list[tuple[str, str, str, Sequence[Report], Sequence[Report]]]
"""The facts of one year: concept, unit, start of the period (empty for an instant), its vintages, and every
report of it."""


_available = attrgetter("available")
_NO_DAYS: Final[Mapping[tuple[str, str], int]] = {}


HeldFacts = dict[str, dict[str, dict[str, Fact]]]
"""Of one period: by currency, start of the period (empty for an instant) and concept."""


class FullYear:
    """A full year. Its line items are worked out when they are first asked for: many years never are."""

    def __init__(self, end: int, published: int, held: _Held, *, has_durations: bool) -> None:
        self.end = end
        self.published = published
        self.has_durations = has_durations
        self.opening: FullYear | None = None
        """What the balances of the day before it are, where no full year was published that ended then."""
        self._held = held

    @cached_property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """The figures by currency, best covered and earliest first."""
        return figures_by_currency(self.lines)

    @property
    def lines(self) -> dict[str, Lines]:
        """By currency, every route to a line item."""
        return self._worked_out[0]

    @property
    def identity_conflicts(self) -> int:
        """How many routes were passed over because they contradict an identity of their filing."""
        return self._worked_out[1]

    @cached_property
    def _worked_out(self) -> tuple[dict[str, Lines], int]:
        return _year_lines(self.end, self._held)


def full_years(
    reports: Reports, ends: YearEnds, first_days: Mapping[tuple[str, str], int] = _NO_DAYS
) -> list[FullYear]:
    """The full years of an issuer, oldest first.

    `first_days`: of some full years, by start and end of the period, when anything of them was first known.
    Of these the reports need only be those of concepts that a route uses.
    """
    used = concepts_used()
    published: dict[int, int] = {}
    lasting: set[int] = set()
    for (period_start, period_end), day in first_days.items():
        end = ordinal(period_end)
        published[end] = min(max(day, end), published.get(end, FOREVER))
        if period_start:
            lasting.add(end)
    held: defaultdict[int, _Held] = defaultdict(list)
    periods: dict[tuple[str, str], tuple[int, set[int]]] = {}
    for (concept, unit, period_end, period_start), reported in reports.items():
        period = periods.get((period_start, period_end))
        if period is None:
            period = ordinal(period_end), ends.full_on(period_start, period_end)
            periods[period_start, period_end] = period
        end, full_on = period
        if not full_on:
            continue
        story = steps(reported) if len(reported) > 1 or reported[0].value is None else reported
        if (period_start, period_end) not in first_days:
            if period_start:
                lasting.add(end)
            first = next((report.available for report in story if report.available in full_on), FOREVER)
            known = first if first > end else end
            if known < published.get(end, FOREVER):
                published[end] = known
        if concept not in used or not story:  # a figure that was only ever reported as unknown has none
            continue
        if story[-1].available in full_on:
            held[end].append((concept, unit, period_start, story, reported))
        elif not period_start and (again := _told_again(story[-1], reported, full_on)):
            held[end].append((concept, unit, period_start, [*story[:-1], again], reported))
    years = [
        FullYear(end, published[end], held[end], has_durations=end in lasting) for end in sorted(published)
    ]
    _add_openings(years, {end: balances for end, balances in held.items() if end not in published})
    return years


def _told_again(standing: Report, reports: Sequence[Report], full_on: Set[int]) -> Report | None:
    """The first report that repeats a balance when its day was known to end a year.

    The first balance sheet of a new issuer is told before that: its day is a year-end only by the full year
    that follows, whose report has it as the opening balance.
    """
    if standing.value is None:
        return None
    later = (r for r in reports if r.available > standing.available and r.available in full_on)
    return min((r for r in later if r.value == standing.value), key=_available, default=None)


def _add_openings(years: Sequence[FullYear], unpublished: Mapping[int, _Held]) -> None:
    """Give years that follow no published one the balances of the day before them."""
    if unpublished:
        openings = [FullYear(end, FOREVER, held, has_durations=False) for end, held in unpublished.items()]
        for year in years:
            if year_before(years, year) is None:
                year.opening = year_before(openings, year)


def year_before(years: Iterable[FullYear], year: FullYear) -> FullYear | None:
    """The full year that ended one year earlier, within the tolerance; the one closest to it."""
    ended = _year_earlier(year.end)
    near = [y for y in years if abs(y.end - ended) <= ANNIVERSARY_TOLERANCE]
    return min(near, key=lambda y: (not y.has_durations, abs(y.end - ended), y.end), default=None)


def chosen_start(held: HeldFacts) -> str:
    """The start of the stretch of days that durations are taken of; empty where there is none."""
    starts: Counter[str] = Counter()
    for by_start in held.values():
        for start, facts in by_start.items():
            if start:
                starts[start] += len(facts)
    return min(starts, key=lambda s: (-starts[s], s), default="")


def figures_by_currency(lines: Mapping[str, Lines]) -> dict[str, dict[str, Figure]]:
    """The figures of each line item by currency, best covered and earliest first."""
    tables = {
        money: {item: figure for item in _items() if (figure := own.figure(item))}
        for money, own in lines.items()
    }
    ordered = sorted(tables, key=lambda money: (-len(tables[money]), _first_known(tables[money]), money))
    return {money: tables[money] for money in ordered}


def _year_lines(end: int, held: _Held) -> tuple[dict[str, Lines], int]:
    """By currency, the routes to each line item; and how many were passed over."""
    by_money: HeldFacts = {}
    by_unit: dict[tuple[str, str], dict[str, Fact]] = {}
    for concept, unit, start, story, reports in held:
        facts = by_unit.get((unit, start))
        if facts is None:
            money = _money(unit)
            facts = {} if money is None else by_money.setdefault(money, {}).setdefault(start, {})
            by_unit[unit, start] = facts
        if concept not in facts:
            latest = story[-1]
            last = latest.available if latest.available > end else end
            if len(story) == 1:
                facts[concept] = Fact(1, last, last, latest, reports)
            else:
                first = story[0].available
                facts[concept] = Fact(len(story), first if first > end else end, last, latest, reports)
    chosen = chosen_start(by_money)
    lines: dict[str, Lines] = {}
    conflicts = 0
    for money, by_start in by_money.items():
        own = lines[money] = Lines(by_start.get("", {}) | by_start.get(chosen, {}), end)
        conflicts += pass_over_contradictions(own)
    return lines, conflicts


def both_years(year: FullYear, before: FullYear, money: str, item: str) -> tuple[Figure, Figure] | None:
    """The figures of an item for two years by the same route: the first that both have."""
    now, then = year.lines.get(money), before.lines.get(money)
    if now is None or then is None:
        return None
    first, other = now.figure(item), then.figure(item)
    if first is None or other is None:
        return None
    if first.route == other.route:
        return first, other
    earlier = {figure.route: figure for figure in then.figures(item)}
    return next(((one, earlier[one.route]) for one in now.figures(item) if one.route in earlier), None)


def _first_known(figures: dict[str, Figure]) -> int:
    return min([figure.first_known for figure in figures.values()], default=FOREVER)


@cache
def _items() -> tuple[str, ...]:
    return tuple(sorted(items_asked()))


@lru_cache(maxsize=4096)
def _money(unit: str) -> str | None:
    return currency(unit)


@lru_cache(maxsize=65536)
def _year_earlier(end: int) -> int:
    day = date.fromordinal(end)
    last = 28 if (day.month, day.day) == (2, 29) else day.day
    return date(day.year - 1, day.month, last).toordinal()
