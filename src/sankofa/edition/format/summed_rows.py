"""Rows with a sum: it tells two answers of a locked view apart, without reading them once more."""

from collections.abc import Iterable, Mapping
from zlib import adler32, crc32

RowSlice = bytes | memoryview
"""A slice of the rows of a block, not copied until the answer is assembled."""


class SummedSlices(list[RowSlice]):
    """Slices of rows, with a sum that other rows would not have; None if it is not known."""

    def __init__(self, slices: Iterable[RowSlice] = (), total: int | None = 0) -> None:
        super().__init__(slices)
        self.total = total

    def __iadd__(  # type: ignore[misc, override]  # of `+` nothing is asked
        self, others: Iterable[RowSlice]
    ) -> "SummedSlices":
        size = len(self)
        super().__iadd__(others)
        own = others.total if isinstance(others, SummedSlices) else None if len(self) > size else 0
        self.total = None if own is None or self.total is None else self.total + own
        return self


class SummedRows(bytes):
    """The rows of a block, with the sum of all rows before a place, by the begins and the ends of rows."""

    sums: Mapping[int, int]


def sum_of(row: bytes) -> int:
    """What a row adds to a sum."""
    return crc32(row) << 32 | adler32(row)
