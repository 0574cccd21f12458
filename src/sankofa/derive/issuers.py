"""Issuers: organisations with reported figures.

Everything derived for a single issuer starts here, and each part is computed once.

Restatements for a split of shares: amounts per share and numbers of shares, given anew for other shares.

No split is ever applied to a figure here. A filing that restates for one is a vintage like any other;
`split_ratios` finds such filings by what they change. All share figures of earlier periods that a filing
changes must change by one simple ratio, and either numbers of shares are among them, or the filing states the
ratio, or it leaves the money figures of those periods alone: restated earnings change earnings per share,
too.

See contract: VINT-10.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Context, Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sankofa.derive.metrics.full_years import IssuerYearList, YearEnds, full_years
from sankofa.derive.metrics.lines import concepts_used
from sankofa.ledger.entities import Entity
from sankofa.ledger.facts import FactColumns
from sankofa.ledger.reader import CaptureInfo, Facts
from sankofa.ledger.reports import Identity, Published, Report, Reports
from sankofa.ledger.spells import Placed, places
from sankofa.model.days import ordinal, tradable_from
from sankofa.model.line_items import line_item
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
_PAIRS: Final = (
    *_WHOLE,
    *((1, n) for n, _ in _WHOLE),
    (3, 2),
    (4, 3),
    (5, 2),
    (5, 3),
    (5, 4),
    (6, 5),
    (7, 2),
)
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
    """The vintages that restate for a split, each with the new shares for an old one."""
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
            shown = (_SIMPLE | stated[document])[common]
            ratios |= dict.fromkeys((one.figure for one in fitting), shown)
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
    """The least and the most that a figure can stand for, without its sign."""
    size = float(abs(value))
    exponent = int(value.normalize().as_tuple().exponent)
    last_digit = 10.0 ** (exponent if counts_shares else min(exponent, -2))
    margin = min(last_digit, size / 20 if counts_shares else size / 2)  # some filers cut instead of rounding
    return size - margin, size + margin


def _common_ratio(changed: Sequence[_Restated], stated: Mapping[float, Decimal]) -> float | None:
    """The one ratio of all that a filing changed; None if there is none."""
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
    """One issuer; its figures are read from the ledger when they are first asked for."""

    def __init__(self, entity: Entity, ledger: Facts, captures: Mapping[int, CaptureInfo]) -> None:
        self.entity = entity
        self._ledger = ledger
        self.captures = captures
        self.rows: dict[tuple[Identity, int, str], Any] = {}
        """Rows of vintages under the name of a line item, made once for all datasets."""
        self._tradable: dict[tuple[date, str | None], date | None] = {}

    @cached_property
    def reports(self) -> Reports:
        """The reports of each fact; complete for the concepts that line items are computed from."""
        return self._published.reports(whole=concepts_used())

    @cached_property
    def vintages(self) -> dict[Identity, list[Vintage[Report]]]:
        """The vintages of each fact."""
        return {
            identity: vintages(reported, ordinal(identity[2])) for identity, reported in self.reports.items()
        }

    def facts(self, subject: str) -> FactColumns:
        """The ledger's facts of one of its subjects."""
        return self._ledger.facts(subject)

    @property
    def held(self) -> list[FactColumns]:
        """The ledger's facts of each of its subjects, published or not."""
        return [facts for _, facts in self._published.held]

    def instant(self, report: Report) -> str | None:
        """When a register accepted its document. None if only the day is known, or if the instant is after
        that day."""
        instant = self._accepted.get(report.document)
        return instant if instant and report.evidenced and instant[:10] <= report.evidenced else None

    def tradable_from(self, day: date, instant: str | None) -> date | None:
        """The first session of the exchange that it was listed on, after something became public."""
        if (day, instant) in self._tradable:
            return self._tradable[day, instant]
        number = max(bisect_right(self._places, day.isoformat(), key=lambda one: one.day) - 1, 0)
        listed = self._places[number].exchanges if self._places else ()
        session = tradable_from(listed[0], day, instant) if listed else None
        self._tradable[day, instant] = session
        return session

    @cached_property
    def split_ratios(self) -> dict[FigureVintage, Decimal]:
        """The ratio of the split for which a vintage of a figure was restated."""
        return split_ratios(self.reports, self.vintages)

    @cached_property
    def _accepted(self) -> dict[str, str]:
        held = (self._ledger.acceptances(subject) for subject in self.entity.subjects)
        return {document: instant for one in held for document, instant in one.items()}

    @cached_property
    def _places(self) -> list[Placed]:
        return places(self.entity, self.captures)

    @property
    def names(self) -> IssuerYears:
        """Gives each period its period_type and fiscal year."""
        return self._ends.names

    @cached_property
    def years(self) -> IssuerYearList:
        """Its full years."""
        ends, published = self._ends, self._published
        first_days = {
            (start, end): day
            for (start, end), day in published.first_days().items()
            if day in ends.full_on(start, end) and ends.is_full_year(start, end)
        }
        return full_years(self.reports, ends, first_days)

    @cached_property
    def _published(self) -> Published:
        return Published(self._ledger, self.captures, self.entity.subjects)

    @cached_property
    def _ends(self) -> YearEnds:
        return YearEnds(self._published.evidence())
