"""The pairs of parties that red flag indicators compare (`guide_pairs`), with their values day by day.

A pair's value changes only with its own awards and bids. A share of a buyer's awards changes with every award
of the buyer, but all shares of one buyer have the same whole: so amounts are compared, and the whole of the
day turns them into shares.
"""

from array import array
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import combinations, groupby
from operator import itemgetter
from typing import Final

from sankofa.edition.format.flag_steps import encode
from sankofa.edition.write.flag_values import DayValues, GroupValues
from sankofa.model.days import FOREVER
from sankofa.model.ocds.flag_facts import Examined
from sankofa.model.ocds.guide_pairs import (
    FEWEST_SUPPLIERS,
    FEWEST_TOGETHER,
    PairStep,
    Purchase,
    Rivals,
    differences,
    pair_key,
    units,
)

Named = tuple[tuple[str, ...], str, list[PairStep]]
"""The supplier or the two tenderers, `pair_key`, and the values of the pair."""
_Change = tuple[int, int, Purchase]
"""Day, 1 or -1, award."""
_Value = tuple[float, bytes] | None
"""A value and its inputs as MessagePack; None if it cannot be computed."""
_SHIFT: Final = 32


class _Meetings:
    """Processes in which two tenderers bid: numbers of the two, day, 1 or -1, and a value."""

    def __init__(self) -> None:
        self._pairs, self._days = array("q"), array("i")
        self._signs, self._values = array("b"), array("d")

    def add(self, pair: int, day: int, sign: int, value: float) -> None:
        self._pairs.append(pair)
        self._days.append(day)
        self._signs.append(sign)
        self._values.append(value)

    def of_pairs(self, fewest: int) -> Iterator[tuple[int, list[tuple[int, int, float]]]]:
        """The changes of each pair that meets often enough, by day."""
        order = sorted(range(len(self._pairs)), key=self._pairs.__getitem__)
        for pair, numbers in groupby(order, self._pairs.__getitem__):
            own = [(self._days[n], self._signs[n], self._values[n]) for n in numbers]
            if len(own) >= fewest:
                yield pair, sorted(own, key=itemgetter(0))


class PairSweep:
    """Takes the changes of processes in any order."""

    def __init__(self) -> None:
        self._awards: list[_Change] = []
        self._prices, self._wins = _Meetings(), _Meetings()
        self._numbers: dict[str, int] = {}
        """The number of each tenderer."""
        self.crowded: Counter[int] = Counter()
        """By day, the change in the number of processes with too many tenderers."""

    def change(self, day: int, before: Examined, now: Examined) -> None:
        """Record what a process changes on a day."""
        if now.purchases != before.purchases:
            old, new = Counter(before.purchases), Counter(now.purchases)
            self._awards += [(day, -1, one) for one in (old - new).elements()]
            self._awards += [(day, 1, one) for one in (new - old).elements()]
        if now.rivals != before.rivals:
            for sign, rivals in ((-1, before.rivals), (1, now.rivals)):
                if rivals is None:
                    self.crowded[day] += sign
                elif rivals.prices:
                    self._meet(day, sign, rivals)

    def _meet(self, day: int, sign: int, rivals: Rivals) -> None:
        number = {one: self._numbers.setdefault(one, len(self._numbers)) for one in rivals.prices}
        for one, other, percent in differences(rivals):
            self._prices.add(number[one] << _SHIFT | number[other], day, sign, percent)
        if rivals.winner:
            for one, other in combinations(number, 2):
                winner = (one, other).index(rivals.winner) + 1 if rivals.winner in (one, other) else 0
                self._wins.add(number[one] << _SHIFT | number[other], day, sign, winner)

    def values(self) -> Iterator[tuple[str, str, list[Named], GroupValues]]:
        """By indicator and group: the values of its pairs, and their quartiles."""
        for indicator, key in (("R040", itemgetter(0, 2)), ("R050", itemgetter(3, 2))):
            for (other, currency), changes in _grouped(self._awards, key):
                listed, values = _shares(indicator, other, currency, changes) if other else ([], None)
                if values:
                    yield indicator, f"{other}|{currency}", listed, values
        for indicator, named in (
            ("R023", self._rivals("R023", self._prices, 2, _Prices)),
            ("R052", _growing(self._awards)),
            ("R053", self._rivals("R053", self._wins, FEWEST_TOGETHER, _Wins)),
        ):
            if listed := list(named):
                yield indicator, "", listed, GroupValues.of(_day_values(listed))

    def _rivals(
        self, indicator: str, meetings: _Meetings, fewest: int, counting: "type[_Prices | _Wins]"
    ) -> Iterator[Named]:
        names = list(self._numbers)
        for pair, changes in meetings.of_pairs(fewest):
            both = names[pair >> _SHIFT], names[pair & (1 << _SHIFT) - 1]
            counts = counting()
            values: list[tuple[int, _Value]] = []
            for day, of_day in groupby(changes, itemgetter(0)):
                for _, sign, one in of_day:
                    counts.add(sign, one)
                values.append((day, counts.value(both) if counts.processes >= fewest else None))
            if steps := _steps(values, ""):
                yield both, pair_key(indicator, both[1]), steps


class _Prices:
    """The processes of two tenderers, by the difference of their prices."""

    def __init__(self) -> None:
        self.processes = 0
        self._counts: Counter[float] = Counter()
        self._most: list[tuple[int, float]] = []
        """A heap of negative counts and differences; entries that no longer hold are dropped at its top."""

    def add(self, sign: int, percent: float) -> None:
        self.processes += sign
        self._counts[percent] += sign
        heappush(self._most, (-self._counts[percent], percent))

    def value(self, both: tuple[str, str]) -> _Value:
        while -self._most[0][0] != self._counts[self._most[0][1]]:
            heappop(self._most)
        most, percent = -self._most[0][0], self._most[0][1]
        inputs = {"tenderers": both, "difference_percent": percent, "same_difference": most}
        return most, encode(inputs | {"processes": self.processes})


class _Wins:
    """The processes of two tenderers, by the winner: the first, the second or neither."""

    def __init__(self) -> None:
        self.processes = 0
        self._won = [0, 0, 0]

    def add(self, sign: int, winner: float) -> None:
        self.processes += sign
        self._won[int(winner)] += sign

    def value(self, both: tuple[str, str]) -> _Value:
        won = max(self._won[1:])
        winner = both[self._won[1] < won] if won else None
        inputs = {"tenderers": both, "winner": winner, "won": won, "processes": self.processes}
        return won / self.processes, encode(inputs)


def _grouped(
    changes: Iterable[_Change], key: Callable[[Purchase], tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], list[_Change]]]:
    groups: defaultdict[tuple[str, ...], list[_Change]] = defaultdict(list)
    for change in changes:
        groups[key(change[2])].append(change)
    for name in sorted(groups):
        yield name, sorted(groups.pop(name), key=itemgetter(0))


def _shares(
    indicator: str, other: str, currency: str, changes: list[_Change]
) -> tuple[list[Named], GroupValues | None]:
    """What each supplier was awarded by a buyer or in a category."""
    name = "buyer" if indicator == "R040" else "category"
    totals: dict[int, float] = {}
    total = 0
    for day, sign, one in changes:
        total += sign * one.amount
        totals[day] = units(total)
    listed: list[Named] = []
    inputs = encode({name: other, "currency": currency})
    key, group = pair_key(indicator, other, currency), f"{other}|{currency}"
    for (supplier,), own in _grouped(changes, lambda one: (one.supplier,)):
        if supplier:
            amounts: dict[int, int] = {}
            amount = 0
            for day, sign, one in own:
                amount += sign * one.amount
                amounts[day] = amount
            values = [(day, (units(one), inputs) if one else None) for day, one in amounts.items()]
            listed.append(((supplier,), key, _steps(values, group)))
    return listed, GroupValues.of(_day_values(listed), FEWEST_SUPPLIERS, totals) if listed else None


def _growing(changes: Iterable[_Change]) -> Iterator[Named]:
    """The mean of a supplier's later awards by a buyer, divided by its awards of the first day."""
    dated = (change for change in changes if change[2].day and change[2].buyer and change[2].supplier)
    for (buyer, supplier, currency), own in _grouped(dated, itemgetter(0, 1, 2)):
        days: list[int] = []
        counts: Counter[int] = Counter()
        sums: Counter[int] = Counter()
        count = total = 0
        values: list[tuple[int, _Value]] = []
        for changed, of_day in groupby(own, itemgetter(0)):
            for _, sign, (*_, day, amount) in of_day:
                if not counts[day]:
                    insort(days, day)
                counts[day] += sign
                sums[day] += sign * amount
                count, total = count + sign, total + sign * amount
                if not counts[day]:
                    days.remove(day)
            value = None
            if len(days) > 1:
                first, later = sums[days[0]], count - counts[days[0]]
                inputs = {
                    "buyer": buyer,
                    "currency": currency,
                    "first_purchase": units(first),
                    "later_purchases": later,
                    "mean_later_purchase": units((total - first) / later),
                }
                value = (total - first) / (later * first), encode(inputs)
            values.append((changed, value))
        if steps := _steps(values, ""):
            yield (supplier,), pair_key("R052", buyer, currency), steps


def _steps(values: list[tuple[int, _Value]], group: str) -> list[PairStep]:
    """The values of consecutive days as steps; days with the value of the day before start none."""
    steps: list[PairStep] = []
    untils = [*(day for day, _ in values[1:]), FOREVER]
    for (first, value), until in zip(values, untils, strict=True):
        if value is None:
            continue
        if steps and steps[-1].until == first and (steps[-1].value, steps[-1].inputs) == value:
            steps[-1].until = until
        else:
            steps.append(PairStep(first, until, value[0], group, value[1]))
    return steps


def _day_values(listed: Iterable[Named]) -> DayValues:
    values = DayValues()
    for *_, steps in listed:
        for one in steps:
            values.add(one.first, one.until, one.value)
    return values
