"""Values as in FRED: by real-time period and vintage date, in its units and frequencies; and XML.

Values in other units or frequencies are computed from the values that were the latest on the same day.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from itertools import accumulate
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr  # nosec B406

import msgspec

from sankofa.dialects.contract import DialectQuestion, Row
from sankofa.edition.format.keys import MACRO_SERIES, key_list
from sankofa.edition.format.macro import DayRange
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.macro import read_one_series
from sankofa.edition.read.row_forms import RowForm
from sankofa.edition.read.series_catalogue import columns_of_series, every_vintage
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter
from sankofa.model.limits import limit
from sankofa.model.rows import decoder_of
from sankofa.operations.locked import locked


class ValueStep(NamedTuple):
    """A value that is the latest from a day on, until the next step; None if withdrawn."""

    day: int
    value: Decimal | None


History = dict[date, list[ValueStep]]
"""Steps by the date of the value, oldest first."""


def edition_on(question: DialectQuestion, day: date) -> Edition:
    """The edition as known on a day, at most the view's day."""
    edition, lock = question.call.edition, question.call.lock
    if day >= question.call.today:
        return edition
    return locked(whole(edition), day if lock is None else min(day, lock))


def whole(edition: Edition) -> Edition:
    """The edition behind a view of a day; the edition itself if it is not a view."""
    return edition.whole if isinstance(edition, DayView) else edition


async def history(edition: Edition, key: str, day: date) -> History:
    """Every value of a series known by a day, each with the day from which it was the latest.

    Raises InvalidParameter if several countries share the key.
    """
    vintages: defaultdict[date, list[tuple[int, int, Decimal | None]]] = defaultdict(list)
    columns = await columns_of_series(edition, key)
    if len(columns) > 1:
        raise InvalidParameter("series_id", f"{len(columns)} series have this key: ask /v1/macro for them")
    for column in columns:
        async for one in every_vintage(edition, column, day):
            known = max(one.available_at, one.date).toordinal()
            vintages[one.date].append((known, one.vintage, one.value))
    return {at: steps_of(vintages[at]) for at in sorted(vintages)}


_observed = decoder_of([("date", str), ("value", Decimal | None)]).decode


def _as_figures(rows: bytes, _: Sequence[int]) -> tuple[bytes, Sequence[int]]:
    figures = [f"{one.date} {figure(one.value)}" for one in _observed(b"[%b]" % rows)]
    ends = accumulate(map(len, figures), lambda end, size: end + 1 + size)
    return ",".join(figures).encode(), [*ends]


_FIGURES: Final = RowForm("figures", _as_figures)
"""Date and figure of a `/v1/macro` row, such as `2024-01-31 117.3`."""


async def known_on(question: DialectQuestion, key: str, day: date) -> str | None:
    """Dates and figures of a series in `/v1/macro` on a day, a line for each, oldest first; None if several
    series share the key.

    Apart from the time of capture, the whole edition has the same rows as a locked view.
    """
    call, at = question.call, day.toordinal()
    newest = call.today.toordinal() if call.lock is None else FOREVER
    span, most = DayRange(at, until=at), 1 << 31
    selection = await read_one_series(
        whole(call.edition), MACRO_SERIES, key_list(key), span, most, newest, form=_FIGURES
    )
    if selection is None:
        return None
    return "\n".join(selection.rows.decode().split(",")[::-1]) if selection.count else ""


def steps_of(vintages: Iterable[tuple[int, int, Decimal | None]]) -> list[ValueStep]:
    """The steps of one value; if two vintages became known on one day, the later counts."""
    steps: list[ValueStep] = []
    for known, _, value in sorted(vintages, key=lambda one: one[:2]):
        if steps and steps[-1].day == known:
            steps.pop()
        steps.append(ValueStep(known, value))
    return steps


def on_days(steps: list[ValueStep], days: Iterable[int]) -> list[Decimal | None]:
    """The latest values on some days, given in order."""
    values: list[Decimal | None] = []
    value, following = None, 0
    for day in days:
        while following < len(steps) and steps[following].day <= day:
            value = steps[following].value
            following += 1
        values.append(value)
    return values


SHORT: Final = {"daily": "d", "weekly": "w", "monthly": "m", "quarterly": "q", "annual": "a"}
_A_YEAR: Final = {"d": 260, "w": 52, "m": 12, "q": 4, "sa": 2, "a": 1}
_MONTHS: Final = {"m": 1, "q": 3, "sa": 6, "a": 12}
_WEEKDAYS: Final = ("wem", "wetu", "wew", "weth", "wef", "wesa", "wesu")
AGGREGATIONS: Final = ("d", "w", *_WEEKDAYS, "m", "q", "sa", "a")
_ORDER: Final = ("d", "w", "m", "q", "sa", "a")
UNITS: Final = ("lin", "chg", "ch1", "pch", "pc1", "pca", "cch", "cca", "log")

LAST_DAY: Final = date(9999, 12, 31)
_MOST_CELLS: Final = limit("values by vintage date in FRED's form", 1_000_000, "values", "400")
Compute = Callable[[Sequence[Decimal | None]], Decimal | None]


def transformed(values: History, units: str, frequency: str) -> History:
    """The values in other units; None if the value of the period before is not known."""
    if units == "lin":
        return values
    compute = partial(_changed, units, _A_YEAR["w" if frequency in _WEEKDAYS else frequency])
    by_year = units in ("ch1", "pc1")
    length = _MONTHS.get(frequency, 0)
    months = {(at.year, at.month): at for at in values} if length else {}
    before: date | None = None
    result: History = {}
    for at, steps in values.items():
        other = before
        if by_year:
            other = months.get((at.year - 1, at.month)) if months else _year_before(at, frequency)
        elif before and length and _month(at) // length - _month(before) // length > 1:
            other = None
        earlier = values.get(other, []) if other is not None else []
        result[at] = _combined((steps, earlier), compute)
        before = at
    return result


def aggregated(values: History, own: str, frequency: str, method: str) -> History:
    """The values at a lower frequency. The last period may be incomplete. Raises InvalidParameter."""
    if _rank(frequency) < _rank(own):
        raise InvalidParameter("frequency", "higher than that of the series")
    groups: defaultdict[date, list[list[ValueStep]]] = defaultdict(list)
    for at, steps in values.items():
        groups[_period(at, frequency)].append(steps)
    compute = {"avg": _average, "sum": _total, "eop": _last}[method]
    return {at: _combined(members, compute) for at, members in sorted(groups.items())}


def _rank(frequency: str) -> int:
    return _ORDER.index("w" if frequency in _WEEKDAYS else frequency)


def _period(at: date, frequency: str) -> date:
    """FRED's date for a period: its first day; for a week its last."""
    if frequency == "w" or frequency in _WEEKDAYS:
        weekday = _WEEKDAYS.index("wef" if frequency == "w" else frequency)
        return at + timedelta(days=(weekday - at.weekday()) % 7)
    months = _MONTHS[frequency]
    return date(at.year, (at.month - 1) // months * months + 1, 1)


def _month(at: date) -> int:
    """The number of a month, counted from the year 0."""
    return at.year * 12 + at.month - 1


def _year_before(at: date, frequency: str) -> date:
    if frequency != "d":
        return at - timedelta(days=364)
    return at.replace(year=at.year - 1, day=28 if (at.month, at.day) == (2, 29) else at.day)


def _combined(parts: Sequence[list[ValueStep]], compute: Compute) -> list[ValueStep]:
    """Values computed from others, with a step on each day on which one of these changed."""
    days = sorted({step.day for part in parts for step in part})
    steps: list[ValueStep] = []
    for day, values in zip(days, zip(*(on_days(part, days) for part in parts), strict=True), strict=True):
        if parts[0] and day < parts[0][0].day and compute not in _OF_ANY:
            continue
        value = compute(values)
        if not steps or steps[-1].value != value:
            steps.append(ValueStep(day, value))
    return steps


def _average(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return round(sum(known, Decimal(0)) / len(known), 5).normalize() if known else None


def _total(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) if known else None


def _last(values: Sequence[Decimal | None]) -> Decimal | None:
    return next((value for value in reversed(values) if value is not None), None)


_OF_ANY: Final = (_average, _total, _last)
"""Computations whose inputs are interchangeable."""


def _changed(units: str, a_year: int, values: Sequence[Decimal | None]) -> Decimal | None:
    now, before = values
    if now is None or (before is None and units != "log"):
        return None
    if units in ("chg", "ch1") and before is not None:
        return now - before
    try:
        value = _relative(units, float(now), float(before or 0), a_year)
        return Decimal(f"{value:.5f}") if math.isfinite(value) else None
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _relative(units: str, now: float, before: float, a_year: int) -> float:
    if units in ("pch", "pc1"):
        return (now / before - 1) * 100
    if units == "pca":
        return (math.pow(now / before, a_year) - 1) * 100
    if units == "log":
        return math.log(now)
    return (math.log(now) - math.log(before)) * 100 * (a_year if units == "cca" else 1)


class RealTimePeriod(NamedTuple):
    """A real-time period, both days included."""

    start: date
    end: date
    """The day asked for; 9999-12-31 means the day of the view."""
    known: date
    """The last day of the period within the view."""
    vintage_dates: tuple[date, ...] = ()
    """The requested days of the period; empty for all."""

    def echo(self) -> dict[str, object]:
        start = str(self.start)
        return {"realtime_start": start, "realtime_end": start if self.start == self.end else str(self.end)}


@lru_cache(maxsize=4096)
def _day(ordinal: int) -> str:
    return str(date.fromordinal(ordinal))


class PeriodValue(msgspec.Struct, gc=False):
    """A value, and the days in a period on which it was the latest."""

    realtime_start: str
    realtime_end: str
    date: str
    value: str


def by_period(values: History, period: RealTimePeriod, *, only_first: bool) -> list[PeriodValue]:
    """Each value with the days of the period on which it was the latest."""
    start, end, ever = period.start.toordinal(), period.end.toordinal(), LAST_DAY.toordinal()
    listed = [day.toordinal() for day in period.vintage_dates]
    rows = []
    for at, steps in values.items():
        for number, step in enumerate(steps[:1] if only_first else steps, 1):
            last = steps[number].day - 1 if number < len(steps) else ever
            first, final = step.day if step.day > start else start, last if last < end else end
            if listed:
                days = [day for day in listed if step.day <= day <= last] or [1, 0]
                first, final = days[0], days[-1]
            if first > final or (only_first and step.day < start):
                continue
            rows.append(PeriodValue(_day(first), _day(final), str(at), figure(step.value)))
    return rows


def by_vintage_date(key: str, values: History, period: RealTimePeriod, *, only_new: bool) -> list[Row]:
    """A row for each date, with a member for each day on which values changed."""
    start, end = period.start.toordinal(), period.known.toordinal()
    changes = {step.day for steps in values.values() for step in steps}
    days = [day.toordinal() for day in period.vintage_dates]
    if not days:
        days = sorted(day for day in changes if start <= day <= end)
        latest = max((day for day in changes if day < start), default=None)
        if latest is not None and not only_new and start not in days:
            days.insert(0, latest)
    if len(days) * len(values) > _MOST_CELLS:
        raise InvalidParameter("vintage_dates", f"{len(days)} days of {len(values)} values: ask for fewer")
    label = key.replace(":", "_")  # an XML attribute name may not contain a colon
    names = {day: f"{label}_{date.fromordinal(day):%Y%m%d}" for day in days}
    rows: list[Row] = []
    for at, steps in values.items():
        own = {step.day for step in steps}
        figures = zip(days, on_days(steps, days), strict=True)
        cells = {names[day]: figure(value) for day, value in figures if not only_new or day in own}
        if cells:
            rows.append({"date": at, **cells})
    return rows


def figure(value: Decimal | None) -> str:
    text = "." if value is None else str(value)
    return text if "E" not in text else f"{value:f}"


_ESCAPED: Final = re.compile(r"[&<>\t\r\n]")
"""Characters that need escaping in an XML attribute."""


def xml_document(root: str, attributes: Mapping[str, object], children: Iterable[str]) -> bytes:
    inside = "\n".join(children)
    body = f">\n{inside}\n</{root}>" if inside else "/>"
    return f'<?xml version="1.0" encoding="utf-8" ?>\n<{root}{xml_attributes(attributes)}{body}\n'.encode()


def xml_attributes(row: Mapping[str, object]) -> str:
    """The attributes of an element, each after a space."""
    texts = "".join([f' {name}="{value}"' for name, value in row.items()])
    if texts.count('"') == 2 * len(row) and not _ESCAPED.search(texts):
        return texts
    return "".join([f" {name}={quoteattr(str(value))}" for name, value in row.items()])
