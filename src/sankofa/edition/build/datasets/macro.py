"""Annual indicators by country, and dated series; each value's vintage in force, newest first.

Order: annual rows by country, indicator and year descending; series rows by series, series_type, frequency
and country, then date descending.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, product
from operator import itemgetter
from typing import Final

import msgspec

from sankofa.derive.series import Series, SeriesReport, series_reports
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.format.keys import MACRO_ANNUAL, MACRO_SERIES, annual_key, key_list, series_list
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.series_blocks import (
    SeriesSummary,
    block_days,
    list_pages,
    pack_pages,
    pack_series,
    summary_of,
)
from sankofa.model.countries import alpha3_of
from sankofa.model.days import iso_day, ordinal
from sankofa.model.observations import unit_of
from sankofa.model.rows import MacroAnnualRow, MacroSeriesRow
from sankofa.model.vintages import Mode, vintages, visibilities

_LATEST: Final = int(Mode.LATEST)


@dataset(MACRO_ANNUAL, MacroAnnualRow, pack=pack_series)
def annual(context: BuildContext) -> Iterator[KeyRows]:
    names = context.ledger.indicator_names()
    provenance = _Provenance(context)
    for (country, indicator), captured in groupby(context.ledger.annual(), key=itemgetter(0, 1)):
        name = names.get(indicator, "")
        told: dict[str, tuple[int, str | None, int, str]] = {}  # by year: vintage, value, capture, document
        for _, _, capture_id, document, values in captured:
            for year, value in values.items():
                vintage, before, *_ = told.get(year, (0, "", 0, ""))
                if (value or "") != (before or ""):
                    told[year] = (vintage + 1, value, capture_id, document)
                elif vintage:
                    told[year] = (vintage, value, *told[year][2:])
        listed = [year for year, (_, value, *_) in told.items() if value is not None]
        if not listed:
            continue
        shared = (
            f'"country":"{country}","country_iso3":"{alpha3_of()[country]}","indicator":"{indicator}",'
            f'"indicator_name":{_text(name)},"year":'
        )
        unit = _text(unit_of(name))
        entries = []
        for year in sorted(listed, reverse=True):
            vintage, value, capture_id, document = told[year]
            row = (
                f"{provenance.of(capture_id, document, f'{indicator} {country} {year}')}{shared}{year},"
                f'"value":{value or "null"},"unit":{unit},"available_at":null,"vintage":{vintage}}}'
            )
            entries.append(Entry(row.encode(), tag=int(year)))
        key = annual_key(country, indicator)
        context.columns[MACRO_ANNUAL].append(summary_of(key, entries))
        yield KeyRows(key, entries)


@dataset(f"{MACRO_ANNUAL}-list", None, pack=pack_pages)
def annual_lists(context: BuildContext) -> Iterator[KeyRows]:
    def filters(one: SeriesSummary) -> Iterable[str]:
        country, indicator = one.key.split("|")
        return annual_key("", ""), annual_key(country, ""), annual_key("", indicator)

    for key, pages in list_pages(context.columns[MACRO_ANNUAL], filters):
        yield KeyRows(key, pages)


@dataset(MACRO_SERIES, MacroSeriesRow, pack=pack_series)
def series(context: BuildContext) -> Iterator[KeyRows]:
    provenance = _Provenance(context)
    for name, told in groupby(series_reports(context.ledger), key=lambda pair: pair[0].series):
        columns = (("|".join(identity), _column(provenance, identity, reports)) for identity, reports in told)
        found = [(key, entries) for key, entries in columns if entries]
        # Almost every key is one series: it then leads to its rows without a list.
        aliases = (key_list(name),) if len(found) == 1 else ()
        for key, entries in found:
            context.columns[MACRO_SERIES].append(summary_of(key, entries))
            if days := block_days(entries):
                context.columns[f"{MACRO_SERIES}-days"].append((key, days, aliases))
            yield KeyRows(key, entries, aliases)


def _column(
    provenance: "_Provenance", identity: Series, reports: dict[str, list[SeriesReport]]
) -> list[Entry]:
    key, family, frequency, country = identity
    shared = (
        f'"series":"{key}","series_type":"{family}","frequency":"{frequency}",'
        f'"country":{_text(country)},"date":"'
    )
    return [
        entry
        for day in sorted(reports, reverse=True)
        for entry in _observations(provenance, shared, key, day, reports[day])
    ]


@dataset(f"{MACRO_SERIES}-days", None, pack=pack_pages)
def series_days(context: BuildContext) -> Iterator[KeyRows]:
    """Where in a long series a day is, so that what is newer need not be read."""
    for key, days, aliases in context.columns[f"{MACRO_SERIES}-days"]:
        yield KeyRows(key, [Entry(days)], aliases)


@dataset(f"{MACRO_SERIES}-list", None, pack=pack_pages)
def series_lists(context: BuildContext) -> Iterator[KeyRows]:
    def filters(one: SeriesSummary) -> Iterable[str]:
        key, family, frequency, country = one.key.split("|")
        # A series of no country is not on the list of any: the set makes that one list, not two.
        combinations = {series_list(*some) for some in product(("", country), ("", family), ("", frequency))}
        return key_list(key), *combinations

    for key, pages in list_pages(context.columns[MACRO_SERIES], filters):
        yield KeyRows(key, pages)


def _observations(
    provenance: "_Provenance", shared: str, key: str, day: str, reports: list[SeriesReport]
) -> Iterator[Entry]:
    """The vintages of one value, each while it is the latest."""
    tag = ordinal(day)
    for vintage in vintages(reports, tag):
        report = vintage.report
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                location = _text(report.location)[1:-1] if report.location else f"{key} {day}"
                row = (
                    f"{provenance.of(report.capture_id, report.document, location)}{shared}{day}"
                    f'","value":{report.figure or "null"},"unit":{_text(report.unit)},'
                    f'"available_at":"{iso_day(report.available)}","vintage":{vintage.number}}}'
                )
                yield Entry(row.encode(), first, until, tag=tag)


class _Provenance:
    """The beginning of every row: where it was captured from, and when."""

    def __init__(self, context: BuildContext) -> None:
        self._world = context
        self._around: dict[tuple[int, str], tuple[str, str]] = {}

    def of(self, capture_id: int, document: str, location: str) -> str:
        """With a location that can stand in JSON as it is."""
        around = self._around.get((capture_id, document))
        if around is None:
            capture = self._world.captures[capture_id]
            around = self._around[capture_id, document] = (
                f'{{"source_ref":{_text(capture.ref("", document))[:-1]}',
                f'","license_class":"{capture.license_class}","observed_at":"{capture.observed_at}",',
            )
        return f"{around[0]}{location}{around[1]}"


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    """As JSON; what is not given is null."""
    return msgspec.json.encode(text).decode() if text else "null"
