"""Red flags of contracting processes: the indicators of Cardinal, with its defaults (contract: FLAG-1).

Cardinal is the Open Contracting Partnership's library of indicators; its documentation explains each of them
(https://cardinal.readthedocs.io/en/latest/cli/indicators/). An indicator is computed from compiled releases.
Outliers are judged by the quartiles of the population. A flag is a reason to look, and proves nothing.

The releases of a process are stored cut down to what the indicators read (`ProcessReleases`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.flag_facts import (
    BUYER,
    MOST_LISTED,
    PROCESS,
    PROCURING_ENTITY,
    TENDERER,
    AwardFacts,
    Bid,
    Examined,
    ProcessFacts,
    Reading,
    Reference,
)
from sankofa.model.ocds.release import decode, encode
from sankofa.model.text import toml_table

INDICATORS: Final[dict[str, dict[str, str]]] = toml_table("sankofa.model.ocds", "indicators")
"""`title` and `formula` of each."""

_FENCE: Final = 1.5
_TOP: Final = 0.75
_FEWEST_BIDS: Final = 2
_FEWEST_PROCESSES: Final = 20
_CANCELLED: Final = "The tender is cancelled."


class Fences(NamedTuple):
    """Quartiles of a population, and the values beyond which another one is an outlier."""

    q1: float
    q3: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Fences | None":
        ordered = sorted(values)
        if not ordered:
            return None
        q1, q3 = quantile(ordered, 0.25), quantile(ordered, 0.75)
        return cls(q1, q3, q1 - _FENCE * (q3 - q1), q3 + _FENCE * (q3 - q1))

    @property
    def inputs(self) -> dict[str, Any]:
        return {"q1": self.q1, "q3": self.q3}


def quantile(ordered: Sequence[float], share: float) -> float:
    """By the definition of Hyndman and Fan, type 8."""
    at = (len(ordered) + 1 / 3) * share + 1 / 3
    whole = int(at)
    if whole <= 0:
        return ordered[0]
    if whole >= len(ordered):
        return ordered[-1]
    below, above = ordered[whole - 1], ordered[whole]
    return below + (at - whole) * (above - below)


class Population:
    """The processes of a country on a day, and the thresholds that follow from them."""

    def __init__(self, fewest_processes: int = _FEWEST_PROCESSES) -> None:
        self.count = 0
        self.currency: str | None = None
        self.findings: list[Reading] = []
        """The indicators that are flagged, with their values."""
        self.computed: Counter[str] = Counter()
        """By indicator, the processes that it could be computed for; or the parties, if it is about these."""
        self._fewest = fewest_processes
        self._currencies: Counter[str] = Counter()
        self._priced: list[Examined] = []
        self._processes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """The processes in which a tenderer is flagged, by indicator."""
        self._tenderers: dict[tuple[str, str], Reading] = {}
        self._entered: dict[str, list[int]] = {}
        self._bids: dict[tuple[str, str], list[int]] = {}
        self._classes: dict[str, tuple[int, set[str]]] = {}

    def add(self, process: Examined) -> None:
        self.count += 1
        self._flag(process.ocid, process.findings)
        self._currencies.update(process.currencies)
        if process.prices:
            self._priced.append(process)
        for tenderer, won in process.entered.items():
            of_tenderer = self._entered.setdefault(tenderer, [0, 0])
            of_tenderer[0] += won
            of_tenderer[1] += 1
        for party, (disqualified, submitted) in process.bids.items():
            of_party = self._bids.setdefault(party, [0, 0])
            of_party[0] += disqualified
            of_party[1] += submitted
        for supplier, codes in process.classes.items():
            count, known = self._classes.get(supplier, (0, set()))
            self._classes[supplier] = count + 1, known | codes

    def _flag(self, ocid: str, findings: Iterable[Reading]) -> None:
        for finding in findings:
            self.computed[finding.indicator] += (
                finding.subject_type == PROCESS and finding.flagged is not None
            )
            if not finding.flagged:
                continue
            if finding.subject_type == TENDERER:  # one flag for all of its processes
                key = finding.indicator, finding.subject
                self._processes[key].append(ocid)
                self._tenderers[key] = finding
            else:
                self.findings.append(finding)

    def close(self) -> "Population":
        """Computes the thresholds, once everything is added, and what they flag."""
        most = max(self._currencies.values(), default=0)
        self.currency = min((one for one, count in self._currencies.items() if count == most), default=None)
        ratios = [
            prices.ratio
            for process in self._priced
            if (prices := process.prices.get(self.currency or "")) and prices.ratio is not None
        ]
        self._price_fences = Fences.of(ratios)
        self._shares = Fences.of(won / entered for won, entered in self._entered.values())
        self._top = (
            quantile(sorted(entered for _, entered in self._entered.values()), _TOP) if self._entered else 0
        )
        self._bid_fences = {
            subject_type: Fences.of(
                disqualified / submitted
                for (of_type, _), (disqualified, submitted) in self._bids.items()
                if of_type == subject_type and submitted >= _FEWEST_BIDS
            )
            for subject_type in (BUYER, PROCURING_ENTITY, TENDERER)
        }
        self._variety = Fences.of(
            len(codes) for count, codes in self._classes.values() if count >= self._fewest
        )
        for process in self._priced:
            self._flag(process.ocid, self._priced_findings(process))
        self._priced.clear()
        for (indicator, tenderer), ocids in self._processes.items():
            finding = self._tenderers[indicator, tenderer]
            listed = {"processes": len(ocids), "ocids": sorted(ocids)[:MOST_LISTED]}
            self.findings.append(replace(finding, inputs=listed))
        parties = [*map(self._success, self._entered), *map(self._variety_of, self._classes)]
        parties += [self._disqualification(*party) for party in self._bids]
        self.computed.update(finding.indicator for finding in parties if finding.flagged is not None)
        self.findings += [finding for finding in parties if finding.flagged]
        return self

    def of_process(self, process: Examined) -> Iterator[Reading]:
        """Every indicator of one process and of the parties in it."""
        if process.cancelled:
            for indicator in INDICATORS:
                yield Reading(indicator, PROCESS, process.ocid, None, reason=_CANCELLED)
            return
        yield from process.findings
        yield from self._priced_findings(process)
        tenderers = [subject for of_type, subject in process.bids if of_type == TENDERER]
        yield from _or_none(process, "R025", "No tenderer of a bid is named.", map(self._success, tenderers))
        parties = [self._disqualification(*party) for party in process.bids]
        yield from _or_none(process, "R038", "No bid was submitted, or nobody is named.", parties)
        yield from _or_none(
            process,
            "R048",
            "No active award names a single supplier and classified items.",
            map(self._variety_of, process.classes),
        )

    def _priced_findings(self, process: Examined) -> Iterator[Reading]:
        ocid, fences = process.ocid, self._price_fences
        prices = process.prices.get(self.currency or "")
        if prices is None or prices.ratio is None or fences is None:
            reason = (
                prices.reason if prices else process.no_prices if not process.prices else self._other_currency
            )
            yield Reading("R024", PROCESS, ocid, None, reason=reason)
            yield Reading("R058", PROCESS, ocid, None, reason=reason)
        else:
            ratio, inputs = prices.ratio, prices.inputs | fences.inputs
            close = fences.q1 > 0 and fences.lower > 0 and ratio <= fences.lower
            yield Reading("R024", PROCESS, ocid, close, ratio, fences.lower, inputs)
            if close:
                for tenderer in (prices.winner, prices.runner_up):
                    yield Reading("R024", TENDERER, tenderer, True, 0.0, fences.lower, {"ocid": ocid})
            discounted = fences.upper > 0 and ratio >= fences.upper
            yield Reading("R058", PROCESS, ocid, discounted, ratio, fences.upper, inputs)
            if discounted:
                yield Reading("R058", TENDERER, prices.winner, True, 0.0, fences.upper, {"ocid": ocid})
        if prices is not None:
            yield prices.lowest
        else:
            reason = self._other_currency if process.prices else "No submitted bid has an amount."
            yield Reading("R036", PROCESS, ocid, None, reason=reason)

    @property
    def _other_currency(self) -> str:
        return f"No bid is in {self.currency}, the currency that most bids have."

    def _success(self, tenderer: str) -> Reading:
        won, entered = self._entered.get(tenderer, (0, 0))
        fences = self._shares
        if not entered or fences is None:
            reason = "No valid bid alone in a process with a single award to a single supplier."
            return Reading("R025", TENDERER, tenderer, None, reason=reason)
        share = won / entered
        flagged = fences.q1 > 0 and fences.lower > 0 and entered >= self._top and share <= fences.lower
        inputs = {"won": won, "entered": entered, "percentile_75_entered": self._top, **fences.inputs}
        return Reading("R025", TENDERER, tenderer, flagged, share, fences.lower, inputs)

    def _disqualification(self, subject_type: str, party: str) -> Reading:
        disqualified, submitted = self._bids[subject_type, party]
        inputs = {"disqualified": disqualified, "submitted": submitted}
        fences = self._bid_fences[subject_type]
        if submitted < _FEWEST_BIDS or fences is None:
            reason = f"Fewer than {_FEWEST_BIDS} submitted bids."
            return Reading("R038", subject_type, party, None, inputs=inputs, reason=reason)
        share = disqualified / submitted
        flagged = fences.upper > 0 and share >= fences.upper
        return Reading("R038", subject_type, party, flagged, share, fences.upper, inputs | fences.inputs)

    def _variety_of(self, supplier: str) -> Reading:
        count, codes = self._classes[supplier]
        inputs = {"processes": count, "classifications": sorted(codes)[:MOST_LISTED]}
        fences = self._variety
        if count < self._fewest or fences is None:
            reason = f"Awards with classified items in fewer than {self._fewest} processes."
            return Reading("R048", TENDERER, supplier, None, inputs=inputs, reason=reason)
        variety = len(codes)
        flagged = variety >= fences.upper
        return Reading("R048", TENDERER, supplier, flagged, variety, fences.upper, inputs | fences.inputs)


def _or_none(
    process: Examined, indicator: str, reason: str, findings: Iterable[Reading]
) -> Iterable[Reading]:
    """The findings about parties; one about the process where it has none of these parties."""
    return list(findings) or [Reading(indicator, PROCESS, process.ocid, None, reason=reason)]


_NOBODY: Final = SetBy("", "")
_facts: Final = msgspec.json.Decoder(ProcessFacts).decode


class ReleaseFacts(msgspec.Struct, array_like=True, gc=False):
    """One release, and where it came from."""

    day: int
    released: str
    source_ref: str
    license_class: str
    observed_at: str
    facts: msgspec.Raw
    """`ProcessFacts`, as JSON."""
    service_ids: dict[str, str]
    """Organisations that parties were matched with, by their id in the release."""


class ProcessReleases(msgspec.Struct, array_like=True, gc=False):
    """A process, as it stood at the end of each day with a release (`day_states`)."""

    ocid: str
    releases: list[ReleaseFacts]


class ProcessOnDay(NamedTuple):
    """A process as its releases up to a day add up."""

    ocid: str
    facts: ProcessFacts
    last: ReleaseFacts
    service_ids: dict[str, str]


class FlagFacts(NamedTuple):
    """What indicators read in one release."""

    facts: bytes
    """`ProcessFacts`, as JSON."""
    service_ids: dict[str, str]
    """The organisations of its parties, by the id that each has in the release."""


NO_FACTS: Final = FlagFacts(b"", {})


def flag_facts(body: str, service_id_of: Callable[[str], str | None]) -> FlagFacts:
    """What indicators read in a release. `service_id_of` resolves the name of a party."""
    facts = _facts(body)
    named = ((str(one.id), service_id_of(one.name)) for one in facts.references() if one.id and one.name)
    return FlagFacts(encode(facts), {party: service_id for party, service_id in named if service_id})


def day_states(releases: Sequence[ReleaseFacts]) -> list[ReleaseFacts]:
    """The last release of each day, oldest first, with the facts that all releases up to it add up to."""
    if len(releases) == 1 and _is_compiled(_facts(releases[0].facts)):
        return list(releases)
    adding = Process()
    service_ids: dict[str, str] = {}
    states: list[ReleaseFacts] = []
    for at, release in enumerate(releases, 1):
        adding.add(decode(release.facts), _NOBODY)
        service_ids = service_ids | release.service_ids
        if at == len(releases) or releases[at].day != release.day:
            facts = encode(msgspec.convert(adding.compiled().release, ProcessFacts))
            states.append(replace(release, facts=msgspec.Raw(facts), service_ids=service_ids))
    return states


def on_day(process: ProcessReleases, day: int) -> ProcessOnDay | None:
    """The process on a day; None before its first release."""
    last = next((release for release in reversed(process.releases) if release.day <= day), None)
    return ProcessOnDay(process.ocid, _facts(last.facts), last, last.service_ids) if last else None


def _is_compiled(facts: ProcessFacts) -> bool:
    """Whether a single release is what it adds up to: no list is empty, or names an id twice."""
    if [] in (facts.awards, facts.bids and facts.bids.details):
        return False
    bids, awards = (facts.bids and facts.bids.details) or (), facts.awards or ()
    lists: list[Sequence[Bid | AwardFacts | Reference]] = [bids, awards, facts.parties or ()]
    lists += [bid.tenderers or () for bid in bids]
    lists += [award.suppliers or () for award in awards]
    return all(len(one) < 2 or len({str(part.id) for part in one}) == len(one) for one in lists)
