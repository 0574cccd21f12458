"""Charts of counts: upright bars along time, named bars, a heat map of days, and Africa as tiles."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from html import escape
from typing import Final, NamedTuple

from sankofa.web.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    DayScale,
    Table,
    ValueScale,
    Write,
    empty_chart,
    line,
    text,
    value_axis,
)

_HEIGHT: Final = 220
_ROW: Final = 24
_WIDEST_BAR: Final = 90
_NAMES: Final = 330
_VALUES: Final = 76
_LONGEST_NAME: Final = 46


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
    values = ValueScale((float(value) for _, value in bars), TOP, _HEIGHT - BOTTOM, zero=True)
    width = (WIDTH - LEFT - RIGHT) / len(bars)
    zero = values(0)
    parts = [value_axis(values, write), text(LEFT, TOP - 7, unit)]
    every = max(1, len(bars) // 8)
    thickness = min(max(width * 0.76, 0.5), _WIDEST_BAR)
    for number, (label, value) in enumerate(bars):
        x, y = LEFT + number * width, values(float(value))
        kind = "bar" if value >= 0 else "bar below"
        parts.append(
            f'<rect class="{kind}" x="{x + (width - thickness) / 2:.1f}" y="{min(y, zero):.1f}" '
            f'width="{thickness:.1f}" height="{max(abs(zero - y), 0.5):.1f}">'
            f"<title>{escape(label)}: {value}</title></rect>"
        )
        if number % every == 0:
            parts.append(text(x + width / 2, _HEIGHT - 10, label, anchor="middle"))
    parts.append(line(LEFT, zero, WIDTH - RIGHT, zero, "axis"))
    return Chart(name, title, WIDTH, _HEIGHT, "".join(parts), *table)


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


class NamedBar(NamedTuple):
    """A bar lying down, with the page that its name leads to."""

    name: str
    value: Decimal | float
    address: str | None = None


def named_bars(name: str, title: str, bars: Sequence[NamedBar], write: Write, table: Table) -> Chart:
    """Bars from top to bottom, each with its name at the left and its value at its end."""
    if not bars:
        return empty_chart(name, title, table)
    low = min(0.0, *(float(bar.value) for bar in bars))
    high = max(0.0, *(float(bar.value) for bar in bars))
    left = _NAMES + (_VALUES if low < 0 else 0)
    width = WIDTH - left - _VALUES
    scale = width / ((high - low) or 1.0)
    zero = left - low * scale
    parts = []
    for number, bar in enumerate(bars):
        y, value = number * _ROW, float(bar.value)
        kind = "bar" if value >= 0 else "bar below"
        length = max(abs(value) * scale, 1.0)
        start = zero if value >= 0 else zero - length
        written = write(value)
        parts.append(_name(bar, y + _ROW / 2 + 4))
        parts.append(
            f'<rect class="{kind}" x="{start:.1f}" y="{y + 4}" width="{length:.1f}" '
            f'height="{_ROW - 8}" rx="2">'
            f"<title>{escape(bar.name)}: {escape(written)}</title></rect>"
        )
        end = start + length + 6 if value >= 0 else start - 6
        anchor = "start" if value >= 0 else "end"
        parts.append(text(end, y + _ROW / 2 + 4, written, "value", anchor))
    parts.append(line(zero, 0, zero, len(bars) * _ROW, "axis"))
    role = "group" if any(bar.address for bar in bars) else "img"
    return Chart(name, title, WIDTH, len(bars) * _ROW + 4, "".join(parts), *table, role=role)


def _name(bar: NamedBar, y: float) -> str:
    written = text(_NAMES - 10, y, shortened(bar.name, _LONGEST_NAME), "name", "end")
    if bar.address is None:
        return written
    return f'<a href="{escape(bar.address)}" aria-label="{escape(bar.name)}">{written}</a>'


def heat_map(
    name: str,
    title: str,
    cells: dict[tuple[date, date], tuple[int, int]],
    table: Table,
    words: Callable[[date, date, int, int], str],
) -> Chart:
    """Periods from top to bottom against days of publication from left to right.

    A cell counts the figures of a period that became known on a day, and how many of them were restated.
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
    for day, label in days.ticks:
        x = days(day)
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
        parts.append(
            f'<rect class="{kind}" x="{x - 3.5:.1f}" y="{y + 1:.1f}" '
            f'width="7" height="{row_height - 2}" rx="1.5">'
            f"<title>{escape(words(period, day, count, restated))}</title></rect>"
        )
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
        word = f'<text class="code {ink}" {middle} text-anchor="middle">{code}</text>'
        if tile is None:
            parts.append(f"{box}{word}")
        else:
            parts.append(
                f'<a href="{escape(tile.address)}"><title>{escape(f"{code}, {tile.words}")}</title>'
                f"{box}{word}</a>"
            )
    columns, rows = len(_ROWS[0].split()), len(_ROWS)
    size = columns * _SIZE - _GAP, rows * _SIZE - _GAP
    return Chart(name, title, *size, "".join(parts), *table, role="group")
