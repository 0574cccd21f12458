"""An edition in memory: everything an engine's reader does, for tests of what is read off it."""

import hashlib
from collections.abc import Mapping, Sequence

from sankofa.engines.block_file import Block, ByteCache, ByteRange, NeedsRows
from sankofa.engines.edition_reader import EditionReader
from sankofa.engines.publication import Manifest


class MemoryReader(EditionReader):
    """Blocks are numbered from 1, in the order they were given."""

    def __init__(self, manifest: Manifest | None = None) -> None:
        self.manifest: Manifest = manifest or {}
        self.damage: str | None = None
        self.scope = "memory"
        self.cache = ByteCache()
        self.files: Mapping[str, bytes] = {}
        self.asked = 0
        """How many blocks were handed out."""
        self._blocks: list[Block] = []
        self._places: dict[tuple[str, str], range] = {}

    def scrub(self, most: int) -> None:
        """Memory is not damaged."""

    def row_trees(self) -> bytes:
        raise FileNotFoundError

    def shelve(self, kind: str, key: str, blocks: Sequence[Block]) -> None:
        first = len(self._blocks)
        self._blocks += blocks
        self._places[kind, key] = range(first, len(self._blocks))

    def count(self, kind: str, key: str) -> int:
        """How many blocks there are under a key."""
        return len(self._places[kind, key])

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        place = self._places.get((kind, key))
        if place is None:
            return None
        found = [self._blocks[number] for number in place[skip : skip + most]]
        if needs_rows is not None:
            found = [(index, rows if needs_rows(index) else b"") for index, rows in found]
        self.asked += len(found)
        return found

    async def byte_ranges(self, kind: str, places: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        return [self._blocks[block - 1][1][start:end] for block, start, end in places]

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        return self.files[name][start:end]

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        keys = sorted(key for known, key in self._places if known == kind and key > after)
        return [(key, self._digest(kind, key)) for key in keys[:most]]

    def close(self) -> None: ...

    def _digest(self, kind: str, key: str) -> bytes:
        parts = [part for number in self._places[kind, key] for part in self._blocks[number]]
        return hashlib.sha256(b"\0".join(parts)).digest()
