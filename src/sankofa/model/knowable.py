"""The one place that says what "knowable at as_of" means.

A figure was reported in a document that became public on a day. Reporting the same figure again
adds nothing; another figure is the next vintage. Each vintage is the latest in the half-open
interval [known_from, superseded). Once that interval is computed, every as_of question is one
range test, and look-ahead is impossible by construction.
"""

from collections.abc import Iterable, Iterator
from enum import IntFlag
from itertools import groupby
from typing import Generic, NamedTuple, Protocol, TypeVar

from sankofa.model.days import FOREVER


class Reported(Protocol):
    """What the rule needs to know of one reported figure."""

    @property
    def value(self) -> str | None: ...
    @property
    def available(self) -> int: ...
    @property
    def order(self) -> tuple[object, ...]: ...


R = TypeVar("R", bound=Reported)


class Mode(IntFlag):
    """The three questions a reader may ask of the vintages of a figure."""

    LATEST = 1
    AS_REPORTED = 2
    ALL = 4


# As plain numbers: millions of vintages are sorted into them.
_AS_REPORTED, _HISTORY, _IN_FORCE = int(Mode.AS_REPORTED), int(Mode.ALL), int(Mode.LATEST | Mode.ALL)


class Vintage(NamedTuple, Generic[R]):
    """One vintage of a figure: the report that first gave it, and who replaced it when."""

    number: int
    report: R
    known_from: int
    successor: R | None


class Sight(NamedTuple):
    """A stretch of days in which a vintage is seen by some modes, with its successor told or not."""

    first: int
    until: int
    modes: int
    tells_successor: bool


def vintages(reports: Iterable[R], period_end: int) -> list[Vintage[R]]:
    """The vintages of one fact, oldest first, whatever order its reports arrived in.

    A fact is not knowable before its period has ended, however early it was announced. A figure
    withdrawn before any was known (value None first) is no vintage at all.
    """
    ordered = list(reports)
    if len(ordered) == 1 and ordered[0].value is not None:  # as most of the values of a series are
        return [Vintage(1, ordered[0], max(ordered[0].available, period_end), None)]
    ordered.sort(key=lambda r: (r.available, r.order))
    firsts = [next(group) for _, group in groupby(ordered, key=lambda r: r.value)]
    if firsts and firsts[0].value is None:
        firsts = firsts[1:]
    return [
        Vintage(
            n + 1, report, max(report.available, period_end), firsts[n + 1] if n + 1 < len(firsts) else None
        )
        for n, report in enumerate(firsts)
    ]


def sights(vintage: Vintage[R]) -> Iterator[Sight]:
    """When, and by which modes, a vintage is seen.

    Before it is superseded nothing on it tells the future; from then on it is history: seen as
    reported and among all, with its successor named.
    """
    first_filed = _AS_REPORTED if vintage.number == 1 else 0
    until = FOREVER if vintage.successor is None else max(vintage.successor.available, vintage.known_from)
    if vintage.known_from < until:
        yield Sight(vintage.known_from, until, _IN_FORCE | first_filed, tells_successor=False)
    if until < FOREVER:
        yield Sight(until, FOREVER, _HISTORY | first_filed, tells_successor=True)
