"""The oracle of red flags: all processes of a country on one day, compared with each other then."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from sankofa.edition.format.flag_steps import (
    Flag,
    FlagSource,
    FlagSubject,
    PartyNames,
    party_names,
    process_spellings,
    spellings,
    title_of,
)
from sankofa.model.ocds.flag_facts import (
    BUYER,
    MOST_LISTED,
    PROCESS,
    PROCURING_ENTITY,
    TENDERER,
    Examined,
    ProcessFacts,
    Reading,
    examine,
)
from sankofa.model.ocds.red_flags import (
    FEWEST_PROCESSES,
    Fences,
    PartyInputs,
    ProcessReleases,
    ReleaseFacts,
    Thresholds,
    on_day,
    quantile,
    read_facts,
)


class OnDay(NamedTuple):
    facts: ProcessFacts
    names: PartyNames
    release: ReleaseFacts
    examined: Examined

    @property
    def source(self) -> FlagSource:
        return FlagSource(self.release.source_ref, self.release.license_class, self.release.observed_at)


class Population:
    """The processes of a country on a day, the thresholds that follow from them, and what these flag."""

    def __init__(
        self, processes: Iterable[ProcessReleases], day: int, fewest: int = FEWEST_PROCESSES
    ) -> None:
        self.processes: dict[str, OnDay] = {}
        for process in processes:
            if (release := on_day(process, day)) is not None:
                facts = read_facts(release.facts)
                names = party_names(facts, release.service_ids)
                self.processes[process.ocid] = OnDay(facts, names, release, examine(process.ocid, facts))
        self._examined = [one.examined for one in self.processes.values()]
        self._fewest = fewest
        self._compare()
        self.limits = self._limits()
        self.computed: Counter[str] = Counter()
        self.findings = list(self._findings())

    def _compare(self) -> None:
        entered: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        bids: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        classes: defaultdict[str, list[set[str]]] = defaultdict(list)
        for process in self._examined:
            for tenderer, won in process.entered.items():
                entered[tenderer][0] += won
                entered[tenderer][1] += 1
            for (kind, party), (lost, submitted) in process.bids.items():
                before = bids[party].get(kind, (0, 0))
                bids[party][kind] = before[0] + lost, before[1] + submitted
            for supplier, codes in process.classes.items():
                classes[supplier].append(codes)
        self.parties: dict[str, PartyInputs] = {}
        for party in {*entered, *bids, *classes}:
            known = sorted({code for codes in classes[party] for code in codes})
            of_classes = len(classes[party]), len(known), known[:MOST_LISTED]
            self.parties[party] = PartyInputs((entered[party][0], entered[party][1]), bids[party], of_classes)

    def _limits(self) -> Thresholds:
        parties = self.parties.values()
        currencies = Counter(
            one for process in self._examined for one in Counter(process.currencies).elements()
        )
        most = max(currencies.values(), default=0)
        currency = min((one for one, count in currencies.items() if count == most), default=None)
        prices = [process.prices[currency] for process in self._examined if currency in process.prices]
        entered = [one.entered for one in parties if one.entered[1]]
        return Thresholds(
            len(self.processes),
            currency,
            Fences.of(sorted(one.ratio for one in prices if one.ratio is not None)),
            Fences.of(sorted(won / number for won, number in entered)),
            quantile(sorted(number for _, number in entered), 0.75) if entered else 0.0,
            {
                kind: Fences.of(
                    sorted(
                        one.bids[kind][0] / one.bids[kind][1]
                        for one in parties
                        if one.bids.get(kind, (0, 0))[1] >= 2
                    )
                )
                for kind in (BUYER, PROCURING_ENTITY, TENDERER)
            },
            Fences.of(sorted(one.classes[1] for one in parties if one.classes[0] >= self._fewest)),
            self._fewest,
        )

    def _findings(self) -> Iterator[Reading]:
        """The indicators that are flagged."""
        in_processes: defaultdict[tuple[str, str], dict[str, Reading]] = defaultdict(dict)
        for process in self._examined:
            findings = [] if process.cancelled else [*process.findings, *self.limits.priced(process)]
            for one in findings:
                if one.subject_type == TENDERER:
                    in_processes[one.indicator, one.subject][process.ocid] = one
                else:
                    self.computed[one.indicator] += one.flagged is not None
                    if one.flagged:
                        yield one
        for own in in_processes.values():  # one flag for all processes of a tenderer
            listed = {"processes": len(own), "ocids": sorted(own)[:MOST_LISTED]}
            yield replace(next(iter(own.values())), inputs=listed)
        for party, inputs in self.parties.items():
            compared = [
                self.limits.success(party, *inputs.entered),
                *(self.limits.disqualification(kind, party, *own) for kind, own in inputs.bids.items()),
                self.limits.variety_of(party, *inputs.classes),
            ]
            self.computed.update(one.indicator for one in compared if one.flagged is not None)
            yield from (one for one in compared if one.flagged)

    def flags(self, buyer: str | None = None, supplier: str | None = None) -> list[Flag]:
        """The flags with their subjects: all, or those about one buyer or supplier."""
        flags = []
        for finding in self.findings:
            if finding.subject_type == PROCESS:
                process = self.processes[finding.subject]
                subject = FlagSubject(title_of(process.facts), None, process.source)
                buyers, suppliers = process_spellings(process.facts, process.names)
            else:
                subject = self._named(finding.subject)
                own = spellings(finding.subject, subject.name, subject.service_id)
                buyers, suppliers = (
                    (frozenset(), own) if finding.subject_type == TENDERER else (own, frozenset())
                )
            if (buyer is None or buyer in buyers) and (supplier is None or supplier in suppliers):
                flags.append(Flag(finding, subject))
        return sorted(
            flags, key=lambda one: (one.finding.indicator, one.finding.subject_type, one.finding.subject)
        )

    def _named(self, party: str) -> FlagSubject:
        """By the newest release that names it; of one instant, by that of the last process."""
        newest: OnDay | None = None
        for one in self.processes.values():
            names_it = party in one.names and (
                one.examined.bids or one.examined.classes or one.examined.entered
            )
            if names_it and (newest is None or newest.release.released <= one.release.released):
                newest = one
        assert newest is not None
        return FlagSubject(*newest.names[party], newest.source)
