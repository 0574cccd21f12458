"""The red flags of a country on a day: computed from its releases up to then, once for each such day."""

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import PROCESS_FACTS
from sankofa.edition.format.row_blocks import LONGEST_TEXT
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.engines.datastore import Block
from sankofa.model.errors import InvalidParameter
from sankofa.model.ocds.flag_facts import PROCESS, TENDERER, Reading, Reference, examine
from sankofa.model.ocds.red_flags import Population, ProcessOnDay, ProcessReleases, ReleaseFacts, on_day
from sankofa.model.text import one_line

MOST_RELEASES: Final = 250_000
"""Releases of a population: up to 40 s of processor in a thread, once for each day asked (`bench.flags`)."""
_BLOCKS_AT_ONCE: Final = 64
_DAYS_KEPT: Final = 4
_LOCKS_KEPT: Final = 1024
_processes: Final = msgspec.json.Decoder(list[ProcessReleases]).decode


class FlagSubject(NamedTuple):
    """The process or party that a row is about."""

    name: str | None
    service_id: str | None
    release: ReleaseFacts
    """The newest release that names it."""
    buyers: frozenset[str]
    """The buyer by its id, name and service_id: of the process, or the party itself."""
    suppliers: frozenset[str]


class Flag(NamedTuple):
    """The result of an indicator, and its subject."""

    finding: Reading
    subject: FlagSubject

    @property
    def sort_key(self) -> tuple[str, str, str]:
        finding = self.finding
        return finding.indicator, finding.subject_type, finding.subject[:LONGEST_TEXT]


def _by_subject(flag: Flag) -> tuple[str, str, str]:
    return flag.finding.indicator, flag.finding.subject_type, flag.finding.subject


def spellings(*texts: str | None) -> frozenset[str]:
    """The texts that a filter is compared with: names and identifiers, in any case."""
    return frozenset(one_line(text).casefold() for text in texts if text)


class FlagDay:
    """The population of a country on a day, and what is flagged in it."""

    def __init__(self, day: int) -> None:
        self.day = day
        self.population = Population()
        self.flags: list[Flag] = []
        """By indicator, type of subject, and subject."""
        self.first_ocids: list[str] = []
        """The first process of each block."""
        self._processes: dict[str, FlagSubject] = {}
        self._parties: dict[str, FlagSubject] = {}

    def add(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            listed = _processes(b"".join((b"[", block[1], b"]")))
            self.first_ocids.append(listed[0].ocid)
            for one in listed:
                process = on_day(one, self.day)
                if process is not None:
                    self._add(process)

    def _add(self, process: ProcessOnDay) -> None:
        examined = examine(process.ocid, process.facts)
        self.population.add(examined)
        is_named = bool(examined.prices) or any(finding.flagged for finding in examined.findings)
        names_parties = examined.bids or examined.classes or examined.entered
        parties = dict(_parties(process)) if is_named or names_parties else {}
        if is_named:
            self._processes[process.ocid] = _process(process, parties)
        if names_parties:
            for party_id, party in parties.items():
                known = self._parties.get(party_id)
                if known is None or known.release.released <= party.release.released:
                    self._parties[party_id] = party

    def close(self) -> None:
        """Once all blocks are added."""
        self.population.close()
        self.flags = sorted(
            self._flags(self.population.findings, self._processes, self._parties), key=_by_subject
        )
        self._processes, self._parties = {}, {}

    def of_process(self, blocks: Sequence[Block], ocid: str) -> list[Flag]:
        """Every indicator of a process, from the block that it is in."""
        for block in blocks:
            for one in _processes(b"".join((b"[", block[1], b"]"))):
                if one.ocid == ocid and (process := on_day(one, self.day)) is not None:
                    examined = examine(ocid, process.facts, every=True)
                    findings = self.population.of_process(examined)
                    parties = dict(_parties(process))
                    own = self._flags(findings, {ocid: _process(process, parties)}, parties)
                    return sorted(own, key=_by_subject)
        return []

    @staticmethod
    def _flags(
        findings: Iterable[Reading],
        processes: dict[str, FlagSubject],
        parties: dict[str, FlagSubject],
    ) -> Iterator[Flag]:
        for finding in findings:
            if finding.subject_type == PROCESS:
                yield Flag(finding, processes[finding.subject])
                continue
            subject = parties[finding.subject]
            own = spellings(finding.subject, subject.name, subject.service_id)
            if finding.subject_type == TENDERER:
                yield Flag(finding, subject._replace(suppliers=own))
            else:
                yield Flag(finding, subject._replace(buyers=own))


def _process(process: ProcessOnDay, parties: dict[str, FlagSubject]) -> FlagSubject:
    facts = process.facts
    awarded = [one for award in facts.awards or () for one in award.suppliers or ()]
    title = (facts.tender and facts.tender.title) or None
    buyer = [facts.buyer] if facts.buyer and (facts.buyer.id or facts.buyer.name) else []
    buyer = buyer or [one for one in facts.parties or () if "buyer" in (one.roles or ())][:1]
    return FlagSubject(title, None, process.last, _any_of(buyer, parties), _any_of(awarded, parties))


def _any_of(references: Iterable[Reference], parties: dict[str, FlagSubject]) -> frozenset[str]:
    """All spellings of these parties."""
    spelt: set[str] = set()
    for one in references:
        own = parties.get(str(one.id)) if one.id else None
        spelt |= spellings(one.name or None, *((str(one.id), own.name, own.service_id) if own else ()))
    return frozenset(spelt)


def _parties(process: ProcessOnDay) -> Iterator[tuple[str, FlagSubject]]:
    """The parties of a process by their ids, each with the first name that it has."""
    names: dict[str, str | None] = {}
    for one in process.facts.references():
        if one.id:
            party_id = str(one.id)
            names[party_id] = names.get(party_id) or one.name or None
    for party_id, name in names.items():
        service_id = process.service_ids.get(party_id)
        yield party_id, FlagSubject(name, service_id, process.last, frozenset(), frozenset())


async def flags_on(edition: Edition, country: str, day: date) -> FlagDay | None:
    """The flags of a country on a day; None if nothing is known by then.

    Raises InvalidParameter for more releases than can be computed with at once.
    """
    days = DayRows(await edition.numbers("tender_day", country, keep=True))
    first = days.first_row(day.toordinal())
    if first is None or first >= days.count:
        return None
    if days.count - first > MOST_RELEASES:
        reason = f"{country} has more than {MOST_RELEASES:,} releases by {day}: ask for an earlier day"
        raise InvalidParameter("country", reason)
    last_day = days.day_of(first)
    whole = edition.whole if isinstance(edition, DayView) else edition
    known, locks = whole.cache("flags", _DAYS_KEPT), whole.cache("flag locks", _LOCKS_KEPT)
    if (lock := locks.get(country)) is None:
        lock = asyncio.Lock()  # many who ask at once wait for the first
        locks.put(country, lock)
    async with lock:
        flags: FlagDay | None = known.get((country, last_day))
        if flags is None:
            flags = FlagDay(last_day)
            skip = 0
            while blocks := await edition.blocks(PROCESS_FACTS, country, skip, _BLOCKS_AT_ONCE):
                await in_thread_if_large(sum(len(rows) for _, rows in blocks), flags.add, blocks)
                skip += len(blocks)
            await asyncio.to_thread(flags.close)
            known.put((country, last_day), flags)
    return flags


async def flags_of_process(edition: Edition, country: str, flags: FlagDay, ocid: str) -> list[Flag]:
    """Every indicator of a process and its parties on the day."""
    block = max(bisect_right(flags.first_ocids, ocid) - 1, 0)
    return flags.of_process(await edition.blocks(PROCESS_FACTS, country, block, 1), ocid)
