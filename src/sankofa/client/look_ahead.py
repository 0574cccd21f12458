"""Checks that a frame has nothing that was not known on a day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, cast

from sankofa.client.answers import Answer
from sankofa.client.errors import LookAhead
from sankofa.client.exchange import day_of

KNOWN_SINCE: Final = ("available_at", "closed_at", "known_at", "release_date")
"""The column that says since when a row is known: the first of these that a frame has."""
_ALSO_DATED: Final = ("superseded_at",)
"""Columns whose day, where there is one, became known on that day."""


def look_ahead_check(frame: Any, as_of: date | str, *, allow_unknown: bool = False) -> None:
    """Raises LookAhead where a row was not known on the day, with the rows in `late` and `unknown`.

    Takes a frame of pandas or Polars, an Answer, or a list of rows. A row that does not say since when it is
    known is no pass: it is in `unknown`, and refused unless `allow_unknown`. When a row was captured
    (`observed_at`) says nothing of when it was public, and is not looked at.
    """
    day = day_of(as_of) if isinstance(as_of, date) else date.fromisoformat(as_of)
    rows = _rows(frame)
    columns = _names(rows)
    known = next((name for name in KNOWN_SINCE if name in columns), None)
    if known is None and len(rows):
        raise LookAhead(
            f"no column says since when a row is known (looked for {', '.join(KNOWN_SINCE)})", rows[:0], rows
        )
    since = [None if known is None else _day(value) for value in _values(rows, known)]
    dated_columns = [
        [_day(value) for value in _values(rows, name)] for name in _ALSO_DATED if name in columns
    ]
    late = [
        index
        for index, first in enumerate(since)
        if (first is not None and first > day)
        or any((other := days[index]) is not None and other > day for days in dated_columns)
    ]
    unknown = [index for index, first in enumerate(since) if first is None]
    if late or (unknown and not allow_unknown):
        raise LookAhead(
            f"as of {day}: {len(late)} of {len(since)} rows were not known yet,"
            f" {len(unknown)} do not say since when they are known",
            _select(rows, late),
            _select(rows, unknown),
        )


def _rows(frame: Any) -> Any:
    """The rows to look at. A wide statement says of each of its cells since when it is known."""
    rows = frame.rows if isinstance(frame, Answer) else frame
    if hasattr(frame, "columns"):
        by_item = getattr(frame, "attrs", {}).get("cells")
        shown = {str(column)[:10] for column in frame.columns}
    else:
        is_wide = len(rows) and isinstance(rows[0].get("cells"), dict)
        by_item = {row["line_item"]: row["cells"] for row in rows} if is_wide else None
        shown = None
    if by_item is None:
        return rows
    return [
        {"line_item": item, "period_end": end, **cell}
        for item, cells in by_item.items()
        for end, cell in cells.items()
        if shown is None or (end in shown and item in frame.index)
    ]


def _names(rows: Any) -> Sequence[str]:
    if hasattr(rows, "columns"):
        return list(rows.columns)
    return list(rows[0]) if rows else []


def _values(rows: Any, name: str | None) -> list[Any]:
    if name is None:
        return []
    if not hasattr(rows, "columns"):
        return [row[name] for row in rows]
    column = rows[name]
    return list(column.to_list())


def _select(rows: Any, indexes: list[int]) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[indexes]
    return rows[indexes] if hasattr(rows, "columns") else [rows[index] for index in indexes]


def _day(value: Any) -> date | None:
    """A day of whatever type; None for what is missing: NaT, NaN and NA of pandas too."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, str):
        return date.fromisoformat(value[:10])
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).date()
    return cast("date", value)
