"""Counts and screen data of all organisations, summarised by partition.

Screens, quality and coverage describe every organisation in each edition. A partition's share depends only on
its own inputs, so it is cached for the next build: after a change to one organisation only its partition is
read again.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.derive.quality import HeldFacts, count_facts
from sankofa.edition.format.row_blocks import row_ends
from sankofa.edition.write.dataset import NEVER, Counted, PreparedRows
from sankofa.edition.write.derived_parts import Issuers, issuer_part
from sankofa.edition.write.metric_rows import METRICS, CoverageSteps, ScreenData, coverage_steps
from sankofa.edition.write.reuse import Partition, sum_of_digests
from sankofa.engines.record_file import PackedRecord, RecordFile, pack_record
from sankofa.ledger.entities import NEVER as NO_END
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.spells import PARENT, DatedLocation, dated_locations, first_records
from sankofa.model.days import FOREVER, ordinal

NOWHERE: Final = "?"
"""The country code of an issuer without a country."""
_write_changes = msgspec.msgpack.Encoder().encode


class MetricValues(NamedTuple):
    """The values of one metric by column, in the order of the issuers."""

    sizes: "array[float]"
    """Floats, which hold ten digits exactly."""
    firsts: "array[int]"
    untils: "array[int]"
    countries: "array[int]"
    issuers: "array[int]"
    blocks: "array[int]"
    """Counted from the first block of the issuer."""
    begins: "array[int]"
    ends: "array[int]"
    years: "array[int]"
    """The last day of the year of each value."""
    current: "array[int]"
    """1 for each value that `basis=current` serves, else 0."""


def metric_values(columns: Sequence[Any] = ((),) * len(MetricValues._fields)) -> MetricValues:
    """The values in these columns, each of numbers or of bytes."""
    return MetricValues(*(array(code, column) for code, column in zip("diiIIIIIiB", columns, strict=True)))


class ScreenSegment(msgspec.Struct, frozen=True, array_like=True):
    """The cached screen data of the organisations of a partition."""

    issuers: list[str]
    countries: list[str]
    columns: list[list[bytes]]
    """The `MetricValues` of each metric."""
    changes: list[tuple[bytes, bytes]]
    """For each metric an encoded list for `basis=current` and one for `basis=as_known`: number of a country,
    day, state, change in the number of issuers."""
    years: list[int]
    """Years in which anything changes."""


_Changes = Counter[tuple[int, int, int]]


def _screen_segment(
    issuers: Iterable[tuple[str, Sequence[DatedLocation], PreparedRows, ScreenData]],
) -> ScreenSegment:
    """The segment of issuers in order of service_id, each with its country over time.

    A value is in a country's screen on the days on which the issuer was in that country.
    """
    names: list[str] = []
    countries: dict[str, int] = {}
    values: list[list[tuple[float, ...]]] = [[] for _ in slugs()]
    changes: list[tuple[_Changes, _Changes]] = [(Counter(), Counter()) for _ in slugs()]
    for service_id, locations, rows, own in issuers:
        row_ranges = [
            (number, begin, end)
            for number, ends in enumerate(row_ends(block.plain) for block in rows.blocks)
            for begin, end in zip((0, *(end + 1 for end in ends[:-1])), ends, strict=True)
        ]
        listed = list(zip(own.values, row_ranges, strict=True))
        for name, since, end in country_spells(locations):
            country = countries.setdefault(name or NOWHERE, len(countries))
            for (metric, first, until, size, year, current), row_range in listed:
                if first < end and until > since:
                    valid = max(first, since), min(until, end)
                    values[metric].append((size, *valid, country, len(names), *row_range, year, current))
            for basis in (0, 1):
                for metric, first, until, state in own.stretches(known=bool(basis)):
                    if first < end and until > since:
                        changes[metric][basis][country, max(first, since), state] += 1
                        if min(until, end) < FOREVER:
                            changes[metric][basis][country, min(until, end), state] -= 1
        names.append(service_id)
    columns = [metric_values([*zip(*own, strict=True)]) if own else metric_values() for own in values]
    # Also years in which one value follows another without a change of state.
    changed = {day for by_basis in changes for own in by_basis for _, day, _ in own if 0 < day < FOREVER}
    return ScreenSegment(
        names,
        list(countries),
        [[column.tobytes() for column in own] for own in columns],
        [(_sorted_changes(current), _sorted_changes(known)) for current, known in changes],
        sorted({date.fromordinal(day).year for day in changed.union(*(own.firsts for own in columns))}),
    )


def _sorted_changes(changes: _Changes) -> bytes:
    return _write_changes(sorted((*key, step) for key, step in changes.items()))


def country_spells(locations: Sequence[DatedLocation]) -> Iterator[tuple[str, int, int]]:
    """The countries of an issuer, each with its first day and the day after the last."""
    ends = [*(ordinal(location.day) for location in locations[1:]), FOREVER]
    spells = zip((location.country for location in locations), [0, *ends], ends, strict=False)
    for country, same in groupby(spells, key=itemgetter(0)):
        days = list(same)
        yield country, days[0][1], days[-1][2]


FACT_COUNTS: Final = "fact-counts"
HOLDINGS: Final = "holdings"


class FactTotals(Counted, array_like=True):
    """Issuers and their served facts from one source; first and last only count periods that ended before
    their capture."""

    dated: int = 0
    """Facts with an evidenced day of publication."""

    def add_issuers(self, other: "FactTotals") -> None:
        """Without what became known on each day."""
        self.add(other.count, other.rows, other.first, other.last, other.published)
        self.dated += other.dated


_read_counts_of_issuer = msgspec.msgpack.Decoder(dict[str, FactTotals]).decode
_read_holdings = msgspec.msgpack.Decoder(HeldFacts).decode
_write_counts = msgspec.msgpack.Encoder(order="deterministic").encode


@issuer_part(FACT_COUNTS)
def _counted(issuer: Issuer) -> bytes:
    by_source: dict[str, FactTotals] = {}
    for (_, _, period_end, _), vintages in issuer.vintages.items():
        end = ordinal(period_end)
        for vintage in vintages:
            report = vintage.report
            counts = by_source.get(report.capture.source_id)
            if counts is None:
                counts = by_source[report.capture.source_id] = FactTotals(count=1)
            published = report.available if report.evidenced else NEVER
            ended = (end, end) if period_end <= report.capture.observed_at[:10] else (FOREVER, NEVER)
            counts.add(0, 1, *ended, published)
            counts.dated += bool(report.evidenced)
            counts.on(vintage.known_from).add(0, 1, end, end, published)
    return _write_changes({source_id: by_source[source_id] for source_id in sorted(by_source)})


@issuer_part(HOLDINGS)
def _fact_counts(issuer: Issuer) -> bytes:
    counts = HeldFacts()
    for facts in issuer.held:
        counts.add(count_facts(facts, issuer.captures))
    return _write_counts(counts)


_COUNTS: Final = "counts"
_SCREEN: Final = "screen"


class PartitionCounts(msgspec.Struct, frozen=True, array_like=True):
    facts: list[tuple[str, str, FactTotals]]
    """By source and country (empty if unknown)."""
    fact_days: list[tuple[str, str, list[tuple[int, Counted]]]]
    """By source and the issuer's country then, what became known on each day."""
    held: HeldFacts
    """Their facts in the ledger, served or not."""
    coverage: CoverageSteps
    issuers: int
    issuers_with_lei: int
    issuer_countries: list[str]
    statements: list[tuple[str, str, int]]
    """Number of records and identifiers by source and country."""
    names: bytes
    """Digest of names and identifiers; the digests of all partitions add up (`sum_of_digests`)."""
    record_days: list[tuple[str, list[tuple[int, int]]]]
    """By source, the number of organisations that it was first to describe, from each day on."""
    claims: bytes
    """The same for the source of each identifier."""


_read_counts = msgspec.msgpack.Decoder(PartitionCounts).decode
_read_screen = msgspec.msgpack.Decoder(ScreenSegment).decode
_read_metrics = msgspec.msgpack.Decoder(tuple[PreparedRows, ScreenData]).decode
_write = msgspec.msgpack.Encoder(order="deterministic").encode


class PartitionSummaries:
    """The summaries of all partitions, in order; `path` is the file that caches them."""

    def __init__(
        self,
        partitions: Iterable[Partition],
        entities: Sequence[Entity],
        issuers: Issuers,
        captures: Mapping[int, CaptureInfo],
        path: Path | None,
    ) -> None:
        self._entities = entities
        self._issuers = issuers
        self._captures = captures
        self._names: list[str] = []
        self._cache = RecordFile(path)
        self._cache.fill(self._anew(partitions))

    def counts(self) -> Iterator[PartitionCounts]:
        return (_read_counts(self._cache.read(name, _COUNTS)) for name in self._names)

    def screens(self) -> Iterator[ScreenSegment]:
        return (_read_screen(self._cache.read(name, _SCREEN)) for name in self._names)

    def _anew(self, partitions: Iterable[Partition]) -> Iterator[tuple[str, bytes, PackedRecord]]:
        """The summaries that are not reused."""
        for partition in partitions:
            self._names.append(partition.first)
            key = bytes.fromhex(partition.inputs)
            if not self._cache.carry(partition.first, key):
                yield partition.first, key, pack_record(self._summary(partition.among(self._entities)))

    def _summary(self, entities: Sequence[Entity]) -> dict[str, bytes]:
        issuers = [
            (entity.service_id, self._locations(entity), *_read_metrics(part))
            for entity, part in self._issuers.parts(METRICS, entities)
        ]
        counts = self._counted(entities, coverage_steps(own for *_, own in issuers))
        return {_COUNTS: _write(counts), _SCREEN: _write(_screen_segment(issuers))}

    def _locations(self, entity: Entity) -> Sequence[DatedLocation]:
        return dated_locations(entity, self._captures) or [DatedLocation("", entity.country or "", ())]

    def _counted(self, entities: Sequence[Entity], coverage: CoverageSteps) -> PartitionCounts:
        totals: defaultdict[tuple[str, str], FactTotals] = defaultdict(FactTotals)
        facts = HeldFacts()
        statements: Counter[tuple[str, str]] = Counter()
        known: defaultdict[tuple[str, str], Counted] = defaultdict(Counted)
        records: defaultdict[str, Counter[int]] = defaultdict(Counter)
        issuers = [one for one in entities if self._issuers.key(one.service_id)]
        first_figures: dict[str, list[int]] = {}
        for _, part in self._issuers.parts(HOLDINGS, issuers):
            facts.add(_read_holdings(part))
        for entity, part in self._issuers.parts(FACT_COUNTS, issuers):
            by_source = _read_counts_of_issuer(part)
            first_figures[entity.service_id] = [min(own.days) for own in by_source.values()]
            for source_id, own in by_source.items():
                totals[source_id, entity.country or ""].add_issuers(own)
                self._add_known(known, source_id, entity, own)
        for entity in entities:
            first = dict(first_records(entity, self._captures))
            captured = ordinal(self._captures[entity.first_capture].day)
            figures = first_figures.get(entity.service_id, ())
            since = min((*filter(None, (*first.values(), *figures)), captured))
            for source_id, day in first.items():
                records[source_id][max(day, since)] += 1
            for statement in entity.statements:
                statements[statement.source_id, statement.profile.country or ""] += 1
            for claim in entity.claims:
                statements[self._captures[claim.capture_id].source_id, entity.country or ""] += 1
            for relation in entity.relations:
                if relation.kind == PARENT and relation.until == NO_END:
                    statements[relation.evidence.source_id, entity.country or ""] += 1
        return PartitionCounts(
            [(*key, totals[key]) for key in sorted(totals)],
            [(*key, sorted(known[key].days.items())) for key in sorted(known)],
            facts,
            coverage,
            len(issuers),
            sum(any(c.identifier.startswith("lei:") for c in one.claims) for one in issuers),
            sorted({s.profile.country for one in issuers for s in one.statements if s.profile.country}),
            [(*key, statements[key]) for key in sorted(statements)],
            sum_of_digests(_digest(_names(entity)) for entity in entities),
            [(source_id, sorted(records[source_id].items())) for source_id in sorted(records)],
            sum_of_digests(_digest(self._claims(entity)) for entity in entities),
        )

    def _add_known(
        self, known: dict[tuple[str, str], Counted], source_id: str, entity: Entity, own: FactTotals
    ) -> None:
        """Count the facts of an issuer in its country of the day they became known."""
        for country, since, until in country_spells(self._locations(entity)):
            days = {day: one for day, one in own.days.items() if since <= day < until}
            if days:
                known[source_id, country].become_known(days)
                known[source_id, country].on(min(days)).count += 1

    def _claims(self, entity: Entity) -> tuple[object, ...]:
        claims = (*entity.claims, *entity.past)
        captures = [self._captures[claim.capture_id] for claim in claims]
        return entity.service_id, claims, captures


def _names(entity: Entity) -> tuple[object, ...]:
    return (
        entity.service_id,
        entity.aliases,
        entity.subjects,
        [(claim.identifier, claim.first) for claim in (*entity.claims, *entity.past)],
        [
            (subject, own.legal_name, own.other_names, own.country, own.successor, own.registered, *rest)
            for subject, _, own, *rest in (*entity.statements, *entity.earlier)
        ],
    )


def _digest(content: tuple[object, ...]) -> bytes:
    return sha256(_write(content)).digest()
