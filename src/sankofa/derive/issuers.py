"""Issuers: organisations with reported figures.

Everything derived for a single issuer starts here, and each part is computed once.

Restatements for a split: amounts per share and numbers of shares, restated for the new shares.

No split is ever applied to a figure here. A filing that restates for a split is an ordinary vintage;
`split_ratios` finds such filings by the figures they change. All share figures of earlier periods that a
filing changes must change by one simple ratio, and either numbers of shares are among them, or the filing
states the ratio, or it leaves the money figures of those periods alone: restated earnings change earnings per
share, too.

See contract: VINT-10.

Statements: for each line item and period, the one figure that represents it on a day.

Statements use the same figures as the metrics, for every kind of period: one standard and one currency per
column, the same routes, conditions and identities. A row is always one reported figure. If the metrics
compute an item from several figures, or use none, the statement has no row for it.

Some facts need proof to be a line item: `us-gaap:GoldProductsAndServicesRevenue` is all revenue of one miner,
and part of another's. A route with `confirm` names such a fact if its equation held on the day of the fact's
first report. Later reports do not change the name.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Context, Decimal
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sankofa.derive.metrics.full_years import IssuerYearList, YearEnds, full_years
from sankofa.derive.metrics.period_views import History, PeriodView, ReportedFigure
from sankofa.ledger.capture import FactColumns
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.reports import Identity, Published, Report, Reports
from sankofa.ledger.spells import DatedLocation, dated_locations
from sankofa.model.days import FOREVER, ordinal, tradable_from
from sankofa.model.line_items import LINE_ITEMS, NOTHING, SELF, Route, line_item, table
from sankofa.model.periods import IssuerYears
from sankofa.model.vintages import Vintage, vintages

FigureVintage = tuple[Identity, int]
"""A fact and the number of one of its vintages."""
_STATED: Final = frozenset(
    f"us-gaap:StockholdersEquityNoteStockSplitConversionRatio{version}" for version in ("", "1")
)
_PER_SHARE: Final = frozenset(("eps_basic", "eps_diluted", "headline_eps"))
_ten_digits: Final = Context(prec=10)
_WHOLE: Final = [(number, 1) for number in range(2, 101)]
_FRACTIONS: Final = [(3, 2), (4, 3), (5, 2), (5, 3), (5, 4), (6, 5), (7, 2)]
_PAIRS: Final = (*_WHOLE, *((1, n) for n, _ in _WHOLE), *_FRACTIONS)
_SIMPLE: Final = {new / old: _ten_digits.divide(Decimal(new), Decimal(old)) for new, old in _PAIRS}
"""New shares for an old one that companies choose, whole ratios first."""
_NARROW: Final = 0.03
_EQUAL: Final = 1e-9


class _Restated(NamedTuple):
    """A share figure that a filing changed, and the ratios that explain it within rounding."""

    figure: FigureVintage
    least: float
    most: float
    counts_shares: bool

    def fits(self, ratio: float) -> bool:
        return self.least - _EQUAL <= ratio <= self.most + _EQUAL


VintagesOf = Mapping[Identity, Sequence[Vintage[Report]]]


def split_ratios(reports: Reports, vintages_of: VintagesOf) -> dict[FigureVintage, Decimal]:
    """The vintages that restate for a split, each with the number of new shares per old share."""
    by_filing: defaultdict[str, list[_Restated]] = defaultdict(list)
    stated: defaultdict[str, dict[float, Decimal]] = defaultdict(dict)
    for identity, reported in reports.items():
        concept = identity[0]
        if concept in _STATED:
            for report in reported:
                if report.value and (ratio := Decimal(report.value)) > 0 and ratio != 1:
                    both = (ratio, _ten_digits.divide(Decimal(1), ratio))
                    stated[report.document] |= {float(one): one for one in both}
        elif len(reported) > 1 and (counts := _counts_shares(identity)) is not None:
            for before, after in pairwise(vintages_of[identity]):
                if one := _restated((identity, after.number), before.report, after.report, counts):
                    by_filing[after.report.document].append(one)
    ratios: dict[FigureVintage, Decimal] = {}
    for document, changed in by_filing.items():
        common = _common_ratio(changed, stated[document])
        if common is None:
            continue
        fitting = [one for one in changed if one.fits(common)]
        sure = common in stated[document] or any(one.counts_shares for one in fitting)
        if sure or not _restates_money(vintages_of, document, {one.figure[0][2] for one in fitting}):
            new_shares = (_SIMPLE | stated[document])[common]
            ratios |= dict.fromkeys((one.figure for one in fitting), new_shares)
    return ratios


def _counts_shares(identity: Identity) -> bool | None:
    """True for a number of shares, False for an amount per share, None for anything else."""
    concept, unit, _, _ = identity
    item = line_item(concept)
    if unit == "shares" or item == "shares_outstanding":
        return True
    return False if unit.endswith("/shares") or item in _PER_SHARE or "PerShare" in concept else None


def _restated(figure: FigureVintage, before: Report, after: Report, counts_shares: bool) -> _Restated | None:
    if not before.value or not after.value or before.document == after.document:
        return None
    values = Decimal(before.value), Decimal(after.value)
    if values[0] * values[1] <= 0:
        return None
    old, new = (_rounded(value, counts_shares) for value in values)
    if not counts_shares:
        old, new = new, old
    return _Restated(figure, new[0] / old[1], new[1] / old[0], counts_shares)


def _rounded(value: Decimal, counts_shares: bool) -> tuple[float, float]:
    """The smallest and largest exact value that rounds to this figure, without its sign."""
    size = float(abs(value))
    exponent = int(value.normalize().as_tuple().exponent)
    last_digit = 10.0 ** (exponent if counts_shares else min(exponent, -2))
    margin = min(last_digit, size / 20 if counts_shares else size / 2)  # some filers cut instead of rounding
    return size - margin, size + margin


def _common_ratio(changed: Sequence[_Restated], stated: Mapping[float, Decimal]) -> float | None:
    """The single ratio that explains all changes of a filing; None if there is none."""
    if len(changed) < 2 and not stated:
        return None
    candidates = [*sorted(stated), *_SIMPLE]
    best = max(candidates, key=lambda ratio: sum(one.fits(ratio) for one in changed))
    fitting = [one for one in changed if one.fits(best)]
    narrow = any(one.most - one.least <= _NARROW * best for one in fitting)
    least = 1 if best in stated else 2
    return best if narrow and len(fitting) >= least and 3 * len(fitting) >= 2 * len(changed) else None


def _restates_money(vintages_of: VintagesOf, document: str, ends: set[str]) -> bool:
    """Whether a filing changes other figures of the periods that end on these days."""
    return any(
        after.report.document == document
        for identity, known in vintages_of.items()
        if identity[2] in ends and len(known) > 1 and _counts_shares(identity) is None
        for after in known[1:]
    )


class Issuer:
    """One issuer; its figures are read from the ledger on first use."""

    def __init__(self, entity: Entity, ledger: LedgerReader, captures: Mapping[int, CaptureInfo]) -> None:
        self.entity = entity
        self._ledger = ledger
        self.captures = captures
        self.rows: dict[tuple[Identity, int, str], Any] = {}
        """Rows of vintages under the name of a line item, made once for all datasets."""
        self.served: list[Any] = []
        """The same for every fact, in served order; filled on first use."""
        self._tradable: dict[tuple[date, str | None], date | None] = {}

    @cached_property
    def reports(self) -> Reports:
        return self._published.reports()

    @cached_property
    def vintages(self) -> dict[Identity, list[Vintage[Report]]]:
        return {
            identity: vintages(reported, ordinal(identity[2])) for identity, reported in self.reports.items()
        }

    def facts(self, subject: str) -> FactColumns:
        return self._ledger.facts(subject)

    @property
    def held(self) -> list[FactColumns]:
        """The ledger's facts of each of its subjects, published or not."""
        return [facts for _, facts in self._published.held]

    def instant(self, report: Report) -> str | None:
        """When a register accepted the document. None if only the day is known, or if the instant is after
        it."""
        instant = self._accepted.get(report.document)
        return instant if instant and report.evidenced and instant[:10] <= report.evidenced else None

    def tradable_from(self, day: date, instant: str | None) -> date | None:
        """The first session of the issuer's exchange after something became public."""
        if (day, instant) in self._tradable:
            return self._tradable[day, instant]
        number = max(bisect_right(self._dated_locations, day.isoformat(), key=lambda one: one.day) - 1, 0)
        listed = self._dated_locations[number].exchanges if self._dated_locations else ()
        session = tradable_from(listed[0], day, instant) if listed else None
        self._tradable[day, instant] = session
        return session

    @cached_property
    def split_ratios(self) -> dict[FigureVintage, Decimal]:
        """The ratio of the split for which a vintage of a figure was restated."""
        return split_ratios(self.reports, self.vintages)

    @cached_property
    def _accepted(self) -> dict[str, str]:
        accepted = (self._ledger.acceptances(subject) for subject in self.entity.subjects)
        return {document: instant for one in accepted for document, instant in one.items()}

    @cached_property
    def _dated_locations(self) -> list[DatedLocation]:
        return dated_locations(self.entity, self.captures)

    @property
    def names(self) -> IssuerYears:
        """Gives each period its period_type and fiscal year."""
        return self._ends.names

    @cached_property
    def years(self) -> IssuerYearList:
        return full_years(self.reports, self._ends)

    @cached_property
    def _published(self) -> Published:
        return Published(self._ledger, self.captures, self.entity.subjects)

    @cached_property
    def _ends(self) -> YearEnds:
        return YearEnds(self._published.evidence())


def item_of(identity: Identity, reports: Reports) -> str:
    """The line item that a fact is served under."""
    own, unit, end, start = identity
    candidates = _candidates().get(own)
    if candidates is None:
        return line_item(own)
    served, routes = candidates
    day = min(report.available for report in reports[identity])

    def known(concept: str) -> Decimal | None:
        """The figure of the same period and unit, as known on the day."""
        reported = reports.get((concept, unit, end, start), ())
        by_day = [report for report in reported if report.available <= day]
        latest = max(by_day, key=lambda report: (report.available, report.order), default=None)
        return None if latest is None or latest.value is None else Decimal(latest.value)

    if not any(map(known, served)):
        proven = next((route for route in routes if _is_proven(route, known)), None)
        if proven is not None and proven.single == own:
            return proven.item
    return line_item(own)


def _is_proven(route: Route, known: Callable[[str], Decimal | None]) -> bool:
    value = known(route.single)
    if not value or any(map(known, route.unless)):
        return False
    for equation in table().confirmations[route.confirm]:
        amounts = [
            sign * figure
            for sign, concept in equation
            if (figure := value if concept == SELF else known(concept))
        ]
        if len(amounts) == len(equation) and not sum(amounts):
            return True
    return False


@cache
def _candidates() -> Mapping[str, tuple[tuple[str, ...], tuple[Route, ...]]]:
    """By concept that is served under no item, but that an equation may prove to be one: the concepts that
    are the item by themselves (no other figure is used beside them), and the routes to be proven, in order.
    """
    routes = table().routes
    own_names = {r.single for of_item in routes.values() for r in of_item if r.served}
    by_concept: dict[str, tuple[tuple[str, ...], tuple[Route, ...]]] = {}
    for of_item in routes.values():
        to_prove = tuple(
            r
            for r in of_item
            if r.single and r.confirm not in ("", NOTHING) and not r.at_least and r.single not in own_names
        )
        served = tuple(r.single for r in of_item if r.served)
        by_concept |= {route.single: (served, to_prove) for route in to_prove}
    return by_concept


_EVERY_DAY = range(FOREVER)


class StatementFigure(NamedTuple):
    """The figure of a line item for a period on the days [first, until)."""

    line_item: str
    identity: Identity
    vintage: Vintage[Report]
    turned: Decimal | None
    """The figure with its sign turned if its filing proves that the sign is wrong."""
    alternatives: int
    """How many other figures of the period are served under the line item."""
    first: int
    until: int


def statement_figures(issuer: Issuer) -> Iterator[StatementFigure]:
    """Every figure of every statement of an issuer, by period and line item, earliest first."""
    for end, reported in _periods(issuer):
        views = History(ordinal(end), reported).views
        current: dict[str, StatementFigure] = {}
        days = [*(view.day for view in views), FOREVER][1:]
        for view, until in zip(views, days, strict=True):
            chosen = {}
            for item, identity, vintage, turned, others in _chosen(view, end):
                own = issuer.vintages[identity][vintage - 1]
                chosen[item] = StatementFigure(item, identity, own, turned, others, view.day, until)
            for item in current.keys() - chosen.keys():
                yield current.pop(item)
            for item, now in chosen.items():
                before = current.get(item)
                if before is not None and before[:5] == now[:5]:
                    now = before._replace(until=until)
                elif before is not None:
                    yield before
                current[item] = now
        yield from current.values()


def _periods(issuer: Issuer) -> Iterator[tuple[str, list[ReportedFigure]]]:
    """The figures a statement may show, by the end and the name of their period."""
    concepts = table().concepts | _single_concepts()
    periods: defaultdict[tuple[str, str], list[ReportedFigure]] = defaultdict(list)
    for (concept, unit, period_end, period_start), reports in issuer.reports.items():
        if concept in concepts:
            start = ordinal(period_start) if period_start else None
            name = issuer.names.name(start, ordinal(period_end), reports[0].available)
            one = ReportedFigure(concept, unit, period_start, reports, _EVERY_DAY)
            periods[period_end, name.period_type].append(one)
    for (period_end, _), reported in periods.items():
        yield period_end, reported


def _chosen(view: PeriodView, end: str) -> Iterator[tuple[str, Identity, int, Decimal | None, int]]:
    """For each line item of a view: the fact that is chosen, its vintage, and the number of the others."""
    lines = view.lines()
    served = Counter(line_item(concept) for concept, _, _ in view.facts)
    for item in LINE_ITEMS:
        figure = lines.figure(item)
        concept = table().routes[item][figure.route].single if figure else ""
        if figure and concept:
            (_, unit, start) = lines_key = view.key(concept)
            value = figure.parts[0].value
            turned = value if value != view.facts[lines_key].value else None
            others = served[item] - (line_item(concept) == item)
            yield item, (concept, unit, end, start), figure.parts[0].vintage, turned, others


@cache
def _single_concepts() -> frozenset[str]:
    """The concepts that can represent a line item by themselves."""
    return frozenset(route.single for routes in table().routes.values() for route in routes if route.single)
