"""Writes the parts of an edition, each with a digest of what is in it."""

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from sankofa.edition.format.columns import columns_kind
from sankofa.edition.format.row_blocks import row_ends
from sankofa.edition.write.build_record import PartEntry
from sankofa.edition.write.checks import check_failed
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Dataset, KeyRows, RowRanges
from sankofa.edition.write.key_ranges import KeyRange, RangeInputs
from sankofa.edition.write.part_boundaries import begins_part
from sankofa.engines.datastore import BLOCK_BITS, EditionWriter
from sankofa.model.errors import CheckFailed

_BATCH: Final = 256
_BYTES_IN_A_PART = 4 << 20
"""On average, of a dataset that is cut between its keys."""
_INDEX_SHARE: Final = 4, 8
"""Parts of an index of organisations are a quarter as large; of large editions an eighth times the scale."""
_BYTES_OF_A_KEY: Final = 128
"""What the directory has of one, about."""


class PartWriter:
    """Writes keys and their blocks, and sums up what it wrote in one digest for each part."""

    def __init__(self, writer: EditionWriter) -> None:
        self.ranges: RowRanges | None = None
        """Where rows stand, where anybody asks."""
        self._writer = writer
        self._begin()

    def _begin(self) -> None:
        self._content = hashlib.sha256()
        self._dataset = ""
        self._next = 1
        self._directory: list[tuple[str, str, int, int]] = []
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def write_key(self, kind: str, keys: tuple[str, ...], blocks: Iterable[tuple[bytes, bytes]]) -> None:
        first = self._next
        self._dataset = self._dataset or kind
        for block in blocks:
            if self.ranges is not None:
                self.ranges.add(self._next, row_ends(block))
            self._write(block)
        self._register(kind, keys, first)

    def write_columns(self, kind: str, keys: tuple[str, ...], columns: list[bytes]) -> None:
        first = self._next
        for part in columns:
            self._write((b"", part))
        self._register(columns_kind(kind), keys, first)

    @property
    def has_keys(self) -> bool:
        return bool(self._directory)

    @property
    def first(self) -> str:
        """The first key."""
        return self._directory[0][1]

    @property
    def last(self) -> str:
        """The last key."""
        return self._directory[-1][1]

    @property
    def next_block(self) -> int:
        """The number that the next block will have."""
        return self._next

    def end(self, first: str) -> PartEntry:
        """The part that was written since, whose keys begin with this one."""
        if self._next > 1 << BLOCK_BITS and (first or self.ranges is not None):
            raise CheckFailed(f"{self._directory[0][0]}: more blocks than a part can have")
        self._flush()
        self._writer.register(self._directory)
        kinds = sorted({kind for kind, *_ in self._directory})
        content = self._content.hexdigest()
        self._writer.end_part(content)
        entry = PartEntry(kinds, first, content)
        self._begin()
        return entry

    def _register(self, kind: str, keys: tuple[str, ...], first: int) -> None:
        """Let keys lead to the blocks written since."""
        for key in keys:
            self._content.update(f"{kind}\x1f{key}\x1f{first}\x1f{self._next - first}\n".encode())
            self._directory.append((kind, key, first, self._next - first))

    def _write(self, block: tuple[bytes, bytes]) -> None:
        self._content.update(block[0])
        self._content.update(block[1])
        self._blocks.append((self._next, *block))
        self._next += 1
        if len(self._blocks) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._blocks, self._dataset)
        self._blocks = []


class PackedKey(NamedTuple):
    """A key with its rows in blocks."""

    key_rows: KeyRows
    blocks: list[tuple[bytes, bytes]]
    rows: int
    average: int
    """How many bytes parts are to have."""

    @property
    def begins_part(self) -> bool:
        size = _BYTES_OF_A_KEY + sum(len(index) + len(rows) for index, rows in self.blocks)
        return begins_part(self.key_rows.key, size, self.average)


def average_size(dataset: Dataset, context: BuildContext) -> int:
    """How many bytes the parts of a dataset are to have that is cut between its keys."""
    if not dataset.of_organisations:
        return _BYTES_IN_A_PART
    least, scaled = _INDEX_SHARE
    return max(_BYTES_IN_A_PART // least, _BYTES_IN_A_PART // scaled * context.part_scale)


class DatasetParts:
    """The parts of one dataset, in the order of their keys; with what each is made of, and how many rows."""

    def __init__(self, part: PartWriter, base: str) -> None:
        self.entries: list[PartEntry] = []
        self.inputs: list[str] = []
        self.rows: list[int] = []
        self._part = part
        self._base = base
        self._begin()

    def _begin(self) -> None:
        self._own_inputs = RangeInputs(self._base)
        self._own_rows = 0

    def write(self, kind: str, one: PackedKey) -> None:
        """The next key, in a part of its own where it begins one."""
        part, key_rows = self._part, one.key_rows
        if part.has_keys and key_rows.key <= part.last:
            raise check_failed(kind, key_rows.key, f"comes after {part.last}, out of order")
        if part.has_keys and one.begins_part:
            self.end()
        self._own_inputs.add(key_rows)
        self._own_rows += one.rows
        part.write_key(kind, (key_rows.key, *key_rows.aliases), one.blocks)

    def end(self) -> None:
        """The part that is being written, if any is, is whole."""
        if self._part.has_keys:
            first = self._part.first if self.entries else ""
            self._add(self._part.end(first), self._own_inputs.hexdigest(), self._own_rows)

    def add_known(self, keys: KeyRange) -> int:
        """A part of the build before, which has these keys; how many rows it has."""
        if keys.part is None:
            return 0
        first = keys.part.part.first if self.entries else ""
        entry = PartEntry(keys.part.part.kinds, first, keys.part.part.content)
        self._add(entry, keys.part.inputs, keys.part.rows)
        return keys.part.rows

    def _add(self, entry: PartEntry, inputs: str, rows: int) -> None:
        self.entries.append(entry)
        self.inputs.append(inputs)
        self.rows.append(rows)
        self._begin()
