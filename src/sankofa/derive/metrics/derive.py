"""Every value of one issuer, and what each day shows of each metric."""

from collections.abc import Callable, Container, Iterator, Mapping
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from sankofa.derive.metrics.contract import EXACT, PRIOR, Form, Metric, metrics
from sankofa.derive.metrics.figures import Figure
from sankofa.derive.metrics.full_years import FullYear, both_years, year_before
from sankofa.derive.metrics.standing import Stretch, standing, windows
from sankofa.derive.rounding import quotient
from sankofa.model.days import FOREVER
from sankofa.model.metric_states import State

Inputs = tuple[tuple[str, Figure], ...]


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value that stands on the days [first, until), and the figures it is computed from by their names."""

    metric: Metric
    value: Decimal
    end: int
    first: int
    until: int
    names: tuple[str, ...]
    figures: tuple[Figure, ...] = ()


class Derived(NamedTuple):
    """Of one issuer: its values by metric and year; per metric, what every day from 0 on shows."""

    values: list[Value]
    histories: list[list[Stretch]]
    identity_conflicts: int = 0
    """Routes passed over in the years that a metric is computed from."""


class _Chosen(NamedTuple):
    """The form of a metric to take where some names are there, and how to take its inputs."""

    form: Form
    take: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    passed_over: tuple[str, ...]
    """The inputs of the forms before it."""


class _Table(NamedTuple):
    """The figures of a year in one currency, by the name a formula knows them by."""

    figures: dict[str, Figure]
    values: dict[str, Decimal]
    stands_from: dict[str, int]
    withdrawn: dict[str, int]
    chosen: tuple[_Chosen | None, ...]
    """By number of the metric."""


_ZERO = Decimal(0)
_Computed = tuple[Decimal | None, int, tuple[str, ...], tuple[Figure, ...]]
"""The value if there is one, the day from which its inputs stand, and these by name."""


def derive(years: list[FullYear]) -> Derived:
    """The values of an issuer from its full years, oldest first."""
    asked = windows((year.end, year.published) for year in years)
    if not asked:
        return Derived([], [[] for _ in metrics()])
    used: set[FullYear] = set()
    values: list[list[Value]] = [[] for _ in metrics()]
    shown = _Shown(len(metrics()))
    states = shown.states
    numbered = tuple(enumerate(_lookups()))
    with localcontext(EXACT):
        for year in years:
            window = asked.get(year.end)
            if window is None:
                continue
            end = year.end
            before = year_before(years, year) or year.opening
            used.update((year,) if before is None else (year, before))
            tables = _tables(year, before)
            reported = _reported(year, before) if _may_be_mixed(year, before) else set()
            for number, (metric, forms) in numbered:
                derived = _value(number, tables)
                if derived is None:
                    mixed = bool(reported) and any(reported.issuperset(names) for names in forms)
                    shown.add(number, window[0], State.CURRENCY_MIXED if mixed else State.INPUT_ABSENT)
                    continue
                value, settled, names, figures = derived
                first, until = window
                if value is None:
                    shown.add(number, first, State.DENOMINATOR_NOT_POSITIVE)
                    continue
                if settled > first:
                    for day, state in standing(window, max([f.first_known for f in figures]), settled):
                        shown.add(number, day, state)
                    if settled >= until:
                        continue
                    first = settled
                elif states[number] is not State.STANDS:
                    shown.add(number, first, State.STANDS)
                values[number].append(Value(metric, value, end, first, until, names, figures))
    conflicts = sum(year.identity_conflicts for year in used)
    return Derived([value for of_metric in values for value in of_metric], shown.histories(), conflicts)


class _Shown:
    """What the days show of each metric, day after day: a stretch lasts until something else is shown."""

    def __init__(self, count: int) -> None:
        self.states = [State.NOT_PUBLISHED] * count
        """What is shown now."""
        self._changes: list[list[tuple[int, State]]] = [[(0, State.NOT_PUBLISHED)] for _ in range(count)]

    def add(self, number: int, first: int, state: State) -> None:
        if self.states[number] is not state:
            self.states[number] = state
            self._changes[number].append((first, state))

    def histories(self) -> list[list[Stretch]]:
        return [
            [
                _stretch((first, until, state))
                for (first, state), (until, _) in zip(changes, [*changes[1:], _NEVER], strict=True)
            ]
            for changes in self._changes
        ]


_stretch = Stretch._make
_NEVER = (FOREVER, State.NOT_PUBLISHED)


def current_values(
    years: list[FullYear], slugs: Container[str]
) -> Iterator[tuple[FullYear, Metric, Decimal, Inputs]]:
    """What is computable of every full year from its figures as they stand today, whatever a day showed."""
    wanted = [(number, metric) for number, metric in enumerate(metrics()) if metric.slug in slugs]
    for year in years:
        tables = _tables(year, year_before(years, year) or year.opening)
        with localcontext(EXACT):
            values = [(metric, _value(number, tables)) for number, metric in wanted]
        for metric, computed in values:
            if computed is not None:
                value, _, names, figures = computed
                if value is not None:
                    yield year, metric, value, tuple(zip(names, figures, strict=True))


def _tables(year: FullYear, before: FullYear | None) -> list[_Table]:
    """Per currency, the best covered first."""
    tables = []
    for money, own in year.figures.items():
        lines = year.lines[money]
        figures = own | _paired(year, before, money)
        values = {name: figure.value for name, figure in figures.items()}
        stands_from = {name: figure.stands_from for name, figure in figures.items()}
        withdrawn = {item: day for item, day in lines.withdrawn() if item not in own}
        tables.append(_Table(figures, values, stands_from, withdrawn, _chosen(frozenset(figures))))
    return tables


_BOTH = "="
"""Before a line item that a formula asks for together with that of the year before: both by one route."""


def _paired(year: FullYear, before: FullYear | None, money: str) -> dict[str, Figure]:
    """The figures of two years that a formula compares."""
    pairs: dict[str, Figure] = {}
    if before is not None:
        for item in _asked_back():
            if pair := both_years(year, before, money, item):
                pairs[_BOTH + item], pairs[PRIOR + item] = pair
    return pairs


@cache
def _asked_back() -> tuple[str, ...]:
    names = {name for metric in metrics() for form in metric.forms for name in form.inputs}
    return tuple(name.removeprefix(PRIOR) for name in sorted(names) if name.startswith(PRIOR))


def _looked_up(form: Form) -> tuple[str, ...]:
    """The names under which a table has the inputs of a form."""
    return tuple(_BOTH + name if PRIOR + name in form.needs else name for name in form.inputs)


@cache
def _lookups() -> tuple[tuple[Metric, tuple[tuple[str, ...], ...]], ...]:
    """Every metric with the names that each of its forms looks up."""
    return tuple((metric, tuple(map(_looked_up, metric.forms))) for metric in metrics())


@lru_cache(maxsize=4096)
def _chosen(names: frozenset[str]) -> tuple[_Chosen | None, ...]:
    """By number of the metric, the first of its forms whose inputs are all there; most years are alike."""
    chosen: list[_Chosen | None] = []
    for metric, lookups in _lookups():
        passed_over: tuple[str, ...] = ()
        for form, looked_up in zip(metric.forms, lookups, strict=True):
            if names.issuperset(looked_up):
                chosen.append(_Chosen(form, _taker(looked_up), passed_over))
                break
            passed_over += form.inputs
        else:
            chosen.append(None)
    return tuple(chosen)


def _taker(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda table: tuple(table[name] for name in names)


def _may_be_mixed(year: FullYear, before: FullYear | None) -> bool:
    """Whether inputs can be in several currencies; nearly every issuer has one."""
    return len(year.figures) > 1 or (before is not None and before.lines.keys() != year.lines.keys())


def _reported(year: FullYear, before: FullYear | None) -> set[str]:
    """Every input that there is in any currency; of two years, where one currency does not have both."""
    names = {name for figures in year.figures.values() for name in figures}
    if before is None:
        return names
    for item in _asked_back():
        now = {money for money, figures in year.figures.items() if item in figures}
        then = {money for money, lines in before.lines.items() if lines.figure(item)}
        if (
            now
            and then
            and (now.isdisjoint(then) or any(both_years(year, before, money, item) for money in now & then))
        ):
            names |= {_BOTH + item, PRIOR + item}
    return names


def _value(number: int, tables: list[_Table]) -> _Computed | None:
    """In the first currency, and there by the first form, that has every input."""
    for figures, values, stands_from, withdrawn, choices in tables:
        chosen = choices[number]
        if chosen is None:
            continue
        form, take, passed_over = chosen
        ratio = form.formula(*take(values))
        value = quotient(ratio.numerator, ratio.denominator) if ratio.denominator > _ZERO else None
        settled = max(take(stands_from))
        if withdrawn and passed_over:
            settled = max(settled, *[withdrawn.get(name, 0) for name in passed_over])
        return value, settled, form.inputs, take(figures)
    return None
