"""Observation columns entering the ledger: only values that are new from their source are appended.

An annual table replaces the source's earlier table, so only a column's changes are stored. If the file name
begins with a day, changes against the tables up to that day are stored too. A series identifies vintages by
release date: every new vintage is stored, whatever the order of arrival. Without an evidenced release date
the day of capture is used, and only a value that differs from the current one is new. Values for future days
or years are forecasts and are skipped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import msgspec

from sankofa.engines.ledger_store import LedgerSession, Row
from sankofa.ledger.generations import Generations
from sankofa.model.days import EARLIEST, day_of_name, latest_day, out_of_range
from sankofa.model.observations import (
    AnnualColumn,
    ReportedValue,
    SeriesColumn,
    SeriesInfo,
    SeriesKinds,
    quoted_in,
)
from sankofa.model.records import Counts, Rejected

_BATCH = 5_000
_SERIES_BATCH = 200_000
_NEW_YEAR = "-01-01"
# CROSS JOIN: SQLite then starts from the few columns of the file and looks up the stored rows by key.
_HELD_ANNUAL = """
    SELECT a.country, a.indicator, a.document, a.told FROM staged_annual AS s CROSS JOIN annual AS a
    WHERE a.country = s.country AND a.indicator = s.indicator AND a.source_id = ?
    ORDER BY a.country, a.indicator, a.capture_id, a.part
"""
_HELD_SERIES = """
    SELECT a.series, a.series_type, a.frequency, a.country, a.told
    FROM staged_series AS s CROSS JOIN series AS a
    WHERE a.series = s.series AND a.series_type = s.series_type AND a.frequency = s.frequency
      AND a.country = s.country AND a.source_id = ?
    ORDER BY a.series, a.series_type, a.frequency, a.country, a.capture_id, a.part
"""
_HELD_KINDS = """
    SELECT a.series, a.series_type, a.frequency, a.source_id, a.told
    FROM staged_series AS s CROSS JOIN series AS a WHERE a.series = s.series
"""
# By source: an indicator's name from one source must not depend on another source.
_NAMES_BY_SOURCE = """
    SELECT i.indicator, i.name FROM indicator AS i JOIN capture AS c ON c.capture_id = i.capture_id
    WHERE c.source_id = ? ORDER BY i.indicator, i.capture_id
"""
_INFO_BY_SOURCE = """
    SELECT i.code, i.name, i.unit FROM series_info AS i JOIN capture AS c ON c.capture_id = i.capture_id
    WHERE c.source_id = ? ORDER BY i.code, i.capture_id
"""
_encode = msgspec.json.Encoder().encode
_years = msgspec.json.Decoder(dict[str, str | None]).decode
_reported_values = msgspec.json.Decoder(list[ReportedValue]).decode

Years = dict[str, str | None]
"""Figures by year; empty if withdrawn, None if the table no longer has the year."""


class MacroCapture:
    """The columns of one file, inside the transaction of its capture."""

    def __init__(
        self,
        session: LedgerSession,
        capture_id: int,
        source_id: str,
        observed_at: str,
        repeated: bool,
        counts: Counts,
    ) -> None:
        self._session = session
        self._id = capture_id
        self._source_id = source_id
        self._day = observed_at[:10]
        self._latest = latest_day(self._day)
        self._repeated = repeated
        """The very same file was captured before: nothing in it is new."""
        self._counts = counts
        self.country = ""
        """The country of series that name none: a source with one country declares it once."""
        self.appended_in_passing = 0
        self._known_source = any(session.query("SELECT 1 FROM capture WHERE source_id = ?", (source_id,)))
        self._touched: set[tuple[str, str]] = set()
        self._annual: list[AnnualColumn] = []
        self._series: list[SeriesColumn] = []
        self._names: dict[str, str] = {}
        self._known_names: dict[str, str] | None = None
        self._info: dict[str, SeriesInfo] = {}
        self._refused: list[Rejected] = []
        self._pending = self._part = 0

    def annual(self, column: AnnualColumn) -> Iterator[Rejected]:
        """Yields the years that no source may name; they are neither set nor withdrawn."""
        values, this_year = column.values, self._day[:4]
        if values and not EARLIEST <= min(values) + _NEW_YEAR <= max(values) + _NEW_YEAR <= self._day:
            faults = ((year, self._refusal("year", year + _NEW_YEAR)) for year in values)
            refused = {year: fault for year, fault in faults if fault}
            for year, fault in refused.items():
                yield Rejected(f"{column.document} {column.country} {column.indicator} {year}", fault)
            observed = {y: value for y, value in values.items() if y <= this_year and y not in refused}
            self._counts.skip(len(values) - len(observed) - len(refused))
            column = column._replace(values=observed, unread=column.unread.union(refused))
        self._annual.append(column)
        if column.name:
            self._names[column.indicator] = column.name
        if len(self._annual) >= _BATCH:
            self.flush()

    def series(self, column: SeriesColumn) -> Iterator[Rejected]:
        """Yields what no source may say; raises nothing. A rate's country is that of the quoted currency."""
        observed: list[ReportedValue] = []
        day = self._day
        for value in column.values:
            is_dated_well = EARLIEST <= value.date <= self._latest
            if not (is_dated_well and EARLIEST <= (value.release or EARLIEST) <= day):
                yield Rejected(f"{column.document} {value.location or value.date}", self._fault(value))
            elif value.date > day:
                self._counts.skip(bool(value.value))
            else:
                observed.append(value)
        country = column.country or self.country or quoted_in(column.series)
        self._series.append(column._replace(values=observed, country=country))
        self._pending += len(observed)
        if self._pending >= _SERIES_BATCH:
            self.flush()
            yield from self.refused()

    def _fault(self, value: ReportedValue) -> str:
        """Why a value is refused because of its days."""
        fault = self._refusal("date", value.date) or self._refusal("release_date", value.release)
        return fault or "release_date is in the future"

    def _refusal(self, field: str, day: str) -> str | None:
        return out_of_range(field, day, self._latest)

    def refused(self) -> Iterator[Rejected]:
        """Values flushed since the last call whose key already belongs to another kind of series."""
        refused, self._refused = self._refused, []
        yield from refused

    def describe(self, info: SeriesInfo) -> None:
        """The metadata of a code; the last if a file has several."""
        self._info[info.code] = info

    def flush(self) -> None:
        if self._annual:
            self._flush_annual()
        if self._series:
            self._flush_series()
        if self._names:
            self._flush_names()
        if self._info:
            self._flush_info()

    def _flush_annual(self) -> None:
        keys = {(c.country, c.indicator) for c in self._annual}
        looked_up = keys if self._known_source else keys & self._touched
        self._touched |= keys
        stored: defaultdict[tuple[str, str], Years] = defaultdict(dict)
        dated: defaultdict[tuple[str, str], list[tuple[str, Years]]] = defaultdict(list)
        undated: defaultdict[tuple[str, str], list[tuple[str, Years]]] = defaultdict(list)
        for country, indicator, document, column_json in self._rows(
            "annual", _HELD_ANNUAL, looked_up, self._source_id
        ):
            years = _years(column_json)
            stored[country, indicator].update(years)
            if day := day_of_name(document):
                dated[country, indicator].append((day, years))
            else:
                undated[country, indicator].append(("", years))
        rows: list[Row] = []
        for column in self._annual:
            key = (column.country, column.indicator)
            news = _news(column, stored[key])
            if day := day_of_name(column.document):  # also changes against the tables up to that day
                news = _news(column, _state_on(day, dated[key])) | news
            if self._repeated:
                before = dated[key] if day else dated[key] + undated[key]
                ever = {
                    years for since, values in before if not day or since <= day for years in values.items()
                }
                news = {y: v for y, v in news.items() if v and (y, v) not in ever}
            unchanged = sum(map(bool, column.values.values())) - sum(map(bool, news.values()))
            self._counts.take(unchanged + len(news), len(news))
            if news:
                self._part += 1
                origin = (self._id, self._part, self._source_id, column.document)
                rows.append((*key, *origin, _encode(news).decode()))
                stored[key].update(news)
                if day:
                    dated[key].append((day, news))
        self._annual.clear()
        self._session.append("annual", rows)

    def _flush_series(self) -> None:
        self._refuse_other_kinds()
        stored: defaultdict[tuple[str, ...], _StoredSeries] = defaultdict(
            lambda: _StoredSeries(every=self._repeated)
        )
        keys = {column[:4] for column in self._series}
        for *identity, column_json in self._rows("series", _HELD_SERIES, keys, self._source_id):
            known = stored[tuple(identity)]
            for entry in _reported_values(column_json):
                known.add(entry)
        rows: list[Row] = []
        for column in self._series:
            known = stored[column[:4]]
            news: list[ReportedValue] = []
            unchanged = 0
            for value in column.values:
                dated = self._dated(value, known, column)
                if dated is None:
                    # A rate without a quote is not a row of the file; an empty value in our template is.
                    unchanged += bool(value.value) or not column.on_its_day
                else:
                    known.add(dated)
                    news.append(dated)
            self._counts.take(unchanged + len(news), len(news))
            if news:
                self._part += 1
                origin = (self._id, self._part, self._source_id, column.document)
                rows.append((*column[:4], *origin, _encode(news).decode()))
        self._series.clear()
        self._pending = 0
        self._session.append("series", rows)

    def _refuse_other_kinds(self) -> None:
        """Take out the columns whose key is a series of another kind (contract: MACRO-11)."""
        kinds = defaultdict[str, SeriesKinds](SeriesKinds)
        for column in self._series:
            for value in column.values:
                public = value.release or (value.date if column.on_its_day else self._day)
                kinds[column.series].add(column.series_type, column.frequency, public)
        keys = {(series, "", "", "") for series in kinds}
        withdrawn = Generations(self._session).withdrawn
        stored = [row for row in self._rows("series", _HELD_KINDS, keys) if row[3] not in withdrawn]
        kinds_of = defaultdict[str, set[Row]](set)
        for series, family, frequency, *_ in (*stored, *self._series):
            kinds_of[series].add((family, frequency))
        for series, family, frequency, _, values in stored:
            if len(kinds_of[series]) > 1:
                kinds[series].add(family, frequency, min(one.release for one in _reported_values(values)))
        admitted = []
        for column in self._series:
            series, family, frequency, *_ = column
            if not column.values or kinds[series].one == (family, frequency):
                admitted.append(column)
            else:
                reason = kinds[series].refusal(series, family, frequency)
                rows = [f"{column.document} {value.location or value.date}" for value in column.values]
                self._refused += [Rejected(row, reason) for row in rows]
        self._series = admitted

    def _dated(
        self, value: ReportedValue, stored: "_StoredSeries", column: SeriesColumn
    ) -> ReportedValue | None:
        """The vintage with the day it became public; None if it is not new from this source."""
        figure = (value.value, value.unit if value.value else "")
        if value.release:
            return None if (value.date, value.release, *figure) in stored.stated else value
        now = stored.now.get(value.date)
        if now is None:
            if not value.value:
                return None
            day = value.date if column.on_its_day else self._day
            return value._replace(release=day, evidenced=column.on_its_day)
        if now[1] == figure or (self._repeated and (value.date, *figure) in stored.figures):
            return None
        return value._replace(release=self._day, evidenced=False)

    def _flush_names(self) -> None:
        if self._known_names is None:
            self._known_names = dict(self._session.query(_NAMES_BY_SOURCE, (self._source_id,)))
        known = self._known_names
        news = {
            i: n for i, n in self._names.items() if known.get(i) != n and not (i in known and self._repeated)
        }
        self._names.clear()
        known.update(news)
        rows = [(i, self._id, name) for i, name in news.items()]
        self.appended_in_passing += self._session.append("indicator", rows)

    def _flush_info(self) -> None:
        stored = self._session.query(_INFO_BY_SOURCE, (self._source_id,))
        known = {code: (name, unit) for code, name, unit in stored}
        news = [
            one
            for one in self._info.values()
            if known.get(one.code) != (one.name, one.unit) and not (one.code in known and self._repeated)
        ]
        appended = self._session.append(
            "series_info", [(one.code, self._id, one.name, one.unit) for one in news]
        )
        self._counts.take(len(self._info) - len(news) + appended, appended)
        self._info.clear()

    def _rows(self, table: str, query: str, keys: set[Any], *parameters: object) -> list[Row]:
        """The ledger's columns with these keys: earlier values of the columns at hand."""
        if not keys:
            return []
        self._session.stage(table, [(*key, 0, 0, "", "", "") for key in sorted(keys)])
        rows = list(self._session.query(query, parameters))
        # Appends nothing: it only empties the staging table.
        self._session.absorb(f"INSERT INTO {table} SELECT * FROM staged_{table} WHERE 1 = 0")  # noqa: S608 - our own names
        return rows


def _news(column: AnnualColumn, before: Years) -> Years:
    """The changes of a column against its source's earlier values."""
    values, covers = column.values, column.covers
    if not before:
        return {year: value for year, value in values.items() if value}
    news: Years = {year: value for year, value in values.items() if (before.get(year) or "") != value}
    for year, value in before.items():
        if year in values or year in column.unread:
            continue
        if covers is None and value is not None:
            news[year] = None
        elif covers is not None and value and year in covers:
            news[year] = ""
    return news


def _state_on(day: str, dated: list[tuple[str, Years]]) -> Years:
    """The state of the tables dated up to a day; each table stores only its changes."""
    known: Years = {}
    for _, values in sorted((one for one in dated if one[0] <= day), key=itemgetter(0)):
        known.update(values)
    return known


class _StoredSeries:
    """The stored values of one series from one source."""

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self.stated: set[tuple[str, ...]] = set()
        self.figures: set[tuple[str, ...]] = set()
        self.now: dict[str, tuple[str, tuple[str, str]]] = {}

    def add(self, value: ReportedValue) -> None:
        figure = (value.value, value.unit if value.value else "")
        self.stated.add((value.date, value.release, *figure))
        if self._every:
            self.figures.add((value.date, *figure))
        now = self.now.get(value.date)
        if now is None or now[0] <= value.release:
            self.now[value.date] = (value.release, figure)


def read_annual(rows: Iterable[Row]) -> Iterator[tuple[int, str, Years]]:
    """(capture_id, document, values by year) of stored rows."""
    return ((capture_id, document, _years(values)) for capture_id, document, values in rows)


def read_series(rows: Iterable[Row]) -> list[tuple[str, str, str, int, str, list[ReportedValue]]]:
    """Stored rows of one key with their values; `SeriesKinds` decides between rows of several kinds."""
    columns = [(*row, _reported_values(values)) for *row, values in rows]
    if len({column[:2] for column in columns}) > 1:
        kinds = SeriesKinds()
        for family, frequency, *_, values in columns:
            kinds.add(family, frequency, min(value.release for value in values))
        columns = [column for column in columns if column[:2] == kinds.one]
    return columns
