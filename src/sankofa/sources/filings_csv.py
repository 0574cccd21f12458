"""Our own template for figures taken from documents: one row per figure."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from sankofa.model.countries import currency
from sankofa.model.days import day_in
from sankofa.model.figures import figure_in
from sankofa.model.line_items import snake_case
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.records import Fact, Record
from sankofa.model.text import fit
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.template import ISSUER_COLUMNS, Template, subject

_TEMPLATE: Final = Template(
    "filings-csv",
    required=("entity", "line_item", "value", "currency", "period_end", "document"),
    optional=("period_start", "period_type", "available_at", "location", "confidence", *ISSUER_COLUMNS),
)
_LINE_ITEM = re.compile(r"[a-z][a-z0-9_]{0,99}\Z")
_DECLARED: Final = {name.lower(): name for name in PERIOD_TYPES}


@adapter("filings-csv")
def read(file: InputFile) -> Iterator[Record]:
    """Figures taken from documents, in our own CSV template.

    An empty value says that the document withdraws the figure. `legal_name` and `country` are the entity's.
    """
    return _TEMPLATE.read(file, _fact)


def _fact(row: dict[str, str], _: str) -> Fact:
    """The fact of a row, located in its own document. Raises ValueError naming the column at fault."""
    line_item = snake_case(row["line_item"])
    if not _LINE_ITEM.match(line_item) or ":" in row["line_item"]:
        raise ValueError("line_item: expected a name in snake_case")
    end, start = day_in("period_end", row["period_end"]), row.get("period_start", "")
    if start and day_in("period_start", start) > end:
        raise ValueError("period_start is after period_end")
    available_at = row.get("available_at", "")
    unit, document, location = row["currency"], row["document"], row.get("location", "")
    if unit and not currency(unit):
        raise ValueError("currency: expected an ISO 4217 code")
    if not document:
        raise ValueError("document is missing")
    if not (fit(document) and fit(location)):
        raise ValueError("document, location: a control character")
    declared = row.get("period_type", "")
    if declared and declared.lower() not in _DECLARED:
        raise ValueError(f"period_type: expected one of {', '.join(PERIOD_TYPES)}")
    return Fact(
        subject=subject(row["entity"]),
        concept=line_item,
        unit=currency(unit) or "",
        period_start=start,
        period_end=end,
        available_at=day_in("available_at", available_at) if available_at else "",
        document=document,
        value=figure_in("value", row["value"]),
        location=location,
        declared_period=_DECLARED.get(declared.lower(), ""),
        confidence=_share("confidence", row.get("confidence", "")),
    )


def _share(column: str, text: str) -> str:
    number = figure_in(column, text)
    if number and not 0 <= Decimal(number) <= 1:
        raise ValueError(f"{column}: expected a number from 0 to 1")
    return number
