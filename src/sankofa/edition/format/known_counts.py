"""How much was known on each day: counts by dataset, country and source, for locked views (contract: LOCK-3).

The counts of a key are stored as running totals, one step for each day on which something became known.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import msgspec


class CountOnDay(NamedTuple):
    """The totals of one dataset, country and source on a day."""

    day: int
    """The last day on which something became known."""
    counted: int
    rows: int
    first: int
    last: int
    """The earliest and the latest date of the data; 0 for none."""
    published: int
    """The newest evidenced day of publication; 0 for none."""


class KnownCounts(msgspec.Struct, frozen=True, array_like=True):
    """The steps of a key. Records of sources of identifiers have no sku."""

    sku: str
    country: str
    source_id: str
    unit: str
    steps: bytes
    """32-bit numbers: the fields of `CountOnDay`, column by column."""

    def on(self, day: int) -> CountOnDay | None:
        """The counts on a day; None if nothing was known."""
        columns = memoryview(self.steps).cast("i")
        size = len(columns) // len(CountOnDay._fields)
        step = bisect_right(columns[:size], day) - 1
        return None if step < 0 else CountOnDay(*columns[step::size])


def pack_steps(steps: Iterable[CountOnDay]) -> bytes:
    """Steps in the order of their days."""
    return b"".join(array("i", column).tobytes() for column in zip(*steps, strict=True))


read_known_counts = msgspec.msgpack.Decoder(list[KnownCounts]).decode
write_known_counts = msgspec.msgpack.Encoder().encode
