"""The ledger as its readers and writers see it."""

import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore, LedgerSession, Row
from sankofa.ledger.macro import MacroCapture, Years, annual_rows, indicator_names, series_rows
from sankofa.model.days import instant
from sankofa.model.errors import SettingsError
from sankofa.model.observations import Told
from sankofa.model.records import EntityRecord, Fact, Link, Profile

SCHEMA = files("sankofa.ledger").joinpath("schema.sql").read_text()

_BATCH = 10_000
_GATE_MARK = ""  # the source of the one row that is nobody: it tells which key the hashes are made with
# What a source dates has its place in time, whenever it arrives.
_ABSORB_ENTITY_RECORDS = """
    INSERT INTO entity_record SELECT * FROM staged_entity_record WHERE true ON CONFLICT DO NOTHING
"""
# What it does not date is new only where it says something else than the record now in force.
_ABSORB_UNDATED_RECORDS = """
    INSERT INTO entity_record SELECT * FROM staged_entity_record AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM entity_record AS r
        WHERE r.subject = s.subject AND r.source_id = s.source_id AND r.digest = s.digest
          AND r.effective = (
            SELECT max(effective) FROM entity_record AS x
            WHERE x.subject = s.subject AND x.source_id = s.source_id AND x.effective <= s.effective
          )
    )
    ON CONFLICT DO NOTHING
"""
_ABSORB_LINKS = """
    INSERT INTO link SELECT * FROM staged_link AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM link AS r
        WHERE r.identifier = s.identifier AND r.source_id = s.source_id AND r.subject = s.subject
          AND r.effective = (
            SELECT max(effective) FROM link AS x
            WHERE x.identifier = s.identifier AND x.source_id = s.source_id AND x.effective <= s.effective
          )
    )
    ON CONFLICT DO NOTHING
"""
_ABSORB_WITHHELD = "INSERT INTO withheld SELECT * FROM staged_withheld WHERE true ON CONFLICT DO NOTHING"
# Of the subjects of a file only those that it told something new of.
_ABSORB_FACT_SUBJECTS = """
    INSERT INTO fact_subject SELECT * FROM staged_fact_subject AS s
    WHERE s.subject = '' OR EXISTS (
        SELECT 1 FROM fact AS f WHERE f.subject = s.subject AND f.capture_id = s.capture_id
    )
"""
# A ledger begun before this table was, or written to by a release that did not know it.
_UNLISTED_CAPTURES = """
    SELECT c.capture_id FROM capture AS c WHERE NOT EXISTS (
        SELECT 1 FROM fact_subject AS s WHERE s.subject = '' AND s.capture_id = c.capture_id
    )
"""
_LIST_FACT_SUBJECTS = (
    "INSERT INTO fact_subject SELECT DISTINCT subject, capture_id FROM fact "  # noqa: S608 - all ours
    f"WHERE capture_id IN ({_UNLISTED_CAPTURES})"
)
_LIST_CAPTURES = f"INSERT INTO fact_subject SELECT '', capture_id FROM ({_UNLISTED_CAPTURES}) AS unlisted"  # noqa: S608
_ABSORB_CAPTURE = "INSERT INTO capture SELECT * FROM staged_capture"


class CaptureInfo(NamedTuple):
    """Which source, under which licence class, was captured when."""

    source_id: str
    observed_at: str
    license_class: str
    file_name: str
    content_sha256: str = ""


class FactColumns(NamedTuple):
    """Facts by column: what one of them says stands at the same place of each."""

    concept: list[str]
    unit: list[str]
    period_end: list[str]
    period_start: list[str]
    available_at: list[str]
    document: list[str]
    value: list[str]
    confidence: list[str]
    location: list[str]
    declared_period: list[str]
    capture_id: list[int]


class ReleaseRow(NamedTuple):
    """A release as the ledger has it; `summary`, `parties` and `body` are JSON."""

    ocid: str
    release_id: str
    release_date: str
    country: str
    location: str
    summary: str
    parties: str
    body: str
    capture_id: int


@dataclass
class Counts:
    """What became of the rows of a file. `skipped` are rows that are not ours to read."""

    read: int = 0
    appended: int = 0
    unchanged: int = 0
    withheld: int = 0
    rejected: int = 0
    skipped: int = 0

    def add(self, other: "Counts") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Capture:
    """One file on its way into the ledger, inside one transaction."""

    def __init__(
        self,
        session: LedgerSession,
        capture_id: int,
        source_id: str,
        file_name: str,
        observed_at: str,
        persons: "Persons",
        *,
        repeated: bool = False,
    ) -> None:
        self.counts = Counts()
        self.macro = MacroCapture(session, capture_id, source_id, observed_at, repeated)
        self.persons = persons
        self.appended_in_passing = 0
        self.session = session
        self.id = capture_id
        self.source_id = source_id
        self.file_name = file_name
        self.observed_at = observed_at
        self.repeated = repeated
        """Whether this very file was captured from this source already."""
        self.fact_subjects: set[str] = set()
        """Of whom it brought facts, new or not."""
        self._facts: list[Row] = []
        self._entities: dict[tuple[bool, bool], list[Row]] = defaultdict(list)  # by: in passing, dated
        self._withheld: list[Row] = []
        self._links: list[Row] = []
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def is_person(self, subject: str) -> bool:
        """Whether it was proven to be a natural person: then nothing of it may be written anywhere."""
        return subject in self.persons

    def fact(self, fact: Fact) -> None:
        subject, concept, unit, start, end, available, document, value, location, declared, confidence = fact
        if subject in self.persons:
            self.withhold()
            return
        self._facts.append(
            (
                subject, concept, unit, end, start, available, document, value, confidence,
                self.source_id, location, declared, self.id,
            )
        )  # fmt: skip
        if len(self._facts) >= _BATCH:
            self.flush()

    def entity(self, record: EntityRecord) -> None:
        if record.subject in self.persons:
            self.withhold()
            return
        profile = self._encode(record.profile).decode()
        digest = hashlib.blake2b(profile.encode(), digest_size=12).hexdigest()
        rows = self._entities[record.incidental, bool(record.effective)]
        effective = record.effective or self.observed_at
        rows.append((record.subject, self.source_id, effective, digest, profile, self.id))
        if len(rows) >= _BATCH:
            self.flush()

    def link(self, link: Link) -> None:
        if link.subject in self.persons or link.identifier in self.persons:
            self.withhold()
            return
        effective = self.observed_at
        row = (link.identifier, self.source_id, effective, link.subject, link.location, self.id)
        self._links.append(row)
        if len(self._links) >= _BATCH:
            self.flush()

    def withhold(self, subject: str = "") -> None:
        """Count a party that is not served; remember a proven person by keyed hash alone."""
        self.counts.read += 1
        self.counts.withheld += 1
        if subject:
            self._withheld.append((self.persons.add(subject), self.source_id, self.id))

    def flush(self) -> None:
        self.fact_subjects.update(row[0] for row in self._facts)
        self._count(self._facts, self.session.append("fact", self._facts) if self._facts else 0)
        self._count(self._links, self._absorb("link", self._links, _ABSORB_LINKS))
        for (in_passing, dated), rows in self._entities.items():
            statement = _ABSORB_ENTITY_RECORDS if dated else _ABSORB_UNDATED_RECORDS
            appended = self._absorb("entity_record", rows, statement)
            if in_passing:
                self.appended_in_passing += appended
                rows.clear()
            else:
                self._count(rows, appended)
        self.appended_in_passing += self._absorb("withheld", self._withheld, _ABSORB_WITHHELD)
        self._withheld.clear()
        self.macro.flush()
        tally = self.macro.tally()
        self.counts.read += tally.appended + tally.unchanged + tally.forecasts
        self.counts.appended += tally.appended
        self.counts.unchanged += tally.unchanged
        self.counts.skipped += tally.forecasts
        self.appended_in_passing += tally.in_passing

    def _count(self, rows: list[Row], appended: int) -> None:
        self.counts.read += len(rows)
        self.counts.appended += appended
        self.counts.unchanged += len(rows) - appended
        rows.clear()

    def _absorb(self, table: str, rows: list[Row], statement: str) -> int:
        if not rows:
            return 0
        self.session.stage(table, rows)
        return self.session.absorb(statement)


class Persons:
    """Identifiers proven to be natural persons', known only by keyed hash."""

    def __init__(self, key: bytes, hashes: Iterable[str]) -> None:
        self._key = key
        self._hashes = set(hashes)
        self._asked: dict[str, bool] = {}

    @property
    def mark(self) -> str:
        """What the key makes of a text everyone knows: tells whether a ledger was begun with another key."""
        return self.hashed("sankofa")

    def keyed_alike(self, marks: Iterable[str]) -> bool:
        return all(mark == self.mark for mark in marks)

    def __contains__(self, subject: str) -> bool:
        known = self._asked.get(subject)
        if known is None:
            known = self._asked[subject] = bool(self._hashes) and self.hashed(subject) in self._hashes
        return known

    def add(self, subject: str) -> str:
        hashed = self.hashed(subject)
        self._hashes.add(hashed)
        self._asked.clear()
        return hashed

    def hashed(self, subject: str) -> str:
        """What is kept of whoever is withheld."""
        return hmac.digest(self._key, subject.encode(), "sha256").hex()

    def token(self, text: str) -> str:
        """Tells a text that must not be shown from others like it."""
        return self.hashed(f"token:{text}")[:12]


class Ledger:
    """Opened once per command; not shared between threads."""

    def __init__(self, store: Datastore, gate_key: bytes, clock: Callable[[], datetime]) -> None:
        self._session = store.ledger()
        self._gate_key = gate_key
        self._clock = clock
        if any(self._session.query(_UNLISTED_CAPTURES)):
            with self._session.transaction():
                self._session.absorb(_LIST_FACT_SUBJECTS)
                self._session.absorb(_LIST_CAPTURES)

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read inside belongs together, whatever is being ingested meanwhile."""
        return self._session.snapshot()

    def persons(self) -> Persons:
        """Whoever was ever proven to be a natural person. Raises SettingsError with another gate secret."""
        rows = list(self._session.query("SELECT subject_hmac, source_id FROM withheld"))
        persons = Persons(self._gate_key, (hashed for hashed, _ in rows))
        if not persons.keyed_alike(hashed for hashed, source_id in rows if source_id == _GATE_MARK):
            raise SettingsError(
                "SANKOFA_GATE_SECRET (or gate-secret in HOME): not the one this ledger was begun with; "
                "persons it withholds could not be recognised"
            )
        return persons

    @contextmanager
    def capture(self, source_id: str, license_class: str, file_name: str, sha256: str) -> Iterator[Capture]:
        """One file, one transaction. Whatever goes wrong inside, nothing of the file is there."""
        with self._session.transaction():
            ((newest,),) = self._session.query("SELECT max(capture_id) FROM capture")
            persons = self.persons()
            if newest is None:
                self._session.stage("withheld", [(persons.mark, _GATE_MARK, 0)])
                self._session.absorb(_ABSORB_WITHHELD)
            same_file = (
                "SELECT 1 FROM capture WHERE source_id = ? AND content_sha256 = ? "
                "UNION ALL SELECT 1 FROM sighting WHERE source_id = ? AND content_sha256 = ?"
            )
            repeated = any(self._session.query(same_file, (source_id, sha256, source_id, sha256)))
            now = instant(self._clock())
            number = (newest or 0) + 1
            capture = Capture(self._session, number, source_id, file_name, now, persons, repeated=repeated)
            yield capture
            capture.flush()
            if capture.counts.appended or capture.appended_in_passing:
                counts = json.dumps(vars(capture.counts))
                name, observed_at = capture.file_name, capture.observed_at
                row = (capture.id, source_id, name, sha256, observed_at, license_class, counts)
                self._session.stage("capture", [row])
                self._session.absorb(_ABSORB_CAPTURE)
                told_of = sorted({"", *capture.fact_subjects})
                self._session.stage("fact_subject", [(subject, capture.id) for subject in told_of])
                self._session.absorb(_ABSORB_FACT_SUBJECTS)
            elif not capture.repeated:
                self._session.append("sighting", [(source_id, sha256)])

    def captures(self) -> dict[int, CaptureInfo]:
        rows = self._session.query(
            "SELECT capture_id, source_id, observed_at, license_class, file_name, content_sha256 FROM capture"
        )
        return {capture_id: CaptureInfo(*rest) for capture_id, *rest in rows}

    def entity_records(self) -> Iterator[tuple[str, str, str, Profile, int]]:
        """(subject, source_id, effective, profile, capture_id); of each subject and source, newest last."""
        decode = msgspec.json.Decoder(Profile).decode
        for subject, source_id, effective, profile, capture_id in self._session.query(
            "SELECT subject, source_id, effective, profile, capture_id FROM entity_record "
            "ORDER BY subject, source_id, effective, capture_id, digest"
        ):
            yield subject, source_id, effective, decode(profile), capture_id

    def links(self) -> Iterator[tuple[str, str, str, str, int]]:
        """(identifier, source_id, subject, location, capture_id): what each source says now."""
        newest: tuple[str, str] | None = None
        standing = ""
        for identifier, source_id, effective, subject, location, capture_id in self._session.query(
            "SELECT identifier, source_id, effective, subject, location, capture_id FROM link "
            "ORDER BY identifier, source_id, effective DESC, subject"
        ):
            if newest != (identifier, source_id):
                newest, standing = (identifier, source_id), effective
            if effective == standing:
                yield identifier, source_id, subject, location, capture_id

    def fact_subjects(self) -> list[tuple[str, int]]:
        """Every subject of a fact, with the capture that first brought it."""
        rows = self._session.query(
            "SELECT subject, min(capture_id) FROM fact_subject WHERE subject <> '' "
            "GROUP BY subject ORDER BY subject"
        )
        return [(subject, capture_id) for subject, capture_id in rows]

    def fact_captures(self) -> dict[str, list[int]]:
        """Of every subject of a fact, the captures that brought any: what it says changes only with them."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for subject, capture_id in self._session.query(
            "SELECT subject, capture_id FROM fact_subject WHERE subject <> '' ORDER BY subject, capture_id"
        ):
            found[subject].append(capture_id)
        return found

    def facts(self, subject: str) -> FactColumns:
        """The facts of one subject by column, in the order of `schema.sql`."""
        return FactColumns(*self._session.columns("fact", FactColumns._fields, subject))

    def rows(self, sql: str) -> Iterator[Row]:
        """What a SELECT of the ledger's tables counts or lists."""
        return self._session.query(sql)

    def release_countries(self) -> list[str]:
        """Every country with releases; empty where a source has none."""
        return [c for (c,) in self._session.query("SELECT DISTINCT country FROM release ORDER BY country")]

    def releases(self, country: str, *, bodies: bool) -> Iterator[ReleaseRow]:
        """A country's releases in the order they are served, each as corrected last."""
        last: tuple[str, str, str] | None = None
        body = "body" if bodies else "''"
        for row in self._session.query(
            f"SELECT ocid, release_id, release_date, country, location, summary, parties, {body}, capture_id "  # noqa: S608 - a column's name
            "FROM release WHERE country = ? "
            "ORDER BY country, rtrim(release_date, 'Z') DESC, ocid, release_id, number DESC",
            (country,),
        ):
            if row[:3] != last:
                last = row[:3]
                yield ReleaseRow(*row)

    def release_body(self, ocid: str, release_id: str, release_date: str) -> str:
        """The cleaned release as corrected last."""
        ((body,),) = self._session.query(
            "SELECT body FROM release WHERE ocid = ? AND release_id = ? AND release_date = ? "
            "ORDER BY number DESC LIMIT 1",
            (ocid, release_id, release_date),
        )
        return str(body)

    def parties(self) -> Iterator[tuple[str, str, str, list[tuple[str, str]], str]]:
        """(party_id, name, country, identifiers, org_evidence) of every party there is evidence for."""
        decode = msgspec.json.Decoder(list[tuple[str, str]]).decode
        for party_id, name, country, identifiers, evidence in self._session.query(
            "SELECT party_id, name, country, identifiers, org_evidence FROM party"
        ):
            yield party_id, name, country, decode(identifiers), evidence

    def holds_record(self, subject: str) -> bool:
        """Whether a source told anything of an organisation under this identifier."""
        rows = self._session.query("SELECT 1 FROM entity_record WHERE subject = ?", (subject,))
        return any(True for _ in rows)

    def annual(self) -> Iterator[tuple[str, str, int, str, Years]]:
        """(country, indicator, capture_id, document, values by year), the columns together, oldest first."""
        return annual_rows(self._session)

    def indicator_names(self) -> dict[str, str]:
        return indicator_names(self._session)

    def series(self) -> Iterator[tuple[str, str, str, str, int, str, list[Told]]]:
        """(series, series_type, frequency, country, capture_id, document, told), the columns together."""
        return series_rows(self._session)

    def close(self) -> None:
        self._session.close()
