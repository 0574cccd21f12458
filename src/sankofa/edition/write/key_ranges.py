"""Takes over parts of a dataset that is cut between its keys, where the rows in them would be as they were.

Where a part begins follows from its first key and the rows of that key alone (`write.part_boundaries`). So
the keys of a part before, with the same inputs, are a part again, if the key behind them still begins one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.write.build_record import DatasetRecord, PartEntry
from sankofa.edition.write.dataset import KeyIndex, KeyRows

_write: Final = msgspec.msgpack.Encoder(enc_hook=str).encode


class KnownPart(NamedTuple):
    """A part of the build before, and what its keys were made of."""

    part: PartEntry
    inputs: str
    rows: int


class KeyRange(NamedTuple):
    """Keys that follow each other."""

    keys: Iterable[KeyRows]
    """Looked at once."""
    part: KnownPart | None
    """The part that they were, where nothing changed."""


class RangeInputs:
    """A digest of keys and of what their rows are made of; empty where that is not told of every one."""

    def __init__(self, base: str) -> None:
        self._digest = hashlib.sha256(base.encode())
        self._is_told = True

    def add(self, one: KeyRows) -> None:
        self._is_told &= one.inputs is not None
        if self._is_told:
            self._digest.update(_write((one.key, one.aliases, one.inputs)))

    def hexdigest(self) -> str:
        return self._digest.hexdigest() if self._is_told else ""


def known_parts(record: DatasetRecord | None) -> list[KnownPart]:
    """The parts of a dataset as the build before had them, in the order of their keys."""
    if record is None or len(record.part_inputs) != len(record.parts):
        return []
    recorded = zip(record.parts, record.part_inputs, record.part_rows, strict=True)
    return [KnownPart(part, inputs, rows) for part, inputs, rows in recorded]


def key_ranges(key_rows: Iterable[KeyRows], known: Sequence[KnownPart], base: str) -> Iterator[KeyRange]:
    """All keys in their order, those of each part of the build before together; where there was none, each by
    itself."""
    if not known:
        for one in key_rows:
            yield KeyRange((one,), None)
        return
    position = 0

    def number_of(one: KeyRows) -> int:
        nonlocal position
        while position + 1 < len(known) and known[position + 1].part.first <= one.key:
            position += 1
        return position

    for number, group in groupby(key_rows, key=number_of):
        keys = list(group)
        inputs = RangeInputs(base)
        for one in keys:
            inputs.add(one)
        same = known[number].inputs != "" and known[number].inputs == inputs.hexdigest()
        yield KeyRange(keys, known[number] if same else None)


def index_ranges(index: KeyIndex, known: Sequence[KnownPart], base: str) -> Iterator[KeyRange]:
    """The same of an index that tells what a range is made of without looking at each key of it."""
    firsts = [part.part.first for part in known] or [""]
    for number, inputs in enumerate(index_inputs(index, firsts, base)):
        same = bool(known) and known[number].inputs == inputs
        yield KeyRange(index.key_rows(number), known[number] if same else None)


def index_inputs(index: KeyIndex, firsts: Sequence[str], base: str) -> list[str]:
    """Of each part that begins with one of these keys, a digest of all that is in it."""
    return [hashlib.sha256(f"{base}{inputs}".encode()).hexdigest() for inputs in index.split(firsts)]
