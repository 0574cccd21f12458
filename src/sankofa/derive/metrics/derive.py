"""Every value of one issuer, and the value of each metric on each day.

A metric on a day is computed only from filings public by that day (`period_views`). The rules for `as_of D`
(contract: MET-1, MET-2, MET-8) then compare two such days:

1. For each issuer, the latest full year published by D counts.
2. Its value is served if D and today compute the same in D's standard and currency: the same figures, in the
   same vintages, by the same routes.
3. If D had another value, a figure was revised later. If D had none and today has one, the year was completed
   later. Either way the value is left out, not replaced.
4. If neither has a value, D shows its own reason.

With `basis=as_known` D shows its own value, without comparing it with today's (contract: MET-13).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cache
from typing import NamedTuple, TypeVar

import msgspec

from sankofa.derive.metrics.contract import BOTH, EXACT, PRIOR, Metric, metrics, slugs
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList, YearOnDay, by_one_route
from sankofa.derive.metrics.lines import Fact, Figure, odd_measures, same_figures
from sankofa.derive.metrics.period_views import deciding_concepts
from sankofa.derive.metrics.routes import metric_inputs
from sankofa.model.days import FOREVER
from sankofa.model.rows import State

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value as known on the days [first, until), and its inputs by name."""

    metric: Metric
    value: Decimal
    end: int
    first: int
    until: int
    names: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    current: bool = True
    """Whether today's value is the same, so that `basis=current` serves it too."""


class LaterChange(NamedTuple):
    """A figure that a later filing restated or added, so that a value is left out."""

    concept: str
    end: int
    """The last day of its period."""
    day: int
    """The day on which the later filing became public."""


class Stretch(NamedTuple):
    """A span of days [first, until) with the same values."""

    first: int
    until: int
    state: State
    changes: tuple[LaterChange, ...] = ()


class Derived(NamedTuple):
    """The values of one issuer by metric and year; per metric, its state on every day from 0 on."""

    values: list[Value]
    histories: list[list[Stretch]]
    """For `basis=current`."""
    known: list[list[Stretch]]
    """For `basis=as_known`."""
    identity_conflicts: int = 0
    """Number of skipped routes in the years behind the metrics."""
    odd_years: Mapping[str, int] = {}
    """How many of these years count for each measure of `lines.MEASURES`."""


class Computed(NamedTuple):
    """A metric as computed from the figures known on a day."""

    state: State
    value: Decimal | None = None
    names: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()

    def same_as(self, other: "Computed") -> bool:
        return (
            self.state is other.state
            and self.names == other.names
            and same_figures(self.figures, other.figures)
        )


_MOST_CHANGES = 5


def derive(years: IssuerYearList) -> Derived:
    year_windows = windows(years)
    if not year_windows:
        return Derived([], [[] for _ in metrics()], [[] for _ in metrics()])
    histories: list[list[Stretch]] = [
        [Stretch(0, year_windows[0][1], State.NOT_PUBLISHED)] for _ in metrics()
    ]
    # On a day, nobody knows that an issuer will publish a full year later.
    known: list[list[Stretch]] = [[] for _ in metrics()]
    values: list[list[Value]] = [[] for _ in metrics()]
    conflicts, odd = 0, Counter[str]()
    with localcontext(EXACT):
        for year, first, until in year_windows:
            table = _Table(years, year)
            if today := years.on(year):
                conflicts += today.lines.all_conflicts()
                odd.update(odd_measures(today.lines))
            days = [first, *(day for day in years.days(year) if first < day < until)]
            for day, after in zip(days, [*days[1:], until], strict=True):
                for number, (metric, now, then) in enumerate(
                    zip(metrics(), *table.now_and_then(day), strict=True)
                ):
                    state, changes = table.state_on(number, day, now, then)
                    _add(histories[number], Stretch(day, after, state, changes))
                    _add(known[number], Stretch(day, after, then.state))
                    if then.value is not None:
                        new = Value(
                            metric, then.value, year.end, day, after, then.names, then.figures,
                            current=state is State.STANDS,
                        )  # fmt: skip
                        _add_value(values[number], new)
    every = [value for of_metric in values for value in of_metric]
    return Derived(every, histories, known, conflicts, odd)


def windows(years: IssuerYearList) -> list[tuple[FullYear, int, int]]:
    """The days [first, until) on which each full year is the latest one published, the oldest first.

    A year published after a later year is never the latest.
    """
    spans = []
    until = FOREVER
    for year in sorted(years.published, key=lambda one: (one.end, one.published), reverse=True):
        if year.published < until:
            spans.append((year, year.published, until))
            until = year.published
    return spans[::-1]


def _add(history: list[Stretch], new: Stretch) -> None:
    if history and history[-1][2:] == new[2:]:
        history[-1] = history[-1]._replace(until=new.until)
    else:
        history.append(new)


def _add_value(values: list[Value], new: Value) -> None:
    last = values[-1] if values else None
    if (
        last is not None
        and (last.end, last.until, last.current, last.names) == (new.end, new.first, new.current, new.names)
        and same_figures(last.figures, new.figures)
    ):
        values[-1] = msgspec.structs.replace(last, until=new.until)
    else:
        values.append(new)


def computed(years: IssuerYearList, year: FullYear, slug: str, day: int) -> Computed:
    """A metric of a full year, as known on a day."""
    with localcontext(EXACT):
        return _metrics_of(years.on(year, day))[slugs().index(slug)]


def stretches(
    days: Sequence[int], known_on: Callable[[int], T], same: Callable[[T, T], bool]
) -> Iterator[tuple[int, int, T]]:
    """Joins possible days of change into spans [first, until) in which the same was known."""
    first, known = 0, None
    for day in days:
        now = known_on(day)
        if known is None or not same(known, now):
            if known is not None:
                yield first, day, known
            first, known = day, now
    if known is not None:
        yield first, FOREVER, known


class _Table:
    """The metrics of a full year as computed on each day, and today."""

    def __init__(self, years: IssuerYearList, year: FullYear) -> None:
        self._years = years
        self._year = year
        self._changes: dict[int, list[tuple[bool, LaterChange]]] = {}

    def now_and_then(self, day: int) -> tuple[tuple[Computed, ...], tuple[Computed, ...]]:
        """Every metric as computed today and on a day, both in that day's standard and currency."""
        known = self._years.on(self._year, day)
        now = self._years.on(self._year, FOREVER, known.basis if known else None)
        return _metrics_of(now), _metrics_of(known)

    def state_on(
        self, number: int, day: int, now: Computed, then: Computed
    ) -> tuple[State, tuple[LaterChange, ...]]:
        """The state of a metric on a day, and the later changes that leave its value out.

        A restated input is named first, then an added one, then a figure that only decides between routes.
        Nothing is named if a later filing merely reports known figures together.
        """
        if now is then or then.same_as(now) or (now.value is None and then.value is None):
            return then.state, ()
        used = {
            (figure.end, part.concept) for c in (now, then) for figure in c.figures for part in figure.parts
        }
        deciding = _deciding(number)
        changes = sorted(
            ((change.end, change.concept) not in used, is_added, change)
            for is_added, change in self._changes_after(day)
            if change.concept in deciding
        )
        only_decides, is_added, _ = changes[0] if changes else (True, True, None)
        named = [change for *kind, change in changes if kind == [only_decides, is_added]]
        state = State.COMPLETED_AFTER_AS_OF if is_added else State.REVISED_AFTER_AS_OF
        return state, tuple(named[:_MOST_CHANGES])

    def _changes_after(self, day: int) -> list[tuple[bool, LaterChange]]:
        """Every figure that differs from today's, and whether it was added later."""
        if day not in self._changes:
            known, today = self._facts(day), self._facts(FOREVER)
            self._changes[day] = [
                (key not in known, LaterChange(key[1], key[0], fact.report.available))
                for key, fact in today.items()
                if known.get(key) is not fact
            ]
            for end, concept, *_ in known.keys() - today.keys():  # withdrawn by its publisher
                self._changes[day].append((False, LaterChange(concept, end, 0)))
        return self._changes[day]

    def _facts(self, day: int) -> dict[tuple[int, str, str, str], Fact]:
        """The year and the one before it as known on a day, by the end of each."""
        known = self._years.on(self._year, day)
        views = [view for view in (known.year, known.before) if view] if known else []
        return {(view.end, *key): fact for view in views for key, fact in view.facts.items()}


_NOTHING_KNOWN = tuple(Computed(State.INPUT_ABSENT) for _ in metrics())


def _metrics_of(view: YearOnDay | None) -> tuple[Computed, ...]:
    """Every metric of a view, by number, computed once for all that ask."""
    if view is None:
        return _NOTHING_KNOWN
    if view.metrics is None:
        view.metrics = _computed(view)
    known: tuple[Computed, ...] = view.metrics
    return known


def _computed(view: YearOnDay) -> tuple[Computed, ...]:
    figures = {item: figure for item in metric_inputs() if (figure := view.lines.figure(item))}
    if view.before is not None:
        for item in _prior_inputs():
            if pair := view.both(item):
                figures[BOTH + item], figures[PRIOR + item] = pair
    elsewhere: set[str] | None = None
    every = []
    for metric in metrics():
        form = next((one for one in metric.forms if all(key in figures for key in one.keys)), None)
        if form is None:
            if elsewhere is None:
                elsewhere = _in_any_currency(view)
            mixed = any(elsewhere.issuperset(one.keys) for one in metric.forms)
            every.append(Computed(State.CURRENCY_MIXED if mixed else State.INPUT_ABSENT))
            continue
        inputs = tuple(figures[key] for key in form.keys)
        value = form.value([figure.value for figure in inputs])
        state = State.DENOMINATOR_NOT_POSITIVE if value is None else State.STANDS
        every.append(Computed(state, value, form.inputs, inputs))
    return tuple(every)


def _in_any_currency(view: YearOnDay) -> set[str]:
    """The names of figures in any single currency, if there are several currencies; otherwise none."""
    bases = view.year.bases() | (view.before.bases() if view.before else set())
    if len({basis.money for basis in bases}) < 2:
        return set()
    every = [(view.year.lines(b), view.before.lines(b) if view.before else None) for b in bases]
    names = {item for item in metric_inputs() if any(now.figure(item) for now, _ in every)}
    for item in _prior_inputs():
        if any(then and then.figure(item) for _, then in every) and item in names:
            same = [pair for now, then in every if then and (pair := by_one_route(now, then, item))]
            apart = not any(now.figure(item) and then and then.figure(item) for now, then in every)
            if same or apart:
                names |= {BOTH + item, PRIOR + item}
    return names


@cache
def _deciding(number: int) -> frozenset[str]:
    """Every concept that can affect a metric."""
    names = {name.removeprefix(PRIOR) for form in metrics()[number].forms for name in form.inputs}
    return frozenset().union(*map(deciding_concepts, names))


@cache
def _prior_inputs() -> tuple[str, ...]:
    names = {name for metric in metrics() for form in metric.forms for name in form.inputs}
    return tuple(name.removeprefix(PRIOR) for name in sorted(names) if name.startswith(PRIOR))
