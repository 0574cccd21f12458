"""Red flags of contracting processes: the indicators of Cardinal, with its defaults (contract: FLAG-1).

Cardinal is the Open Contracting Partnership's library of indicators; its documentation explains each of them
(https://cardinal.readthedocs.io/en/latest/cli/indicators/). An indicator is computed from compiled releases.
Outliers are judged by the quartiles of the population. A flag is a reason to look, and proves nothing.

Only the fields that indicators read are stored of each release (`ProcessReleases`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.flag_facts import (
    PROCESS,
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
TOP: Final = 0.75
FEWEST_BIDS: Final = 2
FEWEST_PROCESSES: Final = 20
_CANCELLED: Final = "The tender is cancelled."


class Fences(NamedTuple):
    """Quartiles of a population, and the limits beyond which a value is an outlier."""

    q1: float
    q3: float
    lower: float
    upper: float

    @classmethod
    def of(cls, ordered: Sequence[float]) -> "Fences | None":
        """None for no values."""
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


class Thresholds(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Statistics of a country's processes on a day, and the indicators that use them."""

    population: int
    """Number of processes."""
    currency: str | None = None
    """The currency that most bids have."""
    prices: Fences | None = None
    shares: Fences | None = None
    """Shares of won processes, by tenderer."""
    top: float = 0
    """The 75th percentile of processes that a tenderer entered."""
    bids: dict[str, Fences | None] = {}
    """Shares of disqualified bids, by type of party."""
    variety: Fences | None = None
    """Numbers of classifications, by supplier."""
    fewest: int = FEWEST_PROCESSES
    """Processes with an award that a supplier needs for its variety to count."""

    def close(self, ratio: float) -> bool:
        """Whether the second-lowest bid is close to the winning one (R024)."""
        fences = self.prices
        return fences is not None and fences.q1 > 0 and fences.lower > 0 and ratio <= fences.lower

    def discounted(self, ratio: float) -> bool:
        """Whether the winning bid is far below the second-lowest (R058)."""
        return self.prices is not None and self.prices.upper > 0 and ratio >= self.prices.upper

    def priced(self, process: Examined) -> Iterator[Reading]:
        """The price indicators of a process: R024, R036 and R058."""
        ocid, fences = process.ocid, self.prices
        prices = process.prices.get(self.currency or "")
        if prices is None or prices.ratio is None or fences is None:
            reason = (
                prices.reason if prices else process.no_prices if not process.prices else self._other_currency
            )
            yield Reading("R024", PROCESS, ocid, None, reason=reason)
            yield Reading("R058", PROCESS, ocid, None, reason=reason)
        else:
            ratio, inputs = prices.ratio, prices.inputs | fences.inputs
            close, discounted = self.close(ratio), self.discounted(ratio)
            yield Reading("R024", PROCESS, ocid, close, ratio, fences.lower, inputs)
            if close:
                for tenderer in (prices.winner, prices.runner_up):
                    yield Reading("R024", TENDERER, tenderer, True, 0.0, fences.lower, {"ocid": ocid})
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

    def success(self, tenderer: str, won: int, entered: int) -> Reading:
        fences = self.shares
        if not entered or fences is None:
            reason = "No valid bid alone in a process with a single award to a single supplier."
            return Reading("R025", TENDERER, tenderer, None, reason=reason)
        share = won / entered
        flagged = fences.q1 > 0 and fences.lower > 0 and entered >= self.top and share <= fences.lower
        inputs = {"won": won, "entered": entered, "percentile_75_entered": self.top, **fences.inputs}
        return Reading("R025", TENDERER, tenderer, flagged, share, fences.lower, inputs)

    def disqualification(self, subject_type: str, party: str, disqualified: int, submitted: int) -> Reading:
        inputs = {"disqualified": disqualified, "submitted": submitted}
        fences = self.bids.get(subject_type)
        if submitted < FEWEST_BIDS or fences is None:
            reason = f"Fewer than {FEWEST_BIDS} submitted bids."
            return Reading("R038", subject_type, party, None, inputs=inputs, reason=reason)
        share = disqualified / submitted
        flagged = fences.upper > 0 and share >= fences.upper
        return Reading("R038", subject_type, party, flagged, share, fences.upper, inputs | fences.inputs)

    def variety_of(self, supplier: str, count: int, variety: int, codes: list[str]) -> Reading:
        """`codes` are the first classifications in order."""
        inputs = {"processes": count, "classifications": codes}
        fences = self.variety
        if count < self.fewest or fences is None:
            reason = f"Awards with classified items in fewer than {self.fewest} processes."
            return Reading("R048", TENDERER, supplier, None, inputs=inputs, reason=reason)
        flagged = variety >= fences.upper
        return Reading("R048", TENDERER, supplier, flagged, variety, fences.upper, inputs | fences.inputs)

    def of_process(self, process: Examined, parties: "Callable[[str], PartyInputs]") -> Iterator[Reading]:
        """Every indicator of one process and of the parties in it, given what is known of each party."""
        if process.cancelled:
            for indicator in INDICATORS:
                yield Reading(indicator, PROCESS, process.ocid, None, reason=_CANCELLED)
            return
        yield from process.findings
        yield from self.priced(process)
        tenderers = [subject for of_type, subject in process.bids if of_type == TENDERER]
        success = [self.success(one, *parties(one).entered) for one in tenderers]
        yield from _or_none(process, "R025", "No tenderer of a bid is named.", success)
        lost = [self.disqualification(*one, *parties(one[1]).bids[one[0]]) for one in process.bids]
        yield from _or_none(process, "R038", "No bid was submitted, or nobody is named.", lost)
        variety = [self.variety_of(one, *parties(one).classes) for one in process.classes]
        reason = "No active award names a single supplier and classified items."
        yield from _or_none(process, "R048", reason, variety)


class PartyInputs(NamedTuple):
    """The numbers of a party that indicators compare on a day."""

    entered: tuple[int, int]
    """Processes won, and processes with a valid bid."""
    bids: dict[str, tuple[int, int]]
    """Disqualified and submitted bids, by type of the party."""
    classes: tuple[int, int, list[str]]
    """Processes with an award, the number of classifications, and the first of these."""


class FlagCounts(NamedTuple):
    """The indicators of a country on a day, counted."""

    population: int
    computed: dict[str, int]
    """By indicator, the number of processes (or parties) that it could be computed for."""
    flagged: dict[str, dict[str, int]]
    """By indicator and type of subject."""


def _or_none(
    process: Examined, indicator: str, reason: str, findings: Sequence[Reading]
) -> Sequence[Reading]:
    """The findings about parties, or one about the process if it has no such party."""
    return findings or [Reading(indicator, PROCESS, process.ocid, None, reason=reason)]


_NOBODY: Final = SetBy("", "")
read_facts: Final = msgspec.json.Decoder(ProcessFacts).decode


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
    """A process at the end of each day with a release (`day_states`)."""

    ocid: str
    releases: list[ReleaseFacts]


class FlagFacts(NamedTuple):
    """The facts that indicators read from one release."""

    facts: bytes
    """`ProcessFacts`, as JSON."""
    service_ids: dict[str, str]
    """The organisations of its parties, by the party's id in the release."""


NO_FACTS: Final = FlagFacts(b"", {})


def flag_facts(body: str, service_id_of: Callable[[str], str | None]) -> FlagFacts:
    """The facts that indicators read from a release. `service_id_of` resolves the name of a party."""
    facts = read_facts(body)
    named = ((str(one.id), service_id_of(one.name)) for one in facts.references() if one.id and one.name)
    return FlagFacts(encode(facts), {party: service_id for party, service_id in named if service_id})


def day_states(releases: Sequence[ReleaseFacts]) -> list[ReleaseFacts]:
    """The last release of each day, oldest first, with the facts that all releases up to it add up to."""
    if len(releases) == 1 and _is_compiled(read_facts(releases[0].facts)):
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


def on_day(process: ProcessReleases, day: int) -> ReleaseFacts | None:
    """The process on a day; None before its first release."""
    return next((release for release in reversed(process.releases) if release.day <= day), None)


def _is_compiled(facts: ProcessFacts) -> bool:
    """Whether a single release equals its compiled form: no list is empty or repeats an id."""
    if [] in (facts.awards, facts.bids and facts.bids.details):
        return False
    bids, awards = (facts.bids and facts.bids.details) or (), facts.awards or ()
    lists: list[Sequence[Bid | AwardFacts | Reference]] = [bids, awards, facts.parties or ()]
    lists += [bid.tenderers or () for bid in bids]
    lists += [award.suppliers or () for award in awards]
    return all(len(one) < 2 or len({str(part.id) for part in one}) == len(one) for one in lists)
