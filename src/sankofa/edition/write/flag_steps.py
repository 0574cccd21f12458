"""Computes the red flags of a country for every day, in one sweep over its processes and its days.

The values of a process hold from one of its releases to the next, those of a party from one release that
changes its numbers to the next. The values of each indicator come and go on these days, and quartiles are
read after each day (`_Ordered`). A subject is stored if its value lies beyond the widest threshold of its
days; the reader compares it with the requested day's threshold (`format.flag_steps`).

The work grows with the releases and their bids, and with the days; two tenderers are compared (`flag_pairs`)
where a process has few. A country's results are reused as long as
none of its releases changes.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.flag_steps import (
    FlagRecord,
    FlagSource,
    PartyRecord,
    PartyStep,
    ProcessStep,
    TendererStep,
    encode,
    party_names,
    process_spellings,
    title_of,
)
from sankofa.edition.write.flag_pairs import PairSweep
from sankofa.edition.write.flag_values import (
    Compared,
    DayLimits,
    DayValues,
    FlagKey,
    GroupValues,
    Least,
    added_up,
    class_steps,
    newest,
    quarters,
    standing_out,
)
from sankofa.model.days import FOREVER
from sankofa.model.figures import quotient
from sankofa.model.ocds.flag_facts import Examined, examine
from sankofa.model.ocds.guide_outliers import HIGH, OUTLIERS
from sankofa.model.ocds.guide_pairs import PAIRS, PairStep
from sankofa.model.ocds.process_facts import PROCESS, TENDERER, Reading
from sankofa.model.ocds.red_flags import (
    FEWEST_PROCESSES,
    INDICATORS,
    FlagCounts,
    ProcessReleases,
    ReleaseFacts,
    Thresholds,
    group_key,
    read_facts,
    share_key,
)
from sankofa.model.rows import wire

_ONE: Final = Decimal(1)
_NOTHING: Final = Examined("", cancelled=True)


def rounded(value: float) -> Decimal:
    """A figure of a flag, as served."""
    return quotient(Decimal(value), _ONE)


class _Value(NamedTuple):
    """A value of a process that is compared with those of other processes."""

    ocid: str
    first: int
    until: int
    state: int
    value: float
    inputs: bytes
    """As MessagePack: few are served."""
    name: str | None
    tenderers: tuple[str, ...] = ()
    """The winner and the bidder of the second-lowest price."""


class _State(NamedTuple):
    """A process between two of its releases."""

    released: str
    source: FlagSource
    buyers: frozenset[str]
    suppliers: frozenset[str]


class _Flagged:
    """The steps of a flag record, encoded, and the states of the process that they come from."""

    __slots__ = ("days", "states", "steps")

    def __init__(self) -> None:
        self.steps: list[msgspec.Raw] = []
        self.days = array("i")
        self.states = array("i")

    def add(self, step: ProcessStep | TendererStep, state: int = -1) -> None:
        self.steps.append(msgspec.Raw(encode(step)))
        self.days.extend((step.first, step.until))
        self.states.append(state)


class FlagSteps(NamedTuple):
    """The red flags of a country on all days, as stored."""

    days: list[tuple[int, int, bytes]]
    """First day, until, `Thresholds`."""
    flags: list[tuple[int, int, bytes]]
    """First day, until, `FlagRecord`."""
    parties: list[tuple[str, bytes]]
    """Id, `PartyRecord`."""
    filters: list[tuple[str, str, bytes]]
    """Field, text, triples."""
    quarters: dict[int, FlagCounts]
    """Counts on the last day of each quarter."""
    groups: list[tuple[str, list[tuple[int, int, bytes]]]]
    """Group (`group_key`); first day, until, `Fences`."""


class FlagSweep:
    """Takes the processes of a country in the order of their ocids."""

    def __init__(self, fewest_processes: int = FEWEST_PROCESSES) -> None:
        self._fewest = fewest_processes
        self._began: Counter[int] = Counter()
        """Processes by the day of their first release."""
        self._days: set[int] = set()
        self._currencies: defaultdict[int, Counter[str]] = defaultdict(Counter)
        """By day, the change in the number of bids in each currency."""
        self._computed: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        """By indicator and currency, changes in the number of processes it can be computed for."""
        self._flagged: defaultdict[FlagKey, _Flagged] = defaultdict(_Flagged)
        self._priced: defaultdict[str, list[_Value]] = defaultdict(list)
        """By currency, the ratios of R024 and R058."""
        self._measured: defaultdict[tuple[str, str], list[_Value]] = defaultdict(list)
        """By indicator and group."""
        self._entered: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        self._shares: defaultdict[FlagKey, array[int]] = defaultdict(lambda: array("i"))
        """Triples of a day and the changes in two numbers."""
        self._classes: defaultdict[str, list[tuple[int, set[str], set[str]]]] = defaultdict(list)
        self._pairs = PairSweep()
        self._named: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        """First day, until, number of the state, number of the name."""
        self._names: dict[tuple[str | None, str | None], int] = {}
        self._states: list[_State] = []
        self._shared: dict[Any, Any] = {}
        """Texts that many states have."""

    def add(self, process: ProcessReleases) -> None:
        before = _NOTHING
        states = process.releases
        self._began[states[0].day] += 1
        for at, state in enumerate(states, 1):
            until = states[at].day if at < len(states) else FOREVER
            before = self._state(process.ocid, state, until, before)

    def _state(self, ocid: str, release: ReleaseFacts, until: int, before: Examined) -> Examined:
        facts, first = read_facts(release.facts), release.day
        examined = examine(ocid, facts)
        self._days.add(first)
        self._change(first, before, examined)
        self._pairs.change(first, before, examined)
        self._count(first, until, examined)
        is_named = bool(examined.prices or any(one.flagged for one in examined.findings) or examined.measured)
        names_parties = examined.shares or examined.classes or examined.entered or examined.purchases
        if not is_named and not names_parties:
            return examined
        parties = party_names(facts, release.service_ids)
        number = len(self._states)
        share = self._shared.setdefault
        spelt = process_spellings(facts, parties) if is_named else (frozenset(), frozenset())
        source = FlagSource(
            release.source_ref,
            share(release.license_class, release.license_class),
            share(release.observed_at, release.observed_at),
        )
        self._states.append(_State(release.released, source, *(share(one, one) for one in spelt)))
        if is_named:
            self._flag(examined, first, until, number, title_of(facts))
        if names_parties:
            subjects = parties if facts.bids or facts.awards else {one for *_, one in examined.shares}
            for party in subjects:
                name = self._names.setdefault(parties[party], len(self._names))
                self._named[party].extend((first, until, number, name))
        return examined

    def _change(self, day: int, before: Examined, now: Examined) -> None:
        """Record changes in the compared values of parties and in the currencies of bids."""
        if now.currencies != before.currencies:
            self._currencies[day].update(now.currencies)
            self._currencies[day].subtract(before.currencies)
        for tenderer in before.entered.keys() | now.entered.keys():
            old, new = ((one.entered.get(tenderer, False), tenderer in one.entered) for one in (before, now))
            if old != new:
                self._entered[tenderer].extend((day, new[0] - old[0], new[1] - old[1]))
        for key in before.shares.keys() | now.shares.keys():
            part, whole = before.shares.get(key, (0, 0))
            now_part, now_whole = now.shares.get(key, (0, 0))
            if (part, whole) != (now_part, now_whole):
                self._shares[key].extend((day, now_part - part, now_whole - whole))
        for supplier in before.classes.keys() | now.classes.keys():
            codes, now_codes = (one.classes.get(supplier, set()) for one in (before, now))
            if codes != now_codes:
                self._classes[supplier].append((day, codes, now_codes))

    def _count(self, first: int, until: int, examined: Examined) -> None:
        findings = [("", one) for one in examined.findings]
        findings += [(currency, prices.lowest) for currency, prices in examined.prices.items()]
        for currency, finding in findings:
            if finding.subject_type == PROCESS and finding.flagged is not None:
                count = self._computed[finding.indicator, currency]
                count[first] += 1
                count[until] -= 1
        for indicator in examined.measured:
            count = self._computed[indicator, ""]
            count[first] += 1
            count[until] -= 1

    def _flag(self, examined: Examined, first: int, until: int, state: int, name: str | None) -> None:
        ocid, source = examined.ocid, self._states[state].source
        for finding in examined.findings:
            if not finding.flagged or finding.value is None:
                continue
            value, threshold = finding.value, finding.threshold
            own = self._flagged[finding.indicator, finding.subject_type, finding.subject]
            if finding.subject_type == PROCESS:
                inputs = _inputs(finding)
                own.add(ProcessStep(first, until, value, threshold, inputs, "", name, source), state)
            else:
                own.add(TendererStep(first, until, ocid, value, threshold))
        for indicator, values in examined.measured.items():
            for one in () if isinstance(values, str) else values:
                own_value = _Value(ocid, first, until, state, one.value, encode(one.inputs), name)
                self._measured[indicator, one.group].append(own_value)
        for currency, prices in examined.prices.items():
            lowest = prices.lowest
            if lowest.flagged and lowest.value is not None:
                inputs = _inputs(lowest)
                step = ProcessStep(first, until, lowest.value, None, inputs, currency, name, source)
                self._flagged["R036", PROCESS, ocid].add(step, state)
            if prices.ratio is not None:
                inputs, parties = encode(prices.inputs), (prices.winner, prices.runner_up)
                own_value = _Value(ocid, first, until, state, prices.ratio, inputs, name, parties)
                self._priced[currency].append(own_value)

    def close(self) -> FlagSteps:
        """Everything that is stored, once all processes are added."""
        days = sorted(self._days)
        compared = Compared(
            {party: added_up(changes) for party, changes in self._entered.items()},
            {key: added_up(changes) for key, changes in self._shares.items()},
            {party: class_steps(changes) for party, changes in self._classes.items()},
        )
        groups = self._flag_outliers()
        pairs, standing_pairs = self._flag_pairs(groups)
        limits, computed = self._limits(days, compared)
        self._flag_prices(days, limits)
        standing: dict[FlagKey, Sequence[PartyStep | PairStep]] = {
            **standing_out(days, limits, compared, self._fewest),
            **standing_pairs,
        }
        entered, shares, classes = compared
        by_party: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
        for (indicator, kind, party), triples in sorted(shares.items()):
            by_party[party][share_key(indicator, kind)] = triples
        parties = {
            party: PartyRecord(
                entered.get(party, []),
                by_party.get(party, {}),
                classes.get(party, []),
                pairs=pairs.get(party, {}),
            )
            for party in sorted({*entered, *classes, *by_party, *pairs})
        }
        keys = sorted({*self._flagged, *standing})
        buyers = {key: _with_buyers(steps) for key, steps in standing_pairs.items()}
        named = {subject for _, kind, subject in keys if kind != PROCESS}
        self._name(parties, named.union(buyer for own in buyers.values() for _, buyer in own))
        records = [self._record(key, standing) for key in keys]
        filters = self._filters(keys, parties, buyers)
        untils = [*days[1:], FOREVER]
        return FlagSteps(
            [(first, until, encode(one)) for first, until, one in zip(days, untils, limits, strict=True)],
            [(first, until, encode(record)) for first, until, record in records],
            [(party, encode(record)) for party, record in parties.items()],
            [(field, text, triples.tobytes()) for (field, text), triples in sorted(filters.items())],
            quarters(days, limits, computed, records, parties, groups),
            [
                (key, [(first, until, encode(fences)) for first, until, fences in one.rows])
                for key, one in sorted(groups.items())
            ],
        )

    def _limits(self, days: list[int], compared: Compared) -> tuple[list[Thresholds], list[dict[str, int]]]:
        """The thresholds of each day, and the numbers of subjects that each indicator is computed for."""
        prices = {one: DayValues() for day in self._currencies.values() for one in day}
        for currency, priced in self._priced.items():
            for one in priced:
                prices[currency].add(one.first, one.until, one.value)
        of_days = DayLimits(compared, prices, self._fewest)
        population = 0
        currencies: Counter[str] = Counter()
        counts: Counter[tuple[str, str]] = Counter()
        limits, computed = [], []
        crowded = 0
        for day in days:
            population += self._began[day]
            crowded += self._pairs.crowded[day]
            currencies.update(self._currencies.get(day, ()))
            most = max(currencies.values(), default=0)
            named = [one for one, count in currencies.items() if most and count == most]
            main = min(named, default=None)
            limits.append(of_days.on(day, population, main, crowded))
            for name, changes in self._computed.items():
                counts[name] += changes[day]
            own = {one: counts[one, ""] + counts[one, main or "-"] for one in INDICATORS}
            computed.append(own | of_days.computed(main))
        return limits, computed

    def _flag_prices(self, days: list[int], limits: list[Thresholds]) -> None:
        """Add the prices that stand out on some of their days."""
        for currency, priced in self._priced.items():
            fences = [one.prices if one.currency == currency else None for one in limits]
            close = Least(days, [-f.lower if f and f.q1 > 0 and f.lower > 0 else inf for f in fences])
            far = Least(days, [f.upper if f and f.upper > 0 else inf for f in fences])
            for one in priced:
                span = one.first, one.until
                for indicator, stands, tenderers in (
                    ("R024", -one.value >= close(*span), one.tenderers),
                    ("R058", one.value >= far(*span), one.tenderers[:1]),
                ):
                    if stands:
                        self._flag_value(indicator, one, currency=currency)
                        for tenderer in tenderers:
                            won = TendererStep(*span, one.ocid, 0.0, None, currency, one.value)
                            self._flagged[indicator, TENDERER, tenderer].add(won)

    def _flag_value(self, indicator: str, one: _Value, currency: str = "", group: str = "") -> None:
        inputs = wire.encode(_served(msgspec.msgpack.decode(one.inputs)))
        source = self._states[one.state].source
        step = ProcessStep(one.first, one.until, one.value, None, inputs, currency, one.name, source, group)
        self._flagged[indicator, PROCESS, one.ocid].add(step, one.state)

    def _flag_outliers(self) -> dict[str, GroupValues]:
        """Add the values that stand out in their groups on some of their days; returns the groups."""
        groups: dict[str, GroupValues] = {}
        for (indicator, group), listed in sorted(self._measured.items()):
            values = DayValues()
            for one in listed:
                values.add(one.first, one.until, one.value)
            own = groups[group_key(indicator, group)] = GroupValues.of(values)
            for one in listed:
                if own.may_stand_out(one.first, one.until, one.value, OUTLIERS[indicator].bound):
                    self._flag_value(indicator, one, group=group)
        return groups

    def _flag_pairs(
        self, groups: dict[str, GroupValues]
    ) -> tuple[dict[str, dict[str, list[PairStep]]], dict[FlagKey, list[PairStep]]]:
        """The pairs of each party, and those that stand out on some of their days. Adds their groups."""
        by_party: defaultdict[str, dict[str, list[PairStep]]] = defaultdict(dict)
        standing: defaultdict[FlagKey, list[PairStep]] = defaultdict(list)
        for indicator, group, listed, own in self._pairs.values():
            groups[group_key(indicator, group)] = own
            for first, until, fences in own.rows:
                if fences is not None:
                    self._computed[indicator, ""][first] += fences.size
                    self._computed[indicator, ""][until] -= fences.size
            for parties, key, steps in listed:
                by_party[parties[0]][key] = steps
                beyond = [
                    one
                    for one in steps
                    if one.value > PAIRS[indicator].above
                    and own.may_stand_out(one.first, one.until, one.value, HIGH)
                ]
                for party in parties if beyond else ():
                    standing[indicator, TENDERER, party] += beyond
        return by_party, standing

    def _record(
        self, key: FlagKey, standing: Mapping[FlagKey, Sequence[PartyStep | PairStep]]
    ) -> tuple[int, int, FlagRecord]:
        """The record of a subject, and the days [first, until) of its steps."""
        if key in standing:
            steps: Sequence[Any] = standing[key]
            firsts, untils = [one.first for one in steps], [one.until for one in steps]
        else:
            own = self._flagged[key]
            steps, firsts, untils = own.steps, own.days[::2].tolist(), own.days[1::2].tolist()
        return min(firsts), max(untils), FlagRecord(*key, msgspec.Raw(encode(steps)))

    def _name(self, parties: dict[str, PartyRecord], flagged: set[str]) -> None:
        """Add names to the parties that stand out on some day, with the newest release of each name."""
        order = sorted(range(len(self._states)), key=lambda state: self._states[state].released)
        ranks = array("i", bytes(4 * len(order)))
        for rank, state in enumerate(order):
            ranks[state] = rank
        names = list(self._names)
        for party in sorted(flagged):
            record = parties.setdefault(party, PartyRecord([], {}, []))
            own: dict[int, int] = {}
            origins: dict[FlagSource, int] = {}
            record.named = []
            for day, state, name in newest(self._named[party], ranks):
                source = self._states[state].source
                file, mark, place = source.source_ref.partition("#")
                origin = origins.setdefault(source._replace(source_ref=file + mark), len(origins))
                record.named.append((day, own.setdefault(name, len(own)), origin, place))
            record.names, record.origins = [names[name] for name in own], list(origins)

    def _filters(
        self,
        keys: list[FlagKey],
        parties: dict[str, PartyRecord],
        buyers: Mapping[FlagKey, list[tuple[PairStep, str]]],
    ) -> dict[tuple[str, str], "array[int]"]:
        """By field and text, the numbers of the records about a party and the days on which each is."""
        lists: defaultdict[tuple[str, str], array[int]] = defaultdict(lambda: array("i"))

        def add(field: str, texts: Iterable[str], number: int, first: int, until: int) -> None:
            for text in texts:
                own = lists[field, text]
                if own and own[-3] == number and own[-1] == first:
                    own[-1] = until
                else:
                    own.extend((number, first, until))

        for number, (_, kind, subject) in enumerate(keys):
            if kind == PROCESS:
                own = self._flagged[keys[number]]
                for at, state in enumerate(own.states):
                    span = own.days[2 * at], own.days[2 * at + 1]
                    add("buyer", self._states[state].buyers, number, *span)
                    add("supplier", self._states[state].suppliers, number, *span)
                continue
            field = "supplier" if kind == TENDERER else "buyer"
            for first, until, texts in parties[subject].spellings(subject):
                add(field, texts, number, first, until)
            for step, buyer in buyers.get(keys[number], ()):
                for first, until, texts in parties[buyer].spellings(buyer):
                    if (since := max(first, step.first)) < (end := min(until, step.until)):
                        add("buyer", texts, number, since, end)
        return lists


def _with_buyers(steps: Iterable[PairStep]) -> list[tuple[PairStep, str]]:
    """The pairs of a supplier with a buyer, with the buyer's id."""
    return [(step, buyer) for step in steps if (buyer := step.known_inputs().get("buyer"))]


def _served(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: rounded(one) if type(one) is float else one for name, one in inputs.items()}


def _inputs(finding: Reading) -> bytes:
    return wire.encode(_served(finding.inputs))
