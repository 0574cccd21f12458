"""Tenders as an edition serves them: every release checked by the gate again, every party resolved.

`Tenders` reads the ledger once in a build. On the way it writes summaries, parties and awards to a temporary
file and reads them back from there: no body is parsed twice, and memory stays flat.

Published amounts of tenders, and of awards that an organisation won, have vintages. A release without an
amount withdraws nothing. The same amount adds nothing; a different amount is the next vintage, from the day
of its release on (`model.vintages`). Zero does not count as an amount.
"""

import os
import tempfile
import weakref
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from sankofa.ledger.matching import UNRESOLVED, EvidencedParties, Match, PartyMatcher, PartyQuestion
from sankofa.ledger.reader import CaptureInfo, ReleaseRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.errors import CheckFailed
from sankofa.model.figures import exact
from sankofa.model.ocds.fields import moment
from sankofa.model.ocds.process_facts import instant_of
from sankofa.model.ocds.red_flags import (
    FlagFacts,
    ProcessReleases,
    ReleaseFacts,
    day_states,
    flag_facts,
)
from sankofa.model.ocds.release import Identifiers, ReleaseSummary, clean_again
from sankofa.model.text import fold_in_place, one_line
from sankofa.model.vintages import Vintage, vintages

_summary = msgspec.json.Decoder(ReleaseSummary).decode
_roles = msgspec.json.Decoder(list[list[str]]).decode


class Tender(NamedTuple):
    """One release: its row in the ledger (the body only on request), and its parties."""

    row: ReleaseRow
    summary: ReleaseSummary
    parties: list[tuple["Resolved", list[str]]]
    """Each with its roles."""
    awards: "list[Award]"
    """In the order of the document."""
    closing: str | None
    """The instant in UTC at which the tender closes, if the release gives it."""
    flag_facts: FlagFacts
    """The input of red flag indicators."""
    has_time: bool
    """Whether the date of the release was published with a time and its zone."""


class Resolved(NamedTuple):
    """A party that may be named, and its matched organisation."""

    name: str
    country: str
    identifiers: Identifiers
    org_evidence: str
    match: Match


class Tenders:
    """The tenders of a ledger, put together once per build. They are read from a temporary file, unless their
    bodies are requested."""

    def __init__(self, parties: EvidencedParties, matcher: PartyMatcher) -> None:
        self._ledger = parties.ledger
        self._evidenced = parties
        self._matcher = matcher
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._chunks: dict[str, list[tuple[int, int]]] = {}
        """By country, the positions of its records in the file."""

    @cached_property
    def countries(self) -> list[str]:
        return [country for country in self._ledger.release_countries() if country]

    def of(self, country: str, *, bodies: bool = False) -> Iterator[Tender]:
        """The releases of a country: newest first, then by ocid and release id."""
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
        for tender in self._read(country):
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

    def _read(self, country: str) -> Iterator[Tender]:
        parties = self._parties
        for row in self._ledger.releases(country):
            summary = _summary(row.summary)
            listed = _roles(row.parties)
            if any(party_id not in parties for party_id, *_ in listed):
                raise CheckFailed(f"release {row.ocid}: a party without evidence")
            day = ordinal(row.release_date[:10])
            resolved = [(party.on(day), roles) for p, *roles in listed if (party := parties[p]) is not None]
            if len(resolved) < len(listed):  # some parties have lost their evidence
                row, summary, resolved = self._cleaned_again(row, summary)
            yield _tender(row, summary, resolved)

    def resolution_counts(self) -> tuple[int, int]:
        """How many of the parties that may be named are resolved, and how many there are."""
        parties = [party for party in self._parties.values() if party is not None]
        return sum(party.on(FOREVER - 1).match.service_id is not None for party in parties), len(parties)

    @cached_property
    def _parties(self) -> dict[str, "_Party | None"]:
        """By party_id; None if the evidence is gone because a record was withdrawn or a table corrected."""
        by_id: dict[str, _Party | None] = {}
        for party_id, name, country, identifiers, evidence, _ in self._evidenced:
            by_id[party_id] = None
            if evidence is not None:
                question = self._matcher.ask(name, country, identifiers)
                by_id[party_id] = _Party(Resolved(name, country, identifiers, evidence, UNRESOLVED), question)
        return by_id

    def _cleaned_again(
        self, row: ReleaseRow, summary: ReleaseSummary
    ) -> tuple[ReleaseRow, ReleaseSummary, list[tuple[Resolved, list[str]]]]:
        """The release as it would be ingested now."""
        parties = self._evidenced
        cleaned = clean_again(row.body.encode(), summary, row.country, parties.gate, parties.persons.token)
        day = ordinal(row.release_date[:10])
        resolved: list[tuple[Resolved, list[str]]] = []
        for one, roles in cleaned.parties:
            question = self._matcher.ask(one.name, one.country, one.identifiers)
            resolved.append((Resolved(*one[1:], question.on(day)), list(roles)))
        row = row._replace(ocid=cleaned.ocid, release_id=cleaned.release_id, body=cleaned.body.decode())
        return row, cleaned.summary, resolved


class _Party(NamedTuple):
    """A party that may be named, and its candidate organisations."""

    named: Resolved
    question: PartyQuestion

    def on(self, day: int) -> Resolved:
        """Matched as of the day of a release."""
        match = self.question.on(day)
        return self.named._replace(match=match) if match.service_id else self.named


_NOT_AWARDED: Final = ("cancelled", "unsuccessful")


class Award(NamedTuple):
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
    date: str | None = None
    awards: list[_Award] | None = None
    tender: _Tender | None = None


_read_body = msgspec.json.Decoder(_Body).decode


def _tender(row: ReleaseRow, summary: ReleaseSummary, parties: list[tuple[Resolved, list[str]]]) -> Tender:
    body = _read_body(row.body)
    end = body.tender and body.tender.tenderPeriod and body.tender.tenderPeriod.endDate
    named = {_key(party.name): party for party, _ in parties}
    by_id = {str(party.id): party.name for party in body.parties or () if party.id is not None and party.name}

    def service_id(name: str) -> str | None:
        party = named.get(_key(name))
        return party.match.service_id if party else None

    return Tender(
        row,
        summary,
        parties,
        [_award(number, award, named, by_id) for number, award in enumerate(body.awards or ())],
        moment(end) if end else None,
        flag_facts(row.body, service_id),
        instant_of(body.date) is not None,
    )


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


class ReportedAmount(NamedTuple):
    """The value of a tender in one release, by the number of the release in its country's order."""

    value: str
    available: int
    order: tuple[int, int]
    number: int


class TenderValues:
    """Which releases of a country started a vintage of their tender's value; arrays with one item per
    release."""

    def __init__(self, tenders: Iterable[Tender]) -> None:
        self.numbers = array("i")
        """The vintage that the release started; 0 if its value was not new."""
        self.untils = array("i")
        """The day that vintage was replaced."""
        days, moments = array("i"), array("i")
        amounts: list[str] = []  # as many as there are values
        numbers = array("i")
        by_process: defaultdict[tuple[str, str], array[int]] = defaultdict(lambda: array("i"))
        moment, last = 0, ""
        for number, tender in enumerate(tenders):
            self.numbers.append(0)
            self.untils.append(FOREVER)
            row, summary = tender.row, tender.summary
            if row.release_date != last:
                moment, last = moment + 1, row.release_date
            if amount := amount_of(summary.value_amount):
                by_process[row.ocid, summary.value_currency or ""].append(len(amounts))
                amounts.append(amount)
                numbers.append(number)
                days.append(ordinal(row.release_date[:10]))
                moments.append(moment)
        for reported in by_process.values():
            # The newest release has the lowest moment; within one instant, the higher id is later.
            amount_reports = [
                ReportedAmount(amounts[n], days[n], (-moments[n], n), numbers[n]) for n in reported
            ]
            for vintage in vintages(amount_reports, 0):
                first_number = vintage.report.number
                self.numbers[first_number] = vintage.number
                if vintage.successor is not None:
                    self.untils[first_number] = vintage.successor.available


class ReportedAward(NamedTuple):
    """An award to one organisation in one release; see `model.vintages.Reported`."""

    value: str | None
    """None if the release says that it is not or no longer an award."""
    available: int
    order: tuple[object, ...]
    award_id: str
    currency: str | None
    day: str
    supplier: str
    """The winner as published."""
    row: ReleaseRow
    """Without its body."""


def awards_won(tenders: Tenders) -> dict[str, list[Vintage[ReportedAward]]]:
    """By service_id: the vintages of every award it won, newest release first, then by ocid and award."""
    reports: defaultdict[str, defaultdict[tuple[str, ...], list[ReportedAward]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for country in tenders.countries:
        for tender in tenders.of(country):
            for position, award in enumerate(tender.awards):
                for service_id, report in _won(tender, position, award):
                    reports[service_id][tender.row.ocid, award.award_id, award.currency or ""].append(report)
    return {service_id: _newest_first(reports[service_id]) for service_id in sorted(reports)}


def _won(tender: Tender, position: int, award: Award) -> Iterator[tuple[str, ReportedAward]]:
    amount = amount_of(award.amount)
    if amount is None:
        return
    row = tender.row._replace(body="", summary="", parties="")
    released = row.release_date[:10]
    reported: set[str] = set()
    for supplier in award.suppliers:
        service_id = supplier.match.service_id
        if service_id and service_id not in reported:
            reported.add(service_id)
            yield service_id, ReportedAward(
                amount if award.is_valid else None, ordinal(released),
                (*row.moment, position),
                award.award_id, award.currency, _day(award, released), supplier.name, row,
            )  # fmt: skip


def _day(award: Award, released: str) -> str:
    """The day of the award; the day of release if the award is dated later."""
    return award.day if award.day and award.day <= released else released


def _newest_first(reports: dict[tuple[str, ...], list[ReportedAward]]) -> list[Vintage[ReportedAward]]:
    awards_won = [vintage for identity in sorted(reports) for vintage in vintages(reports[identity], 0)]
    awards_won.sort(key=lambda vintage: vintage.report.row.moment[0], reverse=True)
    return awards_won


def amount_of(amount: Decimal | None) -> str | None:
    """An amount in canonical form, so that equal amounts are equal text; None if there is none."""
    return None if not amount else exact(format(amount, "f"))


_encode_release = msgspec.json.Encoder().encode
_decode_release = msgspec.json.Decoder(ReleaseFacts).decode


def processes(
    tenders: Tenders, country: str, captures: Mapping[int, CaptureInfo]
) -> Iterator[ProcessReleases]:
    """In the order of their ocids. Releases wait in a temporary file, so that memory stays flat."""
    with tempfile.TemporaryFile(buffering=0) as file:
        ranges: defaultdict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        end = 0
        for tender in tenders.of(country):
            row = tender.row
            capture = captures[row.capture_id]
            released, own = row.release_date, tender.flag_facts
            release = ReleaseFacts(
                ordinal(released[:10]), released, capture.ref(row.location), capture.license_class,
                capture.observed_at, msgspec.Raw(own.facts), own.service_ids,
            )  # fmt: skip
            written = _encode_release(release)
            file.write(written)
            ranges[row.ocid].append((*row.moment, end, len(written)))
            end += len(written)
        for ocid in sorted(ranges):
            listed = sorted(ranges[ocid])
            releases = [_decode_release(os.pread(file.fileno(), size, start)) for _, _, start, size in listed]
            yield ProcessReleases(ocid, day_states(releases))
