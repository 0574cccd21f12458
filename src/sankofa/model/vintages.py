"""The one place that says what "knowable at as_of" means.

A figure was reported in a document that became public on a day. Reporting the same figure again
adds nothing; another figure is the next vintage. Each vintage is the latest in the half-open
interval [known_from, superseded). Once that interval is computed, every as_of question is one
range test, and look-ahead is impossible by construction.

See contract: PIT-1, PIT-4, VINT-1, VINT-2, VINT-3, VINT-4, VINT-5, VINT-6.
"""

from collections.abc import Iterator, Sequence
from enum import IntFlag
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from sankofa.model.days import FOREVER


class Reported(Protocol):
    """The fields of a reported figure that the vintage rule reads."""

    @property
    def value(self) -> str | None: ...
    @property
    def available(self) -> int: ...
    @property
    def order(self) -> tuple[object, ...]: ...


R = TypeVar("R", bound=Reported)


class Mode(IntFlag):
    """Which vintages of a figure a reader asks for."""

    LATEST = 1
    AS_REPORTED = 2
    ALL = 4


# As plain numbers: millions of vintages are sorted into them.
_AS_REPORTED, _HISTORY, _IN_FORCE = int(Mode.AS_REPORTED), int(Mode.ALL), int(Mode.LATEST | Mode.ALL)


class Vintage(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """One vintage of a figure: the report that first gave it, and the report that replaced it."""

    number: int
    report: R
    known_from: int
    successor: R | None


class Visibility(NamedTuple):
    """A range of days in which a vintage is visible to some modes, with its successor shown or hidden."""

    first: int
    until: int
    modes: int
    tells_successor: bool


def steps(reports: Sequence[R]) -> Sequence[R]:
    """The first report of a figure and each later one that changed it, by the day they became public.

    The order of arrival does not matter. A withdrawal (value None) before any figure was known is left out.
    """
    changes: list[R] = []
    current = None
    for report in in_order(reports):
        if report.value != current:
            current = report.value
            changes.append(report)
    return changes


def in_order(reports: Sequence[R]) -> Sequence[R]:
    """Reports by the day they became public, then by document."""
    day = -1
    for report in reports:
        if report.available <= day:
            return sorted(reports, key=lambda r: (r.available, r.order))
        day = report.available  # usually already in order, one for each day
    return reports


def vintages(reports: Sequence[R], period_end: int) -> list[Vintage[R]]:
    """The vintages of one fact, oldest first.

    A fact is not knowable before its period ends, however early it was announced.
    """
    if len(reports) == 1:  # most figures are reported once
        (only,) = reports
        return [] if only.value is None else [Vintage(1, only, max(only.available, period_end), None)]
    changes = steps(reports)
    return [
        Vintage(
            n + 1, report, max(report.available, period_end), changes[n + 1] if n + 1 < len(changes) else None
        )
        for n, report in enumerate(changes)
    ]


def in_force(vintage: Vintage[R]) -> tuple[int, int] | None:
    """The days [first, until) on which a vintage is the latest; None if there are none."""
    first = vintage.known_from
    until = FOREVER if vintage.successor is None else vintage.successor.available
    return (first, until) if first < until else None


def visibilities(vintage: Vintage[R]) -> Iterator[Visibility]:
    """The day ranges in which each mode sees a vintage.

    Until it is superseded, a vintage carries no hint of its successor. Afterwards only the modes
    `as_reported` and `all` see it, with its successor named.
    """
    first_filed = _AS_REPORTED if vintage.number == 1 else 0
    until = FOREVER if vintage.successor is None else max(vintage.successor.available, vintage.known_from)
    if vintage.known_from < until:
        yield Visibility(vintage.known_from, until, _IN_FORCE | first_filed, tells_successor=False)
    if until < FOREVER:
        yield Visibility(until, FOREVER, _HISTORY | first_filed, tells_successor=True)
