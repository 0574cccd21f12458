"""What the catalogue says of each series and annual indicator, collected while their rows are built."""

from collections.abc import Mapping
from typing import NamedTuple

from sankofa.derive.series import Series, SeriesReport
from sankofa.edition.write.tally import NEVER, Counted, CoverageTally, TallyKey
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.facts import MACRO
from sankofa.model.vintages import Vintage


class CatalogueEntry(NamedTuple):
    """A series, or an indicator in a country; in the order of these fields."""

    series: str
    is_indicator: bool
    series_type: str
    frequency: str
    country: str
    name: str
    unit: str
    note: str
    first: int
    last: int
    vintages: int
    source_id: str
    source_ref: str
    license_class: str
    observed_at: str


class SeriesRelease(NamedTuple):
    """What one day of release brought to a series, and where its newest value stands."""

    day: int
    added: int
    changed: int
    capture_id: int
    document: str
    location: str


class SeriesStats:
    """Of one series, from its vintages as they come: newest date first, oldest vintage first."""

    def __init__(self) -> None:
        self._by_source: dict[int, Counted] = {}
        self._releases: dict[int, list[int]] = {}
        self._newest_of: dict[int, tuple[SeriesReport, str]] = {}
        self.newest: tuple[SeriesReport, int] | None = None
        """The report in force of the newest date, and the date."""
        self.first = NEVER

    def add(self, day: int, location: str, vintage: Vintage[SeriesReport]) -> None:
        report = vintage.report
        if self.newest is None or self.newest[1] == day:
            self.newest = report, day
        self.first = day
        counts = self._releases.get(report.available)
        if counts is None:
            counts = self._releases[report.available] = [0, 0]
            self._newest_of[report.available] = report, location
        counts[vintage.number > 1] += 1
        counted = self._by_source.setdefault(report.capture_id, Counted())
        counted.add(0, 1, day, day, report.available if report.evidenced else NEVER)

    @property
    def newest_capture(self) -> int:
        """The capture of the report in force of the newest date."""
        if self.newest is None:
            raise ValueError("a series without values")
        return self.newest[0].capture_id

    def releases(self) -> list[SeriesRelease]:
        """Newest first."""
        releases = []
        for day in sorted(self._releases, reverse=True):
            report, location = self._newest_of[day]
            added, changed = self._releases[day]
            releases.append(SeriesRelease(day, added, changed, report.capture_id, report.document, location))
        return releases

    def entry(self, identity: Series, name: str, captures: Mapping[int, CaptureInfo]) -> CatalogueEntry:
        if self.newest is None:
            raise ValueError("a series without values")
        report, last = self.newest
        capture = captures[self.newest_capture]
        location = self._newest_of[report.available][1]
        return CatalogueEntry(
            identity.series, False, identity.series_type, identity.frequency, identity.country,
            name, report.unit, report.note, self.first, last, len(self._releases), capture.source_id,
            capture.ref(location, report.document), capture.license_class, capture.observed_at,
        )  # fmt: skip

    def count(self, tally: CoverageTally, country: str, captures: Mapping[int, CaptureInfo]) -> None:
        """Add the series to what its sources have for a country, once for each."""
        by_source: dict[str, Counted] = {}
        for capture_id, counted in self._by_source.items():
            by_source.setdefault(captures[capture_id].source_id, Counted()).merge(counted)
        for source_id, counted in by_source.items():
            counted.count = 1
            tally[TallyKey(MACRO, country, source_id, "series")].merge(counted)
