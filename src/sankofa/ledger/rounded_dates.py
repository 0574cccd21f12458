"""Facts whose source rounds the dates of periods to month ends, and the same facts with their real dates.

The SEC publishes one filing twice: as companyfacts, with the dates of the filing, and in its Financial
Statement Data Sets, with a period given as a month's end and a number of quarters. Where both are held it is
one fact, the one with the real dates. Nothing is deleted: the ledger keeps both rows, whichever came first.

See contract: PER-7.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

from sankofa.ledger.reader import CaptureInfo, FactColumns
from sankofa.model.days import ordinal
from sankofa.model.financial_years import ROUNDED_WITHIN, YEAR

Held = list[tuple[str, FactColumns]]
"""The facts of each subject of an issuer."""
_Reported = tuple[str, str, str, str, int]
"""Document, concept, unit, value, and the length of the period in quarters."""


def real_and_rounded(held: Held, captures: Mapping[int, CaptureInfo]) -> tuple[Held, Held]:
    """The facts with real dates; and those with rounded ones that no fact with real dates repeats."""
    numbers = {number for _, facts in held for number in set(facts.capture_id)}
    rounding = {number for number in numbers if captures[number].rounds_dates}
    if not rounding:
        return held, []
    if rounding == numbers:
        return [], held
    flags = [[number in rounding for number in facts.capture_id] for _, facts in held]
    real = [
        (subject, _only(facts, [not flag for flag in own]))
        for (subject, facts), own in zip(held, flags, strict=True)
    ]
    rounded = [(subject, _only(facts, own)) for (subject, facts), own in zip(held, flags, strict=True)]
    documents = {document for _, facts in rounded for document in facts.document}
    ends: defaultdict[_Reported, set[int]] = defaultdict(set)
    for _, facts in real:
        for reported, end in _reported(_only(facts, [document in documents for document in facts.document])):
            ends[reported].add(end)
    for number, (subject, facts) in enumerate(rounded):
        alone = [not _is_close(ends.get(reported), end) for reported, end in _reported(facts)]
        rounded[number] = subject, _only(facts, alone)
    return real, rounded


def _only(facts: FactColumns, wanted: Sequence[bool]) -> FactColumns:
    columns: list[list[Any]] = [list(compress(column, wanted)) for column in facts]
    return FactColumns(*columns)


def _reported(facts: FactColumns) -> Iterator[tuple[_Reported, int]]:
    """What tells a figure of a filing from its others, and the day on which its period ends."""
    columns = (facts.document, facts.concept, facts.unit, facts.value, facts.period_start, facts.period_end)
    for document, concept, unit, value, start, end in zip(*columns, strict=True):
        last = ordinal(end)
        quarters = round((last - ordinal(start) + 1) / (YEAR / 4)) if start else 0
        yield (document, concept, unit, value, quarters), last


def _is_close(ends: set[int] | None, day: int) -> bool:
    """Whether a period that ends on one of the days can be what was rounded to end on this one."""
    if not ends:
        return False
    return any(day + step in ends for step in range(-ROUNDED_WITHIN, ROUNDED_WITHIN + 1))
