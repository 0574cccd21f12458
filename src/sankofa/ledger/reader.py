"""The ledger as its readers see it."""

import gc
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import LedgerRows, Row
from sankofa.ledger.capture import FactColumns, Persons, holds_record, join_facts
from sankofa.ledger.generations import (
    CaptureFilter,
    FilteredSession,
    Generations,
    Withdrawal,
    WithdrawnFile,
    source_of,
)
from sankofa.model.days import file_instant
from sankofa.model.errors import SettingsError
from sankofa.model.observations import SeriesInfo
from sankofa.model.provenance import source_ref
from sankofa.model.records import Profile

GATE_MARK: Final = ""
"""The source of the marker row, which names no person and shows which key made the hashes."""


_MATCH: Final = "match:"
"""Prefix of decisions about parties in the table of links; it is not an identifier scheme."""


class CaptureInfo(NamedTuple):
    """The source, licence class and time of a capture."""

    source_id: str
    observed_at: str
    license_class: str
    file_name: str
    content_sha256: str = ""
    rounds_dates: bool = False
    """Whether its source gives the dates of periods rounded to month ends."""

    @property
    def instants(self) -> tuple[str, str]:
        """The instant that the name of the file begins with (`20190105-...`) or an empty text, and that of
        capture."""
        return file_instant(self.file_name, self.observed_at[:10]), self.observed_at

    @property
    def day(self) -> str:
        """The day that the name of the file begins with, else the day of capture."""
        named, captured = self.instants
        return (named or captured)[:10]

    def ref(self, location: str, document: str = "") -> str:
        """The `source_ref` of a place in the captured file, or in a document inside it."""
        return source_ref(self.source_id, document or self.file_name, location, self.content_sha256)


class Holding(NamedTuple):
    """How many rows the ledger holds from a source."""

    captures: int
    rows: int


class Linked(NamedTuple):
    """An identifier of a subject, and its first and last day; empty if a source names none."""

    identifier: str
    subject: str
    location: str
    capture_id: int
    first: str = ""
    last: str = ""


class ReleaseRow(NamedTuple):
    """A stored release; `summary`, `parties` and `body` are JSON."""

    ocid: str
    release_id: str
    release_date: str
    country: str
    location: str
    summary: str
    parties: str
    body: str
    capture_id: int

    @property
    def moment(self) -> tuple[str, str]:
        """Sort key of the releases of a process: instant, then id. The Z is left out, because it would sort a
        whole second after its fractions."""
        return self.release_date[:-1], self.release_id


_WITHDRAWALS: Final = (
    "SELECT capture_id, source_id, generation, observed_at, capture, file_name, everywhere, reason, "
    "withdrawn FROM withdrawal ORDER BY capture_id"
)
_NAMES = "SELECT indicator, name FROM indicator ORDER BY indicator, capture_id"
_INFO = "SELECT capture_id, code, name, unit FROM series_info ORDER BY code, capture_id"
_ANNUAL = "SELECT country, indicator, capture_id, document, told FROM annual ORDER BY 1, 2, capture_id, part"
_SERIES = """
    SELECT series, series_type, frequency, country, capture_id, document, told FROM series
    ORDER BY 1, 2, 3, 4, capture_id, part
"""
_FACTS: Final = "SELECT capture_id, source_id, told FROM fact WHERE subject = ? ORDER BY capture_id, part"
_COUNT_FACTS: Final = "SELECT facts FROM fact WHERE subject = ?"
_ACCEPTANCE: Final = "SELECT capture_id, document, instant FROM acceptance WHERE subject = ?"


class LedgerReader:
    def __init__(
        self,
        rows: LedgerRows,
        gate_key: bytes,
        *,
        partial: bool = False,
        capture_filter: CaptureFilter | None = None,
    ) -> None:
        """`capture_filter` selects facts and acceptances; other rows are not filtered."""
        self._rows = rows
        self._gate_key = gate_key
        self._filter = capture_filter
        self._partial = partial
        """Whether some of its sources are left out."""

    def withdrawals(self) -> list[Withdrawal]:
        """Every tombstone, oldest first."""
        read, rows = msgspec.json.Decoder(tuple[WithdrawnFile, ...]).decode, self._rows.query(_WITHDRAWALS)
        return [
            Withdrawal(
                number, source_id, generation, at, capture, file, bool(everywhere), reason, read(files)
            )
            for number, source_id, generation, at, capture, file, everywhere, reason, files in rows
        ]

    def holdings(self) -> dict[str, Holding]:
        """How many rows each source has, without withdrawn ones."""
        passed_over = set(Generations(self._rows).withdrawn)
        by_source: defaultdict[str, Holding] = defaultdict(lambda: Holding(0, 0))
        for stored, counts in self._rows.query("SELECT source_id, counts FROM capture"):
            if stored not in passed_over:
                source_id = source_of(stored)
                captures, rows = by_source[source_id]
                by_source[source_id] = Holding(captures + 1, rows + int(json.loads(counts)["appended"]))
        return dict(sorted(by_source.items()))

    def persons(self) -> Persons:
        """Everyone ever proven to be a natural person. Raises SettingsError with another gate secret."""
        rows = list(self._rows.query("SELECT subject_hmac, source_id, capture_id FROM withheld"))
        proven = ((hashed, capture_id) for hashed, source_id, capture_id in rows if source_id != GATE_MARK)
        persons = Persons(self._gate_key, proven)
        if any(source_id == GATE_MARK and hashed != persons.mark for hashed, source_id, _ in rows):
            raise SettingsError(
                "SANKOFA_GATE_SECRET (or gate-secret in HOME): not the one this ledger was created with; "
                "withheld persons could not be recognised"
            )
        return persons

    def position(self) -> int:
        """The last number given to a capture, an unchanged file or a withdrawal."""
        ((newest,),) = self._rows.query(
            "SELECT max(capture_id) FROM (SELECT max(capture_id) AS capture_id FROM capture "
            "UNION ALL SELECT max(capture_id) FROM unchanged_file "
            "UNION ALL SELECT max(capture_id) FROM withdrawal) AS numbered"
        )
        return newest or 0

    def newest_capture(self) -> datetime | None:
        """The latest instant at which anything was captured or withdrawn."""
        ((newest,),) = self._rows.query(
            "SELECT max(observed_at) FROM (SELECT max(observed_at) AS observed_at FROM capture "
            "UNION ALL SELECT max(observed_at) FROM withdrawal) AS dated"
        )
        return None if newest is None else datetime.fromisoformat(newest)

    def captures(self) -> dict[int, CaptureInfo]:
        return self._files("SELECT {} FROM capture")

    def unchanged_files(self) -> dict[int, CaptureInfo]:
        """The files that said nothing new when they were read."""
        return self._files("SELECT {} FROM unchanged_file")

    def _files(self, select: str) -> dict[int, CaptureInfo]:
        columns = "capture_id, source_id, observed_at, license_class, file_name, content_sha256"
        rows = self._rows.query(select.format(columns))
        return {capture_id: CaptureInfo(*rest) for capture_id, *rest in rows}

    def entity_records(self) -> Iterator[tuple[str, str, str, Profile, int]]:
        """(subject, source_id, effective, profile, capture_id); newest last for each subject and source."""
        decode = msgspec.json.Decoder(Profile).decode
        for subject, source_id, effective, profile, capture_id in self._rows.query(
            "SELECT subject, source_id, effective, profile, capture_id FROM entity_record "
            "ORDER BY subject, source_id, effective, capture_id, digest"
        ):
            yield subject, source_id, effective, decode(profile), capture_id

    def links(self) -> Iterator[Linked]:
        """The current statement of each source: its last links, and the spells it dated since."""
        undated: dict[tuple[str, str], tuple[str, list[Linked]]] = {}
        for identifier, source_id, effective, subject, location, capture_id in self._rows.query(
            "SELECT identifier, source_id, effective, subject, location, capture_id FROM link "
            "ORDER BY identifier, source_id, effective DESC, subject"
        ):
            if identifier.startswith(_MATCH):
                continue
            newest, links = undated.setdefault((identifier, source_id), (effective, []))
            if effective == newest:
                links.append(Linked(identifier, subject, location, capture_id))
        spells: dict[tuple[str, str, str, str], tuple[str, Linked]] = {}
        for identifier, source_id, subject, first, effective, *values in self._rows.query(
            "SELECT identifier, source_id, subject, first_day, effective, last_day, location, capture_id "
            "FROM spell ORDER BY identifier, source_id, subject, first_day, effective"
        ):
            last, location, capture_id = values
            linked = Linked(identifier, subject, location, capture_id, first, last)
            spells[identifier, source_id, subject, first] = effective, linked
        dated = dict[tuple[str, str], str]()
        for (identifier, source_id, _, _), (effective, linked) in spells.items():
            key = identifier, source_id
            if effective >= undated.get(key, ("",))[0]:
                dated[key] = max(effective, dated.get(key, ""))
                yield linked
        for key, (effective, links) in undated.items():
            if effective >= dated.get(key, ""):
                yield from links

    def reviews(self) -> dict[tuple[str, str], str]:
        """The last decision about each pair of a party's name (as a hash) and a service_id."""
        rows = self._rows.query("SELECT identifier, effective, subject, capture_id FROM link")
        decided = sorted((e, number, i, s) for i, e, s, number in rows if i.startswith(_MATCH))
        return {tuple(i.split(":")[1:]): decision.partition("@")[0] for _, _, i, decision in decided}

    def fact_subjects(self) -> list[tuple[str, int]]:
        """Every subject of a fact, with the capture that first brought it."""
        rows = self._rows.query("SELECT subject, min(capture_id) FROM fact GROUP BY subject ORDER BY subject")
        return [(subject, capture_id) for subject, capture_id in rows]

    def fact_captures(self) -> dict[str, list[int]]:
        """For every subject with facts, the captures that brought any: its facts change only with them."""
        return self._by_subject("SELECT DISTINCT subject, capture_id FROM fact ORDER BY subject, capture_id")

    def acceptance_captures(self) -> dict[str, list[int]]:
        """For every subject, the captures that brought acceptances of its documents."""
        return self._by_subject(
            "SELECT DISTINCT subject, capture_id FROM acceptance ORDER BY subject, capture_id"
        )

    def _by_subject(self, select: str) -> dict[str, list[int]]:
        captures: defaultdict[str, list[int]] = defaultdict(list)
        for subject, capture_id in self._rows.query(select):
            captures[subject].append(capture_id)
        return captures

    def facts(self, subject: str) -> FactColumns:
        """The facts of one subject by column, in the order of their texts."""
        return join_facts(list(self._captured(_FACTS, subject)))

    def _captured(self, select: str, subject: str) -> Iterator[Row]:
        rows = self._rows.query(select, (subject,))
        return rows if self._filter is None else self._filter.passed(rows)

    def count_facts(self, subject: str) -> int:
        return sum(count for (count,) in self._rows.query(_COUNT_FACTS, (subject,)))

    def acceptances(self, subject: str) -> dict[str, str]:
        return dict(sorted(row[1:] for row in self._captured(_ACCEPTANCE, subject)))

    def capture_filter(self) -> CaptureFilter:
        """The filter with which a reader in another process reads the same facts."""
        if isinstance(self._rows, FilteredSession):
            return self._rows.capture_filter
        numbers = self._rows.query("SELECT capture_id FROM capture")
        return CaptureFilter(frozenset(number for (number,) in numbers), {})

    def rows(self, sql: str) -> Iterator[Row]:
        """The rows of a SELECT on the ledger's tables."""
        return self._rows.query(sql)

    def release_countries(self) -> list[str]:
        """Every country with releases; empty if a source has none."""
        return [c for (c,) in self._rows.query("SELECT DISTINCT country FROM release ORDER BY country")]

    def releases(self, country: str) -> Iterator[ReleaseRow]:
        """A country's releases in the order they are served, each with its last correction.

        Content that several sources publish alike is attributed to the first of them.
        """
        served: ReleaseRow | None = None
        content, repeated = "", False
        for digest, *columns in self._rows.query(
            "SELECT digest, ocid, release_id, release_date, country, location, summary, parties, body, "
            "capture_id FROM release WHERE country = ? "
            "ORDER BY country, rtrim(release_date, 'Z') DESC, ocid, release_id, number DESC",
            (country,),
        ):
            row = ReleaseRow(*columns)
            if served is None or row[:3] != served[:3]:
                if served is not None:
                    yield served
                served, content, repeated = row, digest, True
            elif repeated := repeated and digest == content:
                served = row
        if served is not None:
            yield served

    def parties(self) -> Iterator[tuple[str, str, str, list[tuple[str, str]], str, int]]:
        """(party_id, name, country, identifiers, org_evidence, capture_id) of every party with evidence."""
        decode = msgspec.json.Decoder(list[tuple[str, str]]).decode
        named = self._named_parties() if self._partial else None
        for party_id, name, country, identifiers, evidence, capture_id in self._rows.query(
            "SELECT party_id, name, country, identifiers, org_evidence, capture_id FROM party"
        ):
            if named is None or party_id in named:
                first = capture_id if named is None else named[party_id]
                yield party_id, name, country, decode(identifiers), evidence, first

    def _named_parties(self) -> dict[str, int]:
        """The parties of the releases that are read, each with the first capture that names it. A party is
        stored once, even if several files name it."""
        decode = msgspec.json.Decoder(list[list[str]]).decode
        first: dict[str, int] = {}
        for parties, capture_id in self._rows.query("SELECT parties, capture_id FROM release"):
            for party_id, *_ in decode(parties):
                first[party_id] = min(first.get(party_id, capture_id), capture_id)
        return first

    def party_days(self) -> dict[str, str]:
        """The day of the first release that names each party."""
        decode = msgspec.json.Decoder(list[list[str]]).decode
        first: dict[str, str] = {}
        for parties, released in self._rows.query("SELECT parties, release_date FROM release"):
            for party_id, *_ in decode(parties):
                first[party_id] = min(first.get(party_id, released), released)
        return {party_id: released[:10] for party_id, released in first.items()}

    def holds_record(self, subject: str) -> bool:
        """Whether a register has a record of an organisation under this identifier."""
        return holds_record(self._rows, subject)

    def stored_annual(self) -> Iterator[tuple[tuple[str, str], list[Row]]]:
        """Each country and indicator with its rows (capture_id, document, JSON of values), oldest first."""
        for key, own in groupby(self._rows.query(_ANNUAL), key=itemgetter(0, 1)):
            yield key, [row[2:] for row in own]

    def indicator_names(self) -> dict[str, str]:
        return dict(self._rows.query(_NAMES))

    def series_info(self) -> Iterator[tuple[int, SeriesInfo]]:
        """(capture_id, metadata of a series or indicator) by code, oldest first."""
        for capture_id, *info in self._rows.query(_INFO):
            yield capture_id, SeriesInfo(*info)

    def stored_series(self) -> Iterator[tuple[str, list[Row]]]:
        """Each key of series with its rows (series_type, frequency, country, capture_id, document, JSON)."""
        for key, own in groupby(self._rows.query(_SERIES), key=itemgetter(0)):
            yield key, [row[1:] for row in own]

    def close(self) -> None:
        self._rows.close()


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """For work that makes millions of records without cycles: it takes a fifth less time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
