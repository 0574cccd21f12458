"""What the last build made of which inputs, so that the next can take over what would come out the same.

It is no source of truth: a part is taken over under its own digest, and what is not written down here, or not
in a kept edition any more, is made.
"""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from sankofa.engines.private_files import make_private_folder, replace_file

T = TypeVar("T")
_DIGEST: Final = 32


class PartEntry(msgspec.Struct, frozen=True):
    """A part as the manifest has it."""

    kinds: list[str]
    first: str
    content: str


class DatasetRecord(msgspec.Struct, frozen=True):
    """A dataset that was built."""

    inputs: str
    parts: list[PartEntry]
    rows: int
    manifest_extras: dict[str, Any]
    sources: list[str] | None
    tally: list[tuple[str, str, str, str, int, int, int, int, int]] | None
    returned: bool
    """Whether it had anything to give to the datasets that need it."""
    part_inputs: list[str] = []
    """Of each part, where it is cut between its keys: a digest of what is in it (`write.key_ranges`)."""
    part_rows: list[int] = []


class PartitionRecord(msgspec.Struct, frozen=True):
    """The part of some organisations."""

    part: PartEntry
    rows: dict[str, int]
    """By kind."""
    sources: dict[str, list[str]]
    """By kind, where each row names but one of several."""
    first_blocks: dict[str, int]
    """By service_id, the number of the first block of its metrics."""


class SegmentRecord(msgspec.Struct, frozen=True, array_like=True):
    """Rows of a table that follow each other and are made of the same organisations."""

    inputs: str
    rows: int
    left_out: int
    """Of an open table: rows that it may not have."""


class TableRecord(msgspec.Struct, frozen=True):
    """A table that was written."""

    inputs: str
    """Empty where it cannot be told what all of it is made of."""
    files: list[dict[str, Any]]
    """As the manifest has them."""
    segments: list[SegmentRecord] = []
    """In the order of its rows, from the first on; rows made otherwise come behind them."""


class BuildRecord(msgspec.Struct):
    """Everything that can be taken over, and what was worked out on the way."""

    datasets: dict[str, DatasetRecord] = {}
    tables: dict[str, TableRecord] = {}
    partitions: dict[str, PartitionRecord] = {}
    """By their inputs."""
    results: dict[str, tuple[str, bytes]] = {}
    """By name, the inputs and what was worked out of them."""

    def recall(self, name: str, inputs: str, shape: type[T], make: Callable[[], T]) -> T:
        """What was worked out of these inputs, or is now."""
        known = self.results.get(name)
        if known is not None and known[0] == inputs:
            return msgspec.msgpack.decode(known[1], type=shape)
        outcome = make()
        self.results[name] = inputs, msgspec.msgpack.encode(outcome)
        return outcome


_read = msgspec.msgpack.Decoder(BuildRecord).decode


def load_record(path: Path | None) -> BuildRecord:
    """Empty where there is none, or it is not whole."""
    if path is not None:
        with suppress(OSError, msgspec.MsgspecError):
            content = path.read_bytes()
            if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                return _read(content[_DIGEST:])
    return BuildRecord()


def save_record(path: Path | None, record: BuildRecord) -> None:
    """In one step. Without it the next build only takes longer."""
    if path is None:
        return
    content = msgspec.msgpack.encode(record)
    with suppress(OSError):
        make_private_folder(path.parent)
        replace_file(path, sha256(content).digest() + content, durable=False)
