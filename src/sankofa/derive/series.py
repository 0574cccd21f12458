"""Series as the ledger has them: every report of every value, from which vintages are computed.

This module defines what one value of a series is, and the order of two reports of one day. The rows of
/v1/macro and the signals both read the ledger through it.
"""

from collections import defaultdict
from collections.abc import Container, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sankofa.ledger.reader import LedgerReader
from sankofa.model.days import ordinal
from sankofa.model.figures import read_unit
from sankofa.model.observations import FREQUENCIES, SeriesInfo


class Series(NamedTuple):
    """The identity of a series."""

    series: str
    series_type: str
    frequency: str
    country: str
    """Alpha-2; empty where the series is of no one country."""


class SeriesReport(NamedTuple):
    """One value in one release, as `model.vintages.Reported` wants it."""

    value: str | None
    """The figure and its unit: another unit is another vintage."""
    available: int
    order: tuple[object, ...]
    figure: str
    unit: str
    note: str
    """Remarks of its publisher; empty where there are none."""
    location: str
    document: str
    capture_id: int
    evidenced: bool = True
    """False where the day of capture stands for that of publication."""


class PublishedInfo:
    """What the metadata of each source last said of its own series."""

    def __init__(self, ledger: LedgerReader) -> None:
        said = list(ledger.series_info())
        self._sources = {n: capture.source_id for n, capture in ledger.captures().items()} if said else {}
        self._said = {(self._sources.get(number), info.code): info for number, info in said}

    def of(self, capture_id: int, series: str) -> SeriesInfo | None:
        """Of a series of the source that a capture is of."""
        return self._said.get((self._sources.get(capture_id), series)) if self._said else None


def series_reports(
    ledger: LedgerReader, frequencies: Container[str] = FREQUENCIES
) -> Iterator[tuple[Series, dict[str, list[SeriesReport]]]]:
    """Each series of one of these frequencies with the reports of its values, by the day they are of."""
    published = PublishedInfo(ledger)
    for identity, captured in groupby(ledger.series(), key=itemgetter(0, 1, 2, 3)):
        if identity[2] not in frequencies:
            continue
        reports: defaultdict[str, list[SeriesReport]] = defaultdict(list)
        number = 0
        for *_, capture_id, document, entries in captured:
            info = published.of(capture_id, identity[0])
            named_unit = info.unit if info else ""
            for day, available_at, figure, unit, location, evidenced in entries:
                number += 1
                value = f"{figure}\x1f{unit}" if figure else None
                order = (document, capture_id, number)
                available = ordinal(available_at)
                details = (figure, *read_unit(unit or named_unit), location, document, capture_id, evidenced)
                reports[day].append(SeriesReport(value, available, order, *details))
        yield Series(*identity), reports
