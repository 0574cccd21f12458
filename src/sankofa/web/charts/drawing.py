"""The kinds of charts: steps, lines, bars, heat maps and small multiples."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from html import escape
from typing import NamedTuple

from sankofa.web.charts.chart import Chart, dot, line, path, text
from sankofa.web.charts.scales import DayScale, ValueScale

_SHORTEST_TAIL = 120
NOTHING = "\N{EN DASH}"
WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 32
Write = Callable[[float], str]
"""How a value is written at an axis."""


class Line(NamedTuple):
    """One line of a chart: its name, its class of style, its points."""

    label: str
    kind: str
    points: Sequence[tuple[date, Decimal | float]]


class KnownValue(NamedTuple):
    """A value from the day on which it became known."""

    day: date
    value: Decimal | float
    label: str


def step_chart(
    name: str,
    title: str,
    steps: Sequence[KnownValue],
    until: date,
    write: Write,
    table: tuple[tuple[str, ...], Sequence[Sequence[object]]],
    chosen: date | None = None,
) -> Chart:
    """A value against the day it became known: each holds until the next, the last until now.

    What has not changed for long is cut short, so that the steps can be seen.
    """
    first, last = steps[0].day, steps[-1].day
    tail = timedelta(days=max((last - first).days, _SHORTEST_TAIL))
    until = max(min(until, max(last, chosen or last) + tail), first)
    days = DayScale(first, until, _LEFT, WIDTH - _RIGHT)
    values = ValueScale((float(step.value) for step in steps), _TOP + 10, HEIGHT - _BOTTOM)
    points: list[tuple[float, float]] = []
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        y = values(float(step.value))
        points.append((days(step.day), y))
        points.append((days(following.day if following else until), y))
    parts = [_axes(days, values, write), path(points, "line main")]
    if chosen is not None and first <= chosen <= until:
        parts.append(line(days(chosen), _TOP, days(chosen), HEIGHT - _BOTTOM, "chosen"))
    for number, step in enumerate(steps):
        kind = "dot" if number == 0 else "dot restated"
        parts.append(dot(days(step.day), values(float(step.value)), kind, step.label, 5))
    return Chart(name, title, WIDTH, HEIGHT, "".join(parts), *table)


def line_chart(
    name: str,
    title: str,
    lines: Sequence[Line],
    write: Write,
    table: tuple[tuple[str, ...], Sequence[Sequence[object]]],
    chosen: date | None = None,
    height: int = HEIGHT,
) -> Chart:
    """Values against the day they are of, one line each; the last is drawn on top."""
    every = [(day, float(value)) for one in lines for day, value in one.points]
    if not every:
        return Chart(name, title, WIDTH, 60, text(_LEFT, 34, NOTHING), *table)
    days = DayScale(min(d for d, _ in every), max(d for d, _ in every), _LEFT, WIDTH - _RIGHT)
    values = ValueScale((value for _, value in every), _TOP, height - _BOTTOM)
    parts = [_axes(days, values, write, height)]
    if chosen is not None and min(d for d, _ in every) <= chosen <= max(d for d, _ in every):
        parts.append(line(days(chosen), _TOP, days(chosen), height - _BOTTOM, "chosen"))
    for one in lines:
        points = [(days(day), values(float(value))) for day, value in one.points]
        parts.append(f"<g><title>{escape(one.label)}</title>{path(points, f'line {one.kind}')}</g>")
        if len(points) == 1:
            parts.append(dot(*points[0], "dot", one.label, 3))
    return Chart(name, title, WIDTH, height, "".join(parts), *table)


def bar_chart(
    name: str,
    title: str,
    bars: Sequence[tuple[str, Decimal | float]],
    write: Write,
    table: tuple[tuple[str, ...], Sequence[Sequence[object]]],
    height: int = 220,
) -> Chart:
    """Values side by side, upwards and downwards from zero."""
    if not bars:
        return Chart(name, title, WIDTH, 60, text(_LEFT, 34, NOTHING), *table)
    values = ValueScale((float(value) for _, value in bars), _TOP, height - _BOTTOM, zero=True)
    width = (WIDTH - _LEFT - _RIGHT) / len(bars)
    zero = values(0)
    parts = [_value_axis(values, write)]
    every = max(1, len(bars) // 8)
    for number, (label, value) in enumerate(bars):
        x, y = _LEFT + number * width, values(float(value))
        kind = "bar" if value >= 0 else "bar below"
        parts.append(
            f'<rect class="{kind}" x="{x + width * 0.12:.1f}" y="{min(y, zero):.1f}" '
            f'width="{max(width * 0.76, 0.5):.1f}" height="{max(abs(zero - y), 0.5):.1f}">'
            f"<title>{escape(label)}: {escape(write(float(value)))}</title></rect>"
        )
        if number % every == 0:
            parts.append(text(x + width / 2, height - 10, label, anchor="middle"))
    parts.append(line(_LEFT, zero, WIDTH - _RIGHT, zero, "axis"))
    return Chart(name, title, WIDTH, height, "".join(parts), *table)


def heat_map(
    name: str,
    title: str,
    cells: dict[tuple[date, date], tuple[int, int]],
    table: tuple[tuple[str, ...], Sequence[Sequence[object]]],
    chosen: date | None,
    words: Callable[[date, date, int, int], str],
) -> Chart:
    """Periods from top to bottom against days of publication from left to right.

    A cell counts the figures of a period that became known on a day, and how many of them were restated.
    """
    periods = sorted({period for period, _ in cells}, reverse=True)
    row_height = 16 if len(periods) <= 24 else 9
    height = _TOP + len(periods) * row_height + _BOTTOM
    first, last = min(day for _, day in cells), max(day for _, day in cells)
    left = 84
    days = DayScale(min(first, periods[-1]), last, left, WIDTH - _RIGHT - 8)
    most = max(count for count, _ in cells.values())
    parts = []
    for day, label in days.ticks:
        x = days(day)
        parts += [line(x, _TOP, x, height - _BOTTOM, "grid"), text(x, height - 10, label, anchor="middle")]
    for number, period in enumerate(periods):
        y = _TOP + number * row_height
        if row_height > 10 or number % 2 == 0:
            parts.append(text(left - 8, y + row_height - 4, period.isoformat(), anchor="end"))
        parts.append(line(left, y + row_height / 2, WIDTH - _RIGHT, y + row_height / 2, "grid"))
    rows = {period: number for number, period in enumerate(periods)}
    for (period, day), (count, restated) in sorted(cells.items()):
        shade = min(4, 1 + int(3.999 * count / most))
        kind = f"heat heat{shade}" + (" restated" if restated else "")
        x, y = days(day), _TOP + rows[period] * row_height
        parts.append(
            f'<rect class="{kind}" x="{x - 3.5:.1f}" y="{y + 1:.1f}" '
            f'width="7" height="{row_height - 2}" rx="1.5">'
            f"<title>{escape(words(period, day, count, restated))}</title></rect>"
        )
    if chosen is not None and first <= chosen <= last:
        parts.append(line(days(chosen), _TOP - 6, days(chosen), height - _BOTTOM, "chosen"))
    return Chart(name, title, WIDTH, height, "".join(parts), *table)


def small_line(name: str, title: str, points: Sequence[tuple[date, Decimal]], write: Write) -> Chart:
    """One of many small charts: a line with its first and last value."""
    width, height = 220, 96
    table = ("date", "value"), [(day.isoformat(), value) for day, value in points]
    days = DayScale(points[0][0], points[-1][0], 6, width - 6)
    values = ValueScale((float(value) for _, value in points), 10, height - 24)
    drawn = [(days(day), values(float(value))) for day, value in points]
    parts = [
        line(6, height - 20, width - 6, height - 20, "axis"),
        path(drawn, "line main"),
        dot(*drawn[-1], "dot", write(float(points[-1][1])), 3),
        text(6, height - 6, str(points[0][0].year)),
        text(width - 6, height - 6, str(points[-1][0].year), anchor="end"),
    ]
    return Chart(name, title, width, height, "".join(parts), *table)


def _axes(days: DayScale, values: ValueScale, write: Write, height: int = HEIGHT) -> str:
    parts = [_value_axis(values, write)]
    for day, label in days.ticks:
        parts.append(text(days(day), height - 10, label, anchor="middle"))
        parts.append(line(days(day), height - _BOTTOM, days(day), height - _BOTTOM + 5, "axis"))
    return "".join(parts)


def _value_axis(values: ValueScale, write: Write) -> str:
    parts = []
    for tick in values.ticks:
        y = values(tick)
        parts.append(line(_LEFT, y, WIDTH - _RIGHT, y, "grid"))
        parts.append(text(_LEFT - 8, y + 4, write(tick), anchor="end"))
    return "".join(parts)
