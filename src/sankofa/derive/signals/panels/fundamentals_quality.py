"""Quality of earnings: accruals, conversion into cash, and how steady the margin is."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Annotated, Final, Literal, NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import Computed, MetricYears, stretches
from sankofa.derive.metrics.full_years import FullYear
from sankofa.derive.metrics.lines import Figure
from sankofa.derive.rounding import rounded_root
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import issuer_panel, year_fields
from sankofa.model.rows import doc

_MARGIN: Final = "net_margin"
_LOOKED_AT: Final = 5
_NEEDED: Final = 3


class FundamentalsQualityRow(PanelRow, frozen=True, kw_only=True):
    """The quality of one issuer's earnings in one full year."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null if unknown.")]
    country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    period_end: Annotated[date, doc("Last day of the full year.")]
    accruals_ratio: Annotated[Decimal | None, doc("(profit - operating cash flow) / average assets.")]
    cash_conversion: Annotated[Decimal | None, doc("Operating cash flow / EBITDA.")]
    margin_volatility: Annotated[
        Decimal | None, doc("Standard deviation of net margin; null with fewer than three.")
    ]
    margin_years: Annotated[int, doc("Number of net margins of the last five years used.", ge=0)]
    available_at: Annotated[date, doc("Day on which the last input became public.")]
    methodology_ref: Annotated[
        Literal["signals-v1/fundamentals-quality"],
        doc("Name of the method; /methodology/ explains it."),
    ] = "signals-v1/fundamentals-quality"


class _Known(NamedTuple):
    """The metrics of a year, and the net margins of the last years that have one, as known on a day."""

    accruals: Computed
    conversion: Computed
    margin: Computed
    margins: tuple[Computed, ...]

    def same_as(self, other: "_Known") -> bool:
        mine, others = (*self[:3], *self.margins), (*other[:3], *other.margins)
        return len(mine) == len(others) and all(a.same_as(b) for a, b in zip(mine, others, strict=True))


@issuer_panel(
    "fundamentals-quality", access="licensed", row=FundamentalsQualityRow, order=("service_id", "-period_end")
)
def fundamentals_quality(issuer: Issuer) -> Iterator[Observation]:
    """How much of an issuer's profit is cash, and how steady its margin is, in every full year.

    - accruals_ratio and cash_conversion: by their formulas at `/methodology/metrics-v1/` and the slug
    - margin_volatility = the population standard deviation of net_margin over the five full years up to this
      one, of those that have it: sqrt(sum of (margin - mean)^2 / number of margins). Years follow each other
      without a gap; where one is missing, those before it do not count. Null with fewer than three margins,
      and where this year has none. The margins enter it unrounded.

    Computed from the figures as they stand today, with `basis=as_known` from those known that day;
    `available_at` says when the last of them became public. A year without any of the three has no row.
    Ordered by service_id, then period_end descending.
    """
    known = MetricYears(issuer.years)
    for year in reversed(issuer.years.published):
        days = known.days_with_earlier(year)
        for first, until, now in stretches(days, partial(_known, known, year), _Known.same_as):
            yield from _observed(issuer, year, now, first, until)


def _known(known: MetricYears, year: FullYear, day: int) -> _Known:
    last = islice(known.back(year, day), _LOOKED_AT)
    margins = [known.computed(earlier, _MARGIN, day) for earlier in last]
    return _Known(
        known.computed(year, "accruals_ratio", day),
        known.computed(year, "cash_conversion", day),
        known.computed(year, _MARGIN, day),
        tuple(margin for margin in margins if margin.value is not None),
    )


def _observed(issuer: Issuer, year: FullYear, now: _Known, first: int, until: int) -> Iterator[Observation]:
    volatility = None
    if len(now.margins) >= _NEEDED and now.margin.value is not None:
        volatility = _deviation([_exact(margin) for margin in now.margins])
    used = [one for one in (now.accruals, now.conversion) if one.value is not None]
    used += now.margins if volatility is not None else []
    figures: list[Figure] = [figure for one in used for figure in one.figures]
    if not figures:
        return
    fields, sources = year_fields(issuer, year, figures)
    row = FundamentalsQualityRow(
        **fields,
        accruals_ratio=now.accruals.value,
        cash_conversion=now.conversion.value,
        margin_volatility=volatility,
        margin_years=len(now.margins),
    )
    yield Observation(row, year.end, first, sources, until)


def _exact(margin: Computed) -> Fraction:
    figures = dict(zip(margin.names, margin.figures, strict=True))
    return Fraction(figures["profit"].value) / Fraction(figures["revenue"].value)


def _deviation(margins: list[Fraction]) -> Decimal:
    mean = sum(margins, Fraction()) / len(margins)
    return rounded_root(sum(((margin - mean) ** 2 for margin in margins), Fraction()) / len(margins))
