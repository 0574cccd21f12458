"""Ingests tender releases: cleans each, withholds people, appends only what is new from a source.

A file whose bytes are not stored leaves a cleaned copy, to read it again after a withdrawal. Everything in it
has passed the gate. It has one line of JSON for each record; the last has the name and the counts.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.engines.ledger_store import Row
from sankofa.ledger.capture import Capture, CleanedRelease, RecordKind, Triple, holds_record
from sankofa.ledger.generations import PER_CAPTURE
from sankofa.ledger.matching import party_evidence
from sankofa.model.days import instant, latest_day
from sankofa.model.ocds.redaction import Secrets
from sankofa.model.ocds.release import (
    CleanRelease,
    Gate,
    Identifiers,
    Unusable,
    buyer_country,
    clean,
    clean_again,
    encode,
)
from sankofa.model.records import Acceptance, Counts, EntityRecord, Fact, IdentifierLink, Rejected, Release
from sankofa.sources.base import Limits, adapters
from sankofa.sources.registry import Source
from sankofa.vault.store import Vault

_BATCH = 500
_REMEMBERED = 100_000
NO_COUNTRY = "without a country: neither the source nor the buyer has one; kept in the ledger, not served"
SERVED_RELEASES: Final = """release AS r
    WHERE r.country <> '' AND r.number = (
        SELECT min(same.number) FROM release AS same
        WHERE same.ocid = r.ocid AND same.release_id = r.release_id AND same.release_date = r.release_date
          AND same.country = r.country AND NOT EXISTS (
            SELECT 1 FROM release AS other
            WHERE other.ocid = r.ocid AND other.release_id = r.release_id
              AND other.release_date = r.release_date AND other.country = r.country
              AND other.number > same.number AND other.digest <> same.digest
        )
    )"""
"""The rows that `LedgerReader.releases` returns, for counting: the last correction of each release, from the
first source that published that content. Releases without a country are not served."""


class ReleaseIngester:
    """Ingests the releases of one file. If the source fixes no country, the buyer's country is used."""

    def __init__(self, capture: Capture, country: str, now: datetime, longest_text: int) -> None:
        self._capture = capture
        self._longest_text = longest_text
        self._country = country
        self._latest = instant(now + timedelta(days=1))  # tomorrow has begun in some time zone
        self._latest_day = latest_day(capture.observed_at[:10])
        self._number = capture.id * PER_CAPTURE
        self._waiting: list[CleanedRelease] = []
        self._secrets: dict[str, Secrets] = {}
        """By process, the persons withheld in its releases so far; no other release may name them."""
        self._in_positions = Secrets()
        """The persons named, by position of the release."""
        self._cleaned_waiting: dict[str, list[tuple[int, CleanRelease]]] = {}
        """By process, the releases that wait, each with its number among them."""
        self._parties: dict[str, Row] = {}
        self._withheld: set[str] = set()
        self._known: set[str] = set()
        self._gate = Gate(self._evidence)

    def take(self, release: Release) -> Iterator[Rejected]:
        """Ingest one release; yields its rejected parts."""
        counts = self._capture.counts
        counts.read += 1
        country = self._country or buyer_country(release.content)
        process = str(release.content.get("ocid")) if type(release.content) is dict else ""
        known = self._secrets.get(process)
        try:
            token = self._capture.persons.token
            cleaned = clean(release.content, country, self._gate, token, self._latest_day, known)
            if cleaned.release_date > self._latest:
                raise Unusable("a date in the future")
            if len(cleaned.body) > self._longest_text and _longest_text(release.content) > self._longest_text:
                raise Unusable(too_long_text(self._longest_text))
        except Unusable as failure:
            yield Rejected(release.position, str(failure))
            return
        position = self._in_positions.cut(release.position) if self._in_positions else release.position
        if cleaned.secrets and cleaned.secrets.may_repeat(f"{position} {self._capture.shown_path}"):
            if cleaned.secrets.repeats(position):  # by the name of a file in an archive, which has others too
                self._in_positions.include(cleaned.secrets)
                cut = self._in_positions.cut
                self._waiting[:] = [one._replace(position=cut(one.position)) for one in self._waiting]
            position = cleaned.secrets.cut(position)
            self._capture.file_name = cleaned.secrets.cut(self._capture.file_name)
            self._capture.shown_path = cleaned.secrets.cut(self._capture.shown_path)
        counts.withheld += len(cleaned.withheld)
        for field, reason in cleaned.faults:
            yield Rejected(f"{position}: {field}", reason)
        if not country:
            yield Rejected(f"{position}: buyer", NO_COUNTRY)
        if cleaned.secrets and not (known is not None and known.covers(cleaned.secrets)):
            self._clean_earlier(process, cleaned.secrets)
        self._cleaned_waiting.setdefault(process, []).append((len(self._waiting), cleaned))
        self.take_cleaned(self._cleaned(cleaned, position, country))

    def _clean_earlier(self, process: str, secrets: Secrets) -> None:
        """Remove newly withheld names from the waiting releases of a process."""
        if len(self._secrets) >= _REMEMBERED:
            self._secrets.clear()
        self._secrets[process] = secrets
        own = self._cleaned_waiting.get(process, [])
        for at, (number, before) in enumerate(own):
            waiting = self._waiting[number]
            if secrets.may_repeat(before.body.decode()):
                country, token = waiting.country, self._capture.persons.token
                cleaned = clean_again(before.body, before.summary, country, self._gate, token, secrets)
                own[at] = number, cleaned
                again = self._cleaned(cleaned, secrets.cut(waiting.position), country)
                self._waiting[number] = again._replace(withheld=waiting.withheld)

    def take_cleaned(self, release: CleanedRelease) -> None:
        """Ingest a release that was cleaned, now or when its file came."""
        self._waiting.append(release)
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Append releases with new content."""
        if not self._waiting:
            return
        if self._capture.cleaned_copy is not None:
            for release in self._waiting:
                self._capture.cleaned_copy(RecordKind.RELEASE, release)
        self._cleaned_waiting.clear()
        stored = self._stored_digests({release.triple for release in self._waiting})
        rows = []
        for release in self._waiting:
            digests = stored.setdefault(release.triple, [])
            if (release.digest in digests) if self._capture.repeated else (digests[-1:] == [release.digest]):
                self._capture.counts.unchanged += 1
                continue
            digests.append(release.digest)
            rows.append(self._row(release))
        append = self._capture.session.append
        self._capture.counts.appended += append("release", rows)
        self._waiting.clear()
        append("party", list(self._parties.values()))
        self._parties.clear()
        hashes = sorted(self._withheld)
        append("withheld_party", [(h, self._capture.source_id, self._capture.id) for h in hashes])
        self._withheld.clear()
        if len(self._known) > _REMEMBERED:
            self._known.clear()

    def _stored_digests(self, triples: set[Triple]) -> dict[Triple, list[str]]:
        """The digests of this source's versions of each release, oldest first."""
        marks = ",".join(["(?,?,?)"] * len(triples))
        stored: dict[Triple, list[str]] = {}
        for ocid, release_id, release_date, digest in self._capture.session.query(
            f"SELECT r.ocid, r.release_id, r.release_date, r.digest FROM (VALUES {marks}) AS asked "  # noqa: S608 - marks alone
            "JOIN release AS r ON r.ocid = asked.column1 AND r.release_id = asked.column2 "
            "AND r.release_date = asked.column3 LEFT JOIN capture AS c ON c.capture_id = r.capture_id "
            "WHERE coalesce(c.source_id, ?) = ? ORDER BY r.number",  # the capture under way is not listed yet
            [*(part for triple in sorted(triples) for part in triple), *(self._capture.source_id,) * 2],
        ):
            stored.setdefault((ocid, release_id, release_date), []).append(digest)
        return stored

    def _cleaned(self, cleaned: CleanRelease, position: str, country: str) -> CleanedRelease:
        hashed = self._capture.persons.hashed
        return CleanedRelease(
            cleaned[:3],
            self._content_digest(cleaned, country),
            position,
            country,
            msgspec.Raw(encode(cleaned.summary)),
            msgspec.Raw(cleaned.body),
            [
                (
                    known.party_id,
                    known.name,
                    known.country,
                    encode(known.identifiers).decode(),
                    known.org_evidence,
                )
                for known, _ in cleaned.parties
            ],
            [(known.party_id, *party_roles) for known, party_roles in cleaned.parties],
            [hashed(f"party:{country}:{subject}") for subject in cleaned.withheld],
        )

    def _row(self, release: CleanedRelease) -> Row:
        self._number += 1
        for party in release.parties:
            if party[0] not in self._known:
                self._known.add(party[0])
                self._parties[party[0]] = (*party, self._capture.id)
        self._withheld.update(release.withheld)
        return (
            *release.triple, self._number, release.digest, release.country, release.position,
            bytes(release.summary).decode(), encode(release.roles).decode(), bytes(release.body).decode(),
            self._capture.id,
        )  # fmt: skip

    def _content_digest(self, cleaned: CleanRelease, country: str) -> str:
        """Identifies content by its served fields and its parties."""
        who = [(*known[1:], roles) for known, roles in cleaned.parties]
        served_beside_body = msgspec.json.encode((cleaned.summary.category, country, who))
        return hashlib.blake2b(cleaned.body + served_beside_body, digest_size=16).hexdigest()

    def _evidence(self, name: str, identifiers: Identifiers, country: str) -> str | None:
        capture = self._capture
        return party_evidence(
            name, identifiers, country, capture.persons, partial(holds_record, capture.session)
        )


def too_long_text(most: int) -> str:
    """Why a row is rejected."""
    return f"a text of more than {most:,} characters (SANKOFA_INGEST_TEXT_LENGTH)"


def _longest_text(value: Any) -> int:
    longest = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            longest = max(longest, len(value))
        elif isinstance(value, dict):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return longest


_encode = msgspec.json.Encoder().encode
_kind = msgspec.json.Decoder(tuple[RecordKind, msgspec.Raw]).decode
_end = msgspec.json.Decoder(tuple[str, dict[str, int]]).decode


@contextmanager
def cleaned_copy(
    vault: Vault | None, source: Source, capture: Capture
) -> Iterator[Callable[[], Path | None]]:
    """Write a cleaned copy of the rows added inside, if the vault stores no bytes of such files.

    Yields a function that completes the copy and names its file.
    """
    if vault is None or vault.has_key or not adapters()[source.adapter].names_people:
        yield lambda: None
        return
    writer = vault.rows_writer()

    def write(kind: RecordKind, content: Any) -> None:
        writer.write(_encode((kind, content)))

    def finish() -> Path:
        write(RecordKind.END, (capture.file_name, vars(capture.counts)))
        writer.close()
        return writer.path

    try:
        capture.cleaned_copy = write
        yield finish
    finally:
        capture.cleaned_copy = None
        writer.path.unlink(missing_ok=True)  # unless the vault took it


def take_again(capture: Capture, lines: Iterable[bytes], now: datetime, limits: Limits) -> None:
    """Ingests a cleaned copy into a capture, with the counts of its file."""
    releases = ReleaseIngester(capture, "", now, limits.text_length)
    kinds: tuple[tuple[RecordKind, Any, Callable[[Any], None]], ...] = (
        (RecordKind.FACT, Fact, capture.fact),
        (RecordKind.ACCEPTANCE, Acceptance, capture.acceptance),
        (RecordKind.LINK, IdentifierLink, capture.link),
        (RecordKind.ENTITY, EntityRecord, capture.entity),
        (RecordKind.PERSON, str, capture.withhold_hashed),
        (RecordKind.RELEASE, CleanedRelease, releases.take_cleaned),
    )
    taking = {kind: (msgspec.json.Decoder(shape).decode, take) for kind, shape, take in kinds}
    for line in lines:
        kind, content = _kind(line)
        if kind is not RecordKind.END:
            read, take = taking[kind]
            take(read(content))
            continue
        releases.flush()
        capture.flush()
        name, counted = _end(content)
        capture.file_name = capture.file_name or name
        own = capture.counts
        capture.counts = Counts(**(counted | {"appended": own.appended, "unchanged": own.unchanged}))
