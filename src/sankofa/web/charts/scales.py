"""Scales: days and values to places in a picture, with the ticks of their axes."""

import math
from collections.abc import Iterable
from datetime import date
from typing import Final

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_YEARS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
_LARGEST: Final = 1e300
"""A picture has no room for more, and a difference of two such values is still a number."""


class ValueScale:
    """Values from bottom to top, the ends at round numbers."""

    def __init__(self, values: Iterable[float], top: float, bottom: float, *, zero: bool = False) -> None:
        known = [_drawable(value) for value in values if not math.isnan(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        largest = max(abs(low), abs(high))
        if high - low <= largest * 1e-9:  # too close for a scale to tell them apart
            spread = largest * 0.1 or 1.0
            low, high = low - spread, high + spread
        step = _round_step((high - low) / 4)
        self.ticks = [step * number for number in range(math.floor(low / step), math.ceil(high / step) + 1)]
        self._low, self._high = self.ticks[0], self.ticks[-1]
        self._top, self._bottom = top, bottom

    def __call__(self, value: float) -> float:
        value = _drawable(value)
        return self._bottom - (value - self._low) / (self._high - self._low) * (self._bottom - self._top)


class DayScale:
    """Days from left to right, with a tick at the first of some years, or of some months."""

    def __init__(self, first: date, last: date, left: float, right: float) -> None:
        self._first = first.toordinal()
        self._span = max(last.toordinal() - self._first, 1)
        self._left, self._right = left, right
        self.ticks = _day_ticks(first, last)

    def __call__(self, day: date) -> float:
        return self._left + (day.toordinal() - self._first) / self._span * (self._right - self._left)


def _drawable(value: float) -> float:
    """A value too small to divide by is drawn as zero, one too large as the largest that can be drawn."""
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
    every = next(step for step in _YEARS if years / step <= 7)
    beginnings = (date(year, 1, 1) for year in range(first.year, last.year + 1) if year % every == 0)
    return [(day, str(day.year)) for day in beginnings if first <= day <= last]
