"""Quality of earnings: accruals, conversion into cash, and how steady the margin is."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, Literal, NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.derive import Inputs, current_values
from sankofa.derive.metrics.full_years import FullYear, IssuerYearList
from sankofa.derive.metrics.lines import Figure
from sankofa.derive.rounding import rounded_root
from sankofa.derive.signals.contract import Observation, PanelRow
from sankofa.derive.signals.issuers import issuer_panel, year_fields, years_back
from sankofa.model.rows import doc

_MARGIN: Final = "net_margin"
_METRICS: Final = ("accruals_ratio", "cash_conversion", _MARGIN)
_LOOKED_AT: Final = 5
_NEEDED: Final = 3


class FundamentalsQualityRow(PanelRow, frozen=True, kw_only=True):
    """The quality of one issuer's earnings in one full year."""

    service_id: Annotated[str, doc("Organisation identifier.")]
    legal_name: Annotated[str | None, doc("Legal name as registered; null where unknown.")]
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


class _Value(NamedTuple):
    value: Decimal
    inputs: Inputs
    since: int


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

    Computed from the figures as they stand today; `available_at` says when the last of them became public. A
    year without any of the three has no row. Ordered by service_id, then period_end descending.
    """
    years = issuer.years
    values: dict[int, dict[str, _Value]] = {}
    for year, metric, value, inputs, since in current_values(years, _METRICS):
        values.setdefault(year.end, {})[metric.slug] = _Value(value, inputs, since)
    for year in reversed(years.published):
        yield from _observed(issuer, years, year, values)


def _observed(
    issuer: Issuer, years: IssuerYearList, year: FullYear, values: dict[int, dict[str, _Value]]
) -> Iterator[Observation]:
    this_year = values.get(year.end, {})
    margins = []
    for _, earlier in zip(range(_LOOKED_AT), years_back(years, year), strict=False):
        if _MARGIN in (of_year := values.get(earlier.end, {})):
            margins.append(of_year[_MARGIN])
    volatility = None
    if len(margins) >= _NEEDED and _MARGIN in this_year:
        volatility = _deviation([_exact(margin.inputs) for margin in margins])
    accruals, conversion = this_year.get("accruals_ratio"), this_year.get("cash_conversion")
    used = [value for value in (accruals, conversion) if value is not None]
    used += margins if volatility is not None else []
    figures: list[Figure] = [figure for value in used for _, figure in value.inputs]
    if not figures:
        return
    fields, sources = year_fields(issuer, year, figures)
    row = FundamentalsQualityRow(
        **fields,
        accruals_ratio=accruals.value if accruals else None,
        cash_conversion=conversion.value if conversion else None,
        margin_volatility=volatility,
        margin_years=len(margins),
    )
    yield Observation(row, year.end, max(value.since for value in used), sources)


def _exact(inputs: Inputs) -> Fraction:
    figures = dict(inputs)
    return Fraction(figures["profit"].value) / Fraction(figures["revenue"].value)


def _deviation(margins: list[Fraction]) -> Decimal:
    mean = sum(margins, Fraction()) / len(margins)
    return rounded_root(sum(((margin - mean) ** 2 for margin in margins), Fraction()) / len(margins))
