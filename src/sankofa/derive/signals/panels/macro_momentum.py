"""How series move over one and three periods, on the values known at each date."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal

from sankofa.derive.series import Series, SeriesReport, SeriesVintages
from sankofa.derive.signals.contract import METHOD, Captures, Observation, PanelRow, origin, panel
from sankofa.derive.signals.tenders import month_number, quarter_number
from sankofa.model.days import ordinal
from sankofa.model.figures import quotient
from sankofa.model.rows import Figure, doc, one_of
from sankofa.model.vintages import Vintage

_PERIODS: Final[dict[str, Callable[[str], int]]] = {
    "monthly": month_number,
    "quarterly": quarter_number,
    "annual": lambda day: int(day[:4]),
}
"""For each frequency with calendar periods: the number of the period a day is in."""

_Day = date  # because a row has a field of that name


class MacroMomentumRow(PanelRow, frozen=True, kw_only=True):
    """One value of a series as it first became known, and how it compares with those before it."""

    series: Annotated[str, doc("Series key, e.g. CPI.ZA.")]
    series_type: Annotated[str, doc("Family, e.g. cpi or gdp.")]
    frequency: Annotated[str, one_of(_PERIODS, "How often it is observed.")]
    country: Annotated[
        str | None, doc("Country code, ISO 3166-1 alpha-2; null for a series of several countries.")
    ]
    date: Annotated[_Day, doc("Date that the source gives the period.")]
    known_at: Annotated[_Day, doc("Day on which the value became known; nothing known later is used.")]
    value: Annotated[Figure, doc("Value as known on that day, with every digit.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    momentum_1p: Annotated[
        Decimal | None, doc("Value divided by that of one period earlier, minus 1; null if unknown.")
    ]
    momentum_3p: Annotated[
        Decimal | None, doc("Value divided by that of three periods earlier, minus 1; null if unknown.")
    ]
    methodology_ref: Annotated[Literal["signals-v1/macro-momentum"], METHOD] = "signals-v1/macro-momentum"


_History = list[Vintage[SeriesReport]]


@panel(
    "macro-momentum",
    access="open",
    sku="AF-MACRO",
    row=MacroMomentumRow,
    order=("series", "series_type", "frequency", "country", "-date"),
    of="series",
)
def macro_momentum(one: SeriesVintages, captures: Captures) -> Iterator[Observation]:
    """How a series moved over one and over three periods, as it was known on the day a value was first known.

    Monthly, quarterly and annual series; each value belongs to the calendar month, quarter or year of its
    date. Daily and weekly series are left out: they have gaps (holidays), so periods cannot be counted
    exactly. A value, and the values it is compared with, are as known on the day it first became known
    (`known_at`). Later revisions do not change the row.

    - momentum_1p = value / value of the period before - 1
    - momentum_3p = value / value of the third period before - 1

    Null if the earlier value was not known on that day, was withdrawn, is in another unit, or is not above
    zero; also if several values were known by then for one of the two periods. A value that was withdrawn on
    the day it became known has no row. Ordered by series, series_type, frequency and country, then date
    descending.
    """
    series, _, days = one
    number = _PERIODS.get(series.frequency)
    if number is None:
        return
    periods: defaultdict[int, list[_History]] = defaultdict(list)
    for day, _, history in days:
        periods[number(day)].append(history)
    for day, _, history in days:
        yield from _observed(captures, series, day, history, periods, number(day))


def _observed(
    captures: Captures,
    series: Series,
    day: str,
    history: _History,
    periods: dict[int, list[_History]],
    period: int,
) -> Iterator[Observation]:
    known_at = history[0].known_from
    report = _value_on(history, known_at)
    if report is None:
        return
    inputs = [report]
    value = Decimal(report.figure)
    momentum: list[Decimal | None] = []
    is_alone = _only(periods, period, known_at) is not None
    for step in (1, 3):
        earlier = _only(periods, period - step, known_at) if is_alone else None
        if earlier is None or earlier.unit != report.unit or (base := Decimal(earlier.figure)) <= 0:
            momentum.append(None)
            continue
        momentum.append(_growth(value, base))
        inputs.append(earlier)
    first = captures[report.capture_id].ref(report.location or f"{series.series} {day}", report.document)
    provenance, sources = origin(first, (captures[r.capture_id] for r in inputs))
    row = MacroMomentumRow(
        series=series.series,
        series_type=series.series_type,
        frequency=series.frequency,
        country=series.country or None,
        date=date.fromisoformat(day),
        known_at=date.fromordinal(known_at),
        value=value,
        unit=report.unit or None,
        momentum_1p=momentum[0],
        momentum_3p=momentum[1],
        **provenance,
    )
    yield Observation(row, ordinal(day), known_at, sources)


def _growth(value: Decimal, base: Decimal) -> Decimal:
    """`value / base - 1`, exact until it is rounded. Whole numbers take a third of the time of fractions."""
    (over, under), (base_over, base_under) = value.as_integer_ratio(), base.as_integer_ratio()
    return quotient(Decimal(over * base_under - base_over * under), Decimal(under * base_over))


def _only(periods: dict[int, list[_History]], period: int, day: int) -> SeriesReport | None:
    """The current value of a period on a day; None unless exactly one was known by then."""
    histories = periods.get(period, ())
    if len(histories) > 1:
        histories = [history for history in histories if history[0].known_from <= day]
    return _value_on(histories[0], day) if len(histories) == 1 else None


def _value_on(history: _History, day: int) -> SeriesReport | None:
    """The current value on a day; None if there was none, or if it was withdrawn."""
    for vintage in reversed(history):
        if vintage.known_from <= day:
            return None if vintage.report.value is None else vintage.report
    return None
