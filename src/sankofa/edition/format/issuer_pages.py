"""Pages of issuers: what is always true of each, and how its figures stood from each day on that changed it.

A page is the beginnings of its rows, one after another, under an index: how many issuers; where each
beginning ends; where the steps of each end; then, of every step, the day from which it holds, the days on
which the first and the last of the figures known by then became public, how many facts are known, and the
number of the licence class. All are 32-bit numbers, in columns.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sankofa.engines.datastore import Block
from sankofa.model.days import iso_day
from sankofa.model.provenance import LICENSE_CLASSES

ISSUERS_ON_A_PAGE: Final = 64
CLASS_GOES_HERE: Final = b"\0"
"""Where in the beginning of a row the licence class stands."""
_COLUMNS: Final = 5
_CLASSES: Final = tuple(name.encode() for name in LICENSE_CLASSES)


class Step(NamedTuple):
    """How the figures of an issuer stand from a day on."""

    day: int
    first_available: int
    last_available: int
    fact_count: int
    license_class: int
    """Its number in `LICENSE_CLASSES`: the strictest of the figures known."""


def encode_page(issuers: Sequence[tuple[bytes, Sequence[Step]]]) -> tuple[bytes, bytes]:
    """The index and the beginnings of some issuers' rows."""
    ends, step_ends = array("I"), array("I")
    steps: list[Step] = []
    position = 0
    for beginning, own in issuers:
        position += len(beginning)
        steps += own
        ends.append(position)
        step_ends.append(len(steps))
    columns = b"".join(array("I", column).tobytes() for column in zip(*steps, strict=True))
    index = array("I", (len(issuers),)).tobytes() + ends.tobytes() + step_ends.tobytes() + columns
    return index, b"".join(beginning for beginning, _ in issuers)


def rows_on(block: Block, day: int, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Of the issuers of a page by their number on it, those known on a day, each with its row."""
    index, beginnings = block
    words = memoryview(index).cast("I")
    count = words[0]
    ends, step_ends = words[1 : 1 + count].tolist(), words[1 + count : 1 + 2 * count].tolist()
    total = step_ends[-1]
    start = 1 + 2 * count
    days, firsts, lasts, counts, classes = (
        words[start + n * total : start + (n + 1) * total] for n in range(_COLUMNS)
    )
    text = bytes(beginnings)
    for number in wanted:
        before = step_ends[number - 1] if number else 0
        step = bisect_right(days, day, before, step_ends[number]) - 1
        if step < before:
            continue
        beginning = text[ends[number - 1] if number else 0 : ends[number]]
        yield (
            number,
            b'%b,"first_available":"%b","last_available":"%b","fact_count":%d}'
            % (
                beginning.replace(CLASS_GOES_HERE, _CLASSES[classes[step]], 1),
                iso_day(firsts[step]).encode(),
                iso_day(lasts[step]).encode(),
                counts[step],
            ),
        )
