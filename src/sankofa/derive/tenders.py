"""Tenders as an edition serves them: every release checked by the gate again, every party resolved.

`RecordedTenders` reads the ledger once in a build. On the way it writes summaries, parties and awards to a
temporary file and reads them back from there: no body is parsed twice, and memory stays flat.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from sankofa.ledger.matching import UNRESOLVED, EvidencedParties, Match, PartyMatcher, PartyQuestion
from sankofa.ledger.reader import ReleaseRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.errors import CheckFailed
from sankofa.model.ocds.fields import moment
from sankofa.model.ocds.red_flags import NO_FACTS, FlagFacts, flag_facts
from sankofa.model.ocds.release import Identifiers, Organisation, ReleaseSummary, clean_again
from sankofa.model.text import fold_in_place, one_line

_summary = msgspec.json.Decoder(ReleaseSummary).decode
_roles = msgspec.json.Decoder(list[list[str]]).decode


class Tender(NamedTuple):
    """One release: its row in the ledger (the body only where asked for), and who is in it."""

    row: ReleaseRow
    summary: ReleaseSummary
    parties: list[tuple["Resolved", list[str]]]
    """Each with its roles."""
    awards: "list[Award] | None" = None
    """Where they were read before; else they are in the body (`derive.tenders`)."""
    closing: str | None = None
    """The instant in UTC at which the tender closes, where its body was read and has one."""
    flag_facts: FlagFacts = NO_FACTS
    """What indicators of red flags read in its body, where that was read."""


class Resolved(NamedTuple):
    """A party that may be named, and the organisation it was matched with."""

    name: str
    country: str
    identifiers: Identifiers
    org_evidence: str
    match: Match


class Tenders:
    """The tenders of a ledger, put together once per build."""

    def __init__(self, parties: EvidencedParties, matcher: PartyMatcher) -> None:
        self._ledger = parties.ledger
        self._evidenced = parties
        self._matcher = matcher

    @cached_property
    def countries(self) -> list[str]:
        """The countries that have releases."""
        return [country for country in self._ledger.release_countries() if country]

    def of(self, country: str, *, bodies: bool = False) -> Iterator[Tender]:
        """The releases of a country: newest first, then by ocid and release id."""
        parties = self._parties
        for row in self._ledger.releases(country, bodies=bodies):
            summary = _summary(row.summary)
            listed = _roles(row.parties)
            if any(party_id not in parties for party_id, *_ in listed):
                raise CheckFailed(f"release {row.ocid}: a party without evidence")
            day = ordinal(row.release_date[:10])
            resolved = [(party.on(day), roles) for p, *roles in listed if (party := parties[p]) is not None]
            if len(resolved) < len(listed):  # some parties have lost their evidence
                row, summary, resolved = self._cleaned_again(row, summary)
            yield Tender(row, summary, resolved)

    def resolution_counts(self) -> tuple[int, int]:
        """How many of the parties that may be named are resolved, and how many there are."""
        parties = [party for party in self._parties.values() if party is not None]
        return sum(party.on(FOREVER - 1).match.service_id is not None for party in parties), len(parties)

    @cached_property
    def _parties(self) -> dict[str, "_Party | None"]:
        """By party_id; None if the evidence is gone: a record was withdrawn or a table corrected."""
        by_id: dict[str, _Party | None] = {}
        for party_id, name, country, identifiers, evidence, _ in self._evidenced:
            by_id[party_id] = None
            if evidence is not None:
                asked = self._matcher.ask(name, country, identifiers)
                by_id[party_id] = _Party(Resolved(name, country, identifiers, evidence, UNRESOLVED), asked)
        return by_id

    def _cleaned_again(
        self, row: ReleaseRow, summary: ReleaseSummary
    ) -> tuple[ReleaseRow, ReleaseSummary, list[tuple[Resolved, list[str]]]]:
        """The release as it would be ingested today."""
        body = row.body or self._ledger.release_body(row.ocid, row.release_id, row.release_date)
        parties = self._evidenced
        cleaned = clean_again(body.encode(), summary, row.country, parties.gate, parties.persons.token)
        day = ordinal(row.release_date[:10])
        resolved = [(self._resolved(one, day), list(roles)) for one, roles in cleaned.parties]
        row = row._replace(
            ocid=cleaned.ocid, release_id=cleaned.release_id, body=cleaned.body.decode() if row.body else ""
        )
        return row, cleaned.summary, resolved

    def _resolved(self, organisation: Organisation, day: int) -> Resolved:
        asked = self._matcher.ask(organisation.name, organisation.country, organisation.identifiers)
        return Resolved(*organisation[1:], asked.on(day))


class _Party(NamedTuple):
    """A party that may be named, and who it may be."""

    named: Resolved
    asked: PartyQuestion

    def on(self, day: int) -> Resolved:
        """Matched as of the day of a release."""
        match = self.asked.on(day)
        return self.named._replace(match=match) if match.service_id else self.named


_NOT_AWARDED: Final = ("cancelled", "unsuccessful")


class Award(NamedTuple):
    """One award as one release has it."""

    award_id: str
    day: str | None
    """The day of the award, where published."""
    status: str | None
    amount: Decimal | None
    currency: str | None
    suppliers: list[Resolved]
    withheld: int
    """Winners that are not named."""

    @property
    def is_valid(self) -> bool:
        """False if its status (OCDS awardStatus) says that nothing was awarded."""
        return (self.status or "").lower() not in _NOT_AWARDED


class _Organisation(msgspec.Struct):
    id: str | int | None = None
    name: str | None = None


class _Value(msgspec.Struct):
    amount: Decimal | None = None
    currency: str | None = None


class _Award(msgspec.Struct):
    id: str | int | None = None
    date: str | None = None
    status: str | None = None
    value: _Value | None = None
    suppliers: list[_Organisation] | None = None


class _Period(msgspec.Struct):
    endDate: str | None = None  # noqa: N815 - as OCDS spells it


class _Tender(msgspec.Struct):
    tenderPeriod: _Period | None = None  # noqa: N815 - as OCDS spells it


class _Body(msgspec.Struct):
    parties: list[_Organisation] | None = None
    awards: list[_Award] | None = None
    tender: _Tender | None = None


_read = msgspec.json.Decoder(_Body).decode


def awards(tender: Tender) -> list[Award]:
    """The awards of a release that was read with its body or its awards, in document order."""
    if tender.awards is not None:
        return tender.awards
    return _awards(tender, _read(tender.row.body)) if tender.summary.award_count else []


def _read_whole(tender: Tender) -> Tender:
    """A release with what its body says of awards and of its closing."""
    body = _read(tender.row.body)
    end = body.tender and body.tender.tenderPeriod and body.tender.tenderPeriod.endDate
    by_name = {_key(party.name): party.match.service_id for party, _ in tender.parties}
    facts = flag_facts(tender.row.body, lambda name: by_name.get(_key(name)))
    closing = moment(end) if end else None
    return tender._replace(awards=_awards(tender, body), closing=closing, flag_facts=facts)


def _awards(tender: Tender, body: _Body) -> list[Award]:
    resolved_by_name = {_key(party.name): party for party, _ in tender.parties}
    by_id = {str(party.id): party.name for party in body.parties or () if party.id is not None and party.name}
    return [_award(number, award, resolved_by_name, by_id) for number, award in enumerate(body.awards or ())]


def _award(number: int, award: _Award, resolved_by_name: dict[str, Resolved], by_id: dict[str, str]) -> Award:
    suppliers: list[Resolved] = []
    withheld = 0
    for supplier in award.suppliers or ():
        name = supplier.name or by_id.get(str(supplier.id), "")
        party = resolved_by_name.get(_key(name)) if name else None
        if party is None:
            withheld += 1
        elif party not in suppliers:
            suppliers.append(party)
    value = award.value or _Value()
    return Award(
        str(award.id) if award.id is not None else f"#{number}",
        award.date[:10] if award.date else None,
        award.status,
        value.amount,
        value.currency,
        suppliers,
        withheld,
    )


def _key(name: str) -> str:
    return fold_in_place(one_line(name))


_TENDERS_PER_CHUNK: Final = 64


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Tender]).decode


class RecordedTenders(Tenders):
    """The tenders of a ledger. Readings without bodies come from the temporary file."""

    def __init__(self, parties: EvidencedParties, matcher: PartyMatcher) -> None:
        super().__init__(parties, matcher)
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._chunks: dict[str, list[tuple[int, int]]] = {}
        """By country, the positions of its records in the file."""

    def of(self, country: str, *, bodies: bool = False) -> Iterator[Tender]:
        """The releases of a country, newest first, then by ocid and release id, with body or with awards."""
        if bodies:
            yield from self._recording(country)
            return
        if country not in self._chunks:
            for _ in self._recording(country):
                pass
        for start, size in self._chunks[country]:
            yield from _decode(os.pread(self._file.fileno(), size, start))

    def _recording(self, country: str) -> Iterator[Tender]:
        """From the ledger, with bodies."""
        chunks: list[tuple[int, int]] = []
        records: list[Tender] = []
        for tender in map(_read_whole, super().of(country, bodies=True)):
            records.append(tender._replace(row=tender.row._replace(summary="", parties="", body="")))
            if len(records) == _TENDERS_PER_CHUNK:
                chunks.append(self._write(records))
                records = []
            yield tender
        if records:
            chunks.append(self._write(records))
        self._chunks[country] = chunks

    def _write(self, records: list[Tender]) -> tuple[int, int]:
        encoded = _encode(records)
        start, self._end = self._end, self._end + len(encoded)
        self._file.write(encoded)
        return start, len(encoded)
