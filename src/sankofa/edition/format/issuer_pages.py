"""Pages of issuers: what is always true of each, and how its figures stood from each day on that changed it.

A page is text: the beginning of each row, behind a comma, as far as it is the same on every day, then
the end of the row for each step of each issuer. A row on a day is two slices of it.

Its index is 32-bit numbers: how many issuers; how many steps; where each beginning starts, and where the last
ends; the same of the steps; the days of the steps in the order of days; the numbers of those steps; whose
each is, as a byte; and after every `_MARK` of them which step each issuer stands at. So the page of a day is
the mark before it and a few changes, however long the histories are.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, pairwise, repeat, takewhile
from typing import Final, NamedTuple

from sankofa.edition.format.row_blocks import Run
from sankofa.engines.datastore import Block
from sankofa.model.days import iso_day
from sankofa.model.provenance import LICENSE_CLASSES

ISSUERS_ON_A_PAGE: Final = 64
RUNS_IN_A_ROW: Final = 2
_MARK: Final = 64
_UNKNOWN: Final = 2**32 - 1


class Step(NamedTuple):
    """How the figures of an issuer stand from a day on."""

    day: int
    first_available: int
    last_available: int
    fact_count: int
    license_class: int
    """Its number in `LICENSE_CLASSES`: the strictest of the figures known."""


def encode_page(issuers: Sequence[tuple[bytes, Sequence[Step]]]) -> tuple[bytes, bytes]:
    """The index and the text of some issuers, each with the beginning of its row up to its licence class."""
    beginnings, ends = [], []
    for beginning, own in issuers:
        own_ends = [_end(step) for step in own]
        shared = _shared_beginning(own_ends)
        beginnings.append(b",%b%b" % (beginning, shared))
        ends += [end[len(shared) :] for end in own_ends]
    steps = [(step.day, owner, step) for owner, (_, own) in enumerate(issuers) for step in own]
    bounds = array("I", [0])
    for piece in chain(beginnings, ends):
        bounds.append(bounds[-1] + len(piece))
    by_day = sorted(range(len(steps)), key=lambda number: steps[number][:2])
    owners = bytes(steps[number][1] for number in by_day)
    index = (
        array("I", (len(issuers), len(steps))),
        bounds[: len(issuers) + 1],
        bounds[len(issuers) :],
        array("I", [steps[number][0] for number in by_day]),
        array("I", by_day),
        owners + bytes(-len(owners) % 4),
        _marks(len(issuers), by_day, owners),
    )
    return b"".join(index), b"".join((*beginnings, *ends))


def _shared_beginning(ends: Sequence[bytes]) -> bytes:
    """What all of them begin with."""
    lowest, highest = min(ends, default=b""), max(ends, default=b"")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(lowest, highest, strict=False))
    return lowest[: sum(1 for _ in same)]


def _marks(issuers: int, by_day: Sequence[int], owners: bytes) -> "array[int]":
    """The step of each issuer before the first change, and after every so many."""
    state = array("I", repeat(_UNKNOWN, issuers))
    marks = array("I")
    for number, (step, owner) in enumerate(zip(by_day, owners, strict=True)):
        if number % _MARK == 0:
            marks += state
        state[owner] = step
    return marks if len(by_day) % _MARK else marks + state


def _end(step: Step) -> bytes:
    return (
        f'"license_class":"{LICENSE_CLASSES[step.license_class]}",'
        f'"first_available":"{iso_day(step.first_available)}",'
        f'"last_available":"{iso_day(step.last_available)}","fact_count":{step.fact_count}}}'
    ).encode()


class IssuersKnown(NamedTuple):
    """The rows of issuers of a page that are known on a day, and the number of the first without a row."""

    runs: list[Run]
    """Each row in `RUNS_IN_A_ROW` of them, behind a comma."""
    following: int | None


class PagePieces(NamedTuple):
    """The text of a page in pieces, for whoever reads it again and again."""

    beginnings: Sequence[Run]
    """Of each row, behind a comma."""
    ends: Sequence[Run] = ()
    """Of each step; none where they are not kept."""


def pieces_of(block: Block, *, ends: bool = False) -> PagePieces:
    """The beginnings of a page, which are the same on every day, and the ends where they are asked for."""
    index, text = block
    words = memoryview(index).cast("I")
    last = 3 + words[0]
    stops = words[2 : last + words[1] + 1 if ends else last].tolist()
    pieces = [bytes(text[start:end]) for start, end in pairwise(stops)]
    # Where the beginnings end is written twice: as their last bound, and as the first of the steps.
    return PagePieces(pieces[: words[0]], pieces[words[0] + 1 :])


class PageIndex:
    """The index of a page, read once for whoever asks it about many days."""

    __slots__ = ("_changes", "_days", "_marks", "_order", "_owners", "_words", "bounds", "issuers")

    def __init__(self, index: bytes | memoryview) -> None:
        words = self._words = memoryview(index).cast("I")
        self.issuers, steps = words[0], words[1]
        days = 3 + self.issuers + steps + 1
        self.bounds = words[3 + self.issuers : days]
        """Where the end of a row begins in the text, of each step, and where the last one ends."""
        self._days, self._order, owners = days, days + steps, days + 2 * steps
        self._changes = words[self._order : owners]
        self._owners = memoryview(index)[4 * owners : 4 * owners + steps]
        self._marks = owners + (steps + 3) // 4

    def state_on(self, day: int) -> list[int]:
        """Of each issuer the step it stands at on a day; `_UNKNOWN` before its first."""
        words, issuers = self._words, self.issuers
        changes = bisect_right(words, day, self._days, self._order) - self._days
        passed = changes - changes % _MARK
        mark = self._marks + issuers * (passed // _MARK)
        state = words[mark : mark + issuers].tolist()
        for owner, step in zip(self._owners[passed:changes], self._changes[passed:changes], strict=True):
            state[owner] = step
        return state


def rows_on(
    block: Block,
    day: int,
    wanted: Sequence[int],
    room: int,
    pieces: PagePieces | None = None,
    page_index: PageIndex | None = None,
) -> IssuersKnown:
    """Of the issuers of a page by their number on it, the first so many of those known on a day.

    `pieces` and `page_index` are those of the page, where the caller has them; the text of the block is not
    needed where `pieces` has the ends of rows.
    """
    index, text = block
    beginnings, page_ends = pieces or pieces_of(block)
    page_index = page_index or PageIndex(index)
    state = page_index.state_on(day)
    known = [number for number in wanted if state[number] != _UNKNOWN] if _UNKNOWN in state else wanted
    shown = known[:room]
    if isinstance(shown, range):  # neighbours, all of them known: as most pages are read
        beginnings, standing = beginnings[shown.start : shown.stop], state[shown.start : shown.stop]
    else:
        beginnings, standing = [beginnings[number] for number in shown], [state[number] for number in shown]
    runs: list[Run] = [b""] * (RUNS_IN_A_ROW * len(shown))
    runs[::2] = beginnings
    if page_ends:
        runs[1::2] = [page_ends[step] for step in standing]
    else:
        ends = page_index.bounds
        runs[1::2] = [text[ends[step] : ends[step + 1]] for step in standing]
    return IssuersKnown(runs, known[room] if len(known) > room else None)
