"""What "knowable" means, written from the rules alone: replay what was public by the day, and look.

Nothing of the product is used here. Where the product computes intervals once, this forgets every
report after the day asked about and tells the story from the beginning, for each day again.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

MODES = ("latest", "as_reported", "all")


class Told(NamedTuple):
    """One figure in one document, as a row of a file says it."""

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


class Seen(NamedTuple):
    """One row that must be served, as far as the rules fix it."""

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


def knowable(told: Iterable[Told], day: date, mode: str) -> set[Seen]:
    """Every row that `as_of` this day shows in a mode."""
    stories: defaultdict[tuple[object, ...], list[tuple[date, str, Decimal | None]]] = defaultdict(list)
    for report in told:
        if report.confidence is not None and report.confidence < Decimal("0.85"):
            continue
        public = report.available or _first_capture(told, report)
        if public <= day and report.end <= day:
            identity = (report.concept, report.unit, report.start, report.end)
            stories[identity].append((public, report.document, report.value))
    return {row for identity, story in stories.items() for row in _shown(identity, story, mode)}


def _first_capture(told: Iterable[Told], undated: Told) -> date:
    """A document without a date is known from the day it was first captured; capturing it again moves nothing."""
    return min(
        other.captured
        for other in told
        if other[:6] == undated[:6]
        and other.available is None
        and (other.confidence is None or other.confidence >= Decimal("0.85"))
    )


def _shown(
    identity: tuple[object, ...], story: list[tuple[date, str, Decimal | None]], mode: str
) -> Iterable[Seen]:
    figures: list[tuple[date, str, Decimal | None]] = []
    for report in sorted(story, key=lambda r: (r[0], r[1], Decimal("-Infinity") if r[2] is None else r[2])):
        nothing_yet = not figures and report[2] is None
        if not nothing_yet and (not figures or figures[-1][2] != report[2]):
            figures.append(report)
    rows = []
    for number, (public, document, value) in enumerate(figures, 1):
        later = figures[number] if number < len(figures) else None
        rows.append(
            Seen(
                *identity,  # type: ignore[arg-type]
                vintage=number,
                value=value,
                available=public,
                document=document,
                restated=number > 1,
                superseded_at=later[0] if later else None,
                superseded_by=later[1] if later else None,
            )
        )
    return {"latest": rows[-1:], "as_reported": rows[:1], "all": rows}[mode]
