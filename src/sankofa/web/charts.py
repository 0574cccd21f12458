"""Charts as SVG, drawn by the server: lines, steps, bars, heat maps, and Africa as tiles.

They need no script, and can be printed and downloaded.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

Table = tuple[tuple[str, ...], Sequence[Sequence[object]]]
"""The data of a chart: the names of the columns, and the rows."""


class Chart(msgspec.Struct, frozen=True):
    """A picture in SVG, and its figures as a table."""

    name: str
    title: str
    width: int
    height: int
    drawing: str
    """The elements inside the picture; every text in them is escaped."""
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    role: str = "img"
    """`group` if the picture has links, so that screen readers enter it."""
    margin: int = 0
    """Extra room at the left for long labels of values."""

    @property
    def markup(self) -> Markup:
        """The picture for use inside a page, with the page's styles."""
        return Markup(self._svg(""))  # nosec B704  # noqa: S704 - its texts are escaped one by one

    def picture(self) -> str:
        """The picture as a separate file with its own styles."""
        style = files("sankofa.web").joinpath("chart.css").read_text(encoding="utf-8")
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + self._svg(f"<style>{style}</style>")

    def _svg(self, style: str) -> str:
        box = f"{-self.margin} 0 {self.width + self.margin} {self.height}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="{box}" '
            f'width="{self.width}" height="{self.height}" role="{self.role}" direction="ltr" '
            f'aria-label="{escape(self.title)}">{style}<title>{escape(self.title)}</title>'
            f"{self.drawing}</svg>"
        )


def text(x: float, y: float, words: str, kind: str = "label", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{steps}"/>'


def dot(x: float, y: float, kind: str, words: str, radius: float = 4) -> str:
    centre = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius}"'
    return f'<circle class="{kind}" {centre}><title>{escape(words)}</title></circle>'


def bar(x: float, y: float, width: float, height: float, kind: str, words: str, radius: float = 0) -> str:
    geometry = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    rounded = f' rx="{radius}"' if radius else ""
    return f'<rect class="{kind}" {geometry}{rounded}><title>{escape(words)}</title></rect>'


_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_LARGEST: Final = 1e300
"""The largest value drawn: a picture has no room for more, and differences of two such values stay finite."""


class ValueScale:
    """Values from bottom to top, the ends at round numbers."""

    def __init__(self, values: Iterable[float], top: float, bottom: float, *, zero: bool = False) -> None:
        known = [_drawable(value) for value in values if not math.isnan(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        largest = max(abs(low), abs(high))
        if high - low <= largest * 1e-9:  # too close for the scale to separate
            spread = largest * 0.1 or 1.0
            low, high = low - spread, high + spread
        step = _round_step((high - low) / 4)
        self.ticks = [step * number for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
        self._low, self._high = self.ticks[0], self.ticks[-1]
        self._top, self._bottom = top, bottom

    def __call__(self, value: float) -> float:
        value = _drawable(value)
        return self._bottom - (value - self._low) / (self._high - self._low) * (self._bottom - self._top)


class LogScale(ValueScale):
    """Positive values by their logarithm, with ticks at 1, 2 and 5 of each power of ten, or at the powers."""

    def __init__(self, values: Iterable[float], top: float, bottom: float) -> None:
        known = [min(value, _LARGEST) for value in values if value > 1 / _LARGEST] or [1.0, 10.0]
        low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
        every = max(1, (high - low) // 6)
        factors = (1, 2, 5) if high - low < 3 else (1,)
        powers = range(low, max(high, low + 1) + every, every)
        ticks = [factor * 10.0**power for power in powers for factor in factors]
        below = [tick for tick in ticks if tick <= min(known)]
        above = [tick for tick in ticks if tick >= max(known)]
        self.ticks = [tick for tick in ticks if below[-1] <= tick <= max(above[0], below[-1] * 2)]
        self._low, self._high = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
        self._top, self._bottom = top, bottom

    def __call__(self, value: float) -> float:
        share = (math.log10(min(value, _LARGEST)) - self._low) / (self._high - self._low)
        return self._bottom - share * (self._bottom - self._top)


class DayScale:
    """Days from left to right, with a tick at the first of some years, or of some months.

    `annual`: the values fall on the same day of each year, and so do the ticks.
    """

    def __init__(self, first: date, last: date, left: float, right: float, *, annual: bool = False) -> None:
        self._first = first.toordinal()
        self._span = max(last.toordinal() - self._first, 1)
        self._left, self._right = left, right
        self.ticks = _year_ticks(first, last, first) if annual else _day_ticks(first, last)
        if not self.ticks:
            self.ticks = [(day, day.isoformat()) for day in dict.fromkeys((first, last))]

    def __call__(self, day: date) -> float:
        return self._left + (day.toordinal() - self._first) / self._span * (self._right - self._left)


def _drawable(value: float) -> float:
    """A value too small to divide by becomes zero; one too large becomes the largest that can be drawn."""
    return 0.0 if abs(value) < 1 / _LARGEST else max(min(value, _LARGEST), -_LARGEST)


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(factor * size for factor in _STEPS if factor * size >= step * 0.999)


def _day_ticks(first: date, last: date) -> list[tuple[date, str]]:
    years = last.year - first.year
    if years < 2:
        months = (last.year - first.year) * 12 + last.month - first.month
        every = 1 if months <= 6 else 3
        ticks = []
        for number in range(first.month, first.month + months + 1):
            day = date(first.year + (number - 1) // 12, (number - 1) % 12 + 1, 1)
            if first <= day <= last and (day.month - 1) % every == 0:
                ticks.append((day, f"{day:%Y-%m}"))
        return ticks
    return _year_ticks(first, last, date(first.year, 1, 1))


def _year_ticks(first: date, last: date, like: date) -> list[tuple[date, str]]:
    """Some years, each at the month and day of a given date."""
    every = next(step for step in _YEARS if (last.year - first.year) / step <= 7)
    days = (like.replace(year=year) for year in range(first.year, last.year + 1) if year % every == 0)
    return [(day, str(day.year)) for day in days if first <= day <= last]


_SHORTEST_TAIL = 120
_NAMES, _LONGEST_NAME = 200, 26
_MOST_VALUES_WRITTEN = 9
_MOST_DOTS = 130
"""Maximum number of values of a line with a title each; more would make a large page."""
_NOTHING = "\N{EN DASH}"
WIDTH, HEIGHT = 860, 320
_DIGIT = 8
"""Maximum width of a digit of a label."""
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 18, 32
Write = Callable[[float], str]
"""Formats a value for an axis."""


class Line(NamedTuple):
    """One line of a chart: its name, its class of style, its points."""

    label: str
    kind: str
    points: Sequence[tuple[date, Decimal | float]]


class KnownValue(NamedTuple):
    """A value and the day it became known."""

    day: date
    value: Decimal | float
    label: str


SCALES: Final = ("linear", "log", "index")
"""How values are drawn: unchanged, by logarithm, or as an index (100 on the first day all lines share)."""


def rescaled(lines: Sequence[Line], scale: str) -> list[Line]:
    """The lines on a scale, without values that the scale cannot draw."""
    if scale == "linear":
        return list(lines)
    positive = [one._replace(points=[(d, v) for d, v in one.points if v > 0]) for one in lines]
    drawn = [one for one in positive if one.points]
    if scale == "log" or not drawn:
        return drawn
    first = max(one.points[0][0] for one in drawn)
    indexed = []
    for one in drawn:
        later = [(day, Decimal(value)) for day, value in one.points if day >= first]
        points = [(day, 100 * value / later[0][1]) for day, value in later]
        indexed.append(one._replace(points=points))
    return indexed


def step_chart(
    name: str,
    title: str,
    steps: Sequence[KnownValue],
    until: date,
    write: Write,
    table: Table,
    chosen: date | None = None,
    width: int = WIDTH,
) -> Chart:
    """A step chart of values by the day they became known. Each lasts until the next, the last until now.

    Long times without change are shortened, so that the steps stay visible.
    """
    first, last = steps[0].day, steps[-1].day
    tail = max((last - first).days, _SHORTEST_TAIL)
    end = max(last, chosen or last).toordinal() + tail
    until = max(date.fromordinal(min(until.toordinal(), end)), first)
    days = DayScale(first, until, LEFT, width - RIGHT)
    values = ValueScale((float(step.value) for step in steps), TOP + 10, HEIGHT - BOTTOM - 16)
    points: list[tuple[float, float]] = []
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        y = values(float(step.value))
        points.append((days(step.day), y))
        points.append((days(following.day if following else until), y))
    parts = [_axes(days, values, write, width=width), path(points, "line main")]
    if chosen is not None and first <= chosen <= until:
        parts.append(line(days(chosen), TOP, days(chosen), HEIGHT - BOTTOM, "chosen"))
    for number, step in enumerate(steps):
        kind = "dot" if number == 0 else "dot restated"
        x, y = days(step.day), values(float(step.value))
        parts.append(dot(x, y, kind, step.label, 5))
        if len(steps) <= _MOST_VALUES_WRITTEN and _reads_anew(steps, number, write):
            parts.append(_value_beside(x, y, write(float(step.value)), steps, number, width))
    return Chart(name, title, width, HEIGHT, "".join(parts), *table, margin=margin(values, write, width))


def _reads_anew(steps: Sequence[KnownValue], number: int, write: Write) -> bool:
    """Whether a step's short label differs from the previous one."""
    return number == 0 or write(float(steps[number].value)) != write(float(steps[number - 1].value))


def _value_beside(
    x: float, y: float, words: str, steps: Sequence[KnownValue], number: int, width: int
) -> str:
    """The value next to its dot, inside the picture: above if it rose; below if it fell or a rise begins."""
    fell = number > 0 and steps[number].value < steps[number - 1].value
    if number == 0:
        fell = steps[1].value > steps[0].value if len(steps) > 1 else False
    anchor = "end" if x > width - 90 else "start"
    return text(x + (-6 if anchor == "end" else 6), y + (18 if fell else -9), words, "value", anchor)


def line_chart(
    name: str,
    title: str,
    lines: Sequence[Line],
    write: Write,
    table: Table,
    chosen: date | None = None,
    unit: str = "",
    scale: str = "linear",
    *,
    named: bool = False,
) -> Chart:
    """Lines of values by date; the last line is drawn on top.

    Annual values are at the tick of their year. If a line has few values, titles give them exactly.
    With `named`, lines have labels at their ends.
    """
    lines = rescaled(lines, scale)
    every = [(day, float(value)) for one in lines for day, value in one.points]
    if not every:
        return empty_chart(name, title, table)
    first, last = min(d for d, _ in every), max(d for d, _ in every)
    annual = len({(d.month, d.day) for d, _ in every}) == 1 and (first.month, first.day) != (2, 29)
    right = WIDTH - (_NAMES if named else RIGHT)
    days = DayScale(first, last, LEFT, right, annual=annual)
    kind = LogScale if scale == "log" else ValueScale
    values = kind((value for _, value in every), TOP, HEIGHT - BOTTOM)
    heading = f"{first.year if annual else first} = 100" if scale == "index" else unit
    parts = [_axes(days, values, write, right + RIGHT), text(LEFT, TOP - 7, heading)]
    if chosen is not None and first <= chosen <= last:
        parts.append(line(days(chosen), TOP, days(chosen), HEIGHT - BOTTOM, "chosen"))
    for one in lines:
        points = [(days(day), values(float(value))) for day, value in one.points]
        parts.append(f"<g><title>{escape(one.label)}</title>{path(points, f'line {one.kind}')}</g>")
        if len(points) == 1:
            parts.append(dot(*points[0], "dot", one.label, 3))
        elif one.kind != "old" and len(points) <= _MOST_DOTS:
            titles = (f"{day.year if annual else day}: {value}" for day, value in one.points)
            parts += [dot(*point, "point", words, 3) for point, words in zip(points, titles, strict=True)]
    if named:
        ends = [(values(float(one.points[-1][1])), one) for one in lines if one.points]
        parts.append(_names_at_ends(ends, right + 8))
    return Chart(name, title, WIDTH, HEIGHT, "".join(parts), *table, margin=margin(values, write))


def _names_at_ends(ends: Sequence[tuple[float, Line]], x: float) -> str:
    """The names of the lines at the heights of their ends, moved down if two would overlap."""
    parts, free = [], 0.0
    for y, one in sorted(ends, key=lambda end: end[0]):
        free = max(y + 4, free)
        words = shortened(one.label, _LONGEST_NAME)
        parts += [line(x, free - 4, x + 12, free - 4, f"line {one.kind}"), text(x + 16, free, words, "name")]
        free += 15
    return "".join(parts)


def small_line(
    name: str,
    title: str,
    years: Sequence[tuple[int, Decimal]],
    write: Write,
    beside: Sequence[tuple[int, Decimal]] = (),
    scale: str = "linear",
) -> Chart:
    """One of many small charts: a line by year with its first and last value.

    Charts with the same points in `beside` share their axes, which fit all of them.
    """
    width, height = 220, 96
    points = [(date(year, 12, 31), value) for year, value in years]
    table = ("date", "value"), [(day.isoformat(), value) for day, value in points]
    ends = [date(year, 12, 31) for year, _ in beside or years]
    days = DayScale(min(ends), max(ends), 6, width - 6)
    kind = LogScale if scale == "log" else ValueScale
    values = kind((float(value) for _, value in beside or years), 14, height - 36)
    drawn = [(days(day), values(float(value))) for day, value in points]
    shown = [float(value) for _, value in beside or years]
    dots = [dot(*at, "point", f"{year}: {value}", 3) for at, (year, value) in zip(drawn, years, strict=True)]
    parts = [
        line(6, height - 20, width - 6, height - 20, "axis"),
        path(drawn, "line main"),
        *(dots if beside else ()),
        dot(*drawn[-1], "dot", write(float(points[-1][1])), 3),
        text(6, 9, write(max(shown))),
        text(6, height - 24, write(min(shown))),
        text(6, height - 6, str(min(ends).year)),
        text(width - 6, height - 6, str(max(ends).year), anchor="end"),
    ]
    return Chart(name, title, width, height, "".join(parts), *table)


def empty_chart(name: str, title: str, table: Table) -> Chart:
    return Chart(name, title, WIDTH, 60, text(LEFT, 34, _NOTHING), *table)


def _axes(days: DayScale, values: ValueScale, write: Write, width: int = WIDTH) -> str:
    parts = [value_axis(values, write, width)]
    for day, label in days.ticks:
        half = _DIGIT * len(label) / 2
        middle = min(max(days(day), half), WIDTH - half)  # so that the first and the last are not cut off
        parts.append(text(middle, HEIGHT - 10, label, anchor="middle"))
        parts.append(line(days(day), HEIGHT - BOTTOM, days(day), HEIGHT - BOTTOM + 5, "axis"))
    return "".join(parts)


def margin(values: ValueScale, write: Write, width: int = WIDTH) -> int:
    """How far the longest label of a value reaches beyond the picture. Phones enlarge text."""
    digit = _DIGIT if width == WIDTH else 12
    return max(0, digit * max(len(write(tick)) for tick in values.ticks) - LEFT + 8)


def value_axis(values: ValueScale, write: Write, width: int = WIDTH) -> str:
    parts = []
    for tick in values.ticks:
        y = values(tick)
        parts.append(line(LEFT, y, width - RIGHT, y, "grid"))
        parts.append(text(LEFT - 8, y + 4, write(tick), anchor="end"))
    return "".join(parts)


_BARS_HEIGHT: Final = 220
_ROW: Final = 24
_WIDEST_BAR: Final = 90
_BAR_NAMES: Final = 330
_BAR_VALUES: Final = 76
_LONGEST_BAR_NAME: Final = 46


def bar_chart(
    name: str,
    title: str,
    bars: Sequence[tuple[str, Decimal | float]],
    write: Write,
    table: Table,
    unit: str = "",
) -> Chart:
    """Values side by side, upwards and downwards from zero."""
    if not bars:
        return empty_chart(name, title, table)
    values = ValueScale((float(value) for _, value in bars), TOP, _BARS_HEIGHT - BOTTOM, zero=True)
    width = (WIDTH - LEFT - RIGHT) / len(bars)
    zero = values(0)
    parts = [value_axis(values, write), text(LEFT, TOP - 7, unit)]
    every = max(1, len(bars) // 8)
    thickness = min(max(width * 0.76, 0.5), _WIDEST_BAR)
    for number, (label, value) in enumerate(bars):
        x, y = LEFT + number * width, values(float(value))
        kind = "bar" if value >= 0 else "bar below"
        left, length = x + (width - thickness) / 2, max(abs(zero - y), 0.5)
        parts.append(bar(left, min(y, zero), thickness, length, kind, f"{label}: {value}"))
        if number % every == 0:
            parts.append(text(x + width / 2, _BARS_HEIGHT - 10, label, anchor="middle"))
    parts.append(line(LEFT, zero, WIDTH - RIGHT, zero, "axis"))
    return Chart(name, title, WIDTH, _BARS_HEIGHT, "".join(parts), *table, margin=margin(values, write))


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


class NamedBar(NamedTuple):
    """A horizontal bar; its name links to a page."""

    name: str
    value: Decimal | float
    address: str | None = None


def named_bars(name: str, title: str, bars: Sequence[NamedBar], write: Write, table: Table) -> Chart:
    """Horizontal bars, each with its name at the left and its value at its end."""
    if not bars:
        return empty_chart(name, title, table)
    low = min(0.0, *(float(one.value) for one in bars))
    high = max(0.0, *(float(one.value) for one in bars))
    left = _BAR_NAMES + (_BAR_VALUES if low < 0 else 0)
    width = WIDTH - left - _BAR_VALUES
    scale = width / ((high - low) or 1.0)
    zero = left - low * scale
    parts = []
    for number, one in enumerate(bars):
        y, value = number * _ROW, float(one.value)
        kind = "bar" if value >= 0 else "bar below"
        length = max(abs(value) * scale, 1.0)
        start = zero if value >= 0 else zero - length
        written = write(value)
        parts.append(_name(one, y + _ROW / 2 + 4))
        parts.append(bar(start, y + 4, length, _ROW - 8, kind, f"{one.name}: {written}", 2))
        end = start + length + 6 if value >= 0 else start - 6
        anchor = "start" if value >= 0 else "end"
        parts.append(text(end, y + _ROW / 2 + 4, written, "value", anchor))
    parts.append(line(zero, 0, zero, len(bars) * _ROW, "axis"))
    role = "group" if any(one.address for one in bars) else "img"
    return Chart(name, title, WIDTH, len(bars) * _ROW + 4, "".join(parts), *table, role=role)


def _name(one: NamedBar, y: float) -> str:
    written = text(_BAR_NAMES - 10, y, shortened(one.name, _LONGEST_BAR_NAME), "name", "end")
    if one.address is None:
        return written
    return f'<a href="{escape(one.address)}" aria-label="{escape(one.name)}">{written}</a>'


def heat_map(
    name: str,
    title: str,
    cells: dict[tuple[date, date], tuple[int, int]],
    table: Table,
    words: Callable[[date, date, int, int], str],
) -> Chart:
    """A heat map: periods from top to bottom, days of publication from left to right.

    A cell counts the figures of a period that became known on a day, and how many were restated.
    """
    periods = sorted({period for period, _ in cells}, reverse=True)
    row_height = 16 if len(periods) <= 24 else 9
    height = TOP + len(periods) * row_height + BOTTOM
    edge = WIDTH - RIGHT - 8
    first, last = min(day for _, day in cells), max(day for _, day in cells)
    left = 84
    days = DayScale(min(first, periods[-1]), last, left, edge)
    most = max(count for count, _ in cells.values())
    parts = []
    for tick, label in days.ticks:
        x = days(tick)
        parts += [line(x, TOP, x, height - BOTTOM, "grid"), text(x, height - 10, label, anchor="middle")]
    for number, period in enumerate(periods):
        y = TOP + number * row_height
        if row_height > 10 or number % 2 == 0:
            parts.append(text(left - 8, y + row_height - 4, period.isoformat(), anchor="end"))
        parts.append(line(left, y + row_height / 2, WIDTH - RIGHT, y + row_height / 2, "grid"))
    rows = {period: number for number, period in enumerate(periods)}
    for (period, day), (count, restated) in sorted(cells.items()):
        shade = min(4, 1 + int(3.999 * count / most))
        kind = f"heat heat{shade}" + (" restated" if restated else "")
        x, y = days(day), TOP + rows[period] * row_height
        parts.append(bar(x - 3.5, y + 1, 7, row_height - 2, kind, words(period, day, count, restated), 1.5))
    return Chart(name, title, WIDTH, height, "".join(parts), *table)


_ROWS: Final = (
    ".. .. MA DZ TN LY EG .. .. ..",
    "CV .. MR ML NE TD SD ER .. ..",
    "GM SN GN BF BJ NG CF SS ET DJ",
    "GW SL LR CI GH TG CM UG KE SO",
    ".. .. .. ST GQ GA CG CD RW SC",
    ".. .. .. .. .. AO ZM BI TZ KM",
    ".. .. .. .. .. NA BW ZW MW MG",
    ".. .. .. .. .. .. ZA SZ MZ MU",
    ".. .. .. .. .. .. LS .. .. ..",
)
TILES: Final[Mapping[str, tuple[int, int]]] = {
    code: (column, row)
    for row, line in enumerate(_ROWS)
    for column, code in enumerate(line.split())
    if code != ".."
}
"""The column and row of each country."""
_SIZE: Final = 46
_GAP: Final = 4


class Tile(NamedTuple):
    """A country's tile: its shade (1 to 4), its text and its link."""

    level: int
    words: str
    address: str


def tile_map(name: str, title: str, tiles: Mapping[str, Tile], table: Table) -> Chart:
    """Countries without a tile of their own in `tiles` are drawn empty."""
    parts = []
    for code, (column, row) in TILES.items():
        x, y = column * _SIZE, row * _SIZE
        tile = tiles.get(code)
        kind = "tile" if tile is None else f"tile heat{tile.level}"
        edge = _SIZE - _GAP
        box = f'<rect class="{kind}" x="{x}" y="{y}" width="{edge}" height="{edge}" rx="6"/>'
        ink = "on-dark" if tile is not None and tile.level > 2 else "on-light"
        middle = f'x="{x + edge / 2:.0f}" y="{y + edge / 2 + 4:.0f}"'
        drawn = f'{box}<text class="code {ink}" {middle} text-anchor="middle">{code}</text>'
        if tile is not None:
            title_of = f"<title>{escape(f'{code}, {tile.words}')}</title>"
            drawn = f'<a href="{escape(tile.address)}">{title_of}{drawn}</a>'
        parts.append(drawn)
    size = len(_ROWS[0].split()) * _SIZE - _GAP, len(_ROWS) * _SIZE - _GAP
    return Chart(name, title, *size, "".join(parts), *table, role="group")
