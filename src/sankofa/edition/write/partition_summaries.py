"""What is counted and listed of all organisations, summed up by part of organisations.

Screens, quality and coverage tell of all of them in every edition. What they need of those of one part
follows from the inputs of the part, so it is worked out once and kept for the next build: of a change to one
organisation only its own part is read again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from sankofa.derive.quality import HeldFacts
from sankofa.edition.format.row_blocks import row_ends
from sankofa.edition.write.fact_counts import issuer_counts, issuer_holdings
from sankofa.edition.write.inputs import sum_of_digests
from sankofa.edition.write.issuer_cache import IssuerCache, pack_record
from sankofa.edition.write.issuer_parts import Issuers
from sankofa.edition.write.metric_rows import (
    METRICS,
    CoverageSteps,
    Standings,
    coverage_steps,
)
from sankofa.edition.write.organisation_parts import Partition
from sankofa.edition.write.prepared_rows import PreparedRows
from sankofa.edition.write.screen_index import ScreenSegment, SegmentBuilder
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import FOREVER

_COUNTS: Final = "counts"
_SCREEN: Final = "screen"


class FactTotals(msgspec.Struct, array_like=True):
    """The facts of one source that are served of the issuers of one country."""

    issuers: int = 0
    facts: int = 0
    dated: int = 0
    first: int = FOREVER
    last: int = 0
    published: int = 0


class PartitionCounts(msgspec.Struct, frozen=True, array_like=True):
    """What is counted of the organisations of a part."""

    facts: list[tuple[str, str, FactTotals]]
    """By source and country (empty where it is not known)."""
    held: HeldFacts
    """Of their facts in the ledger, served or not."""
    coverage: CoverageSteps
    issuers: int
    issuers_with_lei: int
    issuer_countries: list[str]
    statements: list[tuple[str, str, int]]
    """How many records and identifiers a source has of organisations of a country."""
    names: bytes
    """A digest of what they are called and known by; those of all parts add up (`sum_of_digests`)."""
    claims: bytes
    """The same of where each identifier is from."""


_read_counts = msgspec.msgpack.Decoder(PartitionCounts).decode
_read_screen = msgspec.msgpack.Decoder(ScreenSegment).decode
_read_metrics = msgspec.msgpack.Decoder(tuple[PreparedRows, Standings]).decode
_write = msgspec.msgpack.Encoder(order="deterministic").encode


class PartitionSummaries:
    """Those of every part, in their order; `path` is the file that they are kept in, None for none."""

    def __init__(
        self,
        partitions: Iterable[Partition],
        issuers: Issuers,
        captures: Mapping[int, CaptureInfo],
        path: Path | None,
    ) -> None:
        self._issuers = issuers
        self._captures = captures
        self._names: list[str] = []
        self._cache = IssuerCache(path)
        try:
            for partition in partitions:
                self._names.append(partition.first)
                key = bytes.fromhex(partition.inputs)
                if not self._cache.carry(partition.first, key):
                    self._cache.put(partition.first, key, pack_record(self._summary(partition)))
            self._cache.finish()
        finally:
            self._cache.close()

    def counts(self) -> Iterator[PartitionCounts]:
        return (_read_counts(self._cache.read(name, _COUNTS)) for name in self._names)

    def screens(self) -> Iterator[ScreenSegment]:
        return (_read_screen(self._cache.read(name, _SCREEN)) for name in self._names)

    def _summary(self, partition: Partition) -> dict[str, bytes]:
        screen = SegmentBuilder()
        standings: list[Standings] = []
        for entity in partition.entities:
            if part := self._issuers.part(METRICS, entity.service_id):
                rows, own = _read_metrics(part)
                standings.append(own)
                screen.add(entity.service_id, entity.country, own, [row_ends(block) for block in rows.blocks])
        counts = self._counted(partition, coverage_steps(standings))
        return {_COUNTS: _write(counts), _SCREEN: _write(screen.segment())}

    def _counted(self, partition: Partition, coverage: CoverageSteps) -> PartitionCounts:
        totals: defaultdict[tuple[str, str], FactTotals] = defaultdict(FactTotals)
        held = HeldFacts()
        statements: Counter[tuple[str, str]] = Counter()
        issuers = [one for one in partition.entities if self._issuers.key(one.service_id)]
        for entity in issuers:
            held.add(issuer_holdings(self._issuers, entity))
            for source_id, own in issuer_counts(self._issuers, entity).items():
                total = totals[source_id, entity.country or ""]
                total.issuers += 1
                total.facts += own.facts
                total.dated += own.dated
                total.first = min(total.first, own.first)
                total.last = max(total.last, own.last)
                total.published = max(total.published, own.published)
        for entity in partition.entities:
            for statement in entity.statements:
                statements[statement.source_id, statement.profile.country or ""] += 1
            for claim in entity.claims:
                statements[self._captures[claim.capture_id].source_id, entity.country or ""] += 1
        return PartitionCounts(
            [(*key, totals[key]) for key in sorted(totals)],
            held,
            coverage,
            len(issuers),
            sum(any(c.identifier.startswith("lei:") for c in one.claims) for one in issuers),
            sorted({s.profile.country for one in issuers for s in one.statements if s.profile.country}),
            [(*key, statements[key]) for key in sorted(statements)],
            sum_of_digests(_digest(_names(entity)) for entity in partition.entities),
            sum_of_digests(_digest(self._claims(entity)) for entity in partition.entities),
        )

    def _claims(self, entity: Entity) -> tuple[object, ...]:
        captures = [self._captures[claim.capture_id] for claim in entity.claims]
        return entity.service_id, entity.claims, captures


def _names(entity: Entity) -> tuple[object, ...]:
    return (
        entity.service_id,
        entity.aliases,
        entity.subjects,
        [claim.identifier for claim in entity.claims],
        [
            (subject, own.legal_name, own.other_names, own.country, own.successor)
            for subject, _, own, _ in entity.statements
        ],
    )


def _digest(said: tuple[object, ...]) -> bytes:
    return sha256(_write(said)).digest()
