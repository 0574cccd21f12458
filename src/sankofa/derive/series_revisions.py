"""How the values of a series were revised after their first release: size, bias and time to final."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from itertools import groupby
from statistics import median
from typing import NamedTuple

from sankofa.derive.rounding import quotient


class SeriesVintage(NamedTuple):
    """One vintage of one value."""

    day: date
    """The date of the value."""
    available_at: date
    vintage: int
    value: Decimal | None


class RevisionSummary(NamedTuple):
    """The summary of the vintages of a series; the means are None where no value was revised."""

    values: int
    revised: int
    revisions: int
    mean_absolute_revision: Decimal | None
    largest_absolute_revision: Decimal | None
    mean_revision: Decimal | None
    median_days_to_final: Decimal | None
    largest_days_to_final: int | None


def revision_summary(vintages: Iterable[SeriesVintage]) -> RevisionSummary:
    """Summarise the vintages of a series, in any order.

    A relative revision is (latest - first) / |first|, rounded to 10 significant digits; a value whose first
    figure is 0, or whose latest is withdrawn, has none.
    """
    relative: list[Decimal] = []
    days: list[int] = []
    values = revisions = 0
    ordered = sorted(vintages, key=lambda one: (one.day, one.vintage))
    for _, group in groupby(ordered, key=lambda one: one.day):
        first, *later = group
        values += 1
        revisions += len(later)
        if not later:
            continue
        latest = later[-1]
        days.append((latest.available_at - first.available_at).days)
        if first.value and latest.value is not None:
            relative.append(quotient(latest.value - first.value, abs(first.value)))
    absolute = [abs(one) for one in relative]
    return RevisionSummary(
        values,
        len(days),
        revisions,
        _mean(absolute),
        max(absolute, default=None),
        _mean(relative),
        Decimal(str(median(days))) if days else None,
        max(days, default=None),
    )


def _mean(numbers: list[Decimal]) -> Decimal | None:
    return quotient(sum(numbers, Decimal(0)), Decimal(len(numbers))) if numbers else None
