"""Vintages of annual values: what each captured table said of a year, and when it said something else.

A table has no day of release, so a vintage is numbered by its capture. The same value again adds nothing,
another one is the next vintage, and so is an empty cell after a value. A year that was always empty has none.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from sankofa.ledger.reader import LedgerReader
from sankofa.model.observations import unit_of


class Indicator(NamedTuple):
    """One indicator in one country."""

    country: str
    indicator: str
    name: str
    """Empty where neither metadata nor a table names it."""
    unit: str
    """As metadata have it, else what the name ends with; empty where neither says."""


class AnnualVintage(NamedTuple):
    """One value of one year, as the first capture had it that did."""

    value: str
    """Its digits; empty where the cell is."""
    capture_id: int
    document: str


class AnnualYear(msgspec.Struct):
    """Every vintage of one year, oldest first."""

    vintages: list[AnnualVintage]
    listed: bool
    """Whether the table captured last has the year."""


def annual_vintages(ledger: LedgerReader) -> Iterator[tuple[Indicator, dict[str, AnnualYear]]]:
    """Every indicator of every country, by country and indicator, with its years."""
    names = ledger.indicator_names()
    described = {info.code: info for _, info in ledger.series_info()}
    for (country, indicator), captured in groupby(ledger.annual(), key=itemgetter(0, 1)):
        years: dict[str, AnnualYear] = {}
        for _, _, capture_id, document, values in captured:
            for year, value in values.items():
                known = years.get(year)
                if known is None:
                    if value:
                        years[year] = AnnualYear([AnnualVintage(value, capture_id, document)], True)
                    continue
                known.listed = value is not None
                if (value or "") != known.vintages[-1].value:
                    known.vintages.append(AnnualVintage(value or "", capture_id, document))
        info = described.get(indicator)
        name = (info.name if info else "") or names.get(indicator, "")
        unit = (info.unit if info else "") or unit_of(name)
        yield Indicator(country, indicator, name, unit), years
