"""Series as the ledger has them: every report of every value, ready to be told into vintages.

One place says what is one value of a series and in which order two reports of one day stand. The rows of
/v1/macro and the signals both read the ledger through it.
"""

from collections import defaultdict
from collections.abc import Container, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sankofa.ledger.store import Ledger
from sankofa.model.days import ordinal
from sankofa.model.observations import FREQUENCIES


class Series(NamedTuple):
    """What makes two values of the same series."""

    series: str
    series_type: str
    frequency: str
    country: str
    """Alpha-2; empty where the series is of no one country."""


class SeriesReport(NamedTuple):
    """One value in one release; see `model.vintages.Reported`."""

    value: str | None
    """The figure and its unit: another unit is another vintage."""
    available: int
    order: tuple[object, ...]
    figure: str
    unit: str
    location: str
    document: str
    capture_id: int


def series_reports(
    ledger: Ledger, frequencies: Container[str] = FREQUENCIES
) -> Iterator[tuple[Series, dict[str, list[SeriesReport]]]]:
    """Each series of one of these frequencies with the reports of its values, by the day they are of."""
    for identity, captured in groupby(ledger.series(), key=itemgetter(0, 1, 2, 3)):
        if identity[2] not in frequencies:
            continue
        reports: defaultdict[str, list[SeriesReport]] = defaultdict(list)
        number = 0
        for *_, capture_id, document, told in captured:
            for day, public, figure, unit, location, _ in told:
                number += 1
                value = f"{figure}\x1f{unit}" if figure else None
                order = (document, capture_id, number)
                reports[day].append(
                    SeriesReport(value, ordinal(public), order, figure, unit, location, document, capture_id)
                )
        yield Series(*identity), reports
