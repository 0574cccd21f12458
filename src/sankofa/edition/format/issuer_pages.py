"""Issuers: pages of them, their histories, and the screen index.

A page has the constant part of each row, and its changing part from each day on. It is text: the constant
beginning of each row, after a comma, then the end of the row for each step of each issuer. A row on a day is
two slices of the page.

Its index has 32-bit numbers: number of issuers; number of steps; the start of each beginning, and the end of
the last; the same for the steps; the days of the steps in order; the numbers of those steps; the issuer of
each, as a byte; and after every `_MARK` of them the current step of each issuer. So reading the page of a day
takes one mark and a few changes, however long the histories are.

A history has the known metrics and full-year line items of an issuer from each day on. There is one record
for each issuer, by service_id, with a list of steps for each column. A step lasts until the next, so the cell
of a day is found by binary search.

The screen index: the values of a metric in order of size, by country and year.

A screen is a metric, a country (or all) and a day. Each metric, country and calendar year in which anything
changes has one page. It lists the values valid on any day of that year, largest first, ties by service_id:
their order from the smallest, the last day of the year of each, the days on which each is valid, and from
each day on the number of issuers in each state (a value, or a reason for none). Days and counts are stored
twice: for `basis=current` and for `basis=as_known`. A year without a page is the same as the end of the last
year before it. The byte ranges of the `/v1/metrics` rows are stored separately under the same key, because an
added row moves the other rows of its issuer. The top of a screen is the first values that are valid on the
day: nothing is sorted, grouped or counted.

One byte, the mark, gives the days out of sixteen on which a value is valid: there are 136 stretches within
sixteen days, and the empty one. The marks of all values for the same days are consecutive, so one translation
of bytes finds the values that are valid on a day, and only those are unpacked.

Layout of a page, in little-endian 32-bit words: for each basis number of days, the days, per day a count for
each state; number of values; the order from the smallest; the last day of the year of each value; then, in
bytes, for each basis and each sixteen days the mark of every value; padded to whole words. Byte ranges:
block, start and end of the row of each value.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, pairwise, repeat, takewhile
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.row_blocks import RowSlice
from sankofa.edition.format.visibility import visible
from sankofa.engines.block_file import Block
from sankofa.model.days import iso_day
from sankofa.model.provenance import LICENSE_CLASSES
from sankofa.model.rows import REASONS, State

ISSUERS_ON_A_PAGE: Final = 64
SLICES_PER_ROW: Final = 2
_MARK: Final = 64
_UNKNOWN: Final = 2**32 - 1


class Step(NamedTuple):
    """The figures of an issuer from a day on."""

    day: int
    first_available: int
    last_available: int
    fact_count: int
    license_class: int
    """Position in `LICENSE_CLASSES` of the strictest class of the known figures."""


def encode_page(issuers: Sequence[tuple[bytes, Sequence[Step]]]) -> tuple[bytes, bytes]:
    """The index and text of a page. Each issuer has the beginning of its row, up to the licence class."""
    beginnings, ends = [], []
    for beginning, own in issuers:
        own_ends = [_end(step) for step in own]
        shared = _shared_beginning(own_ends)
        beginnings.append(b",%b%b" % (beginning, shared))
        ends += [end[len(shared) :] for end in own_ends]
    steps = [(step.day, owner, step) for owner, (_, own) in enumerate(issuers) for step in own]
    bounds = array("I", [0])
    for part in chain(beginnings, ends):
        bounds.append(bounds[-1] + len(part))
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
    """Their common prefix."""
    lowest, highest = min(ends, default=b""), max(ends, default=b"")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(lowest, highest, strict=False))
    return lowest[: sum(1 for _ in same)]


def _marks(issuers: int, by_day: Sequence[int], owners: bytes) -> "array[int]":
    """The step of each issuer before the first change, and after every `_MARK` changes."""
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
    """The rows of a page known on a day, and the number of the first issuer that did not fit."""

    slices: list[RowSlice]
    """`SLICES_PER_ROW` slices for each row, after a comma."""
    following: int | None


class IssuerPage:
    """The index of a page and the beginnings of its rows, decoded once for many days."""

    def __init__(self, block: Block) -> None:
        index, text = block
        words = self._words = memoryview(index).cast("I")
        self._issuers, steps = words[0], words[1]
        bounds = 3 + self._issuers
        days = bounds + steps + 1
        self._beginnings = [bytes(text[start:end]) for start, end in pairwise(words[2:bounds])]
        self._bounds = words[bounds:days]
        """The start of the end of a row for each step, and the end of the last."""
        self._days, self._order, owners = days, days + steps, days + 2 * steps
        self._changes = words[self._order : owners]
        self._owners = memoryview(index)[4 * owners : 4 * owners + steps]
        self._marks = owners + (steps + 3) // 4

    def beginning(self, number: int) -> bytes:
        """The beginning of the row of an issuer, after a comma."""
        return self._beginnings[number]

    def first_days(self) -> list[int]:
        """The day from which each issuer is known."""
        days = zip(self._owners, self._words[self._days : self._order], strict=True)
        first = dict(reversed([*days]))
        return [first[number] for number in range(self._issuers)]

    def rows_on(self, text: RowSlice, day: int, numbers: Sequence[int], room: int) -> IssuersKnown:
        """The first `room` wanted issuers known on a day; `text` is the text of the page."""
        state = self._state_on(day)
        known = [number for number in numbers if state[number] != _UNKNOWN] if _UNKNOWN in state else numbers
        chosen, ends = known[:room], self._bounds
        slices: list[RowSlice] = [b""] * (SLICES_PER_ROW * len(chosen))
        slices[::2] = [self._beginnings[number] for number in chosen]
        slices[1::2] = [text[ends[step] : ends[step + 1]] for step in [state[number] for number in chosen]]
        return IssuersKnown(slices, known[room] if len(known) > room else None)

    def _state_on(self, day: int) -> list[int]:
        """The step of each issuer on a day; `_UNKNOWN` before its first."""
        words, issuers = self._words, self._issuers
        changes = bisect_right(words, day, self._days, self._order) - self._days
        passed = changes - changes % _MARK
        mark = self._marks + issuers * (passed // _MARK)
        state = words[mark : mark + issuers].tolist()
        for owner, step in zip(self._owners[passed:changes], self._changes[passed:changes], strict=True):
            state[owner] = step
        return state


MOVED_ISSUERS: Final = "issuer-moved"


class MovedIssuer(msgspec.Struct, frozen=True, array_like=True):
    """An issuer on days when its country was different from today's."""

    number: int
    first: int
    until: int
    before: int
    """Number of the issuer that followed it in the list."""
    key: tuple[str, str]
    """Its country (none sorts last) and service_id."""


read_moved = msgspec.msgpack.Decoder(list[MovedIssuer]).decode


HISTORIES: Final = "history"
"""The kind of these records."""
NOT_KNOWN: Final = "not_known"
"""Why a cell is missing: no figure of the line item, or no observation of the series, was known that day."""
MISSING: Final = (NOT_KNOWN, *REASONS.values())
"""Reasons; a step has the position of its reason. Reasons for metrics are at the number of their `State`."""

CellStep = tuple[int, int, int, str]
"""First day; last day of the year (0 for no value); number of the origin or reason; value as JSON."""
CellSteps = tuple[list[int], list[int], list[int], list[str]]
"""The same of every step of a column, with a first step before every day: nothing known."""
CellOrigin = tuple[str, str, str, str]
"""source_ref, license_class, observed_at, and the unit; empty for a metric."""


class IssuerHistory(msgspec.Struct, frozen=True, array_like=True):
    """The known metrics and line items of an issuer. A panel reads few of them: the columns stay encoded."""

    known_from: int
    """The day on which its first figure was known."""
    names: bytes
    """service_id, legal_name and country as members of a row."""
    source_refs: list[str]
    """For each origin. The first is the day of the issuer's first figure."""
    kinds: list[int]
    """For each origin, the number of its kind."""
    origin_kinds: list[tuple[str, str, str]]
    """license_class, observed_at and unit."""
    columns: dict[str, bytes]
    """The steps of each column, by slug of the metric or name of the line item."""


def issuer_history(
    known_from: int,
    names: bytes,
    origins: Iterable[CellOrigin],
    columns: Mapping[str, Sequence[CellStep]],
) -> bytes:
    refs, own_kinds = zip(*((origin[0], origin[1:]) for origin in origins), strict=True)
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(own_kinds))}
    stored = {name: _pack(tuple(zip((0, 0, 0, ""), *steps, strict=True))) for name, steps in columns.items()}
    kinds = [numbers[kind] for kind in own_kinds]
    return _pack(IssuerHistory(known_from, names, list(refs), kinds, list(numbers), stored))


_pack = msgspec.msgpack.Encoder().encode
read_history = msgspec.msgpack.Decoder(IssuerHistory).decode
read_steps = msgspec.msgpack.Decoder(CellSteps).decode


COMPANY_FACTS: Final = "company-facts"
"""The kind of the figures of an issuer in the SEC's form, by service_id."""
_FIGURE_BREAK: Final = b",\n"
"""Between two figures; inside a text a line break is escaped."""


class _StoredConcept(msgspec.Struct, frozen=True, array_like=True):
    """One concept in one unit, and the bytes of its figures within the text."""

    taxonomy: str
    tag: str
    unit: str
    label: str
    newest: int
    known: bytes
    """The day from which on each figure is known, as 32-bit numbers."""
    begin: int
    end: int


class CompanyConcept(NamedTuple):
    """The figures of one concept in one unit: every vintage, by period, then by day."""

    taxonomy: str
    tag: str
    unit: str
    label: str
    figures: Sequence[tuple[int, bytes]]
    """The day from which on each is known, and the figure as JSON."""


class KnownConcept(NamedTuple):
    """One concept in one unit, and its figures as JSON between brackets."""

    taxonomy: str
    tag: str
    unit: str
    label: str
    figures: bytes


def company_facts(concepts: Sequence[CompanyConcept]) -> tuple[bytes, bytes]:
    """The concepts of an issuer, in order, as a block: the newest day and a list of them, and their text."""
    written = [
        KnownConcept(*one[:-1], b"[%b]" % _FIGURE_BREAK.join([figure for _, figure in one.figures]))
        for one in concepts
    ]
    text = _facts_text(written)
    stored, end = list[_StoredConcept](), 0
    for one, (taxonomy, tag, unit, label, figures) in zip(concepts, written, strict=True):
        days = array("i", [day for day, _ in one.figures])
        begin = text.index(figures, end)
        end = begin + len(figures)
        stored.append(_StoredConcept(taxonomy, tag, unit, label, max(days), days.tobytes(), begin, end))
    newest = max((one.newest for one in stored), default=0)
    return _NEWEST.pack(newest) + _write_concepts(stored), text


def _facts_text(concepts: Iterable[KnownConcept]) -> bytes:
    """The concepts as a JSON object by taxonomy, tag and unit."""
    parts: list[bytes] = []
    taxonomy = tag = None
    for one in concepts:
        if one.taxonomy != taxonomy:
            parts.append(b"%b%b:{" % (b"}}}," if parts else b"", _encode(one.taxonomy)))
        elif one.tag != tag:
            parts.append(b"}},")
        if (one.taxonomy, one.tag) != (taxonomy, tag):
            taxonomy, tag = one.taxonomy, one.tag
            parts.append(b'%b:{"label":%b,"description":"","units":{' % (_encode(tag), _encode(one.label)))
        else:
            parts.append(b",")
        parts += (_encode(one.unit), b":", one.figures)
    return b"{%b%b}" % (b"".join(parts), b"}}}" if parts else b"")


def concepts_on(block: Block, day: int) -> Iterator[KnownConcept]:
    """The concepts with a figure that was known on a day, in order."""
    index, text = block
    for one in _read_concepts(index[_NEWEST.size :]):
        figures = bytes(text[one.begin : one.end])
        if one.newest > day:
            is_known = map(day.__ge__, memoryview(one.known).cast("i"))
            figures = b"[%b]" % _FIGURE_BREAK.join(compress(figures[1:-1].split(_FIGURE_BREAK), is_known))
        if len(figures) > len(b"[]"):
            yield KnownConcept(one.taxonomy, one.tag, one.unit, one.label, figures)


def company_facts_on(block: Block, day: int) -> bytes:
    """Every figure that was known on a day, as a JSON object by taxonomy, tag and unit."""
    index, text = block
    (newest,) = _NEWEST.unpack_from(index)
    return bytes(text) if newest <= day else _facts_text(concepts_on(block, day))


_NEWEST: Final = struct.Struct("<i")
_encode = msgspec.json.Encoder().encode
_write_concepts = msgspec.msgpack.Encoder().encode
_read_concepts = msgspec.msgpack.Decoder(list[_StoredConcept]).decode


SCREEN = "screen"
SCREEN_RANGES = "screen-ranges"
"""The kinds of pages, and of the byte ranges of their rows."""
AS_OF = b'"as_of":"0001-01-01","age_days":0'
"""Placeholder for the applied day and the age in a stored row; inside a text its quotes would be escaped."""
UNDATED = b"{" + AS_OF + b","
"""The start of a row. The day comes first, so that a screen can leave it out."""
PERIOD_END = b'"period_end":"'
"""Precedes the last day of the year in a stored row; the first match belongs to the row itself."""
STATES = len(State)
BYTE_RANGE = struct.Struct("<3I")
"""Block, start and end of the row of a value, after its day."""
DAYS_PER_MARK = 16
"""Days covered by one mark."""
LAST_DAY = 365
"""Days of a year count from 0. This day, real or not, shows the values that are valid after the year."""
_MARKS = [(first, until) for first in range(DAYS_PER_MARK) for until in range(first + 1, DAYS_PER_MARK + 1)]
MARK_OF = {days: mark for mark, days in enumerate(_MARKS, 1)}
VALID_ON = [
    bytes([0, *(visible(first, until, day) for first, until in _MARKS)]).ljust(256, b"\0")
    for day in range(DAYS_PER_MARK)
]
"""For each of the sixteen days, by mark: 1 if the value is valid."""
EVERYWHERE = ""
MARKS_PER_YEAR = LAST_DAY // DAYS_PER_MARK + 1
