"""The ledger as a build reads it, and results computed once for all datasets."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from sankofa.derive.quality import (
    DatasetCounts,
    HeldFacts,
    Measurement,
    ServedFacts,
    count_facts,
    fundamental_counts,
    macro_counts,
    measure,
    tender_counts,
)
from sankofa.derive.tenders import Tenders
from sankofa.edition.write.checks import WithdrawnRows
from sankofa.edition.write.dataset import Input
from sankofa.edition.write.derived_parts import CountryFlags, Issuers, MacroParts
from sankofa.edition.write.metric_rows import coverage
from sankofa.edition.write.partition_summaries import PartitionCounts, PartitionSummaries
from sankofa.edition.write.reuse import BuildInputs, Memo, Partition, part_scale, partitions, sum_of_digests
from sankofa.edition.write.worker_processes import WorkerProcesses
from sankofa.ledger.entities import Entity, Resolution, resolve
from sankofa.ledger.generations import Withdrawal
from sankofa.ledger.matching import THRESHOLD, Evidence, EvidencedParties, PartyMatcher, Reviews, with_parties
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.spells import relate
from sankofa.ledger.store import Ledger
from sankofa.model.days import ordinal
from sankofa.model.errors import CheckFailed
from sankofa.model.provenance import (
    EVERY_SOURCE,
    FUND,
    LICENSE_CLASSES,
    MACRO,
    ORGANISATIONS,
    OWING_CLASSES,
    SKUS,
    TENDER,
    notice,
)
from sankofa.sources.base import adapters
from sankofa.sources.registry import Source

T = TypeVar("T")
_RECORDS: Final = (Input.RECORDS,)


class ResolutionSummary(msgspec.Struct, frozen=True, array_like=True):
    """What the manifest says about the resolution of organisations."""

    conflicts: list[str]
    crosswalk_since: str | None
    proven: int
    """The newest capture that proved somebody a natural person; 0 if none."""


class BuildContext:
    """Everything known at build time, read once.

    `issuer_cache` is the folder of cached results; None for none. `processes` derive in parallel.
    Only registered sources that may be redistributed today are read; without a registry, all.
    """

    def __init__(
        self,
        ledger: Ledger,
        sources: Mapping[str, Source] | None = None,
        *,
        despite_floors: bool = False,
        issuer_cache: Path | None = None,
        processes: WorkerProcesses | None = None,
        match_threshold: float = THRESHOLD,
        extras: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self._sources = sources or {}
        self.left_out = [] if sources is None else left_out_of(ledger, sources)
        """Sources of the ledger that may not be redistributed today."""
        self.withdrawals = ledger.withdrawals()
        """Withdrawn files, left out although their source may be redistributed."""
        self._whole = ledger
        self._is_partial = bool(self.left_out or self.withdrawals)
        refused = [one.source for one in self.left_out]
        self.ledger: LedgerReader = ledger.without(refused) if self._is_partial else ledger
        self._despite_floors = despite_floors
        self._issuer_cache = issuer_cache
        self._processes = processes
        self.match_threshold = match_threshold
        self._extras = extras

    @cached_property
    def seals(self) -> list[tuple[int, str]]:
        """The seal of every capture of the whole ledger: digests of its rows by table."""
        rows = self._whole.rows("SELECT capture_id, content FROM seal ORDER BY position")
        return [(capture_id, content) for capture_id, content in rows]

    @property
    def manifest_extras(self) -> dict[str, object]:
        """What the manifest says about the build."""
        extras: dict[str, object] = dict(self._extras)
        if self.left_out:
            extras["left_out"] = [one._asdict() for one in self.left_out]
        if self.withdrawals:
            extras["withdrawals"] = [described(withdrawal) for withdrawal in self.withdrawals]
        return extras

    @cached_property
    def captures(self) -> dict[int, CaptureInfo]:
        """The captures of the build, with their source's licence class of today.

        An unknown class is kept; the check of rows refuses it.
        """
        by_number = self.ledger.captures()
        for number, capture in by_number.items():
            source = self._sources.get(capture.source_id)
            if source is None:
                continue
            own = capture.license_class
            by_number[number] = capture._replace(
                license_class=source.license_class if own in LICENSE_CLASSES else own,
                rounds_dates=adapters()[source.adapter].rounds_dates,
            )
        return by_number

    @cached_property
    def withdrawn_rows(self) -> WithdrawnRows:
        return WithdrawnRows(self.withdrawals, self.captures)

    @cached_property
    def _every_capture(self) -> dict[int, CaptureInfo]:
        return self._whole.captures() if self._is_partial else self.captures

    @property
    def last_capture(self) -> int:
        """The last capture or withdrawal of the whole ledger, even if left out."""
        return max([*self._every_capture, *(withdrawal.number for withdrawal in self.withdrawals)])

    @property
    def ledger_clock(self) -> str:
        """The instant of that capture."""
        captured = (capture.observed_at for capture in self._every_capture.values())
        return max([*captured, *(withdrawal.observed_at for withdrawal in self.withdrawals)])

    @cached_property
    def resolution(self) -> Resolution:
        if not self._is_partial:
            return resolve(self.ledger, self.captures)
        whole = resolve(self._whole, self._every_capture)
        return resolve(self.ledger, self.captures, whole)

    @cached_property
    def tenders(self) -> Tenders:
        return Tenders(
            self.parties, PartyMatcher(self.entities, self.captures, self.reviews, self.match_threshold)
        )

    @cached_property
    def reviews(self) -> Reviews:
        """The operator's decisions about parties."""
        return Reviews(self.ledger.reviews(), self.parties.persons.token)

    @cached_property
    def parties(self) -> EvidencedParties:
        return EvidencedParties(self.ledger, partial(self._recall, Evidence, (Input.TENDERS,)))

    def _recall(self, shape: Any, reads: tuple[Input, ...], name: str, make: Callable[[], T]) -> T:
        """The result for these inputs, from the last build if they did not change."""
        result: T = self.memo.recall(name, self.inputs.digest(name, reads), shape, make)
        return result

    @cached_property
    def quality(self) -> Measurement:
        """Raises CheckFailed if a source misses a hard floor, unless that is overridden."""
        day = self.clock[:10]
        recall = partial(self._recall, DatasetCounts)
        counted = {
            FUND: self._fundamentals(day),
            TENDER: recall(
                (Input.TENDERS, Input.NAMES),
                "quality-tenders",
                lambda: tender_counts(self.ledger, self.tenders, self.captures),
            ),
            MACRO: recall((Input.MACRO,), "quality-macro", lambda: macro_counts(self.macro.counts())),
        }
        measured = measure(self.ledger, self.captures, self._sources, day, counted)
        if measured.shortfalls and not self._despite_floors:
            raise CheckFailed("; ".join(measured.shortfalls))
        return measured

    @cached_property
    def inputs(self) -> BuildInputs:
        """Withdrawals and settings that change an edition enter every digest."""
        return BuildInputs(
            [self._sources, self.left_out, self.manifest_extras],
            self.captures,
            self.seals,
            {
                Input.NAMES: lambda: sum_of_digests(some.names for some in self.counts),
                Input.ISSUERS: lambda: sorted(self.first_figures.items()),
                Input.CLAIMS: lambda: sum_of_digests(some.claims for some in self.counts),
                Input.DESCRIPTIONS: lambda: (
                    self.first_observed,
                    [partition.described for partition in self.partitions],
                ),
                Input.ORGANISATIONS: lambda: [partition.inputs for partition in self.partitions],
                # The inputs of decisions about similar names.
                **dict.fromkeys(
                    (Input.TENDERS, Input.RECORDS),
                    lambda: (self.match_threshold, sorted(self.reviews.verdicts.items())),
                ),
            },
        )

    @cached_property
    def memo(self) -> Memo:
        """The results of earlier builds by their inputs."""
        return Memo(self._issuer_cache and self._issuer_cache / "datasets")

    def _fundamentals(self, day: str) -> DatasetCounts:
        counts = self.counts
        served: defaultdict[str, ServedFacts] = defaultdict(lambda: ServedFacts(0, 0))
        fact_counts = HeldFacts()
        for some in counts:
            fact_counts.add(some.held)
            for source_id, _, total in some.facts:
                facts, dated = served[source_id]
                served[source_id] = ServedFacts(facts + total.rows, dated + total.dated)
        fact_counts.add(self._recall(HeldFacts, _RECORDS, "withheld-facts", self._withheld_facts))
        counted = fundamental_counts(
            fact_counts,
            served,
            issuers=sum(some.issuers for some in counts),
            with_lei=sum(some.issuers_with_lei for some in counts),
            countries=len({country for some in counts for country in some.issuer_countries}),
        )
        if day:
            counted.figures.update(coverage((some.coverage for some in counts), ordinal(day)))
        return counted

    def _withheld_facts(self) -> HeldFacts:
        """The facts of subjects that are not served."""
        fact_counts = HeldFacts()
        organisations = {subject for entity in self.entities for subject in entity.subjects}
        for subject, _ in self.ledger.fact_subjects():
            if subject not in organisations:
                fact_counts.add(count_facts(self.ledger.facts(subject), self.captures))
        return fact_counts

    @cached_property
    def counts(self) -> list[PartitionCounts]:
        """Counts of all organisations, by partition."""
        return self._recall(list[PartitionCounts], _RECORDS, "counts", lambda: list(self.summaries.counts()))

    @cached_property
    def resolved(self) -> ResolutionSummary:
        """What the manifest says about the resolution of organisations."""
        return self._recall(
            ResolutionSummary,
            _RECORDS,
            "resolved",
            lambda: ResolutionSummary(
                [f"{c.identifier} claimed by {', '.join(c.claimed_by)}" for c in self.resolution.conflicts],
                self.resolution.crosswalk_since,
                max(self.resolution.proven, self.parties.proven),
            ),
        )

    @cached_property
    def summaries(self) -> PartitionSummaries:
        """Counts and screen data of all organisations, by partition."""
        path = self._issuer_cache and self._issuer_cache / "partitions"
        return PartitionSummaries(self.partitions, self.entities, self.issuers, self.captures, path)

    @cached_property
    def held_sources(self) -> list[str]:
        return sorted({capture.source_id for capture in self.captures.values()})

    def source(self, source_id: str) -> Source | None:
        """The entry in the registry; None if there is none."""
        return self._sources.get(source_id)

    def first_capture(self, sku: str) -> CaptureInfo | None:
        """The first capture of a source of a dataset."""
        own = {name for name, source in self._sources.items() if source.sku == sku}
        return next((c for _, c in sorted(self.captures.items()) if c.source_id in own), None)

    def owed(self, source_ids: Iterable[str]) -> list[str]:
        """The attributions that the licences of these sources ask for."""
        named = (self._sources[name] for name in sorted(source_ids) if name in self._sources)
        return list(dict.fromkeys(source.owed for source in named))

    def notices(self) -> dict[str, str]:
        """The `_license` texts: by sku, of organisations, and of everything."""
        by_sku = {name: self._sources[name].sku for name in self.held_sources if name in self._sources}
        identity_sources = {
            name
            for name, sku in by_sku.items()
            if sku is None and self._sources[name].license_class in OWING_CLASSES
        }
        notices = {
            EVERY_SOURCE: notice(self.owed(self.held_sources)),
            ORGANISATIONS: notice(self.owed(self._named_by())),
        }
        for sku in SKUS:
            own = {name for name, of in by_sku.items() if of == sku}
            notices[sku] = notice(self.owed(own | identity_sources if sku != "AF-MACRO" and own else own))
        return notices

    def _named_by(self) -> set[str]:
        return {source_id for some in self.counts for source_id, _, _ in some.statements}

    @cached_property
    def issuers(self) -> Issuers:
        path = self._issuer_cache and self._issuer_cache / "issuers"
        return Issuers(self.ledger, self.captures, self.entities, path, processes=self._processes)

    @cached_property
    def first_figures(self) -> dict[str, int]:
        """By service_id, the first day on which a figure of each issuer was known."""

        def first() -> dict[str, int]:
            subjects = {subject for subject, _ in self.ledger.fact_subjects()}
            own = (one.service_id for one in self.entities if not subjects.isdisjoint(one.subjects))
            return {one: day for one in own if (day := self.issuers.first_figure(one))}

        return self._recall(dict[str, int], _RECORDS, "first-figures", first)

    @cached_property
    def macro(self) -> MacroParts:
        """The derived parts of each macro column."""
        path = self._issuer_cache and self._issuer_cache / "macro"
        return MacroParts(self.ledger, self.captures, path, self._processes)

    @cached_property
    def flags(self) -> CountryFlags:
        return CountryFlags(self.tenders, self.captures, self._issuer_cache and self._issuer_cache / "flags")

    @cached_property
    def entities(self) -> list[Entity]:
        """Every organisation by service_id, including those known only from tenders."""
        known = with_parties(self.resolution.entities, self.parties, self.captures)
        relate(known, self.captures)
        return known

    @cached_property
    def partitions(self) -> list[Partition]:
        """All organisations, in partitions. They are not read if nothing about them changed."""

        def cut() -> list[Partition]:
            base = self.inputs.digest("", ())
            return list(partitions(self.entities, self.issuers, self.captures, base))

        return self._recall(list[Partition], _RECORDS, "partitions", cut)

    @cached_property
    def part_scale(self) -> int:
        """Factor by which parts are larger than in a small edition."""
        return self._recall(int, _RECORDS, "scale", lambda: part_scale(self.entities, self.issuers))

    @cached_property
    def clock(self) -> str:
        """The instant of the last capture that is read, or of the last withdrawal if none is."""
        withdrawn = self.withdrawals[-1].observed_at if self.withdrawals else ""
        return max((capture.observed_at for capture in self.captures.values()), default=withdrawn)

    @property
    def first_observed(self) -> str:
        """The instant of the first capture of the build."""
        first = min(self.captures, default=None)
        return self.clock if first is None else self.captures[first].observed_at


def described(withdrawal: Withdrawal) -> dict[str, object]:
    """A withdrawal in the manifest, without its reason, because the manifest is public."""
    return {
        "source": withdrawal.source_id,
        "capture": withdrawal.capture or None,
        "file": withdrawal.file_name or None,
        "files": len(withdrawal.files),
        "reason": "",
        "at": withdrawal.observed_at,
        "everywhere": withdrawal.everywhere,
        "number": withdrawal.number,
        "first_capture": min(file.capture_id for file in withdrawal.files),
    }


def with_reasons(manifest: Mapping[str, Any], withdrawals: Sequence[Withdrawal]) -> dict[str, Any]:
    listed = [{**described(one), "reason": one.reason} for one in withdrawals]
    return {**manifest, "withdrawals": listed}


class LeftOut(NamedTuple):
    """A source of the ledger that an edition leaves out."""

    source: str
    why: str
    captures: int
    rows: int


def left_out_of(ledger: LedgerReader, sources: Mapping[str, Source]) -> list[LeftOut]:
    """Sources of a ledger that today's registry does not allow to redistribute."""
    omitted = []
    for source_id, holding in ledger.holdings().items():
        source = sources.get(source_id)
        if source is None or not source.commercial_redistribution:
            why = "not registered" if source is None else "commercial_redistribution is not true"
            omitted.append(LeftOut(source_id, why, *holding))
    return omitted
