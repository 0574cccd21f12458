"""Every value of one issuer, and what each day shows of each metric."""

from collections.abc import Container, Iterable, Iterator
from decimal import Decimal, localcontext
from typing import NamedTuple

from sankofa.derive.metrics.contract import EXACT, PRIOR, Metric, metrics
from sankofa.derive.metrics.full_years import Figure, FullYear, year_before
from sankofa.derive.metrics.standing import State, Stretch, standing, windows
from sankofa.model.days import FOREVER

Inputs = tuple[tuple[str, Figure], ...]


class Value(NamedTuple):
    """A value that stands on the days [first, until), and the inputs it is computed from."""

    metric: Metric
    value: Decimal
    end: int
    first: int
    until: int
    inputs: Inputs


class Derived(NamedTuple):
    """Of one issuer: its values by metric and year; per metric, what every day from 0 on shows."""

    values: list[Value]
    histories: list[list[Stretch]]


_Tables = list[tuple[dict[str, Figure], dict[str, int]]]


def derive(years: list[FullYear]) -> Derived:
    """The values of an issuer from its full years, oldest first."""
    asked = windows((year.end, year.published) for year in years)
    histories: list[list[Stretch]] = [[] for _ in metrics()]
    if not asked:
        return Derived([], histories)
    values: list[list[Value]] = [[] for _ in metrics()]
    opening = Stretch(0, min(first for first, _ in asked.values()), State.NOT_PUBLISHED)
    for history in histories:
        history.append(opening)
    numbered = tuple(enumerate(metrics()))
    with localcontext(EXACT):
        for year in years:
            window = asked.get(year.end)
            if window is None:
                continue
            before = year_before(years, year)
            tables = _tables(year, before)
            reported = _reported(year, before)
            for number, metric in numbered:
                found = _value(metric, tables, window)
                if isinstance(found, State):
                    if found is State.INPUT_ABSENT and any(f.needs <= reported for f in metric.forms):
                        found = State.CURRENCY_MIXED
                    _extend(histories[number], (Stretch(*window, found),))
                    continue
                stretches, value, inputs = found
                _extend(histories[number], stretches)
                first, until, state = stretches[-1]
                if state is State.STANDS:
                    values[number].append(Value(metric, value, year.end, first, until, inputs))
    return Derived([value for of_metric in values for value in of_metric], histories)


def current_values(
    years: list[FullYear], slugs: Container[str]
) -> Iterator[tuple[FullYear, Metric, Decimal, Inputs]]:
    """What is computable of every full year from its figures as they stand today, whatever a day showed."""
    wanted = [metric for metric in metrics() if metric.slug in slugs]
    for year in years:
        tables = _tables(year, year_before(years, year))
        with localcontext(EXACT):
            found = [(metric, _value(metric, tables, (0, FOREVER))) for metric in wanted]
        for metric, computed in found:
            if not isinstance(computed, State):
                yield year, metric, *computed[1:]


def _tables(year: FullYear, before: FullYear | None) -> _Tables:
    """Per currency, the best covered first: every figure by the name a formula knows it by."""
    tables: _Tables = []
    for money, figures in year.figures.items():
        table, withdrawn = dict(figures), dict(year.withdrawn[money])
        if before is not None:
            table.update((PRIOR + name, f) for name, f in before.figures.get(money, {}).items())
            withdrawn.update((PRIOR + name, d) for name, d in before.withdrawn.get(money, {}).items())
        tables.append((table, withdrawn))
    return tables


def _reported(year: FullYear, before: FullYear | None) -> set[str]:
    """Every input that there is in any currency."""
    names = {name for figures in year.figures.values() for name in figures}
    if before is not None:
        names.update(PRIOR + name for figures in before.figures.values() for name in figures)
    return names


def _value(
    metric: Metric, tables: _Tables, window: tuple[int, int]
) -> tuple[list[Stretch], Decimal, Inputs] | State:
    """In the first currency, and there by the first form, that has every input."""
    for table, withdrawn in tables:
        settled = 0
        for form in metric.forms:
            if not form.needs <= table.keys():
                settled = max((settled, *(withdrawn.get(name, 0) for name in form.inputs)))
                continue
            figures = [table[name] for name in form.inputs]
            value = form.formula(*[f.value for f in figures]).rounded()
            if value is None:
                return State.DENOMINATOR_NOT_POSITIVE
            settled = max([settled, *[f.stands_from for f in figures]])
            completed = settled if settled <= window[0] else max([f.first_known for f in figures])
            return standing(window, completed, settled), value, tuple(zip(form.inputs, figures, strict=True))
    return State.INPUT_ABSENT


def _extend(history: list[Stretch], stretches: Iterable[Stretch]) -> None:
    """Append, joining neighbours that show the same."""
    for stretch in stretches:
        last = history[-1]
        if last.state is stretch.state and last.until == stretch.first:
            history[-1] = Stretch(last.first, stretch.until, last.state)
        else:
            history.append(stretch)
