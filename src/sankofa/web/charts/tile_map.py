"""Africa as tiles: one for each country, about where it lies, each leading to its page."""

from collections.abc import Mapping
from html import escape
from typing import Final, NamedTuple

from sankofa.web.charts.chart import Chart, Table

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
    """What a country has: how dark its tile is (1 to 4), what is said of it, and where it leads."""

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
                f'<a href="{escape(tile.address)}" aria-label="{escape(tile.words)}">'
                f"<title>{escape(tile.words)}</title>{box}{word}</a>"
            )
    columns, rows = len(_ROWS[0].split()), len(_ROWS)
    size = columns * _SIZE - _GAP, rows * _SIZE - _GAP
    return Chart(name, title, *size, "".join(parts), *table, role="group")
