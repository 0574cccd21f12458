""" "Knowable", written from the rules alone: a replay of everything public by the day.

Uses no product code. The product computes intervals once; this code drops every report after the day and
starts from scratch for each day.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

MODES = ("latest", "as_reported", "all")


Identity = tuple[str, str, date | None, date]
"""Concept, unit, start and end of the period: what makes two figures the same fact."""


class FiledFigure(NamedTuple):
    """One figure in one document, as a row of a file."""

    concept: str
    unit: str
    start: date | None
    end: date
    document: str
    value: Decimal | None
    """None: the document withdraws the figure."""
    available: date | None
    """None: the source gives no evidence of a day."""
    captured: date
    confidence: Decimal | None = None


class ExpectedRow(NamedTuple):
    """One row that must be served, as far as the rules determine it."""

    concept: str
    unit: str
    start: date | None
    end: date
    vintage: int
    value: Decimal | None
    available: date
    document: str
    restated: bool
    superseded_at: date | None
    superseded_by: str | None


def knowable(filed: Iterable[FiledFigure], day: date, mode: str) -> set[ExpectedRow]:
    """Every row that `as_of` this day shows in a mode."""
    stories: defaultdict[Identity, list[tuple[date, str, Decimal | None]]] = defaultdict(list)
    for report in filed:
        if report.confidence is not None and report.confidence < Decimal("0.85"):
            continue
        public = report.available or _first_capture(filed, report)
        if public <= day and report.end <= day:
            identity = (report.concept, report.unit, report.start, report.end)
            stories[identity].append((public, report.document, report.value))
    return {row for identity, story in stories.items() for row in _rows_in_mode(identity, story, mode)}


def _first_capture(filed: Iterable[FiledFigure], undated: FiledFigure) -> date:
    """A document without a date is known from its first capture: later captures do not change that."""
    return min(
        other.captured
        for other in filed
        if other[:6] == undated[:6]
        and other.available is None
        and (other.confidence is None or other.confidence >= Decimal("0.85"))
    )


def _rows_in_mode(
    identity: Identity, story: list[tuple[date, str, Decimal | None]], mode: str
) -> Iterable[ExpectedRow]:
    figures: list[tuple[date, str, Decimal | None]] = []
    for report in sorted(story, key=lambda r: (r[0], r[1], Decimal("-Infinity") if r[2] is None else r[2])):
        nothing_yet = not figures and report[2] is None
        if not nothing_yet and (not figures or figures[-1][2] != report[2]):
            figures.append(report)
    rows = []
    for number, (public, document, value) in enumerate(figures, 1):
        later = figures[number] if number < len(figures) else None
        rows.append(
            ExpectedRow(
                *identity,
                number,
                value,
                public,
                document,
                number > 1,
                later[0] if later else None,
                later[1] if later else None,
            )
        )
    return {"latest": rows[-1:], "as_reported": rows[:1], "all": rows}[mode]


def _document(source_ref: str) -> str:
    """Without the source, the mark of a later capture, and the location in it."""
    return source_ref.partition(":")[2].partition("#")[0].partition("@")[0]


def answered_rows(rows: Sequence[dict[str, Any]]) -> set[ExpectedRow]:
    """The rows of an answer in the same form. Their figures must have been parsed exactly."""
    documents = {row["record_ref"]: _document(row["source_ref"]) for row in rows}
    assert len(documents) == len(rows), "a record_ref names one vintage"
    return {
        ExpectedRow(
            row["concept"] or row["line_item"],
            row["unit"] or "",
            row["period_start"] and date.fromisoformat(row["period_start"]),
            date.fromisoformat(row["period_end"]),
            int(row["vintage"]),
            row["value_reported"],
            date.fromisoformat(row["available_at"]),
            _document(row["source_ref"]),
            row["restated"],
            row["superseded_at"] and date.fromisoformat(row["superseded_at"]),
            row["superseding_record_ref"] and documents.get(row["superseding_record_ref"], _ELSEWHERE),
        )
        for row in rows
    }


_ELSEWHERE = "a vintage that is not in the answer"


def expected_in(mode: str, rows: set[ExpectedRow]) -> set[ExpectedRow]:
    """Outside `all`, a successor is named by a record_ref that the answer itself does not explain."""
    if mode == "all":
        return rows
    return {row._replace(superseded_by=row.superseded_by and _ELSEWHERE) for row in rows}
