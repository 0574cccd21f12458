"""Finds a row in the Merkle tree of its dataset, and the hashes that lead from it to the root."""

import asyncio
import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import annual_key
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.changes import FEEDS, Feed, RowsByName, identified
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.row_trees import (
    GROUP,
    REF_BYTES,
    RowTree,
    decode_row_trees,
    keys_of,
    leaves_of,
    rows_of_key,
    salt_of,
)
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.model.days import FOREVER, parse_day
from sankofa.model.signed_notes import inclusion_path, levels_above

_GROUPS: Final = 128
"""Groups whose hashes a worker keeps for the next proof, 40 KB each."""
_SEPARATORS: Final = ("|", ",", ":")
"""Between the parts of a key, where it is no JSON list."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?=T)")


class RowNotHashed(Exception):
    """A row that is not in the tree as it is. The message is for the client."""


class ProvenRow(msgspec.Struct, frozen=True):
    """The place of a row in its tree."""

    index: int
    salt: bytes
    path: list[bytes]


class OpenTree(NamedTuple):
    """A tree, its upper levels, and the keys that its groups begin with."""

    tree: RowTree
    above: list[Sequence[bytes]]
    names: list[bytes]


def feed_of(dataset: str) -> Feed:
    return next(feed for feed in FEEDS if feed.dataset == dataset)


async def open_tree(edition: Edition, dataset: str) -> OpenTree:
    """Raises RowNotHashed if this node has none."""
    trees = edition.cache("row trees", len(FEEDS))
    if (known := trees.get(dataset)) is None:
        try:
            tree = (await asyncio.to_thread(lambda: decode_row_trees(edition.row_trees())))[dataset]
        except (OSError, KeyError, msgspec.DecodeError):
            raise RowNotHashed(f"this node has no hashes of the rows of edition {edition.id}") from None
        known = OpenTree(tree, levels_above(tree.hashes()), [name.encode() for name, _ in tree.starts])
        trees.put(dataset, known)
    opened: OpenTree = known
    return opened


async def row_by_ref(edition: Edition, record_ref: str) -> bytes | None:
    """The figure with this record_ref, as served; None if there is none. Raises RowNotHashed."""
    feed = feed_of("fundamentals")
    tree = (await open_tree(edition, feed.dataset)).tree
    if len(tree.refs) < tree.count * REF_BYTES:
        raise RowNotHashed(f"edition {edition.id} was published by an older version: ask with proof=true")
    prefix, at = bytes.fromhex(record_ref)[:REF_BYTES], -1
    while (at := tree.refs.find(prefix, at + 1)) >= 0:
        if at % REF_BYTES == 0:
            key = await _key_at(edition, feed, tree, at // REF_BYTES)
            if (row := (await _rows(edition, feed, key)).get((record_ref,))) is not None:
                return bytes(row)
    return None


async def _key_at(edition: Edition, feed: Feed, tree: RowTree, index: int) -> str:
    """The key of the row at an index."""
    key, passed = tree.starts[index // GROUP]
    left = passed + index % GROUP
    async for following in _from(edition, feed, key):
        key = following
        left -= len(await rows_of_key(feed, edition, key))
        if left < 0:
            break
    return key


async def _from(edition: Edition, feed: Feed, key: str) -> AsyncIterator[str]:
    """A key, and those behind it."""
    yield key
    async for following, _ in keys_of(feed, edition, key):
        yield following


async def row_by_key(edition: Edition, feed: Feed, text: str) -> bytes | None:
    """The row with a key of /v1/changes, as served; None if there is none.

    The key is the JSON list, or its parts with a separator between them.
    """
    if text.startswith("["):
        try:
            parts = msgspec.json.decode(text, type=list[str])
        except msgspec.DecodeError:
            return None
        return await _row(edition, feed, parts[0], text, parts) if parts else None
    for separator in _SEPARATORS:
        is_macro = feed.dataset.startswith("macro")
        key = text.rpartition(separator)[0] if is_macro else text.partition(separator)[0]
        if (row := await _row(edition, feed, key, text, separator)) is not None:
            return row
    return None


async def _row(edition: Edition, feed: Feed, key: str, text: str, written: str | list[str]) -> bytes | None:
    """The row of a key that is written so: as a list, or joined by a separator."""
    if (feed.aliases and key.startswith(feed.aliases)) or not await edition.holds(feed.kind, key):
        return None
    part = 0
    if feed.dataset == "tenders":
        try:
            part = parse_day(_DAY.findall(text)[-1]).toordinal()
        except (IndexError, ValueError):
            return None
    for name, row in (await _rows(edition, feed, key, part)).items():
        own = [key, *name]
        if own == written or (isinstance(written, str) and written.join(own) == text):
            return bytes(row)
    return None


async def _rows(edition: Edition, feed: Feed, key: str, part: int = 0) -> RowsByName:
    slices = await feed.load(edition, key, part)
    owner = key if feed.by_organisation else None
    return await in_thread_if_large(sum(map(len, slices)), identified, slices, feed.identity, owner)


class TreeReader:
    """Finds rows of one edition in the tree of their dataset."""

    def __init__(self, edition: Edition, feed: Feed, opened: OpenTree, secret: bytes) -> None:
        self._edition = edition
        self._feed = feed
        self._tree, self._above, self._names = opened
        self._secret = secret
        self._groups = edition.cache("row groups", _GROUPS)
        self._places: dict[tuple[str, int], dict[bytes, int]] = {}
        self._rows: dict[str, list[bytes]] = {}

    async def proof(self, row: bytes) -> ProvenRow:
        """Raises RowNotHashed."""
        fields = msgspec.json.decode(row, type=_Place)
        key = fields.key(self._feed.dataset)
        part = parse_day(fields.release_date[:10]).toordinal() if self._feed.dataset == "tenders" else 0
        if (places := self._places.get((key, part))) is None:
            places = self._places[key, part] = await self._places_of(key, part)
        if (index := places.get(row)) is None:
            raise RowNotHashed(
                "a row is not in the log as it is here: the log has every vintage of a reported figure, and "
                "otherwise what is known today; ask without as_of"
            )
        group = index // GROUP
        if (levels := self._groups.get((self._feed.dataset, group))) is None:
            levels = levels_above(await self._leaves_of(group))
            self._groups.put((self._feed.dataset, group), levels)
        path = inclusion_path(levels, index % GROUP) + inclusion_path(self._above, group)
        return ProvenRow(index, salt_of(row, self._secret), path)

    async def _rows_of(self, key: str, first: int = 0, end: int = FOREVER) -> list[bytes]:
        """The rows [first, end) of a key. Those of a key are read as a whole, and once; not tenders."""
        if self._feed.kind == "tender":
            return await rows_of_key(self._feed, self._edition, key, first, end)
        if key not in self._rows:
            self._rows[key] = await rows_of_key(self._feed, self._edition, key)
        return self._rows[key][first:end]

    async def _places_of(self, key: str, part: int) -> dict[bytes, int]:
        """The index of each row of a key; for tenders, of each row of a day."""
        first, end = 0, FOREVER
        if part:
            days = DayRows(await self._edition.numbers("tender_day", key, keep=True))
            first, end = days.rows_of(part)
        rows = await self._rows_of(key, first, end)
        before = await self._first_of(key) + first
        return {row: before + number for number, row in enumerate(rows)}

    async def _first_of(self, key: str) -> int:
        """The index of the first row of a key."""
        group = max(bisect_right(self._names, key.encode()) - 1, 0)
        name, passed = self._tree.starts[group]
        index = group * GROUP - passed
        if name == key:
            return index
        index += len(await self._rows_of(name))
        async for between, _ in keys_of(self._feed, self._edition, name):
            if between.encode() >= key.encode():
                break
            index += len(await self._rows_of(between))
        return index

    async def _leaves_of(self, group: int) -> list[bytes]:
        """The leaf hashes of a group."""
        name, passed = self._tree.starts[group]
        rows = await self._rows_of(name, passed, passed + GROUP)
        async for key, _ in keys_of(self._feed, self._edition, name):
            if len(rows) >= GROUP:
                break
            rows += await self._rows_of(key, 0, GROUP - len(rows))
        return leaves_of(rows, self._secret)


class _Place(msgspec.Struct):
    """The fields that lead to the key of a row."""

    service_id: str = ""
    country: str | None = None
    indicator: str = ""
    series: str = ""
    series_type: str = ""
    frequency: str = ""
    release_date: str = ""

    def key(self, dataset: str) -> str:
        if dataset == "tenders":
            return self.country or ""
        if dataset == "macro-annual":
            return annual_key(self.country or "", self.indicator)
        if dataset == "macro-series":
            return f"{self.series}|{self.series_type}|{self.frequency}|{self.country or ''}"
        return self.service_id
