"""The read side of a published edition."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import msgspec

from sankofa.edition.format.columns import RowFilter
from sankofa.edition.format.keys import ENTITIES, OF_ISSUERS
from sankofa.edition.format.row_blocks import (
    RowSlice,
    between,
    last_row,
    select,
    select_where,
    shows_any,
    without_first,
    without_last,
)
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.row_forms import BareReader, FormReader, RowForm, Sources
from sankofa.edition.read.yield_points import CALL_BYTES
from sankofa.engines.block_file import Block, BoundedCache, ByteRange, NeedsRows
from sankofa.engines.edition_reader import EditionReader
from sankofa.model.provenance import EVERY_SOURCE, LICENSE_NOTICE, in_a_header
from sankofa.model.vintages import Mode

_ROWS_IN_A_BLOCK = 64
_EVERY_BLOCK = 2**31 - 1
_CHUNK = 512 * 1024
_FOUND_AT_MOST = 16_384
_MOST_KEYS = 1_000
_MOST_PARTS = 256
_BLOCKS_PER_YIELD = 32
_FILTERED_BLOCKS_PER_YIELD = 8
"""Most blocks whose rows are tested or rewritten one by one."""


class Selection(msgspec.Struct, frozen=True):
    """Rows as they go on the wire, in slices to be joined, and whether more matched."""

    slices: Sequence[bytes | memoryview]
    count: int
    truncated: bool
    row_filter: RowFilter | None = None
    """The filter that selects exactly these rows, if there is one."""
    between: bytes = b","
    slices_per_row: int = 1
    """Slices per row, if slices are parts of rows."""
    following: tuple[int | str, ...] | None = None
    """Start of the next rows; None if there are none."""
    sources: Sources | None = None
    """Sources of the rows, if `row_forms` read them; None if unknown."""
    organisations: Collection[bytes] | None = None
    """Organisations in the rows, at least those that ever changed, if `row_forms` read them; else None."""
    origin: tuple[str, str] | None = None
    """Kind and key of the rows, if a locked view read them."""

    @property
    def rows(self) -> bytes:
        return self.between.join(self.slices)

    @property
    def last_row(self) -> bytes:
        if self.slices_per_row == 1:
            return last_row(self.slices[-1])
        return b"".join(self.slices[-self.slices_per_row :]).removeprefix(b",")

    def lists(self) -> Iterator[bytes]:
        """The rows as JSON lists of bounded size, in their order."""
        chunk: list[bytes | memoryview] = []
        size = 0
        for number, row_slice in enumerate(self.slices, 1):
            chunk.append(row_slice)
            size += len(row_slice)
            if size >= CALL_BYTES and number % self.slices_per_row == 0:
                yield b"[%b]" % self.between.join(chunk).removeprefix(b",")
                chunk, size = [], 0
        if chunk:
            yield b"[%b]" % self.between.join(chunk).removeprefix(b",")


class Notice:
    """The `_license` of a dataset, encoded once for every form of an answer."""

    __slots__ = ("header", "json", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.json = msgspec.json.encode(text).decode()
        self.header = in_a_header(text)


class Edition:
    """An immutable snapshot: the same question always has the same answer."""

    lock: date | None = None
    """The day of a locked view (`day_view`)."""

    def __init__(self, edition_id: str, reader: EditionReader) -> None:
        self.id = edition_id
        self.manifest = reader.manifest
        self._stored = reader
        self.bare = BareReader(reader)
        """Reads rows for locked views."""
        self._reader: EditionReader | BareReader = reader
        self._cached_numbers: dict[tuple[str, str], memoryview] = {}
        self._cached_blocks: dict[tuple[str, str], Block] = {}
        self._cached_keys: dict[str, tuple[str, ...]] = {}
        self._segments: dict[str, list[str]] = {}
        self.parts = BoundedCache[tuple[str, str, int], Any](_MOST_PARTS)
        """Values computed from a block, by kind, key and number of the block."""
        self.caches: dict[str, BoundedCache[Any, Any]] = {}
        """Further caches of readers, by name."""
        self.first_days = BoundedCache[str, tuple[int, bool]](_FOUND_AT_MOST)
        """The first day of organisations, and whether their row ever changed (`day_view`)."""
        self.first_days_if_locked = BoundedCache[str, tuple[int, bool]](_FOUND_AT_MOST)
        self.files: Mapping[str, Mapping[str, Any]] = {
            one["name"]: one for one in self.manifest.get("files", ())
        }
        """Its Parquet files by name, as the manifest lists them."""
        notices = self.manifest.get("notices") or {EVERY_SOURCE: LICENSE_NOTICE}
        self.terms_of_sources: dict[Sources, Notice] = {}
        """The `_license` texts of rows of some sources."""
        self._notices = {dataset: Notice(text) for dataset, text in notices.items()}

    def notice(self, dataset: str) -> "Notice":
        """The terms and attribution of a dataset; those for all data if the dataset is unknown."""
        return self._notices.get(dataset) or self._notices[EVERY_SOURCE]

    async def file_chunks(self, name: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [start, end) of a file, a few at a time."""
        while start < end:
            stop = min(end, (start // _CHUNK + 1) * _CHUNK)
            yield await self._stored.file_bytes(name, start, stop)
            start = stop

    async def holds(self, kind: str, key: str) -> bool:
        return await self._reader.blocks(kind, key, 0, 0) is not None

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, form: RowForm | None = None
    ) -> Sequence[Block]:
        """The blocks under a key, for the reader of its dataset; none if there is no such key."""
        reader = self._reader if form is None else FormReader(self._reader, form)
        return await reader.blocks(kind, key, skip, most) or ()

    @property
    def last_person_capture(self) -> int:
        """The newest capture that proved a party to be a natural person (see `format.edition_id`)."""
        return int(self.manifest.get("proven", 0))

    @property
    def left_out(self) -> list[str]:
        """Sources that could not be redistributed when it was published."""
        return [one["source"] for one in self.manifest.get("left_out", ())]

    async def raw(self, kind: str, key: str) -> bytes | memoryview | None:
        """The bytes under a key of an index; None if there is no such key."""
        if (block := self._cached_blocks.get((kind, key))) is None:
            block = await self.index_block(kind, key)
        return None if block is None else block[1]

    async def index_block(self, kind: str, key: str) -> Block | None:
        """The only block under a key of an index; None if there is no such key."""
        if (cached := self._cached_blocks.get((kind, key))) is not None:
            return cached
        blocks = await self._reader.blocks(kind, key, 0, 1)
        if blocks is None:
            return None
        block = blocks[0]
        if isinstance(block[1], memoryview) and len(self._cached_blocks) < _FOUND_AT_MOST:
            self._cached_blocks[kind, key] = block  # a view of a mapped file takes no memory
        return block

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        """The keys of a kind after a key, in order, each with the digest of its blocks if known."""
        return await self._stored.digests(kind, after, most)

    def row_trees(self) -> bytes:
        """The hashes of its rows. Raises OSError if this machine has none."""
        return self._stored.row_trees()

    async def rows_at(self, kind: str, ranges: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        return await self._reader.byte_ranges(kind, ranges)

    async def select(
        self,
        kind: str,
        key: str,
        *,
        day: int,
        modes: int = int(Mode.LATEST),
        tag: int = ANY_TAG,
        limit: int | None = None,
        where: Callable[[bytes], bool] | None = None,
        skip: int = 0,
        passed: int = 0,
        form: RowForm | None = None,
    ) -> Selection | None:
        """The rows under a key that are visible on a day, in order; None if there is no such key.

        Leaves out `skip` blocks, and the first `passed` matching rows of the next block: both come from
        `following` of an earlier selection. `where` tests rows in the requested form.
        """
        reader = self._reader if form is None else FormReader(self._reader, form)
        if limit is None and where is None and not skip and not passed:
            return await self._every(reader, RowFilter(kind, key, day, modes, tag))
        take = select if where is None else partial(select_where, where=where)
        # One more than needed, so that keys with few blocks are read once.
        most = _EVERY_BLOCK if limit is None else 2 + limit // _ROWS_IN_A_BLOCK
        room = _EVERY_BLOCK if limit is None else limit
        origin = None if self.lock is None else (kind, key)
        slices: list[RowSlice] = []
        count = 0
        is_quick = where is None and isinstance(reader, EditionReader)
        per_yield = _BLOCKS_PER_YIELD if is_quick else _FILTERED_BLOCKS_PER_YIELD
        while True:
            blocks = await reader.blocks(kind, key, skip, most, _shows_any(day, modes))
            if blocks is None:
                return await self._without_rows(kind, key)
            for number, block in enumerate(blocks, skip):
                if (number + 1) % per_yield == 0:
                    await asyncio.sleep(0)
                if room == count:  # full: find out whether more matched
                    if take(block, day, modes, tag, 1)[1]:
                        following = number, 0
                        return Selection(slices, count, truncated=True, following=following, origin=origin)
                    continue
                end = passed + room - count
                taken_slices, taken = take(block, day, modes, tag, end + 1)
                more = taken > end
                if more:
                    taken_slices, taken = without_last(taken_slices), end
                slices += without_first(taken_slices, passed) if passed else taken_slices
                count += taken - passed
                if more:
                    following = number, end
                    return Selection(slices, count, truncated=True, following=following, origin=origin)
                passed = 0
            if len(blocks) < most:
                return Selection(slices, count, truncated=False, origin=origin)
            skip += most
            most *= 4

    def segments(self, kind: str) -> list[str]:
        """The keys of a kind that is one list, in order: a single key, or one per partition of
        organisations."""
        if (known := self._segments.get(kind)) is None:
            known = [part["first"] for part in self.manifest["parts"] if kind in part["kinds"]]
            self._segments[kind] = known
        return known

    async def select_list(
        self,
        kind: str,
        *,
        day: int,
        modes: int = int(Mode.LATEST),
        limit: int | None = None,
        start: tuple[int | str, ...] = (),
    ) -> Selection:
        """The rows of a kind that is one list, like `select`; `start` is `following` of an earlier page."""
        first, skip, passed = str(start[0]) if start else "", *map(int, start[1:] or (0, 0))
        slices: list[RowSlice] = []
        count = 0
        for key in self.segments(kind):
            if key < first:
                continue
            room = None if limit is None else limit - count
            own = await self.select(kind, key, day=day, modes=modes, limit=room, skip=skip, passed=passed)
            skip = passed = 0
            if own is None:
                continue
            slices += own.slices
            count += own.count
            if own.following is not None:
                return Selection(slices, count, truncated=True, following=(key, *own.following))
        return Selection(slices, count, truncated=False)

    async def rows(self, kind: str, key: str, rows_per_block: int, first: int, end: int) -> list[RowSlice]:
        """The rows [first, end) under a key, if every block except the last has the same number of rows."""
        if first >= end:
            return []
        skip, following = first // rows_per_block, -(-end // rows_per_block)
        blocks = await self._reader.blocks(kind, key, skip, following - skip) or ()
        starts = range(skip * rows_per_block, end, rows_per_block)
        return [
            between(block, max(first - start, 0), min(end - start, rows_per_block))
            for start, block in zip(starts, blocks, strict=False)
        ]

    def cache(self, name: str, most: int) -> BoundedCache[Any, Any]:
        """The cache with this name, created with room for `most` entries."""
        if (cache := self.caches.get(name)) is None:
            cache = self.caches[name] = BoundedCache(most)
        return cache

    async def keys(self, kind: str) -> Sequence[str]:
        """All keys of a kind with few of them."""
        if (cached := self._cached_keys.get(kind)) is not None:
            return cached
        listed = tuple(key for key, _ in await self._stored.digests(kind, "", _MOST_KEYS))
        self._cached_keys[kind] = listed
        return listed

    async def numbers(self, kind: str, key: str, *, keep: bool = False) -> memoryview:
        """The 32-bit numbers under a key of an index; empty if there is no such key. `keep` caches them."""
        if (cached := self._cached_numbers.get((kind, key))) is not None:
            return cached
        blocks = await self._reader.blocks(kind, key, 0, _EVERY_BLOCK) or ()
        joined = blocks[0][1] if len(blocks) == 1 else b"".join(rows for _, rows in blocks)
        numbers = memoryview(joined).cast("i")
        if keep and blocks:
            self._cached_numbers[kind, key] = numbers
        return numbers

    async def _every(self, reader: EditionReader | FormReader, row_filter: RowFilter) -> Selection | None:
        """All rows in one read: the most frequent request."""
        kind, key, day, modes, tag = row_filter
        blocks = await reader.blocks(kind, key, 0, _EVERY_BLOCK, _shows_any(day, modes))
        if blocks is None:
            return await self._without_rows(kind, key)
        slices: list[RowSlice] = []
        count = 0
        per_yield = _BLOCKS_PER_YIELD if isinstance(reader, EditionReader) else _FILTERED_BLOCKS_PER_YIELD
        for number, block in enumerate(blocks, 1):
            taken_slices, taken = select(block, day, modes, tag, _EVERY_BLOCK)
            slices += taken_slices
            count += taken
            if number % per_yield == 0:
                await asyncio.sleep(0)
        origin = None if self.lock is None else (kind, key)
        return Selection(slices, count, truncated=False, row_filter=row_filter, origin=origin)

    async def _without_rows(self, kind: str, key: str) -> Selection | None:
        """No rows if the kind has keys only for organisations with figures; None if there is no such key."""
        if kind in OF_ISSUERS and await Edition.holds(self, ENTITIES, key):
            return Selection((), 0, truncated=False)
        return None

    async def columns(self, row_filter: RowFilter) -> Sequence[bytes | memoryview]:
        """The stored columns of the key; none if it has few rows."""
        blocks = await self._reader.blocks(row_filter.stored_under, row_filter.key, 0, _EVERY_BLOCK) or ()
        return [columns for _, columns in blocks]

    @property
    def damage(self) -> str | None:
        """The fault found since it was opened."""
        return self._stored.damage

    def scrub(self, most: int) -> None:
        self._stored.scrub(most)

    def close(self) -> None:
        self.parts = BoundedCache(_MOST_PARTS)
        self.caches.clear()
        self._cached_numbers.clear()
        self._cached_blocks.clear()
        self._stored.close()


def _shows_any(day: int, modes: int) -> NeedsRows:
    """Whether `select` needs the rows of a block."""
    return lambda index: shows_any(index, day, modes)
