"""A chart: its picture and the table it is drawn from."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

import msgspec
from markupsafe import Markup

Table = tuple[tuple[str, ...], Sequence[Sequence[object]]]
"""What a chart is drawn from: the names of the columns, and the rows."""


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
    """`group` for a picture with links in it, which a reader of the screen enters."""

    @property
    def markup(self) -> Markup:
        """The picture to be put into a page, which styles it."""
        return Markup(self._svg(""))  # nosec B704  # noqa: S704 - its texts are escaped one by one

    def picture(self) -> str:
        """The picture as a file of its own, with its own style."""
        style = files("sankofa.web").joinpath("charts", "chart.css").read_text(encoding="utf-8")
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + self._svg(f"<style>{style}</style>")

    def _svg(self, style: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {self.width} {self.height}" '
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
