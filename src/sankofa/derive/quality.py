"""How complete and how fresh each dataset is, compared with the floors that its sources set.

Everything is counted as of the ledger's last capture, so that the same ledger gives the same figures. `facts`
and `releases` count served rows, every vintage of a fact; `facts_in_ledger` and `releases_in_ledger` count
ingested rows. An age is counted from the newest day of release that a source evidences. A floor is a minimum;
for age, rejects and restatements it is a maximum. A floor on something that is not measured is UNMEASURED,
never a pass.

See contract: QUAL-1, QUAL-2.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.metrics.lines import MEASURES
from sankofa.derive.series import MacroColumn
from sankofa.derive.tenders import Tenders
from sankofa.ledger.capture import FactColumns
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.tenders import SERVED_RELEASES
from sankofa.model.figures import exact
from sankofa.model.provenance import SKUS
from sankofa.sources.registry import Source

PASS: Final = "PASS"  # noqa: S105 - a verdict
FAIL: Final = "FAIL"
UNMEASURED: Final = "UNMEASURED"
LESS_IS_BETTER: Final = frozenset(
    {"freshness_days", "identity_conflicts", "rejected", "restatement_rate", "withheld", *MEASURES}
)
_FOUR_DECIMALS: Final = Decimal("0.0001")

_COUNT_RELEASES: Final = f"""
    SELECT capture_id, count(*), count(CASE WHEN summary LIKE '%"value_amount":%' THEN 1 END)
    FROM {SERVED_RELEASES} GROUP BY capture_id
"""  # noqa: S608 - a condition of our own

Figures = dict[str, Decimal]
_FiguresByPeriod = defaultdict[str, set[str | None]]
"""Every figure reported for a value, by the year or day of the value."""


class Quality(NamedTuple):
    """One measure of a dataset, and how it compares with its floor."""

    sku: str
    measure: str
    value: Decimal | None
    floor: Decimal | None
    status: str | None


class ServedFacts(NamedTuple):
    """The served facts of one source, every vintage, and how many evidence their day of release."""

    facts: int
    dated: int


class SourceHoldings(msgspec.Struct, array_like=True):
    facts: int = 0
    subjects: int = 0
    newest: str = ""
    """The latest available_at; empty if there is none."""


class HeldFacts(msgspec.Struct, array_like=True):
    """The facts of some subjects in the ledger, whether or not they are served."""

    by_source: dict[str, SourceHoldings] = {}
    periods: set[str] = set()
    """The days on which their periods end."""
    identities: int = 0
    """Distinct facts, however often each was reported."""
    restated: int = 0
    """Distinct facts reported with more than one figure."""

    def add(self, other: "HeldFacts") -> None:
        for source_id, counts in other.by_source.items():
            own = self.by_source.setdefault(source_id, SourceHoldings())
            own.facts += counts.facts
            own.subjects += counts.subjects
            own.newest = max(own.newest, counts.newest)
        self.periods |= other.periods
        self.identities += other.identities
        self.restated += other.restated


def count_facts(facts: FactColumns, captures: Mapping[int, CaptureInfo]) -> HeldFacts:
    counts = HeldFacts(periods=set(facts.period_end))
    for capture_id, number in Counter(facts.capture_id).items():
        counts.by_source.setdefault(
            captures[capture_id].source_id, SourceHoldings(subjects=1)
        ).facts += number
    for capture_id, day in set(zip(facts.capture_id, facts.available_at, strict=True)):
        own = counts.by_source[captures[capture_id].source_id]
        own.newest = max(own.newest, day)
    reported = zip(facts.concept, facts.unit, facts.period_end, facts.period_start, strict=True)
    figures: defaultdict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for identity, value in zip(reported, facts.value, strict=True):
        figures[identity].add(value)
    counts.identities = len(figures)
    counts.restated = sum(len(values) > 1 for values in figures.values())
    return counts


class MacroCounts(msgspec.Struct, array_like=True):
    """Counts of macro columns. An observation that several files or releases report is counted once, here and
    for each source."""

    observations: dict[str, int] = {}
    """By source."""
    newest: dict[str, str] = {}
    """By source, the newest evidenced day of release."""
    countries: set[str] = set()
    indicators: set[str] = set()
    series: int = 0
    annual: int = 0
    dated: int = 0
    undated: int = 0
    values: int = 0
    restated: int = 0

    def add(self, other: "MacroCounts") -> None:
        for source_id, count in other.observations.items():
            self.observations[source_id] = self.observations.get(source_id, 0) + count
        for source_id, day in other.newest.items():
            self.newest[source_id] = max(self.newest.get(source_id, ""), day)
        self.countries |= other.countries
        self.indicators |= other.indicators
        for name in ("series", "annual", "dated", "undated", "values", "restated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _add_figures(self, periods: set[tuple[str, str]], figures: _FiguresByPeriod) -> None:
        """`periods` has the source and the period of each observation of one series or indicator."""
        for source_id, _ in periods:
            self.observations[source_id] = self.observations.get(source_id, 0) + 1
        self.values += len(figures)
        self.restated += _restated(figures)

    @classmethod
    def of(cls, column: MacroColumn) -> "MacroCounts":
        counts, captures = cls(), column.captures
        if column.country:
            counts.countries.add(column.country)
            counts.indicators.add(column.code)
            figures: _FiguresByPeriod = defaultdict(set)
            periods: set[tuple[str, str]] = set()
            for capture_id, _document, years in column.annual():
                periods.update((captures[capture_id].source_id, year) for year in years)
                counts.annual += len(years)
                for year, figure in years.items():
                    figures[year].add(figure)
            counts._add_figures(periods, figures)
            return counts
        for (_, _, country), releases in column.published():
            counts.series += 1
            counts.countries.update(filter(None, (country,)))
            figures, periods = defaultdict(set), set()
            for *_, capture_id, _document, released in releases:
                source_id = captures[capture_id].source_id
                periods.update((source_id, entry.date) for entry in released)
                days = [entry.release for entry in released if entry.evidenced]
                counts.newest[source_id] = max(counts.newest.get(source_id, ""), max(days, default=""))
                counts.dated += len(days)
                counts.undated += len(released) - len(days)
                for entry in released:
                    figures[entry.date].add(entry.value)
            counts._add_figures(periods, figures)
        return counts


class DatasetCounts(NamedTuple):
    figures: dict[str, Decimal]
    by_source: dict[str, dict[str, Decimal]]
    newest: dict[str, str]
    """The newest evidenced release day of each source; empty if there is none."""


class Measurement(NamedTuple):
    """The measures of every dataset, and the sources that miss a hard floor."""

    rows: list[Quality]
    shortfalls: list[str]


def measure(
    ledger: LedgerReader,
    captures: Mapping[int, CaptureInfo],
    sources: Mapping[str, Source],
    day: str,
    counted: Mapping[str, DatasetCounts],
) -> Measurement:
    """Measure every dataset, by its SKU, as of a day."""
    by_sku: dict[str, Figures] = {sku: {**counts.figures} for sku, counts in counted.items()}
    by_source: dict[str, Figures] = defaultdict(dict)
    _count_intake(ledger, by_source)
    newest: dict[str, str] = {}
    for counts in counted.values():
        for source_id, figures in counts.by_source.items():
            by_source[source_id] |= figures
        for source_id, last in counts.newest.items():
            newest[source_id] = max(newest.get(source_id, ""), last)
    for source_id, last in newest.items():
        if last:
            by_source[source_id]["freshness_days"] = _age(last, day)
    captured = {capture.source_id for capture in captures.values()}
    rows: list[Quality] = []
    for sku in SKUS:
        of_sku = [source for source in sources.values() if source.sku == sku and source.id in captured]
        figures = by_sku[sku]
        for total in ("rejected", "withheld"):
            figures[total] = sum((by_source[s.id].get(total, Decimal(0)) for s in of_sku), Decimal(0))
        ages = [by_source[s.id]["freshness_days"] for s in of_sku if "freshness_days" in by_source[s.id]]
        if ages:
            figures["freshness_days"] = min(ages)
        rows += _compare_with_floors(sku, figures, of_sku)
    shortfalls = [
        f"source {source.id}: {name} is {'not measured' if value is None else f'{value:f}'}, floor {floor:f}"
        for source in sources.values()
        if source.id in captured
        for name, floor in _decimals(source.hard_floors).items()
        # A measure that exists only for the whole dataset is compared there.
        if _status(name, value := (by_sku.get(source.sku or "", {}) | by_source[source.id]).get(name), floor)
        != PASS
    ]
    return Measurement(rows, shortfalls)


def _compare_with_floors(sku: str, figures: Figures, sources: list[Source]) -> Iterable[Quality]:
    floors: Figures = {}
    for source in sources:
        for name, floor in _decimals(source.floors | source.hard_floors).items():
            strictest = min if name in LESS_IS_BETTER else max
            floors[name] = strictest(floors.get(name, floor), floor)
    for name in sorted(figures.keys() | floors.keys()):
        value, least = figures.get(name), floors.get(name)
        yield Quality(sku, name, value, least, None if least is None else _status(name, value, least))


def _status(name: str, value: Decimal | None, floor: Decimal) -> str:
    if value is None:
        return UNMEASURED
    return PASS if (value <= floor if name in LESS_IS_BETTER else value >= floor) else FAIL


def _decimals(floors: Mapping[str, float]) -> Figures:
    return {name: Decimal(exact(str(floor))) for name, floor in floors.items()}


def fundamental_counts(
    held: HeldFacts, served: Mapping[str, ServedFacts], *, issuers: int, with_lei: int, countries: int
) -> DatasetCounts:
    """`held`: all facts of the ledger; `served`: those of each source in the edition."""
    by_source: dict[str, Figures] = {}
    for source_id, holdings in held.by_source.items():
        published, dated = served.get(source_id, ServedFacts(0, 0))
        by_source[source_id] = {
            "facts": Decimal(published),
            "facts_in_ledger": Decimal(holdings.facts),
            "entities": Decimal(holdings.subjects),
            **_share("share_with_evidenced_available_at", dated, published),
        }
    counts = [served[source_id] for source_id in by_source.keys() & served.keys()]
    facts, evidenced = sum(one.facts for one in counts), sum(one.dated for one in counts)
    figures = {
        "facts": Decimal(facts),
        "facts_in_ledger": Decimal(sum(holdings.facts for holdings in held.by_source.values())),
        "entities": Decimal(issuers),
        "countries": Decimal(countries),
        "periods": Decimal(len(held.periods)),
        **_share("share_with_lei", with_lei, issuers),
        **_share("share_with_evidenced_available_at", evidenced, facts),
        **_share("restatement_rate", held.restated, held.identities),
    }
    return DatasetCounts(
        figures, by_source, {source_id: one.newest for source_id, one in held.by_source.items()}
    )


def tender_counts(
    ledger: LedgerReader, tenders: Tenders, captures: Mapping[int, CaptureInfo]
) -> DatasetCounts:
    by_source: dict[str, Figures] = defaultdict(dict)
    newest: dict[str, str] = {}
    releases = valued = 0
    for capture_id, count, with_value in ledger.rows(_COUNT_RELEASES):
        releases, valued = releases + count, valued + with_value
        _add(by_source[captures[capture_id].source_id], "releases", count)
    in_ledger = 0
    for capture_id, count, released in ledger.rows(
        "SELECT capture_id, count(*), max(release_date) FROM release GROUP BY capture_id"
    ):
        source_id = captures[capture_id].source_id
        in_ledger += count
        _add(by_source[source_id], "releases_in_ledger", count)
        newest[source_id] = max(newest.get(source_id, ""), released[:10])
    ((processes, countries),) = ledger.rows(
        "SELECT count(DISTINCT ocid), count(DISTINCT country) FROM release WHERE country <> ''"
    )
    resolved, parties = tenders.resolution_counts()
    figures = {
        "releases": Decimal(releases),
        "releases_in_ledger": Decimal(in_ledger),
        "processes": Decimal(processes),
        "countries": Decimal(countries),
        "parties": Decimal(parties),
        **_share("share_resolved", resolved, parties),
        **_share("share_with_value", valued, releases),
    }
    return DatasetCounts(figures, dict(by_source), newest)


def macro_counts(columns: Iterable[MacroCounts]) -> DatasetCounts:
    total = MacroCounts()
    for column in columns:
        total.add(column)
    counted = {
        "observations": Decimal(total.values),
        "series": Decimal(total.series),
        "indicators": Decimal(len(total.indicators)),
        "countries": Decimal(len(total.countries)),
        **_share(
            "share_with_evidenced_available_at", total.dated, total.annual + total.dated + total.undated
        ),
        **_share("restatement_rate", total.restated, total.values),
    }
    by_source = {name: {"observations": Decimal(count)} for name, count in total.observations.items()}
    return DatasetCounts(counted, by_source, total.newest)


def _restated(reported: _FiguresByPeriod) -> int:
    """How many values were reported with more than one figure; a withdrawal is not a figure."""
    return sum(len(figures - {"", None}) > 1 for figures in reported.values())


def _count_intake(ledger: LedgerReader, by_source: dict[str, Figures]) -> None:
    for source_id, counts in ledger.rows("SELECT source_id, counts FROM capture"):
        reported = json.loads(counts)
        for name in ("rejected", "withheld"):
            by_source[source_id][name] = by_source[source_id].get(name, Decimal(0)) + reported[name]


def _add(figures: Figures, name: str, count: int) -> None:
    figures[name] = figures.get(name, Decimal(0)) + count


def _share(name: str, part: int, whole: int) -> Figures:
    """The share under its name; empty if the whole is zero."""
    return {name: (Decimal(part) / whole).quantize(_FOUR_DECIMALS)} if whole else {}


def _age(last: str, day: str) -> Decimal:
    return Decimal((date.fromisoformat(day) - date.fromisoformat(last)).days)
