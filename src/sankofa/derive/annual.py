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
from sankofa.model.figures import read_unit, unit_of_indicator


class Indicator(NamedTuple):
    """One indicator in one country."""

    country: str
    indicator: str
    name: str
    """Empty where neither metadata nor a table names it."""
    unit: str
    """As metadata have it, else by the name, else by the code; empty where none says."""
    note: str
    """Remarks about the figures, such as `modeled ILO estimate`; empty where there are none."""


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


def annual_vintages(
    ledger: LedgerReader, *, by_indicator: bool = False
) -> Iterator[tuple[Indicator, dict[str, AnnualYear]]]:
    """Every indicator of every country with its years, by country and indicator or the other way round."""
    names = ledger.indicator_names()
    described = {info.code: info for _, info in ledger.series_info()}
    for (country, indicator), captured in groupby(
        ledger.annual(by_indicator=by_indicator), key=itemgetter(0, 1)
    ):
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
        unit, note = unit_of_indicator(name, indicator)
        if info and info.unit:
            unit, remark = read_unit(info.unit)
            note = remark or note
        yield Indicator(country, indicator, name, unit, note), years
