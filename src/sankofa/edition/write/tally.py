"""How much an edition has of each source, by dataset and country."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sankofa.model.days import FOREVER

NEVER: Final = 0
"""In the place of a day: there is none."""


class TallyKey(NamedTuple):
    """What is counted together."""

    sku: str
    country: str
    """Alpha-2; empty where of none."""
    source_id: str
    unit: str
    """One of `UNITS_OF_COUNT`."""


class Counted:
    """What was counted: things, the rows they have, their first and last day, and when any was published."""

    __slots__ = ("count", "first", "last", "published", "rows")

    def __init__(self) -> None:
        self.count = 0
        self.rows = 0
        self.first = FOREVER
        self.last = NEVER
        self.published = NEVER
        """The newest evidenced day of publication."""

    def add(self, count: int, rows: int, first: int, last: int, published: int) -> None:
        self.count += count
        self.rows += rows
        self.first = min(self.first, first)
        self.last = max(self.last, last)
        self.published = max(self.published, published)

    def merge(self, other: "Counted") -> None:
        self.add(other.count, other.rows, other.first, other.last, other.published)


class CoverageTally:
    """Counts by key."""

    def __init__(self) -> None:
        self._counted: defaultdict[TallyKey, Counted] = defaultdict(Counted)

    def __getitem__(self, key: TallyKey) -> Counted:
        return self._counted[key]

    def items(self) -> Iterator[tuple[TallyKey, Counted]]:
        """In the order in which coverage is served."""
        return ((key, self._counted[key]) for key in sorted(self._counted))

    def as_rows(self) -> list[tuple[str, str, str, str, int, int, int, int, int]]:
        """To be written down."""
        return [(*key, one.count, one.rows, one.first, one.last, one.published) for key, one in self.items()]

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, str, str, int, int, int, int, int]]) -> "CoverageTally":
        tally = cls()
        for sku, country, source_id, unit, *counts in rows:
            tally[TallyKey(sku, country, source_id, unit)].add(*counts)
        return tally

    def update(self, other: "CoverageTally") -> None:
        for key, counted in other.items():
            self._counted[key].merge(counted)
