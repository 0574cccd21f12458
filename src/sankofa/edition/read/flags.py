"""The red flags of a country on a day: stored records compared with the day's thresholds."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby
from typing import Final

import msgspec

from sankofa.edition.format.flag_steps import (
    FLAG_DAYS,
    FLAG_FILTERS,
    FLAG_PARTIES,
    FLAGS,
    FLAGS_PER_BLOCK,
    NO_PARTY,
    Flag,
    FlagRecord,
    FlagSource,
    FlagSubject,
    PartyRecord,
    flag_group_key,
    flag_party_key,
    flag_record,
    group_fences,
    party_names,
    party_record,
    process_spellings,
    spellings,
    title_of,
)
from sankofa.edition.format.flag_steps import thresholds as read_thresholds
from sankofa.edition.format.keys import PROCESS_FACTS, filter_key
from sankofa.edition.format.row_blocks import LONGEST_TEXT, between, row_columns
from sankofa.edition.format.visibility import rows_visible_on, visible
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.seek import last_block
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import Block
from sankofa.model.ocds.flag_facts import examine
from sankofa.model.ocds.guide_pairs import PAIRS, PairStep, pairs_of
from sankofa.model.ocds.process_facts import PROCESS, TENDERER, Reading
from sankofa.model.ocds.red_flags import ProcessReleases, Thresholds, group_key, on_day, read_facts

_BLOCKS_AT_ONCE: Final = 8
_RECORDS_PER_YIELD: Final = 64
_process: Final = msgspec.json.Decoder(ProcessReleases).decode
_processes: Final = msgspec.json.Decoder(list[ProcessReleases]).decode
_ROLES: Final = ("buyer", "supplier")

Parties = tuple[str | None, str | None]
"""The requested buyer and supplier, normalised."""


class CountryOnDay:
    def __init__(self, edition: Edition, country: str, day: int, limits: Thresholds) -> None:
        self.population = limits.population
        self._edition = edition
        self._country = country
        self._day = day
        self._limits = limits

    async def flags(
        self, parties: Parties, behind: tuple[str, ...], most: int, indicators: Sequence[str] = ()
    ) -> list[Flag]:
        """The first flags after a sort key, by indicator, type of subject and subject.

        `indicators` are in order; none means all.
        """
        flags: list[Flag] = []
        yield_points = YieldPoints(_RECORDS_PER_YIELD)
        for indicator in indicators or ("",):
            if indicator and behind and indicator < behind[0]:
                continue
            start = max(behind, (indicator,) if indicator else ())
            block = await self._block(start) if start else 0
            async for record in self._records(await self._numbers(parties, block), block):
                await yield_points.step()
                if indicator and record.indicator > indicator:
                    break
                if (behind and sort_key(record) <= behind) or record.indicator < indicator:
                    continue
                if flag := await self._flag(record, parties[0]):
                    flags.append(flag)
                    if len(flags) == most:
                        return flags
        return flags

    async def _flag(self, record: FlagRecord, buyer: str | None) -> Flag | None:
        """The flag of a record that may stand out on the day, if it does; of pairs, with this buyer."""
        known = record.all_steps()
        await self._load(record.groups_on(self._day, known))
        steps = record.steps_on(self._day, self._limits, known)
        if buyer is not None and record.indicator in PAIRS:
            steps = [one for one in steps if isinstance(one, PairStep) and await self._is_of(one, buyer)]
        if not steps:
            return None
        party = None if record.subject_type == PROCESS else await self._party(record.subject)
        return record.flag(steps, self._day, self._limits, party)

    async def _is_of(self, pair: PairStep, buyer: str) -> bool:
        """Whether a pair is one with a buyer of this name or id on the day."""
        own = pair.known_inputs().get("buyer", "")
        spelt = (await self._party(own)).spellings(own)
        return any(buyer in texts for first, until, texts in spelt if visible(first, until, self._day))

    async def of_process(self, ocid: str, parties: Parties) -> list[Flag]:
        """Every indicator of a process and its parties, in the same order."""
        process = await self._process(ocid)
        release = None if process is None else on_day(process, self._day)
        if release is None:
            return []
        facts = read_facts(release.facts)
        examined = examine(ocid, facts, every=True)
        await self._load(
            group_key(indicator, one.group)
            for indicator, values in examined.measured.items()
            if not isinstance(values, str)
            for one in values
        )
        pairs = list(pairs_of(examined.purchases, examined.rivals))
        named = {*examined.entered, *examined.classes, *(party for *_, party in examined.shares)}
        named |= {one.holder for one in pairs}
        known = {party: (await self._party(party)).inputs_on(self._day) for party in named}
        await self._load(
            group_key(one.indicator, step.group)
            for one in pairs
            if (step := known[one.holder].pairs.get(one.key))
        )
        names = party_names(facts, release.service_ids)
        of_process = process_spellings(facts, names)
        source = FlagSource(release.source_ref, release.license_class, release.observed_at)
        flags = []
        for finding in self._limits.of_process(examined, known.__getitem__):
            name, service_id = title_of(facts), None
            spelt = of_process
            if finding.subject_type != PROCESS:
                name, service_id = names[finding.subject]
                own = spellings(finding.subject, name, service_id)
                if finding.subject_type != TENDERER:
                    spelt = own, frozenset()
                elif finding.indicator in PAIRS and (buyer := finding.inputs.get("buyer")):
                    spelt = spellings(buyer, *names[buyer]), own
                else:
                    spelt = frozenset(), own
            if all(asked is None or asked in texts for asked, texts in zip(parties, spelt, strict=True)):
                flags.append(Flag(finding, FlagSubject(name, service_id, source)))
        return sorted(
            flags, key=lambda one: (one.finding.indicator, one.finding.subject_type, one.finding.subject)
        )

    async def _block(self, behind: tuple[str, ...]) -> int:
        """The number of the block with the last record that is not after a sort key."""
        return await last_block(
            self._edition,
            FLAGS,
            self._country,
            lambda block: sort_key(flag_record(between(block, 0, 1))) > behind,
        )

    async def _numbers(self, parties: Parties, block: int) -> list[int] | None:
        """The records about these parties, from a block on; None means all parties."""
        numbers: list[int] | None = None
        for role, asked in zip(_ROLES, parties, strict=True):
            if asked is not None:
                triples = await self._edition.numbers(FLAG_FILTERS, filter_key(self._country, role, asked))
                records = triples[::3]
                own = [
                    records[at]
                    for at in rows_visible_on(self._day, triples[1::3], triples[2::3])
                    if records[at] >= block * FLAGS_PER_BLOCK
                ]
                numbers = own if numbers is None else sorted({*own}.intersection(numbers))
        return numbers

    async def _records(self, numbers: list[int] | None, first: int) -> AsyncIterator[FlagRecord]:
        """The records that may be flagged on the day: with these numbers, or all from a block on."""
        if numbers is not None:
            for block, some in groupby(numbers, lambda number: number // FLAGS_PER_BLOCK):
                for own in await self._edition.blocks(FLAGS, self._country, block, 1):
                    for record in self._visible(own, {number % FLAGS_PER_BLOCK for number in some}):
                        yield record
            return
        while blocks := await self._edition.blocks(FLAGS, self._country, first, _BLOCKS_AT_ONCE):
            for one in blocks:
                for record in self._visible(one):
                    yield record
            first += len(blocks)

    def _visible(self, block: Block, numbers: "set[int] | None" = None) -> list[FlagRecord]:
        columns, rows = row_columns(block), block[1]
        return [
            flag_record(rows[columns.ends[at - 1] + 1 if at else 0 : columns.ends[at]])
            for at in rows_visible_on(self._day, columns.firsts, columns.untils)
            if numbers is None or at in numbers
        ]

    async def _load(self, groups: Iterable[str]) -> None:
        """Add the quartiles of groups on the day to the thresholds."""
        for group in {*groups} - self._limits.groups.keys():
            rows = await self._edition.select(FLAG_DAYS, flag_group_key(self._country, group), day=self._day)
            known = rows is not None and rows.count
            self._limits.groups[group] = group_fences(rows.rows) if rows is not None and known else None

    async def _party(self, party: str) -> PartyRecord:
        stored = await self._edition.raw(FLAG_PARTIES, flag_party_key(self._country, party))
        return NO_PARTY if stored is None else party_record(stored)

    async def _process(self, ocid: str) -> ProcessReleases | None:
        edition, where = self._edition, (PROCESS_FACTS, self._country)
        number = await last_block(edition, *where, lambda block: _process(between(block, 0, 1)).ocid > ocid)
        blocks = await edition.blocks(*where, number, 1)
        listed = [one for _, rows in blocks for one in _processes(b"".join((b"[", rows, b"]")))]
        at = bisect_left(listed, ocid, key=lambda one: one.ocid)
        return listed[at] if at < len(listed) and listed[at].ocid == ocid else None


def sort_key(record: FlagRecord | Reading) -> tuple[str, ...]:
    return record.indicator, record.subject_type, record.subject[:LONGEST_TEXT]


async def flags_on(edition: Edition, country: str, day: int) -> CountryOnDay | None:
    """The flags of a country on a day; None if nothing was known by then."""
    selection = await edition.select(FLAG_DAYS, country, day=day)
    if selection is None or not selection.count:
        return None
    return CountryOnDay(edition, country, day, read_thresholds(selection.rows))
