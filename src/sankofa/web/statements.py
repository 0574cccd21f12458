"""A statement as a table: line items from top to bottom, periods from left to right, no digit lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from sankofa.web.visit import Row

_SCALES: Final = (1_000_000, 1_000)
_MOST_PERIODS: Final = {"year": 6, "half": 6, "quarter": 8}
_PER_SHARE: Final = ("eps_basic", "eps_diluted", "headline_eps")


class StatementTable(msgspec.Struct, frozen=True):
    """The figures of one statement, one per line item and period."""

    periods: list[tuple[str, str]]
    """(period_end, period_type), the newest first."""
    lines: list[tuple[str, list[Row | None]]]
    currency: str | None
    scale: int
    """Money is shown divided by this; it divides every figure without a rest."""
    figures: int
    restated: int


def arrange(
    rows: Iterable[Row], order: Sequence[str], cadence: str, *, truncated: bool = False
) -> StatementTable:
    """Put the rows of an answer into a table; where several tell the same, the currency used most counts.

    Of a `truncated` answer the oldest period is left out where less than half of it was given.
    """
    rows = list(rows)
    currencies = Counter(row["currency_reported"] for row in rows if row["currency_reported"])
    currency = currencies.most_common(1)[0][0] if currencies else None
    cells: dict[tuple[str, tuple[str, str]], Row] = {}
    for row in rows:
        cell = row["line_item"], (row["period_end"], row["period_type"])
        if cell not in cells or _weight(row, currency) > _weight(cells[cell], currency):
            cells[cell] = row
    periods = sorted({period for _, period in cells}, reverse=True)[: _MOST_PERIODS[cadence]]
    given = Counter(period for _, period in cells)
    if truncated and len(periods) > 1 and 2 * given[periods[-1]] < given[periods[0]]:
        periods.pop()
    lines = []
    for item in order:
        line = [cells.get((item, period)) for period in periods]
        if any(line):
            lines.append((item, line))
    shown = [row for _, line in lines for row in line if row]
    return StatementTable(
        periods, lines, currency, _scale(shown), len(shown), sum(bool(row["restated"]) for row in shown)
    )


def _weight(row: Row, currency: str | None) -> tuple[bool, str]:
    return row["currency_reported"] == currency, row["available_at"]


def is_money(row: Row) -> bool:
    return row["currency_reported"] is not None and row["line_item"] not in _PER_SHARE


def _scale(rows: Iterable[Row]) -> int:
    """The largest scale at which no figure loses a digit."""
    values = [row["value_reported"] for row in rows if is_money(row) and row["value_reported"] is not None]
    for scale in _SCALES:
        if values and all(value % scale == 0 for value in values):
            return scale
    return 1


def scaled(row: Row, scale: int) -> Decimal | int | None:
    value = row["value_reported"]
    if value is None or not is_money(row):
        return value  # type: ignore[no-any-return]
    return value // scale if isinstance(value, int) else value / scale
