"""The scales of charts: every accepted value can be drawn."""

import math
import re
from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sankofa.web.charts import DayScale, KnownValue, Line, ValueScale, line_chart, step_chart

VALUES = st.lists(st.floats(allow_nan=False), min_size=1, max_size=20)
TABLE = ("day", "value"), [("day", "value")]


@given(st.dates(), st.dates())
def test_any_two_days_have_a_scale_with_a_few_ticks_between_them(one: date, other: date) -> None:
    first, last = sorted((one, other))
    scale = DayScale(first, last, 60, 844)
    assert len(scale.ticks) <= 9
    assert all(first <= day <= last for day, _ in scale.ticks)
    assert 60 <= scale(first) <= scale(last) <= 844


@given(VALUES, st.booleans())
def test_any_values_have_a_scale_within_its_picture(values: list[float], zero: bool) -> None:
    scale = ValueScale(values, 18, 288, zero=zero)
    assert 2 <= len(scale.ticks) <= 12
    for value in values:
        assert math.isfinite(scale(value))
        assert 17.9 <= scale(value) <= 288.1


@given(st.dates(), st.dates(), st.dates(), st.floats(allow_nan=False))
def test_steps_of_any_days_are_drawn(one: date, other: date, chosen: date, value: float) -> None:
    steps = [KnownValue(day, value, "") for day in sorted((one, other))]
    chart = step_chart("vintages", "", steps, date(2026, 1, 1), str, TABLE, chosen)
    assert "nan" not in chart.picture()


def test_a_long_label_of_a_value_is_inside_the_picture() -> None:
    line = Line("GDP", "main", [(date(2020, 12, 31), 1), (date(2021, 12, 31), 2)])
    short = line_chart("a", "a", [line], lambda value: f"{value:.1f}", ((), []))
    long = line_chart("a", "a", [line], lambda value: f"{value:.1f} thousand million", ((), []))
    assert 'viewBox="0 0 860 320"' in short.markup
    assert re.search(r'viewBox="-\d+ 0 (?!860)\d+ 320"', long.markup)


def test_an_annual_value_is_on_the_tick_of_its_year_and_shows_every_digit() -> None:
    points = [(date(year, 12, 31), Decimal(f"{year}.0625")) for year in range(2008, 2014)]
    chart = line_chart("series", "", [Line("Today", "main", points)], str, TABLE, unit="US$")
    ticks = dict(
        re.findall(r'<text class="label" x="([\d.]+)" y="310.0" text-anchor="middle">(\d+)<', chart.drawing)
    )
    dots = dict(re.findall(r'<circle class="point" cx="([\d.]+)"[^>]*><title>(\d+): ', chart.drawing))
    assert list(ticks.values()) == [str(year) for year in range(2008, 2014)]
    assert dots == ticks
    assert "2010: 2010.0625<" in chart.drawing
    assert ">US$</text>" in chart.drawing
