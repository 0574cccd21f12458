"""Red flags of contracting processes (contract: FLAG-1): the indicators of Cardinal, and others of the guide.

Cardinal is the Open Contracting Partnership's library of indicators; its documentation explains each of them
(https://cardinal.readthedocs.io/en/latest/cli/indicators/). The guide is the Partnership's too: "Red flags in
public procurement" (2024). An indicator is computed from compiled releases. Outliers are judged by the
quartiles of the population. A flag is a reason to look, and proves nothing.

Only the fields that indicators read are stored of each release (`ProcessReleases`).
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.flag_facts import Examined
from sankofa.model.ocds.guide_outliers import HIGH, OUTLIERS, SHARES, Bound
from sankofa.model.ocds.guide_pairs import PAIRS, PairStep, pairs_of
from sankofa.model.ocds.process_facts import (
    PROCESS,
    TENDERER,
    Bids,
    Measured,
    PlanningFacts,
    ProcessFacts,
    Reading,
)
from sankofa.model.ocds.release import decode, encode
from sankofa.model.text import toml_table

_ALL: Final[dict[str, dict[str, str]]] = toml_table("sankofa.model.ocds", "indicators")
INDICATORS: Final = {code: one for code, one in _ALL.items() if "formula" in one}
"""`title` and `formula` of each."""


def indicator_list() -> str:
    """The indicators in Markdown: those that are computed, and why the others are not."""
    computed = [f"- {code}, {one['title']}: {one['formula']}" for code, one in INDICATORS.items()]
    left = [f"- {code}, {one['title']}: {one['left_out']}" for code, one in _ALL.items() if "left_out" in one]
    return "\n".join([*computed, "", "The guide has these besides; they are not computed:", "", *left])


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
    size: int = 0
    """Number of values."""
    total: float = 0
    """The whole that the values are shares of, if they are."""

    @classmethod
    def of(cls, ordered: Sequence[float]) -> "Fences | None":
        """None for no values."""
        if not ordered:
            return None
        q1, q3 = quantile(ordered, 0.25), quantile(ordered, 0.75)
        return cls(q1, q3, q1 - _FENCE * (q3 - q1), q3 + _FENCE * (q3 - q1), len(ordered))

    def outlier(self, value: float, bound: Bound) -> float | None:
        """The fence that a value is beyond; None if it is not."""
        if bound.high and value > self.q3 and (value > self.upper or (bound.reached and value == self.upper)):
            return self.upper
        if bound.low and value < self.q1 and (value < self.lower or (bound.reached and value == self.lower)):
            return self.lower
        return None

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


def share_key(indicator: str, subject_type: str) -> str:
    return f"{indicator}|{subject_type}"


def group_key(indicator: str, group: str) -> str:
    return f"{indicator}|{group}"


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
    party_shares: dict[str, Fences | None] = {}
    """The ratios of `SHARES`, by `share_key`."""
    variety: Fences | None = None
    """Numbers of classifications, by supplier."""
    fewest: int = FEWEST_PROCESSES
    """Processes with an award that a supplier needs for its variety to count."""
    crowded: int = 0
    """Processes with too many tenderers to compare each two."""
    groups: dict[str, Fences | None] = {}
    """The groups of `OUTLIERS` and `PAIRS`, by `group_key`. They are stored apart; readers fill them in."""

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

    def share(self, indicator: str, subject_type: str, party: str, part: int, whole: int) -> Reading:
        """One of `SHARES`."""
        names = SHARES[indicator]
        inputs = {names.part: part, names.whole: whole}
        fences = self.party_shares.get(share_key(indicator, subject_type))
        if whole < FEWEST_BIDS or fences is None:
            return Reading(indicator, subject_type, party, None, inputs=inputs, reason=names.reason)
        share = part / whole
        flagged = fences.upper > 0 and share >= fences.upper and (indicator == "R038" or share > fences.q3)
        return Reading(indicator, subject_type, party, flagged, share, fences.upper, inputs | fences.inputs)

    def stands_out(self, indicator: str, group: str, value: float) -> bool:
        """Whether a value is an outlier of its group: one of `OUTLIERS`."""
        fences = self.groups.get(group_key(indicator, group))
        return fences is not None and fences.outlier(value, OUTLIERS[indicator].bound) is not None

    def compared(self, indicator: str, ocid: str, measured: Measured) -> Reading:
        """One of `OUTLIERS` for a value."""
        group, value, inputs = measured
        bound, fences = OUTLIERS[indicator].bound, self.groups.get(group_key(indicator, group))
        if fences is None:
            return Reading(indicator, PROCESS, ocid, False, value, None, inputs)
        fence = fences.outlier(value, bound)
        nearer = fences.upper if bound.high and (value >= fences.q1 or not bound.low) else fences.lower
        flagged, threshold = fence is not None, nearer if fence is None else fence
        return Reading(indicator, PROCESS, ocid, flagged, value, threshold, inputs | fences.inputs)

    def pair_stands_out(self, indicator: str, step: PairStep) -> bool:
        """Whether the value of a pair is an outlier of its group."""
        fences = self.groups.get(group_key(indicator, step.group))
        return (
            fences is not None
            and step.value > PAIRS[indicator].above
            and fences.outlier(step.value, HIGH) is not None
        )

    def pairs(self, indicator: str, party: str, steps: Sequence[PairStep]) -> Reading:
        """One of `PAIRS` for a party: its pair that stands out with the highest value, else the highest.

        Later releases change the stored order of steps, so the inputs of the day decide between equals.
        """
        ordered = sorted(steps, key=attrgetter("inputs"))
        readings = [self._pair(indicator, party, one) for one in ordered]
        standing = sum(bool(one.flagged) for one in readings)
        best = max(readings, key=lambda one: (one.flagged or False, one.value or 0))
        return replace(best, inputs=best.inputs | {"pairs": standing}) if best.flagged else best

    def _pair(self, indicator: str, party: str, step: PairStep) -> Reading:
        names, fences = PAIRS[indicator], self.groups.get(group_key(indicator, step.group))
        inputs = step.known_inputs()
        if fences is None:
            return Reading(indicator, TENDERER, party, None, inputs=inputs, reason=names.reason)
        whole = 1.0
        if names.share:
            whole = fences.total
            inputs |= {"awarded": step.value, names.share: whole, "suppliers": fences.size}
        if names.rivals:
            inputs |= {"processes_left_out": self.crowded}
        inputs |= {"q1": fences.q1 / whole, "q3": fences.q3 / whole}
        flagged = self.pair_stands_out(indicator, step)
        return Reading(indicator, TENDERER, party, flagged, step.value / whole, fences.upper / whole, inputs)

    def of_pairs(self, process: Examined, parties: "Callable[[str], PartyInputs]") -> Iterator[Reading]:
        """`PAIRS` for the parties of a process, by its own pairs."""
        known: dict[tuple[str, str], list[PairStep]] = {}
        for pair in pairs_of(process.purchases, process.rivals):
            own = known.setdefault((pair.indicator, pair.party), [])
            own += [step] if (step := parties(pair.holder).pairs.get(pair.key)) else []
        for indicator, names in PAIRS.items():
            readings = [
                self.pairs(indicator, party, steps)
                if steps
                else Reading(indicator, TENDERER, party, None, reason=names.reason)
                for (of, party), steps in known.items()
                if of == indicator
            ]
            yield from _or_none(process, indicator, names.none, readings)

    def of_groups(self, process: Examined) -> Iterator[Reading]:
        """`OUTLIERS` for a process: the first value that stands out, else the first value."""
        for indicator in OUTLIERS:
            measured = process.measured[indicator]
            if isinstance(measured, str):
                yield Reading(indicator, PROCESS, process.ocid, None, reason=measured)
            else:
                readings = [self.compared(indicator, process.ocid, one) for one in measured]
                yield next((one for one in readings if one.flagged), readings[0])

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
        yield from self.of_groups(process)
        tenderers = [one for name, of_type, one in process.shares if (name, of_type) == ("R038", TENDERER)]
        success = [self.success(one, *parties(one).entered) for one in tenderers]
        yield from _or_none(process, "R025", "No tenderer of a bid is named.", success)
        for indicator, names in SHARES.items():
            shares = [
                self.share(*one, *parties(one[2]).shares[share_key(*one[:2])])
                for one in process.shares
                if one[0] == indicator
            ]
            yield from _or_none(process, indicator, names.none, shares)
        variety = [self.variety_of(one, *parties(one).classes) for one in process.classes]
        reason = "No active award names a single supplier and classified items."
        yield from _or_none(process, "R048", reason, variety)
        yield from self.of_pairs(process, parties)


class PartyInputs(NamedTuple):
    """The numbers of a party that indicators compare on a day."""

    entered: tuple[int, int]
    """Processes won, and processes with a valid bid."""
    shares: dict[str, tuple[int, int]]
    """The two numbers of `SHARES`, by `share_key`."""
    classes: tuple[int, int, list[str]]
    """Processes with an award, the number of classifications, and the first of these."""
    pairs: dict[str, PairStep]
    """Its pairs, by `pair_key`."""


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


def flag_facts(body: str, service_id_of: Callable[[str], str | None]) -> FlagFacts:
    """The facts that indicators read from a release. `service_id_of` resolves the name of a party."""
    facts = read_facts(body)
    facts.shorten()
    named = ((str(one.id), service_id_of(one.name)) for one in facts.references() if one.id and one.name)
    return FlagFacts(encode(facts), {party: service_id for party, service_id in named if service_id})


def day_states(releases: Sequence[ReleaseFacts]) -> list[ReleaseFacts]:
    """The last release of each day, oldest first, with the facts that all releases up to it add up to."""
    states: list[ReleaseFacts] = []
    is_last = len(releases) == 1
    if (is_last or releases[1].day != releases[0].day) and _is_compiled(read_facts(releases[0].facts)):
        states.append(releases[0])
        if is_last:
            return states
    adding = Process()
    service_ids: dict[str, str] = {}
    for at, release in enumerate(releases, 1):
        adding.add(decode(release.facts), _NOBODY)
        service_ids = service_ids | release.service_ids
        if (at == len(releases) or releases[at].day != release.day) and not (states and at == 1):
            facts = encode(msgspec.convert(adding.compiled(evidence=False).release, ProcessFacts))
            states.append(replace(release, facts=msgspec.Raw(facts), service_ids=service_ids))
    return states


def on_day(process: ProcessReleases, day: int) -> ReleaseFacts | None:
    """The process on a day; None before its first release."""
    return next((release for release in reversed(process.releases) if release.day <= day), None)


def _is_compiled(facts: ProcessFacts) -> bool:
    """Whether a single release equals its compiled form: no list is empty or repeats an id."""
    tender, awards, contracts = facts.tender, facts.awards or (), facts.contracts or ()
    bids = (facts.bids and facts.bids.details) or ()
    lists: list[Sequence[Any] | UnsetType | None] = [
        facts.parties, facts.awards, facts.contracts, facts.complaints, (facts.bids or Bids()).details,
        (facts.planning or PlanningFacts()).documents,
        *((tender.documents, tender.items, tender.enquiries) if tender else ()),
    ]  # fmt: skip
    lists += [bid.tenderers for bid in bids]
    lists += [one for award in awards for one in (award.suppliers, award.items)]
    for contract in contracts:
        own = contract.implementation
        lists += [contract.items, contract.documents, contract.amendments]
        lists += [own.transactions, own.milestones] if own else []
    return all(
        not isinstance(one, list)
        or (one and (len(one) < 2 or len({str(part.id) for part in one}) == len(one)))
        for one in lists
    )
