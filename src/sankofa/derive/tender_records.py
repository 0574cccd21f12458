"""Tenders read from the ledger once in a build, however many things are made of them.

The one reading has the bodies, for the rows that are served. What everything else needs of a release - its
summary, its parties as resolved, its awards - is written to a temporary file on the way, and read back from
there: a third of the time of reading the ledger again, and no body is parsed twice. Memory stays flat.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import msgspec

from sankofa.derive.awards import Award, awards
from sankofa.derive.tenders import EvidencedParties, Resolved, Tender, Tenders
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import ReleaseRow
from sankofa.model.ocds.release import ReleaseSummary

_TENDERS_PER_CHUNK: Final = 64


class _Award(msgspec.Struct, array_like=True, gc=False):
    award_id: str
    day: str | None
    status: str | None
    amount: Decimal | None
    currency: str | None
    suppliers: list[int]
    withheld: int


class _Record(msgspec.Struct, array_like=True, gc=False):
    """A release; parties are told by their number."""

    ocid: str
    release_id: str
    release_date: str
    location: str
    capture_id: int
    summary: ReleaseSummary
    parties: list[tuple[int, list[str]]]
    awards: list[_Award]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Record]).decode


class RecordedTenders(Tenders):
    """The tenders of a ledger. Whoever wants no bodies is given what was written down of them."""

    def __init__(self, parties: EvidencedParties, entities: list[Entity]) -> None:
        super().__init__(parties, entities)
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._chunks: dict[str, list[tuple[int, int]]] = {}
        """By country, where in the file its records stand."""
        self._known: list[Resolved] = []
        self._numbers: dict[int, int] = {}

    def of(self, country: str, *, bodies: bool = False) -> Iterator[Tender]:
        """Newest first; then by ocid and release id. With its body, or with its awards."""
        if bodies:
            yield from self._recording(country)
            return
        if country not in self._chunks:
            for _ in self._recording(country):
                pass
        for start, size in self._chunks[country]:
            for record in _decode(os.pread(self._file.fileno(), size, start)):
                yield self._tender(country, record)

    def _recording(self, country: str) -> Iterator[Tender]:
        """From the ledger, with bodies."""
        chunks: list[tuple[int, int]] = []
        records: list[_Record] = []
        for tender in super().of(country, bodies=True):
            records.append(self._record(tender))
            if len(records) == _TENDERS_PER_CHUNK:
                chunks.append(self._write(records))
                records = []
            yield tender
        if records:
            chunks.append(self._write(records))
        self._chunks[country] = chunks

    def _write(self, records: list[_Record]) -> tuple[int, int]:
        encoded = _encode(records)
        start, self._end = self._end, self._end + len(encoded)
        self._file.write(encoded)
        return start, len(encoded)

    def _record(self, tender: Tender) -> _Record:
        row = tender.row
        return _Record(
            row.ocid,
            row.release_id,
            row.release_date,
            row.location,
            row.capture_id,
            tender.summary,
            [(self._number(party), roles) for party, roles in tender.parties],
            [
                _Award(*award[:5], [self._number(supplier) for supplier in award.suppliers], award.withheld)
                for award in awards(tender)
            ],
        )

    def _tender(self, country: str, record: _Record) -> Tender:
        known = self._known
        row = ReleaseRow(
            record.ocid,
            record.release_id,
            record.release_date,
            country,
            record.location,
            "",
            "",
            "",
            record.capture_id,
        )
        given = [
            Award(
                award.award_id,
                award.day,
                award.status,
                award.amount,
                award.currency,
                [known[number] for number in award.suppliers],
                award.withheld,
            )
            for award in record.awards
        ]
        return Tender(row, record.summary, [(known[n], roles) for n, roles in record.parties], given)

    def _number(self, party: Resolved) -> int:
        """A party is one object in all releases that name it, but in those that were cleaned again."""
        number = self._numbers.get(id(party))
        if number is None:
            number = self._numbers[id(party)] = len(self._known)
            self._known.append(party)
        return number
