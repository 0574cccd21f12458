"""AF-MACRO: every vintage of annual indicators and of series. The API serves the latest alone."""

from collections.abc import Iterator
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sankofa.derive.series import Series, SeriesReport, series_reports
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.tables import Table, table
from sankofa.model.countries import alpha3_of
from sankofa.model.days import ordinal
from sankofa.model.facts import MACRO
from sankofa.model.observations import unit_of
from sankofa.model.rows import MacroAnnualRow, MacroSeriesRow
from sankofa.model.vintages import vintages

ANNUAL = "af-macro-annual"
SERIES = "af-macro-series"


class AnnualVintage(MacroAnnualRow, frozen=True, kw_only=True):
    """One vintage of one annual value. `observed_at` is when it was captured."""

    superseded_at: Annotated[
        str | None,
        Meta(
            description="When another value was captured; null for the one in force.",
            extra_json_schema={"format": "date-time"},
        ),
    ]


class SeriesVintage(MacroSeriesRow, frozen=True, kw_only=True):
    """One vintage of one value of a series."""

    superseded_at: Annotated[
        date | None, Meta(description="The day the next vintage became public; null for the latest.")
    ]


def _annual(context: BuildContext) -> Iterator[AnnualVintage]:
    names = context.ledger.indicator_names()
    for (country, indicator), captured in groupby(context.ledger.annual(), key=itemgetter(0, 1)):
        told: dict[str, list[tuple[str, int, str]]] = {}  # by year: value, capture and document of each
        for _, _, capture_id, document, values in captured:
            for year, value in values.items():
                before = told.get(year)
                if (value or "") != (before[-1][0] if before else ""):
                    told.setdefault(year, []).append((value or "", capture_id, document))
        name = names.get(indicator, "")
        for year in sorted(told, reverse=True):
            following: str | None = None
            rows = []
            for number in range(len(told[year]), 0, -1):
                value, capture_id, document = told[year][number - 1]
                capture = context.captures[capture_id]
                rows.append(
                    AnnualVintage(
                        country=country,
                        country_iso3=alpha3_of()[country],
                        indicator=indicator,
                        indicator_name=name or None,
                        year=int(year),
                        value=_figure(value),
                        unit=unit_of(name) or None,
                        available_at=None,
                        vintage=number,
                        superseded_at=following,
                        source_ref=capture.ref(f"{indicator} {country} {year}", document),
                        license_class=capture.license_class,
                        observed_at=capture.observed_at,
                    )
                )
                following = capture.observed_at
            yield from reversed(rows)


def _series(context: BuildContext) -> Iterator[SeriesVintage]:
    for identity, reports in series_reports(context.ledger):
        for day in sorted(reports, reverse=True):
            yield from _vintages(context, identity, day, reports[day])


def _vintages(
    context: BuildContext, identity: Series, day: str, reports: list[SeriesReport]
) -> Iterator[SeriesVintage]:
    key, family, frequency, country = identity
    for vintage in vintages(reports, ordinal(day)):
        report, successor = vintage.report, vintage.successor
        capture = context.captures[report.capture_id]
        yield SeriesVintage(
            series=key,
            series_type=family,
            frequency=frequency,
            country=country or None,
            date=date.fromisoformat(day),
            value=_figure(report.figure),
            unit=report.unit or None,
            available_at=date.fromordinal(report.available),
            vintage=vintage.number,
            superseded_at=date.fromordinal(successor.available) if successor else None,
            source_ref=capture.ref(report.location or f"{key} {day}", report.document),
            license_class=capture.license_class,
            observed_at=capture.observed_at,
        )


def _figure(text: str) -> Any:
    """A value in the digits it is served with."""
    return msgspec.Raw(text.encode()) if text else None


table(
    Table(
        ANNUAL,
        AnnualVintage,
        MACRO,
        "Annual indicators by country, every vintage captured. Bulk only; `/v1/macro` serves the last.",
        make=_annual,
        sorted_by=("country", "indicator", "-year"),
    )
)
table(
    Table(
        SERIES,
        SeriesVintage,
        MACRO,
        "Dated series, every vintage. Bulk only; `/v1/macro` serves the latest known on a day.",
        make=_series,
        sorted_by=("series",),
    )
)
