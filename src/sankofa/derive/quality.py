"""How complete and how fresh each dataset is, held against the floors that its sources set.

Everything is counted from the ledger as of its last capture, so that the same ledger gives the same figures.
A floor is the least a measure may be; of age, rejects and restatements it is the most. A floor on something
that is not measured is UNMEASURED, never a pass.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from sankofa.derive.tenders import Tenders
from sankofa.ledger.book import CaptureInfo, Ledger
from sankofa.ledger.entities import Entity
from sankofa.model.figures import exact
from sankofa.model.provenance import SKUS
from sankofa.sources.registry import Source

PASS: Final = "PASS"  # noqa: S105 - a verdict
FAIL: Final = "FAIL"
UNMEASURED: Final = "UNMEASURED"
LESS_IS_BETTER: Final = frozenset(
    {"freshness_days", "identity_conflicts", "rejected", "restatement_rate", "withheld"}
)
_PLACES: Final = Decimal("0.0001")

Figures = dict[str, Decimal]
_Told = defaultdict[str, set[str | None]]
"""By year or day of a value, every figure it was told with."""


class Quality(NamedTuple):
    """One measure of a dataset, and how it stands."""

    sku: str
    measure: str
    value: Decimal | None
    floor: Decimal | None
    status: str | None


class Measurement(NamedTuple):
    """What was measured of every dataset, and which sources fall short of a hard floor."""

    rows: list[Quality]
    shortfalls: list[str]


def measure(
    ledger: Ledger,
    captures: Mapping[int, CaptureInfo],
    entities: Iterable[Entity],
    tenders: Tenders,
    sources: Mapping[str, Source],
    day: str,
    of_metrics: Mapping[str, Decimal],
) -> Measurement:
    """Measure every dataset as of a day. What was derived of the issuers is measured where it is kept."""
    own: dict[str, Figures] = defaultdict(dict)  # by source
    whole: dict[str, Figures] = {
        "AF-FUND": {**_fundamentals(ledger, list(entities), own), **of_metrics},
        "AF-TENDER": _tenders(ledger, tenders, captures, own),
        "AF-MACRO": _macro(ledger, captures, own),
    }
    newest = _door(ledger, captures, own)
    for source_id, last in newest.items():
        own[source_id]["freshness_days"] = _age(last, day)
    held = {capture.source_id for capture in captures.values()}
    rows: list[Quality] = []
    for sku in SKUS:
        of_it = [source for source in sources.values() if source.sku == sku and source.id in held]
        figures = whole[sku]
        for total in ("rejected", "withheld"):
            figures[total] = sum((own[s.id].get(total, Decimal(0)) for s in of_it), Decimal(0))
        ages = [own[s.id]["freshness_days"] for s in of_it if "freshness_days" in own[s.id]]
        if ages:
            figures["freshness_days"] = min(ages)
        rows += _held_against(sku, figures, of_it)
    shortfalls = [
        f"source {source.id}: {name} is {'not measured' if value is None else f'{value:f}'}, floor {floor:f}"
        for source in sources.values()
        if source.id in held
        for name, floor in _decimals(source.hard_floors).items()
        # What is measured of the dataset alone is held against it there.
        if _status(name, value := (whole.get(source.sku or "", {}) | own[source.id]).get(name), floor) != PASS
    ]
    return Measurement(rows, shortfalls)


def _held_against(sku: str, figures: Figures, sources: list[Source]) -> Iterable[Quality]:
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


def _fundamentals(ledger: Ledger, entities: list[Entity], own: dict[str, Figures]) -> Figures:
    facts = evidenced = 0
    for source_id, count, dated, subjects in ledger.rows(
        "SELECT source_id, count(*), count(CASE WHEN available_at <> '' THEN 1 END), count(DISTINCT subject) "
        "FROM fact GROUP BY source_id"
    ):
        facts, evidenced = facts + count, evidenced + dated
        own[source_id] |= {"facts": Decimal(count), "entities": Decimal(subjects)}
        own[source_id] |= _share("share_with_evidenced_available_at", dated, count)
    subjects = {subject for subject, _ in ledger.fact_subjects()}
    issuers = [entity for entity in entities if not subjects.isdisjoint(entity.subjects)]
    with_lei = sum(any(c.identifier.startswith("lei:") for c in issuer.claims) for issuer in issuers)
    countries = {s.profile.country for issuer in issuers for s in issuer.statements if s.profile.country}
    ((periods,),) = ledger.rows("SELECT count(DISTINCT period_end) FROM fact")
    ((told, restated),) = ledger.rows(
        "SELECT count(*), count(CASE WHEN figures > 1 THEN 1 END) FROM ("
        "SELECT count(DISTINCT value) AS figures FROM fact "
        "GROUP BY subject, concept, unit, period_end, period_start) AS identity"
    )
    return {
        "facts": Decimal(facts),
        "entities": Decimal(len(issuers)),
        "countries": Decimal(len(countries)),
        "periods": Decimal(periods),
        **_share("share_with_lei", with_lei, len(issuers)),
        **_share("share_with_evidenced_available_at", evidenced, facts),
        **_share("restatement_rate", restated, told),
    }


def _tenders(
    ledger: Ledger, tenders: Tenders, captures: Mapping[int, CaptureInfo], own: dict[str, Figures]
) -> Figures:
    releases = valued = 0
    for capture_id, count, with_value in ledger.rows(
        "SELECT capture_id, count(*), count(CASE WHEN summary LIKE '%\"value_amount\":%' THEN 1 END) "
        "FROM release GROUP BY capture_id"
    ):
        releases, valued = releases + count, valued + with_value
        figures = own[captures[capture_id].source_id]
        figures["releases"] = figures.get("releases", Decimal(0)) + count
    ((processes, countries),) = ledger.rows(
        "SELECT count(DISTINCT ocid), count(DISTINCT country) FROM release WHERE country <> ''"
    )
    resolved, named = tenders.resolution_counts()
    return {
        "releases": Decimal(releases),
        "processes": Decimal(processes),
        "countries": Decimal(countries),
        "parties": Decimal(named),
        **_share("share_resolved", resolved, named),
        **_share("share_with_value", valued, releases),
    }


def _macro(ledger: Ledger, captures: Mapping[int, CaptureInfo], own: dict[str, Figures]) -> Figures:
    observations: Counter[str] = Counter()
    countries: set[str] = set()
    indicators: set[str] = set()
    annual = dated = values = restated = series = 0
    for (country, indicator), columns in groupby(ledger.annual(), key=itemgetter(0, 1)):
        countries.add(country)
        indicators.add(indicator)
        told: _Told = defaultdict(set)
        for *_, capture_id, _document, years in columns:
            observations[captures[capture_id].source_id] += len(years)
            annual += len(years)
            for year, figure in years.items():
                told[year].add(figure)
        values, restated = values + len(told), restated + _restated(told)
    for identity, releases in groupby(ledger.series(), key=itemgetter(0, 1, 2, 3)):
        series += 1
        countries.update(filter(None, identity[3:]))
        told = defaultdict(set)
        for *_, capture_id, _document, released in releases:
            observations[captures[capture_id].source_id] += len(released)
            dated += len(released)
            for one in released:
                told[one.date].add(one.value)
        values, restated = values + len(told), restated + _restated(told)
    for source_id, count in observations.items():
        own[source_id]["observations"] = Decimal(count)
    return {
        "observations": Decimal(annual + dated),
        "series": Decimal(series),
        "indicators": Decimal(len(indicators)),
        "countries": Decimal(len(countries)),
        **_share("share_with_evidenced_available_at", dated, annual + dated),
        **_share("restatement_rate", restated, values),
    }


def _restated(told: _Told) -> int:
    """How many values were told with more than one figure; a withdrawal is none."""
    return sum(len(figures - {"", None}) > 1 for figures in told.values())


def _door(ledger: Ledger, captures: Mapping[int, CaptureInfo], own: dict[str, Figures]) -> dict[str, str]:
    """What was turned away at the door, by source; and the newest day each source tells of."""
    for source_id, counts in ledger.rows("SELECT source_id, counts FROM capture"):
        told = json.loads(counts)
        for name in ("rejected", "withheld"):
            own[source_id][name] = own[source_id].get(name, Decimal(0)) + told[name]
    newest: dict[str, str] = {}
    for source_id, day in ledger.rows("SELECT source_id, max(available_at) FROM fact GROUP BY source_id"):
        newest[source_id] = day
    last_releases = "SELECT capture_id, max(release_date) FROM release GROUP BY capture_id"
    for capture_id, released in ledger.rows(last_releases):
        source_id = captures[capture_id].source_id
        newest[source_id] = max(newest.get(source_id, ""), released[:10])
    for *_, capture_id, _document, told in ledger.series():
        source_id = captures[capture_id].source_id
        newest[source_id] = max(newest.get(source_id, ""), *(one.release or one.date for one in told))
    return {source_id: day for source_id, day in newest.items() if day}


def _share(name: str, part: int, whole: int) -> Figures:
    """Nothing where there is nothing to share in."""
    return {name: (Decimal(part) / whole).quantize(_PLACES)} if whole else {}


def _age(last: str, day: str) -> Decimal:
    return Decimal((date.fromisoformat(day) - date.fromisoformat(last)).days)
