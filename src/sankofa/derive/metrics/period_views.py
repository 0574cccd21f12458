"""One period as reported by the filings public by a day. Only these decide routes.

A view holds the latest vintage of every figure known by its day, and which filing reports which of them. It
lasts until a later filing reports something new, so nothing filed later can reach a value derived from it.
Filings are ordered by publication, then by document. A filing without a figure of its own is left out.

Identities must hold between the figures of one filing. Each member may be off by half a unit of its last
digit, all together by a thousandth of the largest. If only later routes satisfy an identity, those are used.
If none do, the items that the identity refuses have no figure. The balance sheet is tested for every column,
across filings.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from itertools import combinations, product
from operator import itemgetter
from typing import NamedTuple

from sankofa.derive.metrics.lines import Fact, Figure, Lines, is_rounding, pass_over_misscaled
from sankofa.ledger.reports import Report
from sankofa.model.countries import currency
from sankofa.model.line_items import AccountingIdentity, table
from sankofa.model.vintages import in_order

_ZERO = Decimal(0)
_MOST_OPTIONAL = 3


class _Candidate(NamedTuple):
    """A member of an identity by one route."""

    concepts: tuple[str, ...]
    """Concepts that the member comes from."""
    value: Decimal
    subtracted: frozenset[str] = frozenset()
    """Concepts that the route subtracts; they must be added to the others."""


def check_identities(lines: Lines) -> None:
    """Pass over the routes that contradict an identity."""
    there = lines.facts.keys()
    for identity, reported in _identities():
        if there >= reported:
            _check(lines, identity)


@cache
def _identities() -> tuple[tuple[AccountingIdentity, frozenset[str]], ...]:
    """Every identity, and the concepts that it requires."""
    return tuple(
        (identity, frozenset(term.concept for term in identity.items if ":" in term.concept))
        for identity in table().identities
    )


def stray_concepts(lines: Lines) -> set[str]:
    """The concepts whose latest figure alone breaks an identity that an earlier figure kept.

    The filing with the latest figure reports no other member of the identity for the period. Filers tag a
    quarter or an adjustment with the dates of the year in this way.
    """
    stray = set[str]()
    for identity, _ in _identities():
        chosen = None if identity.column else _firsts(lines, identity)
        if chosen is None or not _remainder(signs := [term.sign for term in identity.items], chosen):
            continue
        optional = _optional(lines, identity)
        if _holds(lines, signs, chosen, optional, column=True):
            continue
        for number, one in enumerate(chosen):
            before, after = chosen[:number], chosen[number + 1 :]
            names = [term.concept for term in identity.items[:number] + identity.items[number + 1 :]]
            if _is_alone(lines, one, [*before, *after], names) and any(
                _holds(lines, signs, [*before, one._replace(value=value), *after], optional, column=True)
                for value in lines.facts[one.concepts[0]].earlier
            ):
                stray.add(one.concepts[0])
    return stray


def _is_alone(lines: Lines, one: _Candidate, others: list[_Candidate], names: list[str]) -> bool:
    """Whether a figure is a later one, and no filing that reports it has another member of the identity."""
    concept, fact = one.concepts[0], lines.facts[one.concepts[0]]
    if len(one.concepts) > 1 or one.value != fact.value or not fact.earlier:
        return False
    together = frozenset(concept for other in others for concept in other.concepts)
    rest = together.union(*map(_concepts, names)) - {concept}
    return lines.in_one_filing(together) and not any(
        concept in filing and filing & rest for filing in lines.filings
    )


@cache
def _concepts(name: str) -> frozenset[str]:
    """The concepts that any route to a line item takes."""
    return frozenset(term.concept for route in table().routes.get(name, ()) for term in route.terms)


def _firsts(lines: Lines, identity: AccountingIdentity) -> list[_Candidate] | None:
    """Every member of an identity by its first route; None if one is unknown."""
    chosen: list[_Candidate] = []
    for term in identity.items:
        first = _first(lines, term.concept)
        if first is None:
            return None
        chosen.append(first)
    return chosen


def _optional(lines: Lines, identity: AccountingIdentity) -> list[tuple[Decimal, str]]:
    return [
        (term.sign * lines.facts[term.concept].value, term.concept)
        for term in identity.optional
        if term.concept in lines.facts
    ]


def _check(lines: Lines, identity: AccountingIdentity) -> None:
    chosen = _firsts(lines, identity)
    if chosen is None or not _remainder(signs := [term.sign for term in identity.items], chosen):
        return
    optional = _optional(lines, identity)
    if _holds(lines, signs, chosen, optional, column=identity.column) is not False:
        return
    members = [_candidates(lines, term.concept, identity) for term in identity.items]
    for numbers in product(*(range(len(candidates)) for candidates in members)):
        chosen = [candidates[number] for candidates, number in zip(members, numbers, strict=True)]
        if _apart(chosen) and _holds(lines, signs, chosen, optional, column=identity.column):
            for term, number in zip(identity.items, numbers, strict=True):
                if number:
                    lines.pass_over(term.concept, number)
            return
    lines.unmet.add(identity.name)
    if identity.column or len(optional) == len(identity.optional):
        for item in identity.refused:
            lines.pass_over(item, len(list(lines.figures(item))))


def _first(lines: Lines, name: str) -> _Candidate | None:
    if ":" in name:
        fact = lines.facts.get(name)
        return _Candidate((name,), fact.value) if fact else None
    figure = lines.figure(name)
    return _candidate(name, figure) if figure else None


def _candidate(name: str, figure: Figure) -> _Candidate:
    concepts = tuple([part.concept for part in figure.parts])
    return _Candidate(concepts, figure.value, _subtracted(name, figure.route))


@cache
def _subtracted(item: str, route: int) -> frozenset[str]:
    return frozenset(term.concept for term in table().routes[item][route].terms if term.sign < 0)


def _candidates(lines: Lines, name: str, identity: AccountingIdentity) -> list[_Candidate]:
    """A doubtful item, by every route."""
    if name not in identity.doubted:
        return [first] if (first := _first(lines, name)) else []
    return [_candidate(name, figure) for figure in lines.figures(name)]


def _apart(chosen: Sequence[_Candidate]) -> bool:
    """Whether no member is computed from another."""
    concepts = [concept for one in chosen for concept in one.concepts]
    return len(set(concepts)) == len(concepts)


def _remainder(signs: Sequence[int], chosen: Sequence[_Candidate]) -> Decimal:
    return sum([sign * one.value for sign, one in zip(signs, chosen, strict=True)], _ZERO)


def _holds(
    lines: Lines,
    signs: Sequence[int],
    chosen: Sequence[_Candidate],
    optional: list[tuple[Decimal, str]],
    *,
    column: bool,
) -> bool | None:
    """Whether the figures add up to zero; None if no filing reports them all."""
    together = frozenset(concept for one in chosen for concept in one.concepts)
    if not column and not (_apart(chosen) and lines.in_one_filing(together)):
        return None
    rest = _remainder(signs, chosen)
    if not rest:
        return True
    values = [one.value for one in chosen if one.value]
    added = {concept for one in chosen for concept in one.concepts if concept not in one.subtracted}
    free = [(value, concept) for value, concept in optional if concept not in added and value]
    for count in range(min(len(free), _MOST_OPTIONAL) + 1):
        for added_terms in combinations(free, count):
            more = [value for value, _ in added_terms]
            if is_rounding(rest + sum(more, _ZERO), [*values, *more]):
                whole = together.union(concept for _, concept in added_terms)
                return True if column or lines.in_one_filing(whole) else None
    return False


@cache
def deciding_concepts(item: str) -> frozenset[str]:
    items, concepts = {item}, set[str]()
    for identity in table().identities:
        names = {term.concept for term in identity.items}
        if not items.isdisjoint(names):
            concepts.update(term.concept for term in identity.optional)
            items |= names
    for name in items:
        if ":" in name:
            concepts.add(name)
        for route in table().routes.get(name, ()):
            concepts.update(term.concept for term in route.terms)
            concepts.update(route.guards)
            concepts.update(
                t.concept for terms in table().confirmations.get(route.confirm, ()) for t in terms
            )
            concepts.update(c for breakdown in route.of for c in table().breakdowns[breakdown].concepts)
    return frozenset(concepts)


_Key = tuple[str, str, str]
"""Concept, unit, and start of the period (empty for an instant)."""
_Event = tuple[int, str, _Key, Fact | None]
"""The day of publication and document of a report, the figure, and its value then (None: unknown)."""
_ASSETS = frozenset(("assets", "us-gaap:Assets", "ifrs-full:Assets"))
_STANDARDS = ("us-gaap", "ifrs-full")


class ReportedFigure(NamedTuple):
    concept: str
    unit: str
    start: str
    reports: Sequence[Report]
    named_on: Container[int]
    """The days of publication on which the period had the requested name, as known then."""


class StatementBasis(NamedTuple):
    """The accounting standard and the currency that a statement column is in."""

    standard: str
    """`us-gaap` or `ifrs-full`; empty if no figure names a standard."""
    money: str


class PeriodView:
    """A period as known from a day on, until the next view."""

    def __init__(
        self, end: int, day: int, facts: Mapping[_Key, Fact], filings: list[set[_Key]], basis: StatementBasis
    ) -> None:
        self.end = end
        self.day = day
        self.basis = basis
        """The standard and currency of the latest filing that reports the period's assets."""
        self.facts = facts
        self._filings = filings
        self._lines: dict[StatementBasis, Lines] = {}
        self._keys: dict[StatementBasis, dict[str, _Key]] = {}

    def lines(self, basis: StatementBasis | None = None) -> Lines:
        """The line items in one standard and currency, by default the view's."""
        basis = basis or self.basis
        lines = self._lines.get(basis)
        if lines is None:
            lines = self._lines[basis] = self._in_basis(basis)
        return lines

    def bases(self) -> set[StatementBasis]:
        """Every standard and currency that figures are reported in."""
        pairs = {(standard(concept), currency_of(unit)) for concept, unit, _ in self.facts}
        return {StatementBasis(*pair) for pair in pairs if pair[1]}

    def _in_basis(self, basis: StatementBasis) -> Lines:
        chosen = self._chosen(basis)
        keys = set(chosen.values())
        filings = _distinct([filing & keys for filing in self._filings])
        facts = {concept: self.facts[key] for concept, key in chosen.items()}
        reporting = [frozenset(key[0] for key in filing) for filing in filings]
        lines = Lines(facts, reporting, self.end)
        if any(fact.earlier for fact in facts.values()) and (stray := stray_concepts(lines)):
            facts = {concept: fact for concept, fact in facts.items() if concept not in stray}
            lines = Lines(facts, [filing - stray for filing in reporting], self.end)
            lines.conflicts = len(stray)
        check_identities(lines)
        pass_over_misscaled(lines)
        return lines

    def key(self, concept: str) -> _Key:
        """The figure of a concept that the line items of the view are from."""
        return self._chosen(self.basis)[concept]

    def _chosen(self, basis: StatementBasis) -> dict[str, _Key]:
        """By concept, the figure in a standard and currency, durations all of one length."""
        if basis in self._keys:
            return self._keys[basis]
        standards, currencies = ("", basis.standard), ("", basis.money)
        allowed = [k for k in self.facts if standard(k[0]) in standards and currency_of(k[1]) in currencies]
        spans = Counter(start for _, _, start in allowed if start)
        span = min(spans, key=lambda start: (-spans[start], start), default="")
        chosen: dict[str, _Key] = {}
        # A filer may tag one concept as a duration and, by mistake, as an instant: the duration counts.
        for key in sorted(allowed, key=lambda key: (not key[2], key[1] != basis.money, key)):
            if key[2] in ("", span):
                chosen.setdefault(key[0], key)
        self._keys[basis] = chosen
        return chosen


class History:
    """Every view of a period, the earliest first."""

    def __init__(self, end: int, reported: Iterable[ReportedFigure]) -> None:
        self.views = _views(end, reported)
        self.days = [view.day for view in self.views]

    def on(self, day: int) -> PeriodView | None:
        """The view of a day; None if nothing was known."""
        number = bisect_right(self.days, day)
        return self.views[number - 1] if number else None


@lru_cache(maxsize=65536)
def standard(concept: str) -> str:
    """The accounting standard that a concept belongs to; empty if it belongs to none."""
    prefix = concept.partition(":")[0]
    return prefix if prefix in _STANDARDS else ""


@lru_cache(maxsize=4096)
def currency_of(unit: str) -> str:
    """The currency of a unit, per share included; empty if it is not money."""
    return currency(unit.partition("/")[0]) or ""


def _views(end: int, reported: Iterable[ReportedFigure]) -> list[PeriodView]:
    events: defaultdict[int, list[_Event]] = defaultdict(list)
    for one in reported:
        for day, document, fact in _changes(one):
            events[max(day, end)].append((day, document, (one.concept, one.unit, one.start), fact))
    views: list[PeriodView] = []
    facts: dict[_Key, Fact] = {}
    filings: dict[str, set[_Key]] = {}
    with_assets: dict[str, None] = {}
    """The filings that reported assets, the latest last."""
    basis = StatementBasis("", "")
    for day in sorted(events):
        changed, touched = False, set[str]()
        for _, document, key, fact in sorted(events[day], key=itemgetter(0, 1)):
            before = facts.get(key)
            if before is not fact:
                changed = True
                if before is not None:
                    for filing in filings.values():
                        filing.discard(key)
            if fact is None:
                facts.pop(key, None)
                continue
            facts[key] = fact
            filings.setdefault(document, set()).add(key)
            touched.add(document)
            if key[0] in _ASSETS:
                with_assets.pop(document, None)
                with_assets[document] = None
        basis = _basis(facts, [filings[document] for document in with_assets])
        if changed or basis != views[-1].basis or _adds(filings, touched):
            distinct = [set(filing) for filing in _distinct(filings.values())]
            views.append(PeriodView(end, day, dict(facts), distinct, basis))
    return views


def _changes(one: ReportedFigure) -> Iterable[tuple[int, str, Fact | None]]:
    """The known value of a figure, by day and document.

    A figure counts from the first report on whose day the period had its name. A balance first reported under
    another name counts from the report that repeats it under this name: only the next full year shows that
    the day of a new issuer's first balance sheet was a year-end.
    """
    value: str | None = None
    earlier: tuple[Decimal, ...] = ()
    vintage, fact, named = 0, None, False
    for report in in_order(one.reports):
        if report.value != value:
            if value is not None:
                earlier = (*earlier, Decimal(value))
            value = report.value
            vintage += 1
            if fact is not None:
                fact = None
                yield report.available, report.document, None
            named = report.available in one.named_on
        elif not one.start:
            named = report.available in one.named_on
        if fact is None and value is not None and named:
            fact = Fact(vintage, Decimal(value), report, earlier)
        if fact is not None:
            yield report.available, report.document, fact


def _adds(filings: Mapping[str, set[_Key]], touched: Iterable[str]) -> bool:
    """Whether one of these filings has figures together that no other filing has."""
    return any(
        not any(filings[document] <= filing for other, filing in filings.items() if other != document)
        for document in touched
    )


def _distinct(filings: Iterable[set[_Key]]) -> list[set[_Key]]:
    """The filings with something that no earlier filing has."""
    distinct: list[set[_Key]] = []
    for filing in filings:
        if filing and not any(filing <= earlier for earlier in distinct):
            distinct.append(filing)
    return distinct


def _basis(facts: Mapping[_Key, Fact], with_assets: Sequence[set[_Key]]) -> StatementBasis:
    """The standard and currency of the latest filing that reports assets.

    If it reports them in several, the pair with more of its figures for the period. If no filing reports
    assets, the pair with most figures for the period; ties go to the first by name.
    """
    keys: Iterable[_Key] = facts
    assets: list[_Key] = []
    for filing in reversed(with_assets):
        if assets := [key for key in filing if key[0] in _ASSETS]:
            keys = filing
            break
    moneys = {currency_of(unit) for _, unit, _ in assets or keys} - {""}
    counts = Counter(currency_of(unit) for _, unit, _ in keys)
    money = min(moneys, key=lambda m: (-counts[m], m), default="")
    standards = {standard(concept) for concept, unit, _ in assets if currency_of(unit) == money} - {""}
    figures_of = Counter(standard(concept) for concept, unit, _ in keys if currency_of(unit) == money)
    if not standards:
        figures_of = Counter(standard(concept) for concept, unit, _ in facts if currency_of(unit) == money)
        standards = figures_of.keys() - {""}
    return StatementBasis(min(standards, key=lambda s: (-figures_of[s], s), default=""), money)
