"""Pages of issuers: what is always true of each, and how its figures stood from each day on that changed it.

A page is text: the beginning of each issuer's row, then the end of its row for each step, one after another.
Its index is 32-bit numbers: how many issuers; how many steps; where the beginning of each issuer starts and
ends; the number of the first step of each, and of all; the day from which each step holds; where its text
ends. A row is then two slices.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sankofa.engines.datastore import Block
from sankofa.model.days import iso_day
from sankofa.model.provenance import LICENSE_CLASSES

ISSUERS_ON_A_PAGE: Final = 64


class Step(NamedTuple):
    """How the figures of an issuer stand from a day on."""

    day: int
    first_available: int
    last_available: int
    fact_count: int
    license_class: int
    """Its number in `LICENSE_CLASSES`: the strictest of the figures known."""


def encode_page(issuers: Sequence[tuple[bytes, Sequence[Step]]]) -> tuple[bytes, bytes]:
    """The index and the text of some issuers; the beginning of a row ends before its licence class."""
    beginnings, first_steps = array("I"), array("I")
    days, ends = array("I"), array("I")
    text: list[bytes] = []
    position = 0
    for beginning, steps in issuers:
        text.append(beginning)
        beginnings.extend((position, position + len(beginning)))
        position += len(beginning)
        first_steps.append(len(days))
        for step in steps:
            text.append(_end(step))
            position += len(text[-1])
            days.append(step.day)
            ends.append(position)
    first_steps.append(len(days))
    head = array("I", (len(issuers), len(days)))
    return (head + beginnings + first_steps + days + ends).tobytes(), b"".join(text)


def _end(step: Step) -> bytes:
    return (
        f'"license_class":"{LICENSE_CLASSES[step.license_class]}",'
        f'"first_available":"{iso_day(step.first_available)}",'
        f'"last_available":"{iso_day(step.last_available)}","fact_count":{step.fact_count}}}'
    ).encode()


def rows_on(block: Block, day: int, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Of the issuers of a page by their number on it, those known on a day, each with its row."""
    index, rows = block
    text = memoryview(rows)
    words = memoryview(index).cast("I")
    count, total = words[0], words[1]
    beginnings = words[2 : 2 + 2 * count].tolist()
    first_steps = words[2 + 2 * count : 3 + 3 * count].tolist()
    days = words[3 + 3 * count : 3 + 3 * count + total]
    ends = words[3 + 3 * count + total :]
    for number in wanted:
        first = first_steps[number]
        step = bisect_right(days, day, first, first_steps[number + 1]) - 1
        if step >= first:
            start, end = beginnings[2 * number], beginnings[2 * number + 1]
            if step == first:  # it stands right behind the beginning, each other behind the one before it
                yield number, bytes(text[start : ends[step]])
            else:
                yield number, b"".join((text[start:end], text[ends[step - 1] : ends[step]]))
