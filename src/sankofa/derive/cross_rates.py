"""Cross rates: computes a rate that nobody publishes from two published rates.

Only daily rates are divided. A weekly or monthly rate is an average or the last rate, its source does not say
which, and a quotient of averages is not the average of quotients.

`revision_summary` says how the values of a series were revised after their first release: size, bias and time
to final.
"""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from functools import reduce
from itertools import groupby
from statistics import median
from typing import Final, NamedTuple

from sankofa.derive.metrics.contract import EXACT
from sankofa.model.catalogue_rows import DERIVED, METHODOLOGY, CrossRateInput, CrossRateRow
from sankofa.model.figures import SIGNIFICANT_DIGITS, quotient
from sankofa.model.provenance import strictest
from sankofa.model.text import page_text

FAMILY: Final = "fx"
FREQUENCY: Final = "daily"
_ONE: Final = Decimal(1)


def cross_rate(base: Decimal, quote: Decimal, *, base_inverted: bool, quote_inverted: bool) -> Decimal:
    """Units of the quote currency for one of the base currency. Both rates are above zero.

    Each rate is in units of its currency per unit of the third currency or, inverted, the other way round.
    """
    over = EXACT.multiply(_ONE if quote_inverted else quote, base if base_inverted else _ONE)
    under = EXACT.multiply(quote if quote_inverted else _ONE, _ONE if base_inverted else base)
    return quotient(over, under)


def cross_rate_row(
    pair: tuple[str, str, str],
    day: date,
    inputs: tuple[CrossRateInput, CrossRateInput],
    value: Decimal,
) -> CrossRateRow:
    """The row of a value: base, quote and the currency between them, and the inputs in that order."""
    base, quote, via = pair
    one, other = inputs
    return CrossRateRow(
        base=base,
        quote=quote,
        via=via,
        date=day,
        value=value,
        unit=f"{quote} per {base}",
        available_at=max(one.available_at, other.available_at),
        method=DERIVED,
        methodology_ref=METHODOLOGY,
        inputs=[one, other],
        source_ref=one.source_ref,
        license_class=strictest((one.license_class, other.license_class)),
        observed_at=max(one.observed_at, other.observed_at),
    )


def methodology() -> str:
    """The page that `methodology_ref` names, as Markdown."""
    return page_text(__package__, "cross_rates").format(name=METHODOLOGY, digits=SIGNIFICANT_DIGITS)


class SeriesVintage(NamedTuple):
    day: date
    """The date of the value."""
    available_at: date
    vintage: int
    value: Decimal | None


class RevisionSummary(NamedTuple):
    """The summary of the vintages of a series; the means are None if no value was revised."""

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

    A relative revision is (latest - first) / |first|; a value whose first figure is 0, or whose latest is
    withdrawn, has none. They are rounded after the mean: revisions of both signs cancel in it.
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
            relative.append(EXACT.divide(EXACT.subtract(latest.value, first.value), abs(first.value)))
    absolute = [abs(one) for one in relative]
    return RevisionSummary(
        values,
        len(days),
        revisions,
        _mean(absolute),
        quotient(max(absolute), _ONE) if absolute else None,
        _mean(relative),
        Decimal(str(median(days))) if days else None,
        max(days, default=None),
    )


def _mean(numbers: list[Decimal]) -> Decimal | None:
    return quotient(reduce(EXACT.add, numbers), Decimal(len(numbers))) if numbers else None
