"""Charts of counts: upright bars along time, named bars, and Africa as tiles."""

from collections.abc import Mapping, Sequence
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
