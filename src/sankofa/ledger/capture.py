"""One file being ingested: its rows are staged, and only those that are new are appended."""

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from functools import cache
from itertools import chain, count, repeat
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import LedgerRows, LedgerSession, Row
from sankofa.ledger.generations import Withdrawal
from sankofa.ledger.macro import MacroCapture
from sankofa.model.days import file_instant
from sankofa.model.records import Acceptance, Counts, EntityRecord, Fact, IdentifierLink

Texts = tuple[str, ...]
"""A fact: the text of each column of `FactColumns`, without its capture."""


class FactColumns(NamedTuple):
    """Facts by column: the values of a fact share one position."""

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


DOCUMENT: Final = FactColumns._fields.index("document")
_SOURCE: Final = FactColumns._fields.index("location")
"""Facts are ordered by their texts, and by source before location."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[list[str], list[int]]]).decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_coded = msgspec.json.Decoder(tuple[set[str], msgspec.Raw]).decode


def encode_facts(facts: Sequence[Texts]) -> str:
    """Facts, in order, as the ledger stores them."""
    return _encode(list(map(_column, zip(*facts, strict=True)))).decode()


def _column(texts: Texts) -> tuple[list[str], list[int]]:
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    column = list(map(numbers.__getitem__, texts))
    return list(numbers), column


def _columns(stored: str) -> list[list[Any]]:
    return [list(map(texts.__getitem__, numbers)) for texts, numbers in _decode(stored)]


def facts_in(stored: str, documents: Collection[str]) -> Iterable[Texts]:
    own, _ = _coded(_split(stored)[DOCUMENT])
    return () if own.isdisjoint(documents) else zip(*_columns(stored), strict=True)


def join_facts(rows: Sequence[tuple[int, str, str]]) -> FactColumns:
    """The facts of a subject in order, from (capture_id, source_id, stored facts)."""
    if len(rows) == 1:
        ((capture_id, _, stored),) = rows
        columns = _columns(stored)
        columns.append([capture_id] * len(columns[0]))
        return FactColumns(*columns)
    by_capture = [(capture_id, source_id, _columns(stored)) for capture_id, source_id, stored in rows]
    ordered = sorted(
        chain.from_iterable(
            zip(*texts[:_SOURCE], repeat(source_id), *texts[_SOURCE:], repeat(capture_id))
            for capture_id, source_id, texts in by_capture
        )
    )
    columns = [list(column) for column in zip(*ordered, strict=True)] or [[] for _ in range(12)]
    del columns[_SOURCE]
    return FactColumns(*columns)


_BATCH = 10_000
_FACTS: Final = 20_000
"""Facts to collect before appending those of complete subjects."""
_MOST_FACTS: Final = 10 * _FACTS
"""Facts after which they are appended although there may be more of their subject."""
_FACT_VALUES: Final = "SELECT capture_id, told FROM fact WHERE subject = ? AND source_id = ?"
_UNDATED_KEYS: Final = {
    "entity_record": (("subject", "source_id"), "digest"),
    "link": (("identifier", "source_id"), "subject"),
    "spell": (("identifier", "source_id", "subject", "first_day"), "last_day"),
}
"""By table, the columns that identify the subject of an undated row, and the column that holds its value."""


@cache
def _absorb_undated(table: str, *, repeated: bool) -> str:
    """Append staged rows whose value differs from the current row. A `repeated` file appends nothing, even if
    the value has changed since."""
    key, value_column = _UNDATED_KEYS[table]
    same = [f"r.{column} = s.{column}" for column in (*key, value_column)]
    if not repeated:
        own = " AND ".join(f"x.{column} = s.{column}" for column in key)
        newest = f"SELECT max(effective) FROM {table} AS x WHERE {own} AND x.effective <= s.effective"  # noqa: S608 - our own names
        same.append(f"r.effective = ({newest})")
    return (
        f"INSERT INTO {table} SELECT * FROM staged_{table} AS s WHERE NOT EXISTS "  # noqa: S608 - our own names
        f"(SELECT 1 FROM {table} AS r WHERE {' AND '.join(same)}) ON CONFLICT DO NOTHING"
    )


_RECORDS = "SELECT 1 FROM entity_record WHERE subject = ? AND profile NOT LIKE '%\"secondary\":true%'"


def holds_record(session: LedgerRows, subject: str) -> bool:
    """Whether a register has a record of the subject. A name in somebody's template does not count."""
    return any(True for _ in session.query(_RECORDS, (subject,)))


Triple = tuple[str, str, str]
"""ocid, release id and release date."""


class Persons:
    """Identifiers proven to belong to natural persons: only the keyed hash and the capture that proved it."""

    def __init__(self, key: bytes, proven: Iterable[tuple[str, int]]) -> None:
        self._key = key
        self._proven: dict[str, int] = {}
        for hashed, capture_id in proven:
            self._proven[hashed] = min(capture_id, self._proven.get(hashed, capture_id))
        self._answers: dict[str, bool] = {}

    @property
    def mark(self) -> str:
        """The keyed hash of a known text: shows whether the ledger was created with another key."""
        return self.hashed("sankofa")

    def __contains__(self, subject: str) -> bool:
        known = self._answers.get(subject)
        if known is None:
            known = self._answers[subject] = bool(self._proven) and self.hashed(subject) in self._proven
        return known

    def proven_by(self, subjects: Iterable[str]) -> int:
        """The newest capture that proved any of these a person, by first proof; 0 if none."""
        return max((self._proven[self.hashed(subject)] for subject in subjects if subject in self), default=0)

    def add(self, subject: str, capture_id: int) -> str:
        hashed = self.hashed(subject)
        self._proven.setdefault(hashed, capture_id)
        self._answers.clear()
        return hashed

    def hashed(self, subject: str) -> str:
        """The keyed hash: all that is stored of a withheld person."""
        return hmac.digest(self._key, subject.encode(), "sha256").hex()

    def token(self, text: str) -> str:
        """Identifies a text that must not be shown."""
        return self.hashed(f"token:{text}")[:12]


class CleanedRelease(NamedTuple):
    """A release ready for the ledger: it names no natural person."""

    triple: Triple
    digest: str
    position: str
    country: str
    summary: msgspec.Raw
    body: msgspec.Raw
    parties: list[tuple[str, str, str, str, str]]
    """party_id, name, country, identifiers as JSON, org_evidence."""
    roles: list[tuple[str, ...]]
    withheld: list[str]
    """Keyed hashes."""


class RecordKind(StrEnum):
    """The kinds of records in a cleaned copy of a file."""

    FACT = "f"
    LINK = "l"
    ENTITY = "e"
    PERSON = "p"
    RELEASE = "r"
    ACCEPTANCE = "a"
    END = "."


CleanedCopy = Callable[[RecordKind, Any], None]
"""Writes the releases accepted from a file, after all names of persons are removed."""


class Capture:
    """One file on its way into the ledger, inside one transaction."""

    def __init__(
        self,
        session: LedgerSession,
        capture_id: int,
        source_id: str,
        file_name: str,
        observed_at: str,
        persons: Persons,
        *,
        repeated: bool = False,
        names_before: frozenset[str] = frozenset(),
    ) -> None:
        self.counts = Counts()
        self.macro = MacroCapture(session, capture_id, source_id, observed_at, repeated, self.counts)
        self.persons = persons
        self.appended_in_passing = 0
        self.session = session
        self.id = capture_id
        self.source_id = source_id
        self.file_name = file_name
        self.shown_path = file_name
        """Path of the file inside the folder that was named, for the rejects file."""
        self.observed_at = observed_at
        self.repeated = repeated
        """Whether these very bytes were read from this source already."""
        self._file_instant = file_instant(file_name, observed_at[:10])
        self._names_before = names_before
        self.withdrawn_before: Withdrawal | None = None
        """The withdrawal of this very file, which now counts again."""
        self.cleaned_copy: CleanedCopy | None = None
        """The cleaned copy to write, for a file whose bytes are not stored."""
        self._facts: dict[str, list[Texts]] = {}  # by subject
        self._waiting_facts = 0
        self._no_person = ""
        """The subject of the last fact: no natural person, as far as is known."""
        self._entities: dict[tuple[bool, bool], list[Row]] = defaultdict(list)  # by: in passing, dated
        self._withheld: list[Row] = []
        self._links: list[Row] = []
        self._spells: list[Row] = []
        self._acceptances: list[Row] = []
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    @property
    def is_known_file(self) -> bool:
        """Whether these very bytes were read from this source under this very name."""
        return self.file_name in self._names_before

    @property
    def is_news(self) -> bool:
        """Whether the file had anything new from its source."""
        return bool(self.counts.appended or self.appended_in_passing or self.macro.appended_in_passing)

    def fact(self, fact: Fact) -> None:
        subject, concept, unit, start, end, available, document, value, location, declared, confidence = fact
        if subject != self._no_person:
            if subject in self.persons:
                self.withhold()
                return
            self._no_person = subject
        if self.cleaned_copy is not None:
            self.cleaned_copy(RecordKind.FACT, fact)
        own = self._facts.get(subject)
        if own is None or self._waiting_facts >= _MOST_FACTS:
            if self._waiting_facts >= _FACTS:
                self.flush()
            own = self._facts.setdefault(subject, [])
        texts = concept, unit, end, start, available, document, value, confidence, location, declared
        own.append(texts)
        self._waiting_facts += 1

    def entity(self, record: EntityRecord) -> None:
        if record.subject in self.persons or (record.profile.parent or "") in self.persons:
            self.withhold()
            return
        encoded = self._encode(record.profile)
        if self.cleaned_copy is not None:
            statement = (record.subject, record.effective, msgspec.Raw(encoded), record.incidental)
            self.cleaned_copy(RecordKind.ENTITY, statement)
        profile = encoded.decode()
        digest = hashlib.blake2b(encoded, digest_size=12).hexdigest()
        dated = record.effective or self._file_instant
        rows = self._entities[record.incidental, bool(dated)]
        effective = dated or self.observed_at
        rows.append((record.subject, self.source_id, effective, digest, profile, self.id))
        if len(rows) >= _BATCH:
            self.flush()

    def acceptance(self, acceptance: Acceptance) -> None:
        """Not counted as a row: it comes with the record or the figures of a filing."""
        if acceptance.subject in self.persons:
            return
        if self.cleaned_copy is not None:
            self.cleaned_copy(RecordKind.ACCEPTANCE, acceptance)
        self._acceptances.append((*acceptance, self.source_id, self.id))
        if len(self._acceptances) >= _BATCH:
            self.flush()

    def link(self, link: IdentifierLink) -> None:
        if link.subject in self.persons or link.identifier in self.persons:
            self.withhold()
            return
        if self.cleaned_copy is not None:
            self.cleaned_copy(RecordKind.LINK, link)
        identifier, subject, location, first, last = link
        effective = self.observed_at
        if last >= effective[:10]:
            last = ""  # a future end is not a fact yet
        if first or last:
            row = (identifier, self.source_id, subject, first, effective, last, location, self.id)
            self._spells.append(row)
        else:
            self._links.append((identifier, self.source_id, effective, subject, location, self.id))
        if len(self._links) + len(self._spells) >= _BATCH:
            self.flush()

    def withhold(self, *keys: str) -> None:
        """Count a party that is not served; remember a proven person by keyed hashes alone."""
        self.counts.read += 1
        self.counts.withheld += 1
        for key in filter(None, keys):
            self.withhold_hashed(self.persons.add(key, self.id))

    def withhold_hashed(self, hashed: str) -> None:
        """Remember a proven person, known only by hash."""
        self._no_person = ""
        self._withheld.append((hashed, self.source_id, self.id))
        if self.cleaned_copy is not None:
            self.cleaned_copy(RecordKind.PERSON, hashed)

    def flush(self) -> None:
        self._flush_facts()
        for table, rows in (("link", self._links), ("spell", self._spells)):
            self.counts.take(len(rows), self._append_undated(table, rows))
            rows.clear()
        for (in_passing, dated), rows in self._entities.items():
            # Rows that a source dates have their place in time, whenever they arrive.
            append = self.session.append if dated else self._append_undated
            appended = append("entity_record", rows)
            if in_passing:
                self.appended_in_passing += appended
            else:
                self.counts.take(len(rows), appended)
            rows.clear()
        for table, rows in (("withheld", self._withheld), ("acceptance", self._acceptances)):
            self.appended_in_passing += self.session.append(table, rows)
            rows.clear()
        self.macro.flush()

    def _flush_facts(self) -> None:
        """Append what is new from the source about each subject."""
        rows: list[Row] = []
        appended = 0
        for subject, facts in self._facts.items():
            documents = {texts[DOCUMENT] for texts in facts}
            known: set[Texts] = set()
            part = 0
            for capture_id, stored in self.session.query(_FACT_VALUES, (subject, self.source_id)):
                part += capture_id == self.id
                known.update(facts_in(stored, documents))
            new = set(facts)
            new -= known
            if new:
                rows.append((subject, self.source_id, part, len(new), encode_facts(sorted(new)), self.id))
                appended += len(new)
        self.session.append("fact", rows)
        self.counts.take(self._waiting_facts, appended)
        self._facts = {}
        self._waiting_facts = 0

    def _append_undated(self, table: str, rows: list[Row]) -> int:
        if not rows:
            return 0
        self.session.stage(table, rows)
        return self.session.absorb(_absorb_undated(table, repeated=self.repeated))
