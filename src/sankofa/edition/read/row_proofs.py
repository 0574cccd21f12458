"""Finds a row in the Merkle tree of its dataset, and the hashes that lead from it to the root."""

import asyncio
import re
from binascii import b2a_base64
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import annual_key
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.changes import FEEDS, Feed, RowsByName, identified
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.row_trees import (
    REF_BYTES,
    RowTree,
    canonical_rows,
    decode_row_trees,
    keys_of,
    leaves_of,
    rows_of_key,
    salts_of,
    split_rows,
)
from sankofa.edition.read.yield_points import YieldPoints, in_thread_if_large
from sankofa.model.days import parse_day
from sankofa.model.signed_notes import inclusion_path, levels_above

_GROUPS: Final = 64
"""Groups whose proofs a worker keeps for the next answer, 120 KB each."""
_SEARCHES_PER_YIELD: Final = 256
_SEPARATORS: Final = ("|", ",", ":")
"""Between the parts of a key, where it is no JSON list."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?=T)")


class RowNotHashed(Exception):
    """A row that is not in the tree as it is. The message is for the client."""


class OpenTree(NamedTuple):
    """A tree, its upper levels, and the keys that its groups begin with."""

    tree: RowTree
    above: list[Sequence[bytes]]
    names: list[bytes]


class _Group(NamedTuple):
    """Neighbouring rows of a tree, as served."""

    number: int
    rows: Sequence[bytes]
    proofs: Sequence[bytes]
    places: Mapping[bytes | int, int]
    """Where each row is, by its salt and by its hash in this process."""

    def place_of(self, row: bytes) -> int | None:
        place = self.places.get(hash(row))
        return None if place is None or self.rows[place] != row else place


_NO_ROWS: Final = _Group(-2, (), (), {})


def feed_of(dataset: str) -> Feed:
    return next(feed for feed in FEEDS if feed.dataset == dataset)


async def open_tree(edition: Edition, dataset: str) -> OpenTree:
    """Raises RowNotHashed if this node has none."""
    trees = edition.cache("row trees", len(FEEDS))
    known: OpenTree | None = trees.get(dataset)
    if known is None:
        try:
            known = await asyncio.to_thread(_opened, edition, dataset)
        except (OSError, KeyError, msgspec.DecodeError):
            raise RowNotHashed(f"this node has no hashes of the rows of edition {edition.id}") from None
        trees.put(dataset, known)
    return known


def _opened(edition: Edition, dataset: str) -> OpenTree:
    tree = decode_row_trees(edition.row_trees())[dataset]
    return OpenTree(tree, levels_above(tree.hashes()), [name.encode() for name, _ in tree.starts])


async def row_by_ref(edition: Edition, record_ref: str) -> bytes | None:
    """The figure with this record_ref, as served; None if there is none. Raises RowNotHashed."""
    feed = feed_of("fundamentals")
    tree = (await open_tree(edition, feed.dataset)).tree
    if len(tree.refs) < tree.count * REF_BYTES:
        raise RowNotHashed(f"edition {edition.id} was published by an older version: ask with proof=true")
    for index in _with_ref(tree, record_ref, 0, tree.count):
        key = await _key_at(edition, feed, tree, index)
        if (row := (await _rows(edition, feed, key)).get((record_ref,))) is not None:
            return bytes(row)
    return None


def _with_ref(tree: RowTree, record_ref: str, first: int, end: int) -> Iterator[int]:
    """The indexes in [first, end) at which the row with this record_ref may be."""
    prefix, at = bytes.fromhex(record_ref)[:REF_BYTES], first * REF_BYTES - 1
    while (at := tree.refs.find(prefix, at + 1, end * REF_BYTES)) >= 0:
        if at % REF_BYTES == 0:
            yield at // REF_BYTES


async def _key_at(edition: Edition, feed: Feed, tree: RowTree, index: int) -> str:
    """The key of the row at an index."""
    key, passed = tree.starts[index // tree.width]
    left = passed + index % tree.width
    async for following in _from(edition, feed, key):
        key = following
        left -= len(await rows_of_key(feed, edition, key))
        if left < 0:
            break
    return key


async def _from(edition: Edition, feed: Feed, key: str) -> AsyncIterator[str]:
    """A key, and those after it."""
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
    """Proves rows of one edition in the tree of their dataset."""

    def __init__(self, edition: Edition, feed: Feed, opened: OpenTree, secret: bytes) -> None:
        self._edition = edition
        self._feed = feed
        self._tree, self._above, self._names = opened
        self._secret = secret
        self._groups = edition.cache("row groups", _GROUPS)
        self._rows: dict[str, list[bytes]] = {}
        self._served: list[bytes] = []

    async def proofs(self, served: bytes) -> list[bytes]:
        """The proof of each of these rows, in JSON. Raises RowNotHashed."""
        proofs: list[bytes] = []
        group, at = _NO_ROWS, 0
        yield_points = YieldPoints(_SEARCHES_PER_YIELD)
        while at < len(served):
            row = served[at : served.find(b"}", at) + 1]
            place = group.place_of(row)
            if place is None:
                group = self._groups.get((self._feed.dataset, group.number + 1), _NO_ROWS)
                place = group.place_of(row)
            if place is None:
                await yield_points.step()
                if (fields := _fields(row)) is None:  # it ended at the end of an object within it
                    row = (await self._split_once(served))[len(proofs)]
                    fields = msgspec.json.decode(row, type=_Place)
                group, place = await self._find(row, fields)
            proofs.append(group.proofs[place])
            at += len(row) + 1
            # Most often the next rows are those of the group. No JSON object begins with another one.
            for own, proof in zip(group.rows[place + 1 :], group.proofs[place + 1 :], strict=True):
                if not served.startswith(own, at):
                    break
                proofs.append(proof)
                at += len(own) + 1
        return proofs

    async def _split_once(self, served: bytes) -> list[bytes]:
        if not self._served:
            self._served = await in_thread_if_large(len(served), split_rows, served)
        return self._served

    async def _find(self, row: bytes, fields: "_Place") -> tuple[_Group, int]:
        """The group with a row, and its place there."""
        salt = b""
        for number in await self._groups_of(fields):
            name = self._feed.dataset, number
            if (group := self._groups.get(name)) is None:
                group = await self._group(number)
                self._groups.put(name, group)
            if (place := group.place_of(row)) is None:
                salt = salt or salts_of(canonical_rows(row), self._secret)[0]
                place = group.places.get(salt)
            if place is not None:
                return group, place
        raise RowNotHashed(
            "a row is not in the log as it is here: the log has every vintage of a reported figure, and "
            "otherwise what is known today; ask without as_of"
        )

    async def _groups_of(self, place: "_Place") -> Iterable[int]:
        """The numbers of the groups that may have a row."""
        key, width = place.key(self._feed.dataset), self._tree.width
        first = max(bisect_left(self._names, key.encode()) - 1, 0)
        end = bisect_right(self._names, key.encode())
        if self._feed.kind == "tender" and first + 1 < end:
            begin = (first + 1) * width - self._tree.starts[first + 1][1]
            days = DayRows(await self._edition.numbers("tender_day", key, keep=True))
            one, other = days.rows_of(parse_day(place.release_date[:10]).toordinal())
            return range((begin + one) // width, (begin + other - 1) // width + 1)
        if place.record_ref and self._tree.refs:
            own = _with_ref(self._tree, place.record_ref, first * width, end * width)
            return (index // width for index in own)
        return range(first, end)

    async def _group(self, number: int) -> _Group:
        (name, passed), width = self._tree.starts[number], self._tree.width
        rows = await self._rows_of(name, passed, passed + width)
        async for key, _ in keys_of(self._feed, self._edition, name):
            if len(rows) >= width:
                break
            rows += await self._rows_of(key, 0, width - len(rows))
        above = b"".join(map(_listed, inclusion_path(self._above, number)))
        size = sum(map(len, rows))
        return await in_thread_if_large(size, _proofs, number, rows, self._secret, number * width, above)

    async def _rows_of(self, key: str, first: int, end: int) -> list[bytes]:
        """The rows [first, end) of a key. Those of a key are read as a whole, and once; not tenders."""
        if self._feed.kind == "tender":
            return await rows_of_key(self._feed, self._edition, key, first, end)
        if key not in self._rows:
            self._rows[key] = await rows_of_key(self._feed, self._edition, key)
        return self._rows[key][first:end]


def _proofs(number: int, rows: Sequence[bytes], secret: bytes, first: int, above: bytes) -> _Group:
    """The proofs of the rows of a group, of which `first` is the index of the first. `above` leads from the
    group to the root."""
    canonical = canonical_rows(b",".join(rows))
    salts = salts_of(canonical, secret)
    paths = [above]
    for level in levels_above(leaves_of(canonical, salts))[-2::-1]:
        hashes = [*map(_listed, level), b""]
        paths = [hashes[min(node ^ 1, len(level))] + paths[node // 2] for node in range(len(level))]
    proofs = [
        b'{"index":%d,"salt":%b"path":[%b]}' % (index, _listed(salt), path[:-1])
        for index, (salt, path) in enumerate(zip(salts, paths, strict=True), first)
    ]
    places = {
        one: place for place, names in enumerate(zip(map(hash, rows), salts, strict=True)) for one in names
    }
    return _Group(number, rows, proofs, places)


def _fields(row: bytes) -> "_Place | None":
    try:
        return msgspec.json.decode(row, type=_Place)
    except msgspec.DecodeError:
        return None


def _listed(content: bytes) -> bytes:
    """In base64, as one of several members in JSON."""
    return b'"%b",' % b2a_base64(content, newline=False)


class _Place(msgspec.Struct):
    """The fields that lead to the key of a row."""

    service_id: str = ""
    country: str | None = None
    indicator: str = ""
    series: str = ""
    series_type: str = ""
    frequency: str = ""
    release_date: str = ""
    record_ref: str = ""

    def key(self, dataset: str) -> str:
        if dataset == "tenders":
            return self.country or ""
        if dataset == "macro-annual":
            return annual_key(self.country or "", self.indicator)
        if dataset == "macro-series":
            return f"{self.series}|{self.series_type}|{self.frequency}|{self.country or ''}"
        return self.service_id
