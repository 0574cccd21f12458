"""Sources of the edition, its coverage by dataset, country and source, and the quality of each dataset.

Sources are ordered by id, coverage by sku, country, source and unit. Sources left out of the edition do not
appear: the ledger is read without them.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import groupby, product
from typing import Final

from sankofa.derive.quality import Quality
from sankofa.edition.format import keys
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import CountOnDay, KnownCounts, pack_steps, write_known_counts
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    NEVER,
    Building,
    Counted,
    CoverageTally,
    KeyRows,
    Outcome,
    TallyKey,
    dataset,
    provenance,
)
from sankofa.ledger.reader import CaptureInfo
from sankofa.ledger.tenders import SERVED_RELEASES
from sankofa.model.catalogue_rows import CoverageRow, QualityRow, SourceRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.provenance import FUND, SERVICE, TENDER, source_ref
from sankofa.model.rows import wire

_RELEASES: Final = f"""
    SELECT capture_id, country, substr(release_date, 1, 10), count(*)
    FROM {SERVED_RELEASES} GROUP BY capture_id, country, substr(release_date, 1, 10)
"""  # noqa: S608 - a condition of our own


@dataset(keys.COVERAGE, CoverageRow, tallies=(keys.MACRO_SERIES, keys.MACRO_ANNUAL))
def coverage(context: BuildContext, series: CoverageTally, annual: CoverageTally) -> Building:
    """By country and sku, each or both. Returns the tally."""
    tally = CoverageTally()
    tally.update(series.rows())
    tally.update(annual.rows())
    for some in context.counts:
        for source_id, country, total in some.facts:
            key = TallyKey(FUND, country, source_id, "issuers")
            tally[key].add(total.count, total.rows, total.first, total.last, total.published)
        for source_id, country, days in some.fact_days:
            tally[TallyKey(FUND, country, source_id, "issuers")].become_known(dict(days))
    for capture_id, country, text, count in context.ledger.rows(_RELEASES):
        key = TallyKey(TENDER, country, context.captures[capture_id].source_id, "releases")
        day = ordinal(text)
        for counted in (tally[key], tally[key].on(day)):
            counted.add(count, count, day, day, day)
    captures = _last_captures(context)
    keyed: defaultdict[str, list[Entry]] = defaultdict(list)
    for key, counted in tally.rows():
        if not counted.count:  # known of a country that the issuer left
            continue
        row = Entry(wire.encode(_coverage_row(context, key, counted, captures[key.source_id])))
        for pair in set(product((key.country, ""), (key.sku, ""))):
            keyed[keys.coverage_key(*pair)].append(row)
    for name in sorted({*keyed, keys.coverage_key(None, None)}):
        yield KeyRows(name, keyed[name])
    return Outcome(tally)


@dataset(keys.SOURCES, SourceRow, needs=(keys.COVERAGE,))
def sources(context: BuildContext, coverage: CoverageTally) -> Iterator[KeyRows]:
    counted: defaultdict[str, Counted] = defaultdict(Counted)
    countries: defaultdict[str, set[str]] = defaultdict(set)
    for key, counts in coverage.rows():
        if not counts.count:
            continue
        counted[key.source_id].merge(counts)
        countries[key.source_id].update(filter(None, (key.country,)))
    of_datasets = frozenset(counted)
    for some in context.counts:
        for source_id, country, number in some.statements:
            if source_id not in of_datasets:  # a source of figures is counted by them
                counted[source_id].rows += number
                countries[source_id].update(filter(None, (country,)))
    rejected = _rejected(context)
    yield KeyRows(
        "",
        [
            Entry(
                wire.encode(
                    _source_row(
                        context,
                        source_id,
                        capture,
                        counted[source_id],
                        sorted(countries[source_id]),
                        rejected[source_id],
                    )
                )
            )
            for source_id, capture in sorted(_last_captures(context).items())
        ],
    )


@dataset(keys.COVERAGE_DAYS, None, needs=(keys.COVERAGE,))
def coverage_days(context: BuildContext, coverage: CoverageTally) -> Iterator[KeyRows]:
    """In the order of coverage, then the sources of identifiers."""
    records: defaultdict[str, Counted] = defaultdict(Counted)
    for some in context.counts:
        for source_id, by_day in some.record_days:
            for day, number in by_day:
                records[source_id].on(day).add(number, number, FOREVER, NEVER, NEVER)
    identified = [
        (TallyKey("", "", source_id, "records"), records[source_id]) for source_id in sorted(records)
    ]
    keyed = [*coverage.rows(), *identified]
    known = [KnownCounts(*key, pack_steps(_steps(counted))) for key, counted in keyed if counted.days]
    yield KeyRows("", [Entry(write_known_counts(known))])


def _steps(counted: Counted) -> Iterator[CountOnDay]:
    """Running totals of what became known."""
    total = Counted()
    for day in sorted(counted.days):
        total.merge(counted.days[day])
        first = NEVER if total.first == FOREVER else total.first
        yield CountOnDay(day, total.count, total.rows, first, total.last, total.published)


def _last_captures(context: BuildContext) -> dict[str, CaptureInfo]:
    return {capture.source_id: capture for _, capture in sorted(context.captures.items())}


def _rejected(context: BuildContext) -> Counter[str]:
    rejected: Counter[str] = Counter()
    for source_id, counts in context.ledger.rows("SELECT source_id, counts FROM capture"):
        rejected[source_id] += int(json.loads(counts)["rejected"])
    return rejected


def _coverage_row(
    context: BuildContext, key: TallyKey, counted: Counted, capture: CaptureInfo
) -> CoverageRow:
    return CoverageRow(
        sku=key.sku,
        country=key.country or None,
        source_id=key.source_id,
        count=counted.count,
        unit_of_count=key.unit,
        first_date=_day(counted.first),
        last_date=_day(counted.last),
        freshness_days=_age(counted, context.clock),
        **provenance(capture, f"{key.sku} {key.country} {key.unit}"),
    )


def _source_row(
    context: BuildContext,
    source_id: str,
    capture: CaptureInfo,
    counted: Counted,
    countries: list[str],
    rejected: int,
) -> SourceRow:
    entry = context.source(source_id)
    return SourceRow(
        source_id=source_id,
        title=(entry and entry.title) or None,
        publisher=(entry and entry.publisher) or None,
        url=(entry and entry.url) or None,
        licence=(entry and entry.licence) or None,
        licence_url=(entry and entry.licence_link) or None,
        attribution=entry.named if entry else source_id,
        sku=entry.sku if entry else None,
        countries=countries,
        row_count=counted.rows,
        first_date=_day(counted.first),
        last_date=_day(counted.last),
        captured_at=capture.observed_at,
        freshness_days=_age(counted, context.clock),
        rejected=rejected,
        **provenance(capture, source_id),
    )


def _day(day: int) -> date | None:
    return None if day in (NEVER, FOREVER) else date.fromordinal(day)


def _age(counted: Counted, clock: str) -> int | None:
    """Days since the newest evidenced publication; at least 0, for releases with a future date."""
    if counted.published == NEVER:
        return None
    return max(ordinal(clock[:10]) - counted.published, 0)


@dataset("quality", QualityRow)
def quality(context: BuildContext) -> Building:
    rows, shortfalls = context.quality
    for sku, measures in groupby(rows, key=lambda one: one.sku):
        yield KeyRows(sku, [Entry(wire.encode(_quality_row(context, one))) for one in measures])
    floors = {"despite_floors": shortfalls} if shortfalls else {}
    return Outcome(manifest_extras={"quality": [_line(one) for one in rows], **floors})


def _quality_row(context: BuildContext, one: Quality) -> QualityRow:
    """A measure names the first capture of its dataset, or the ledger."""
    first = context.first_capture(one.sku)
    location = f"{one.sku} {one.measure}"
    return QualityRow(
        **one._asdict(),
        measured_at=context.clock,
        source_ref=source_ref(SERVICE, "ledger", location) if first is None else first.ref(location),
        license_class="public-domain",
        observed_at=context.clock,
    )


def _line(one: Quality) -> str:
    """The line that `sankofa publish` prints."""
    value, floor = ("-" if figure is None else f"{figure:f}" for figure in (one.value, one.floor))
    return f"{one.sku:<10}  {one.measure:<34}  {value:>14}  floor {floor:>10}  {one.status or ''}".rstrip()
