"""The ledger as its readers and writers see it."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore, LedgerRows, LedgerSession, Row
from sankofa.ledger import generations, seals
from sankofa.ledger.capture import ABSORB_WITHHELD, Capture, holds_record
from sankofa.ledger.generations import Generations, Withdrawal, source_of
from sankofa.ledger.leaving_out import LeavingOut
from sankofa.ledger.macro import Years, annual_rows, indicator_names, series_info, series_rows
from sankofa.ledger.persons import Persons
from sankofa.model.days import instant
from sankofa.model.errors import SettingsError
from sankofa.model.observations import ReportedValue, SeriesInfo
from sankofa.model.provenance import source_ref
from sankofa.model.records import Profile

SCHEMA = files("sankofa.ledger").joinpath("schema.sql").read_text()

_GATE_MARK = ""  # the source of the one row that is nobody: it tells which key the hashes are made with
# Only the subjects of which the file had something new.
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
    ) AND c.capture_id > (SELECT coalesce(max(z.capture_id), 0) FROM seal AS z)
"""
_LIST_FACT_SUBJECTS = (
    "INSERT INTO fact_subject SELECT DISTINCT subject, capture_id FROM fact "  # noqa: S608 - all ours
    f"WHERE capture_id IN ({_UNLISTED_CAPTURES})"
)
_LIST_CAPTURES = f"INSERT INTO fact_subject SELECT '', capture_id FROM ({_UNLISTED_CAPTURES}) AS unlisted"  # noqa: S608 - all ours
_ABSORB_CAPTURE = "INSERT INTO capture SELECT * FROM staged_capture"


class CaptureInfo(NamedTuple):
    """Which source, under which licence class, was captured when."""

    source_id: str
    observed_at: str
    license_class: str
    file_name: str
    content_sha256: str = ""
    rounds_dates: bool = False
    """Whether its source gives the dates of periods rounded to month ends."""

    def ref(self, location: str, document: str = "") -> str:
        """The `source_ref` of a place in the captured file, or in a document inside it."""
        return source_ref(self.source_id, document or self.file_name, location, self.content_sha256)


class Holding(NamedTuple):
    """How much the ledger holds of a source."""

    captures: int
    rows: int


class CaptureContent(NamedTuple):
    """What a capture or a withdrawal holds."""

    source_id: str
    content: str


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


class LedgerReader:
    """What is read of a ledger."""

    def __init__(self, rows: LedgerRows, gate_key: bytes) -> None:
        self._rows = rows
        self._partial = False
        """Whether some of its sources are left out."""
        self._gate_key = gate_key

    def withdrawals(self) -> list[Withdrawal]:
        """Every tombstone, oldest first."""
        return generations.withdrawals(self._rows)

    def holdings(self) -> dict[str, Holding]:
        """How much is held of each source, without what was withdrawn."""
        passed_over = set(Generations(self._rows).withdrawn)
        held: defaultdict[str, Holding] = defaultdict(lambda: Holding(0, 0))
        for stored, counts in self._rows.query("SELECT source_id, counts FROM capture"):
            if stored not in passed_over:
                source_id = source_of(stored)
                captures, rows = held[source_id]
                held[source_id] = Holding(captures + 1, rows + int(json.loads(counts)["appended"]))
        return dict(sorted(held.items()))

    def persons(self) -> Persons:
        """Whoever was ever proven to be a natural person. Raises SettingsError with another gate secret."""
        rows = list(self._rows.query("SELECT subject_hmac, source_id, capture_id FROM withheld"))
        persons = Persons(self._gate_key, ((hashed, capture_id) for hashed, _, capture_id in rows))
        if not persons.keyed_alike(hashed for hashed, source_id, _ in rows if source_id == _GATE_MARK):
            raise SettingsError(
                "SANKOFA_GATE_SECRET (or gate-secret in HOME): not the one this ledger was begun with; "
                "persons it withholds could not be recognised"
            )
        return persons

    def position(self) -> int:
        """The last capture or withdrawal there is, whatever is made of it: what orders the editions."""
        ((newest,),) = self._rows.query(
            "SELECT max(capture_id) FROM (SELECT max(capture_id) AS capture_id FROM capture "
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
        rows = self._rows.query(
            "SELECT capture_id, source_id, observed_at, license_class, file_name, content_sha256 FROM capture"
        )
        return {capture_id: CaptureInfo(*rest) for capture_id, *rest in rows}

    def entity_records(self) -> Iterator[tuple[str, str, str, Profile, int]]:
        """(subject, source_id, effective, profile, capture_id); of each subject and source, newest last."""
        decode = msgspec.json.Decoder(Profile).decode
        for subject, source_id, effective, profile, capture_id in self._rows.query(
            "SELECT subject, source_id, effective, profile, capture_id FROM entity_record "
            "ORDER BY subject, source_id, effective, capture_id, digest"
        ):
            yield subject, source_id, effective, decode(profile), capture_id

    def links(self) -> Iterator[tuple[str, str, str, str, int]]:
        """(identifier, source_id, subject, location, capture_id): what each source says now."""
        newest: tuple[str, str] | None = None
        standing = ""
        for identifier, source_id, effective, subject, location, capture_id in self._rows.query(
            "SELECT identifier, source_id, effective, subject, location, capture_id FROM link "
            "ORDER BY identifier, source_id, effective DESC, subject"
        ):
            if newest != (identifier, source_id):
                newest, standing = (identifier, source_id), effective
            if effective == standing:
                yield identifier, source_id, subject, location, capture_id

    def fact_subjects(self) -> list[tuple[str, int]]:
        """Every subject of a fact, with the capture that first brought it."""
        rows = self._rows.query(
            "SELECT subject, min(capture_id) FROM fact_subject WHERE subject <> '' "
            "GROUP BY subject ORDER BY subject"
        )
        return [(subject, capture_id) for subject, capture_id in rows]

    def fact_captures(self) -> dict[str, list[int]]:
        """Of every subject of a fact, the captures that brought any: what it says changes only with them."""
        captures: defaultdict[str, list[int]] = defaultdict(list)
        for subject, capture_id in self._rows.query(
            "SELECT subject, capture_id FROM fact_subject WHERE subject <> '' ORDER BY subject, capture_id"
        ):
            captures[subject].append(capture_id)
        return captures

    def facts(self, subject: str) -> FactColumns:
        """The facts of one subject by column, in the order of `schema.sql`."""
        return FactColumns(*self._rows.columns("fact", FactColumns._fields, subject))

    def rows(self, sql: str) -> Iterator[Row]:
        """What a SELECT of the ledger's tables counts or lists."""
        return self._rows.query(sql)

    def release_countries(self) -> list[str]:
        """Every country with releases; empty where a source has none."""
        return [c for (c,) in self._rows.query("SELECT DISTINCT country FROM release ORDER BY country")]

    def releases(self, country: str, *, bodies: bool) -> Iterator[ReleaseRow]:
        """A country's releases in the order they are served, each as corrected last.

        Content that several sources publish alike is attributed to the first of them.
        """
        body = "body" if bodies else "''"
        served: ReleaseRow | None = None
        content, repeated = "", False
        for digest, *columns in self._rows.query(
            "SELECT digest, ocid, release_id, release_date, country, location, summary, parties, "  # noqa: S608 - a column's name
            f"{body}, capture_id FROM release WHERE country = ? "
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

    def release_body(self, ocid: str, release_id: str, release_date: str) -> str:
        """The cleaned release as corrected last."""
        ((body,),) = self._rows.query(
            "SELECT body FROM release WHERE ocid = ? AND release_id = ? AND release_date = ? "
            "ORDER BY number DESC LIMIT 1",
            (ocid, release_id, release_date),
        )
        return str(body)

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
        """The parties of the releases that are read, each with the first capture that names it: a party is
        stored once, whoever else names it."""
        decode = msgspec.json.Decoder(list[list[str]]).decode
        first: dict[str, int] = {}
        for parties, capture_id in self._rows.query("SELECT parties, capture_id FROM release"):
            for party_id, *_ in decode(parties):
                first[party_id] = min(first.get(party_id, capture_id), capture_id)
        return first

    def holds_record(self, subject: str) -> bool:
        """Whether a register has a record of an organisation under this identifier."""
        return holds_record(self._rows, subject)

    def annual(self) -> Iterator[tuple[str, str, int, str, Years]]:
        """(country, indicator, capture_id, document, values by year), the columns together, oldest first."""
        return annual_rows(self._rows)

    def indicator_names(self) -> dict[str, str]:
        return indicator_names(self._rows)

    def series_info(self) -> Iterator[tuple[int, SeriesInfo]]:
        """(capture_id, what metadata say of a series or indicator), by code, oldest first."""
        return series_info(self._rows)

    def series(self) -> Iterator[tuple[str, str, str, str, int, str, list[ReportedValue]]]:
        """(series, series_type, frequency, country, capture_id, document, told), the columns together."""
        return series_rows(self._rows)

    def close(self) -> None:
        self._rows.close()


class Ledger(LedgerReader):
    """Opened once per command; not shared between threads."""

    def __init__(
        self,
        store: Datastore,
        gate_key: bytes,
        clock: Callable[[], datetime],
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`notify` is called with a line for the operator where an older ledger was brought up to date."""
        self._session = store.ledger()
        super().__init__(self._session, gate_key)
        self._clock = clock
        if any(self._session.query(_UNLISTED_CAPTURES)):
            with self._session.transaction():
                self._session.absorb(_LIST_FACT_SUBJECTS)
                self._session.absorb(_LIST_CAPTURES)
        if any(seals.unsealed_captures(self._session)):
            self.persons()  # sealed with another gate secret, nothing could be verified any more
            with self._session.transaction():
                sealed = seals.seal_what_was_there(self._session, gate_key)
            notify(f"the ledger was begun before captures were sealed: sealed {sealed} as they are now")

    def verify(self) -> seals.Checked:
        """Hold every row against the seals. Raises LedgerDamaged; SettingsError with another gate secret."""
        try:
            return seals.verify(self._session, self._gate_key)
        except seals.LedgerDamaged:
            if not seals.is_keyed_with(self._session, self._gate_key):
                self.persons()
            raise

    def contents(self) -> dict[int, CaptureContent]:
        """Of every capture its source and a digest of its rows, to be compared with another ledger."""
        named = {number: capture.source_id for number, capture in self.captures().items()}
        named |= {withdrawal.number: withdrawal.source_id for withdrawal in self.withdrawals()}
        return {
            number: CaptureContent(source_of(named.get(number, "")), content)
            for number, content in seals.contents(self._session).items()
        }

    def without(self, source_ids: Collection[str]) -> LedgerReader:
        """This ledger as if these sources, and whatever was withdrawn, never came.

        Whoever one of them proved to be a natural person stays withheld.
        """
        view = LedgerReader(LeavingOut(self._session, source_ids), self._gate_key)
        view._partial = True
        return view

    @contextmanager
    def verified_snapshot(self) -> Iterator[None]:
        """Everything read inside belongs together, whatever is being ingested meanwhile, and is what was
        appended. Raises LedgerDamaged."""
        with self._session.snapshot():
            self.verify()
            yield

    @contextmanager
    def capture(self, source_id: str, license_class: str, file_name: str, sha256: str) -> Iterator[Capture]:
        """One file, one transaction. Whatever goes wrong inside, nothing of the file is there."""
        with self.writing() as session:
            stored = Generations(session).stored_id(source_id)
            now = instant(self._clock())
            with self.take(self.next_number(), stored, license_class, file_name, sha256, now) as capture:
                if stored != source_id and not capture.repeated:
                    capture.withdrawn_before = self._withdrawn_before(source_id, sha256)
                yield capture

    @contextmanager
    def writing(self) -> Iterator[LedgerSession]:
        """One transaction; what is appended inside is sealed at its end."""
        sums = seals.RowSums()
        with self._session.transaction(), self._watched(sums):
            yield self._session
            seals.append_seals(self._session, self._gate_key, sums)

    @contextmanager
    def take(
        self, number: int, stored: str, license_class: str, file_name: str, sha256: str, observed_at: str
    ) -> Iterator[Capture]:
        """A file under the stored id of its source, inside `writing`; recorded where it said anything new."""
        persons = self.persons()
        if not self.position():
            self._session.stage("withheld", [(persons.mark, _GATE_MARK, 0)])
            self._session.absorb(ABSORB_WITHHELD)
        same_file = (
            "SELECT 1 FROM capture WHERE source_id = ? AND content_sha256 = ? "
            "UNION ALL SELECT 1 FROM sighting WHERE source_id = ? AND content_sha256 = ?"
        )
        repeated = any(self._session.query(same_file, (stored, sha256, stored, sha256)))
        capture = Capture(self._session, number, stored, file_name, observed_at, persons, repeated=repeated)
        yield capture
        capture.flush()
        if capture.is_news:
            counts = json.dumps(vars(capture.counts))
            row = (capture.id, stored, capture.file_name, sha256, observed_at, license_class, counts)
            self._session.stage("capture", [row])
            self._session.absorb(_ABSORB_CAPTURE)
            told_of = sorted({"", *capture.fact_subjects})
            self._session.stage("fact_subject", [(subject, capture.id) for subject in told_of])
            self._session.absorb(_ABSORB_FACT_SUBJECTS)
        elif not capture.repeated:
            self._session.append("sighting", [(stored, sha256)])

    def next_number(self) -> int:
        """Of the next capture or withdrawal."""
        return self.position() + 1

    def _withdrawn_before(self, source_id: str, sha256: str) -> Withdrawal | None:
        """The last withdrawal of this very file."""
        for withdrawal in reversed(self.withdrawals()):
            if withdrawal.source_id == source_id and any(
                capture.content_sha256 == sha256 for capture in withdrawal.captures
            ):
                return withdrawal
        return None

    @contextmanager
    def _watched(self, sums: seals.RowSums) -> Iterator[None]:
        self._session.watch(sums.add)
        try:
            yield
        finally:
            self._session.watch(None)
