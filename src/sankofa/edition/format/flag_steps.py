"""Red flags as stored in an edition: the compared values of each subject, with their days.

- `flag_day`: a country leads to its thresholds, each visible from one day with a release to the next, and
  `flag_group_key` to the quartiles of a group of values, each visible until the group changes;
- `flag`: a country leads to a `FlagRecord` for each subject that stands out on some day, in served order;
- `flag_party`: a party leads to its `PartyRecord`;
- `flag_filter`: a name or id of a buyer or supplier leads to triples: the number of a flag record, and the
  days [first, until) on which it is about that party.

A record has the inputs of an indicator. They are compared with the thresholds of the day on request, so a
threshold that moves every day adds nothing to the records.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.visibility import visible
from sankofa.model.days import FOREVER
from sankofa.model.ocds.guide_outliers import OUTLIERS, SHARES
from sankofa.model.ocds.guide_pairs import PAIRS, PairStep
from sankofa.model.ocds.process_facts import (
    MOST_LISTED,
    PROCESS,
    TENDERER,
    Measured,
    ProcessFacts,
    Reading,
    Reference,
)
from sankofa.model.ocds.red_flags import Fences, PartyInputs, Thresholds, group_key, share_key
from sankofa.model.text import one_line

FLAG_DAYS: Final = "flag_day"
FLAGS: Final = "flag"
FLAG_PARTIES: Final = "flag_party"
FLAG_FILTERS: Final = "flag_filter"
FLAGS_PER_BLOCK: Final = 64

encode: Final = msgspec.msgpack.Encoder().encode
thresholds: Final = msgspec.msgpack.Decoder(Thresholds).decode
group_fences: Final = msgspec.msgpack.Decoder(Fences | None).decode
_raws: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_BY_PRICE: Final[dict[str, Callable[[Thresholds, float], bool]]] = {
    "R024": Thresholds.close,
    "R058": Thresholds.discounted,
}
BY_PARTY: Final = ("R025", *SHARES, "R048")
"""Indicators that compare parties."""


def flag_party_key(country: str, party: str) -> str:
    return f"{country}|{blake2b(party.encode(), digest_size=16).hexdigest()}"


def flag_group_key(country: str, group: str) -> str:
    return f"{country}|{blake2b(group.encode(), digest_size=16).hexdigest()}"


class FlagSource(NamedTuple):
    """The provenance of a row: the newest release that names its subject."""

    source_ref: str
    license_class: str
    observed_at: str


class FlagSubject(NamedTuple):
    """The process or party that a row is about."""

    name: str | None
    service_id: str | None
    source: FlagSource


class Flag(NamedTuple):
    """The result of an indicator, and its subject."""

    finding: Reading
    subject: FlagSubject


class ProcessStep(msgspec.Struct, array_like=True, gc=False):
    """A process that may stand out on the days [first, until), depending on each day's thresholds."""

    first: int
    until: int
    value: float
    threshold: float | None
    inputs: bytes
    """A JSON object, as served."""
    currency: str
    """Currency in which bids are compared; empty if prices do not matter."""
    name: str | None
    source: FlagSource
    group: str = ""
    """The group that the value is compared with (`OUTLIERS`)."""


class TendererStep(msgspec.Struct, array_like=True, gc=False):
    """A process in which a tenderer stands out, as `ProcessStep`."""

    first: int
    until: int
    ocid: str
    value: float
    threshold: float | None
    currency: str = ""
    ratio: float = 0.0


class PartyStep(NamedTuple):
    """A span of days; the party stands out on some of them."""

    first: int
    until: int


Step = ProcessStep | TendererStep | PartyStep | PairStep
Steps = Sequence[Step]
_process_steps: Final = msgspec.msgpack.Decoder(list[ProcessStep]).decode
_tenderer_steps: Final = msgspec.msgpack.Decoder(list[TendererStep]).decode
_party_steps: Final = msgspec.msgpack.Decoder(list[PartyStep]).decode
_pair_steps: Final = msgspec.msgpack.Decoder(list[PairStep]).decode


class FlagRecord(msgspec.Struct, array_like=True, gc=False):
    """A subject that stands out by an indicator on some day."""

    indicator: str
    subject_type: str
    subject: str
    steps: msgspec.Raw

    def all_steps(self) -> Steps:
        if self.indicator in BY_PARTY:
            return _party_steps(self.steps)
        if self.indicator in PAIRS:
            return _pair_steps(self.steps)
        return _process_steps(self.steps) if self.subject_type == PROCESS else _tenderer_steps(self.steps)

    def groups_on(self, day: int, steps: Steps) -> set[str]:
        """The groups whose quartiles its steps are compared with on a day, by `group_key`."""
        if self.indicator not in OUTLIERS and self.indicator not in PAIRS:
            return set()
        return {
            group_key(self.indicator, one.group)
            for one in steps
            if isinstance(one, ProcessStep | PairStep) and visible(one.first, one.until, day)
        }

    def steps_on(self, day: int, limits: Thresholds, steps: Steps) -> Steps:
        """Those of `all_steps` that count on a day; none if the subject does not stand out.

        `limits` has the groups of `groups_on`.
        """
        return [one for one in steps if visible(one.first, one.until, day) and self._stands_out(one, limits)]

    def _stands_out(self, step: Step, limits: Thresholds) -> bool:
        if isinstance(step, PairStep):
            return limits.pair_stands_out(self.indicator, step)
        if isinstance(step, ProcessStep) and self.indicator in OUTLIERS:
            return limits.stands_out(self.indicator, step.group, step.value)
        by_price = _BY_PRICE.get(self.indicator)
        if isinstance(step, ProcessStep):
            has_currency = step.currency in ("", limits.currency)
            return has_currency and (by_price is None or by_price(limits, step.value))
        if by_price is None or isinstance(step, PartyStep):
            return True
        return step.currency == limits.currency and by_price(limits, step.ratio)

    def flag(self, steps: Steps, day: int, limits: Thresholds, party: "PartyRecord | None") -> Flag | None:
        """The flag on a day, of a party by its record; None if it does not stand out after all."""
        first = steps[0]
        if isinstance(first, ProcessStep):
            inputs: dict[str, Any] = dict(_raws(first.inputs))
            finding = Reading(
                self.indicator, PROCESS, self.subject, True, first.value, first.threshold, inputs
            )
            if self.indicator in OUTLIERS:
                own = Measured(first.group, first.value, inputs)
                finding = limits.compared(self.indicator, self.subject, own)
            elif self.indicator in _BY_PRICE and limits.prices is not None:
                finding = replace(
                    finding, threshold=self._fence(limits), inputs=inputs | limits.prices.inputs
                )
            return Flag(finding, FlagSubject(first.name, None, first.source))
        if party is None:
            return None
        if isinstance(first, TendererStep):
            ocids = sorted(one.ocid for one in steps if isinstance(one, TendererStep))
            listed = {"processes": len(ocids), "ocids": ocids[:MOST_LISTED]}
            fence = self._fence(limits) if self.indicator in _BY_PRICE else first.threshold
            finding = Reading(self.indicator, TENDERER, self.subject, True, first.value, fence, listed)
        elif isinstance(first, PairStep):
            pairs = [one for one in steps if isinstance(one, PairStep)]
            finding = limits.pairs(self.indicator, self.subject, pairs)
        else:
            finding = self._compared(limits, party.inputs_on(day))
        return Flag(finding, party.subject_on(day)) if finding.flagged else None

    def _fence(self, limits: Thresholds) -> float | None:
        prices = limits.prices
        return None if prices is None else prices.lower if self.indicator == "R024" else prices.upper

    def _compared(self, limits: Thresholds, inputs: PartyInputs) -> Reading:
        if self.indicator == "R025":
            return limits.success(self.subject, *inputs.entered)
        if self.indicator in SHARES:
            own = inputs.shares[share_key(self.indicator, self.subject_type)]
            return limits.share(self.indicator, self.subject_type, self.subject, *own)
        return limits.variety_of(self.subject, *inputs.classes)


flag_record: Final = msgspec.msgpack.Decoder(FlagRecord).decode


class PartyRecord(msgspec.Struct, array_like=True, gc=False):
    """The values by which indicators compare a party, each with its first day, and the party's names."""

    entered: list[int]
    """Triples of a day, processes won, and processes with a valid bid."""
    shares: dict[str, list[int]]
    """By `share_key`, triples of a day and the two numbers of `SHARES`."""
    classes: list[tuple[int, int, int, list[str]]]
    """A day, processes with an award, the number of classifications, and the first of these."""
    names: list[tuple[str | None, str | None]] = []
    """Each name of the party in releases, with its service_id; only if it ever stands out."""
    origins: list[FlagSource] = []
    """The files of the releases that name the party: the `source_ref` without the location in the file."""
    named: list[tuple[int, int, int, str]] = []
    """A day, the numbers of a name and of an origin, and the place in the file."""
    pairs: dict[str, list[PairStep]] = {}
    """The values of its pairs (`PAIRS`), by `pair_key`."""

    def inputs_on(self, day: int) -> PartyInputs:
        at = bisect_right(self.classes, day, key=lambda one: one[0])
        classes = self.classes[at - 1][1:] if at else (0, 0, [])
        shares = {key: _pair_on(steps, day) for key, steps in self.shares.items()}
        pairs = {
            key: one
            for key, steps in self.pairs.items()
            for one in steps
            if visible(one.first, one.until, day)
        }
        return PartyInputs(_pair_on(self.entered, day), shares, classes, pairs)

    def spellings(self, party: str) -> Iterator[tuple[int, int, frozenset[str]]]:
        """From each day on until another, the texts that lead to it."""
        untils = [*(day for day, *_ in self.named[1:]), FOREVER]
        for (first, name, *_), until in zip(self.named, untils, strict=True):
            yield first, until, spellings(party, *self.names[name])

    def subject_on(self, day: int) -> FlagSubject:
        """Its name on a day, and the newest release with it. Raises IndexError before the first."""
        at = bisect_right(self.named, day, key=lambda one: one[0])
        _, name, origin, place = self.named[:at][-1]
        file, *rest = self.origins[origin]
        return FlagSubject(*self.names[name], FlagSource(file + place, *rest))


party_record: Final = msgspec.msgpack.Decoder(PartyRecord).decode
NO_PARTY: Final = PartyRecord([], {}, [])


def _pair_on(triples: list[int], day: int) -> tuple[int, int]:
    """The two numbers of the last triple up to a day."""
    at = bisect_right(triples[::3], day) * 3
    return (triples[at - 2], triples[at - 1]) if at else (0, 0)


def spellings(*texts: str | None) -> frozenset[str]:
    """The texts that a filter is compared with: names and identifiers, in any case."""
    return frozenset([_spelling(text) for text in texts if text])


@lru_cache(maxsize=16_384)
def _spelling(text: str) -> str:
    return one_line(text).casefold()


PartyNames = dict[str, tuple[str | None, str | None]]


def party_names(facts: ProcessFacts, service_ids: dict[str, str]) -> PartyNames:
    """The parties of a process by id, each with its first name and its service_id."""
    names: dict[str, str | None] = {}
    for one in facts.references():
        if one.id or one.id == 0:
            party_id = str(one.id)
            names[party_id] = names.get(party_id) or one.name or None
    return {party_id: (name, service_ids.get(party_id)) for party_id, name in names.items()}


def process_spellings(facts: ProcessFacts, parties: PartyNames) -> tuple[frozenset[str], frozenset[str]]:
    """The buyer and the suppliers of a process by their ids, names and service_ids."""
    awarded = [one for award in facts.awards or () for one in award.suppliers or ()]
    buyer = [facts.buyer] if facts.buyer and (facts.buyer.id or facts.buyer.name) else []
    buyer = buyer or [one for one in facts.parties or () if "buyer" in (one.roles or ())][:1]
    return _any_of(buyer, parties), _any_of(awarded, parties)


def _any_of(references: Iterable[Reference], parties: PartyNames) -> frozenset[str]:
    texts: list[str | None] = []
    for one in references:
        texts.append(one.name or None)
        if one.id and (own := parties.get(str(one.id))):
            texts += [str(one.id), *own]
    return spellings(*texts)


def title_of(facts: ProcessFacts) -> str | None:
    return (facts.tender and facts.tender.title) or None
