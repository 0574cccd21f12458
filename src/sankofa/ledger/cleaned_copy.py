"""Cleaned copies of files whose bytes are not stored, to read them again after a withdrawal.

Everything in it has passed the gate: cleaned releases, records, facts and identifiers of organisations, keyed
hashes of persons. One line of JSON for each; the last has the name of the file and what was counted.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sankofa.ledger.capture import Capture, CleanedRelease, Counts
from sankofa.ledger.tenders import ReleaseIngester
from sankofa.model.records import EntityRecord, Fact, IdentifierLink
from sankofa.sources.base import Limits, adapters
from sankofa.sources.registry import Source
from sankofa.vault.objects import LineWriter
from sankofa.vault.store import Vault

_FACT, _LINK, _ENTITY, _PERSON, _RELEASE, _END = "f", "l", "e", "p", "r", "."
_encode = msgspec.json.Encoder().encode
_kind = msgspec.json.Decoder(tuple[str, msgspec.Raw]).decode
_fact = msgspec.json.Decoder(Fact).decode
_link = msgspec.json.Decoder(IdentifierLink).decode
_entity = msgspec.json.Decoder(EntityRecord).decode
_release = msgspec.json.Decoder(CleanedRelease).decode
_text = msgspec.json.Decoder(str).decode
_end = msgspec.json.Decoder(tuple[str, dict[str, int]]).decode


class CleanedCopyWriter:
    """See `capture.CleanedCopy`."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def fact(self, fact: Fact) -> None:
        self._write(_FACT, fact)

    def link(self, link: IdentifierLink) -> None:
        self._write(_LINK, link)

    def entity(self, record: EntityRecord, profile: bytes) -> None:
        subject, effective, _, incidental = record
        self._write(_ENTITY, (subject, effective, msgspec.Raw(profile), incidental))

    def person(self, hashed: str) -> None:
        self._write(_PERSON, hashed)

    def release(self, release: CleanedRelease) -> None:
        self._write(_RELEASE, release)

    def finish(self, capture: Capture) -> Path:
        """The file, complete."""
        self._write(_END, (capture.file_name, vars(capture.counts)))
        self._writer.close()
        return self._writer.path

    def _write(self, kind: str, content: Any) -> None:
        self._writer.write(_encode((kind, content)))


@contextmanager
def cleaned_copy(vault: Vault | None, source: Source, capture: Capture) -> Iterator[CleanedCopyWriter | None]:
    """Write a cleaned copy of the rows added inside, where the vault stores no bytes of such files."""
    if vault is None or vault.has_key or not adapters()[source.adapter].names_people:
        yield None
        return
    writer = vault.rows_writer()
    try:
        copy = capture.cleaned_copy = CleanedCopyWriter(writer)
        yield copy
    finally:
        capture.cleaned_copy = None
        writer.path.unlink(missing_ok=True)  # unless the vault took it


def take_again(capture: Capture, lines: Iterable[bytes], now: datetime, limits: Limits) -> None:
    """Take what a copy has into a capture, counted as it was then."""
    releases = ReleaseIngester(capture, "", now, limits.text_length)
    for line in lines:
        kind, content = _kind(line)
        if kind == _ENTITY:
            capture.entity(_entity(content))
        elif kind == _FACT:
            capture.fact(_fact(content))
        elif kind == _LINK:
            capture.link(_link(content))
        elif kind == _PERSON:
            capture.withhold_hashed(_text(content))
        elif kind == _RELEASE:
            releases.take_cleaned(_release(content))
        elif kind == _END:
            releases.flush()
            capture.flush()
            name, counted = _end(content)
            capture.file_name = capture.file_name or name
            taken = capture.counts
            capture.counts = Counts(**(counted | {"appended": taken.appended, "unchanged": taken.unchanged}))
