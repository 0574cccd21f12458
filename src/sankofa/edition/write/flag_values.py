"""Values compared by red flag indicators, day by day: their quartiles, and the subjects beyond these.

The values of each indicator come and go on known days, and their quartiles are read after each such day.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate
from math import inf, nextafter
from typing import Final, NamedTuple, overload

from msgspec.structs import replace

from sankofa.derive.signals.tenders import quarter, quarter_number
from sankofa.edition.format.flag_steps import BY_PARTY, NO_PARTY, FlagRecord, PartyRecord, PartyStep
from sankofa.model.days import FOREVER
from sankofa.model.ocds.guide_outliers import Bound
from sankofa.model.ocds.process_facts import MOST_LISTED, PROCESS, TENDERER
from sankofa.model.ocds.red_flags import FEWEST_BIDS, TOP, Fences, FlagCounts, Thresholds, quantile, share_key

_PER_BUCKET: Final = 256
Triples = list[int]
"""Triples of a day and two numbers that hold from that day on."""
ClassSteps = list[tuple[int, int, int, list[str]]]
"""A day, processes with an award, the number of classifications, and the first of these."""
FlagKey = tuple[str, str, str]
"""Indicator, type of subject, subject."""


class DayValues:
    """The values of an indicator's subjects, each on the days [first, until)."""

    def __init__(self) -> None:
        self.firsts, self.untils, self.values = array("i"), array("i"), array("d")

    def add(self, first: int, until: int, value: float) -> None:
        self.firsts.append(first)
        self.untils.append(until)
        self.values.append(value)


class _Ordered(Sequence[float]):
    """The values of consecutive days, in order."""

    def __init__(self, steps: DayValues) -> None:
        self._values: list[float] = sorted(set(steps.values))
        ranks = {value: rank for rank, value in enumerate(self._values)}
        self._counts = [0] * len(ranks)
        self._buckets = [0] * (len(ranks) // _PER_BUCKET + 1)
        self._count = 0
        self._changes: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        """By day, the ranks of added values; a removed value is one below its negative rank."""
        for first, until, value in zip(steps.firsts, steps.untils, steps.values, strict=True):
            self._changes[first].append(ranks[value])
            self._changes[until].append(-1 - ranks[value])

    def advance(self, day: int) -> bool:
        """Advance to a day; returns whether anything changed."""
        changes = self._changes.pop(day, None)
        for change in changes or ():
            rank, number = (change, 1) if change >= 0 else (-1 - change, -1)
            self._counts[rank] += number
            self._buckets[rank // _PER_BUCKET] += number
            self._count += number
        return changes is not None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> float: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[float]: ...
    def __getitem__(self, number: int | slice) -> float | Sequence[float]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        number %= self._count
        sums = list(accumulate(self._buckets))
        bucket = bisect_right(sums, number)
        start = bucket * _PER_BUCKET
        rest = number - (sums[bucket - 1] if bucket else 0)
        within = list(accumulate(self._counts[start : start + _PER_BUCKET]))
        return self._values[start + bisect_right(within, rest)]


class _Quartiles:
    """The fences of a population on consecutive days."""

    def __init__(self, steps: DayValues) -> None:
        self.ordered = _Ordered(steps)
        self.fences: Fences | None = None

    def advance(self, day: int) -> None:
        if self.ordered.advance(day):
            self.fences = Fences.of(self.ordered)


class Least:
    """The least of a number for each day, over any days. Prepared for the spans that are asked for."""

    def __init__(self, days: Sequence[int], numbers: list[float]) -> None:
        self._days = days
        self._rows = [numbers]

    def __call__(self, first: int, until: int) -> float:
        start, end = bisect_left(self._days, first), bisect_left(self._days, until)
        level = (end - start).bit_length() - 1
        while level >= len(self._rows):
            row, half = self._rows[-1], 1 << (len(self._rows) - 1)
            self._rows.append(list(map(min, row, row[half:])))
        return min(self._rows[level][start], self._rows[level][end - (1 << level)])


def added_up(changes: "array[int]") -> list[int]:
    """Triples of a day and two sums, from triples of a day and the changes in them."""
    by_day: dict[int, tuple[int, int]] = {}
    for day, one, other in zip(changes[::3], changes[1::3], changes[2::3], strict=True):
        before = by_day.get(day, (0, 0))
        by_day[day] = before[0] + one, before[1] + other
    steps: list[int] = []
    first = second = 0
    for day in sorted(by_day):
        one, other = by_day[day]
        if one or other:
            first, second = first + one, second + other
            steps += (day, first, second)
    return steps


def class_steps(changes: list[tuple[int, set[str], set[str]]]) -> ClassSteps:
    """From each day on, the number of processes and of their classifications, and the first of these."""
    steps: ClassSteps = []
    codes: Counter[str] = Counter()
    count = 0
    for day, old, new in sorted(changes, key=lambda change: change[0]):
        count += bool(new) - bool(old)
        codes.update(new)
        codes.subtract(old)
        known = sorted(code for code, number in codes.items() if number)
        if steps and steps[-1][0] == day:
            steps.pop()
        steps.append((day, count, len(known), known[:MOST_LISTED]))
    return steps


def _spans(triples: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """The days [first, until) of each triple, and its two numbers."""
    yield from zip(triples[::3], [*triples[3::3], FOREVER], triples[1::3], triples[2::3], strict=True)


class Compared(NamedTuple):
    """The compared values of parties on all days."""

    entered: dict[str, Triples]
    shares: dict[FlagKey, Triples]
    classes: dict[str, ClassSteps]

    def spans(self, fewest: int) -> Iterator[tuple[str, FlagKey, list[tuple[int, int, float]]]]:
        """By population and subject, the values with their days. `fewest`: processes that R048 needs."""
        for party, triples in self.entered.items():
            shares = [(a, b, won / count) for a, b, won, count in _spans(triples) if count]
            yield "R025", ("R025", TENDERER, party), shares
        for key, triples in self.shares.items():
            yield (
                share_key(*key[:2]),
                key,
                [(a, b, part / whole) for a, b, part, whole in _spans(triples) if whole >= FEWEST_BIDS],
            )
        for party, steps in self.classes.items():
            spans = _spans([number for one in steps for number in one[:3]])
            numbers = [
                (first, until, float(kinds)) for first, until, count, kinds in spans if count >= fewest
            ]
            yield "R048", ("R048", TENDERER, party), numbers


class DayLimits:
    """The thresholds on consecutive days."""

    def __init__(self, compared: Compared, prices: dict[str, DayValues], fewest: int) -> None:
        """`prices` has the ratios of R024 and R058 by currency."""
        values = {"R025": DayValues(), "R048": DayValues()}
        for population, _, spans in compared.spans(fewest):
            own = values.setdefault(population, DayValues())
            for span in spans:
                own.add(*span)
        numbers = DayValues()
        for steps in compared.entered.values():
            for first, until, _, number in _spans(steps):
                if number:
                    numbers.add(first, until, number)
        self._fewest = fewest
        self._numbers = _Ordered(numbers)
        self._parties = {key: _Quartiles(own) for key, own in sorted(values.items())}
        self._prices = {currency: _Quartiles(own) for currency, own in prices.items()}
        self._top = 0.0

    def on(self, day: int, population: int, currency: str | None, crowded: int) -> Thresholds:
        """The thresholds of the next day on which something changes."""
        for quartiles in (*self._parties.values(), *self._prices.values()):
            quartiles.advance(day)
        if self._numbers.advance(day):
            self._top = quantile(self._numbers, TOP) if self._numbers else 0.0
        prices = self._prices.get(currency or "")
        fences = {key: quartiles.fences for key, quartiles in self._parties.items()}
        shares, variety = fences.pop("R025"), fences.pop("R048")
        return Thresholds(
            population,
            currency,
            prices.fences if prices else None,
            shares,
            self._top,
            fences,
            variety,
            self._fewest,
            crowded,
        )

    def computed(self, currency: str | None) -> dict[str, int]:
        """The number of subjects that each of these indicators is computed for on the day."""
        prices = self._prices.get(currency or "")
        counts = dict.fromkeys(("R024", "R058"), len(prices.ordered) if prices else 0)
        counts |= dict.fromkeys(BY_PARTY, 0)
        for key, one in self._parties.items():
            counts[key.partition("|")[0]] += len(one.ordered)
        return counts


class GroupValues(NamedTuple):
    """The quartiles of a group on its days, and the least of a value that stands out on some of these."""

    rows: list[tuple[int, int, Fences | None]]
    """First day, until."""
    highs: Least
    lows: Least

    @classmethod
    def of(
        cls, values: DayValues, fewest: int = 1, totals: Mapping[int, float] | None = None
    ) -> "GroupValues":
        """`fewest`: values that quartiles need. `totals`: the whole of the values from each day on."""
        days = sorted({*values.firsts, *values.untils, *(totals or ())} - {FOREVER})
        quartiles = _Quartiles(values)
        rows: list[tuple[int, int, Fences | None]] = []
        total = 0.0
        for first, until in zip(days, [*days[1:], FOREVER], strict=True):
            quartiles.advance(first)
            total = totals.get(first, total) if totals else 0.0
            own = quartiles.fences
            known = own._replace(total=total) if own and own.size >= fewest else None
            rows.append((first, until, known))
        fences = [one for _, _, one in rows]
        highs = [max(one.upper, nextafter(one.q3, inf)) if one else inf for one in fences]
        lows = [max(-one.lower, nextafter(-one.q1, inf)) if one else inf for one in fences]
        return cls(rows, Least(days, highs), Least(days, lows))

    def may_stand_out(self, first: int, until: int, value: float, bound: Bound) -> bool:
        return (bound.high and value >= self.highs(first, until)) or (
            bound.low and -value >= self.lows(first, until)
        )

    def on(self, day: int) -> Fences | None:
        at = bisect_right(self.rows, day, key=lambda row: row[0])
        return self.rows[at - 1][2] if at else None


def standing_out(
    days: list[int], limits: list[Thresholds], compared: Compared, fewest: int
) -> dict[FlagKey, list[PartyStep]]:
    """Parties with the days between two changes of their numbers, if they stand out on some of them."""
    bounds: dict[str, Callable[[Thresholds], float]] = {
        "R025": lambda one: -f.lower if (f := one.shares) and f.q1 > 0 and f.lower > 0 else inf,
        "R048": lambda one: one.variety.upper if one.variety else inf,
    }
    leasts: dict[str, Least] = {}
    standing: dict[FlagKey, list[PartyStep]] = {}
    for population, key, spans in compared.spans(fewest):
        if population not in leasts:
            bound = bounds.get(population) or partial(_upper_share, population)
            leasts[population] = Least(days, list(map(bound, limits)))
        steps: list[PartyStep] = []
        for first, until, value in spans:
            if (-value if population == "R025" else value) >= leasts[population](first, until):
                joined = bool(steps) and steps[-1].until == first
                steps.append(PartyStep(steps.pop().first if joined else first, until))
        if steps:
            standing[key] = steps
    return standing


def _upper_share(population: str, limits: Thresholds) -> float:
    fences = limits.party_shares[population]
    return fences.upper if fences and fences.upper > 0 else inf


def newest(named: "array[int]", ranks: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """From each day on, the state and the name of the newest release that names a party."""
    begins = sorted(zip(named[::4], named[1::4], named[2::4], named[3::4], strict=True))
    at, last = 0, -1
    heap: list[tuple[int, int, int, int]] = []
    for day in sorted({*named[::4], *named[1::4]} - {FOREVER}):
        while at < len(begins) and begins[at][0] == day:
            _, until, state, name = begins[at]
            heappush(heap, (-ranks[state], until, state, name))
            at += 1
        while heap and heap[0][1] <= day:
            heappop(heap)
        if heap and heap[0][2] != last:
            last = heap[0][2]
            yield day, last, heap[0][3]


def quarters(
    days: list[int],
    limits: list[Thresholds],
    computed: list[dict[str, int]],
    records: list[tuple[int, int, FlagRecord]],
    parties: Mapping[str, PartyRecord],
    groups: Mapping[str, GroupValues],
) -> dict[int, FlagCounts]:
    """Counts on the last day of each quarter with a release."""
    closing = {
        quarter(quarter_number(date.fromordinal(day).isoformat())).last_day.toordinal() for day in days
    }
    counts: dict[int, FlagCounts] = {}
    limits_on: dict[int, Thresholds] = {}
    for day in sorted(closing):
        at = bisect_right(days, day) - 1
        counts[day] = FlagCounts(limits[at].population, computed[at], {})
        limits_on[day] = replace(limits[at], groups={})
    for first, until, record in records:
        known = record.all_steps()
        for day, count in counts.items():
            if not first <= day < until:
                continue
            own = limits_on[day]
            for group in record.groups_on(day, known):
                if group not in own.groups:
                    own.groups[group] = groups[group].on(day)
            steps = record.steps_on(day, own, known)
            if steps and (
                record.subject_type == PROCESS
                or record.flag(steps, day, own, parties.get(record.subject, NO_PARTY))
            ):
                by_type = count.flagged.setdefault(record.indicator, {})
                by_type[record.subject_type] = by_type.get(record.subject_type, 0) + 1
    return counts
