"""Merkle trees over the rows of an edition, one for each dataset of /v1/changes.

A leaf is SHA-256 of a zero byte, a salt and the row in the form of RFC 8785. The salt is a keyed hash of the
row: it can be made again, and a leaf tells nobody else anything about a row that was erased. Of each tree the
hashes of groups of 256 rows are stored. A proof hashes the rows of one group again.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol
from zlib import crc32

import msgspec

from sankofa.edition.format.keys import TENDERS_PER_BLOCK, annual_key
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.changes import Feed
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import FOLDER
from sankofa.engines.private_files import open_private
from sankofa.model.days import FOREVER, parse_day
from sankofa.model.errors import EditionError
from sankofa.model.merkle import HASH_BYTES, inclusion_path, levels_above, root_of

SALT_BYTES: Final = 16
_GROUP: Final = 256
_TENDERS_AT_ONCE: Final = 4096
_KEYS_AT_ONCE: Final = 4096
_HEAD: Final = struct.Struct(">HBII")
"""Before each record of a file of leaves: the sizes of key, digest and leaves, and a checksum of them."""
_LATER: Final = ("superseded_at", "superseding_record_ref")
"""Fields that change when a later figure comes; the row is the same."""
_UNUSUAL: Final = re.compile(rb"-0[,}\]]|[\xee-\xf4]")
"""What msgspec may write otherwise: `-0`, and names with letters that UTF-16 sorts elsewhere."""
_names: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_rows: Final = msgspec.json.Decoder(
    list[dict[str, Any]], float_hook=lambda text: msgspec.Raw(text.encode())
).decode
_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_encode: Final = msgspec.json.Encoder().encode


class RowTree(msgspec.Struct, frozen=True):
    """The tree over the rows of a dataset, without its lowest levels."""

    count: int
    groups: bytes
    """The hash of each group of 256 rows."""
    starts: list[tuple[str, int]]
    """The key of the first row of each group, and its number among the rows of the key."""

    def hashes(self) -> list[bytes]:
        return [self.groups[at : at + HASH_BYTES] for at in range(0, len(self.groups), HASH_BYTES)]

    @property
    def root(self) -> bytes:
        return root_of(self.hashes())


class KeyedLeaves(Protocol):
    """Leaf hashes of the rows of a key, kept from one build to the next."""

    def get(self, key: str, digest: bytes) -> bytes | None: ...

    def put(self, key: str, digest: bytes, leaves: bytes) -> None: ...


def canonical_rows(rows: bytes) -> list[bytes]:
    """Rows joined by commas, each in the form of RFC 8785 with its numbers spelt as they are, without what
    later figures change."""
    if _UNUSUAL.search(rows):
        return [_exact(row) for row in msgspec.json.decode(b"[%b]" % rows, type=list[dict[str, msgspec.Raw]])]
    if rows and b'":{' not in rows and b'":[' not in rows:
        with suppress(msgspec.DecodeError, ValueError):
            names = _names.decode(rows[: rows.index(b"}") + 1])
            decode = _flat_rows(tuple(sorted(names.keys() - {*_LATER})))
            return [_encode(row) for row in decode(b"[%b]" % rows)]
    canonical = []
    for row in _rows(b"[%b]" % rows):
        for name in _LATER:
            row.pop(name, None)
        canonical.append(_sorted(row))
    return canonical


@cache
def _flat_rows(names: tuple[str, ...]) -> Callable[[bytes], list[Any]]:
    """Reads rows without objects and lists in them, of which one has the fields of the others, in order."""
    row = msgspec.defstruct("FlatRow", [(name, msgspec.Raw) for name in names], gc=False)
    return msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]


def _exact(row: dict[str, msgspec.Raw]) -> bytes:
    """As above, by the letter: names in the order of UTF-16, and a whole number that is spelt `-0`."""
    return b"{%b}" % b",".join(
        b"%b:%b" % (_encode(name), _exact_value(bytes(row[name])))
        for name in sorted(row, key=lambda name: name.encode("utf-16-be"))
        if name not in _LATER
    )


def _exact_value(value: bytes) -> bytes:
    if value.startswith(b"{"):
        members = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        names = sorted(members, key=lambda name: name.encode("utf-16-be"))
        return b"{%b}" % b",".join(
            b"%b:%b" % (_encode(name), _exact_value(bytes(members[name]))) for name in names
        )
    if value.startswith(b"["):
        items = msgspec.json.decode(value, type=list[msgspec.Raw])
        return b"[%b]" % b",".join(_exact_value(bytes(item)) for item in items)
    return _encode(msgspec.json.decode(value)) if value.startswith(b'"') else value


def salt_of(row: bytes, secret: bytes) -> bytes:
    return blake2b(row, digest_size=SALT_BYTES, key=secret).digest()


def _leaves(rows: Sequence[bytes], secret: bytes) -> list[bytes]:
    return [sha256(b"\x00" + salt_of(row, secret) + row).digest() for row in rows]


async def _canonical(rows: bytes) -> list[bytes]:
    return await in_thread_if_large(len(rows), canonical_rows, rows)


async def _of_key(feed: Feed, edition: Edition, key: str, first: int = 0, end: int = FOREVER) -> list[bytes]:
    """The rows [first, end) of a key, in the order of the tree."""
    if feed.kind == "tender":
        end = min(end, DayRows(await edition.numbers("tender_day", key, keep=True)).count)
        runs = await edition.rows("tender", key, TENDERS_PER_BLOCK, first, end)
        return await _canonical(b",".join(runs))
    rows = await _canonical(b",".join(await feed.load(edition, key, 0)))
    if feed.by_organisation and rows and f'"service_id":"{key}"'.encode() not in rows[0]:
        return []  # the key of a merged organisation, which leads to the rows of another
    return rows[first:end]


async def _keys(feed: Feed, edition: Edition, behind: str = "") -> AsyncIterator[tuple[str, bytes]]:
    while digests := await edition.digests(feed.kind, behind, _KEYS_AT_ONCE):
        for key, digest in digests:
            if not (feed.aliases and key.startswith(feed.aliases)):
                yield key, digest
        behind = digests[-1][0]


async def row_tree(edition: Edition, feed: Feed, secret: bytes, kept: KeyedLeaves | None = None) -> RowTree:
    """Hash every row, but those of keys whose leaves are kept."""
    count = 0
    groups: list[bytes] = []
    starts: list[tuple[str, int]] = []
    pending: list[bytes] = []
    async for key, digest in _keys(feed, edition):
        known = kept.get(key, digest) if kept is not None and digest else None
        if known is None:
            leaves = [leaf async for some in _pieces(feed, edition, key) for leaf in _leaves(some, secret)]
            known = b"".join(leaves)
        else:
            leaves = [known[at : at + HASH_BYTES] for at in range(0, len(known), HASH_BYTES)]
        if kept is not None:
            kept.put(key, digest, known)
        starts += [(key, number) for number in range(-count % _GROUP, len(leaves), _GROUP)]
        count += len(leaves)
        pending += leaves
        whole = len(pending) // _GROUP * _GROUP
        groups += [root_of(pending[at : at + _GROUP]) for at in range(0, whole, _GROUP)]
        del pending[:whole]
    if pending:
        groups.append(root_of(pending))
    return RowTree(count, b"".join(groups), starts)


async def _pieces(feed: Feed, edition: Edition, key: str) -> AsyncIterator[list[bytes]]:
    """The rows of a key; tenders of a country in several lists, as they are many."""
    if feed.kind != "tender":
        yield await _of_key(feed, edition, key)
        return
    first = 0
    while rows := await _of_key(feed, edition, key, first, first + _TENDERS_AT_ONCE):
        yield rows
        first += len(rows)


class LeafFile:
    """Leaves in a file in the order of their keys; the next build reads it and writes another."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._next = _stored(path)
        self._ahead = next(self._next, None)
        self._stream = stream

    def get(self, key: str, digest: bytes) -> bytes | None:
        """To be asked in the order of the keys."""
        name = key.encode()
        while self._ahead is not None and self._ahead[0] < name:
            self._ahead = next(self._next, None)
        if self._ahead is None or self._ahead[:2] != (name, digest):
            return None
        return self._ahead[2]

    def put(self, key: str, digest: bytes, leaves: bytes) -> None:
        name = key.encode()
        content = name + digest + leaves
        self._stream.write(_HEAD.pack(len(name), len(digest), len(leaves), crc32(content)) + content)


@contextmanager
def leaf_file(path: Path) -> Iterator[LeafFile]:
    """The leaves of the last build; in the end, those of this one."""
    partial = path.with_name(f".{path.name}")
    with open(partial, "wb", opener=open_private) as stream:
        yield LeafFile(path, stream)
    partial.replace(path)


def _stored(path: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    """What a file has; nothing of a file that is damaged, or not there."""
    try:
        with path.open("rb") as stream:
            while len(head := stream.read(_HEAD.size)) == _HEAD.size:
                name, digest, leaves, checksum = _HEAD.unpack(head)
                content = stream.read(name + digest + leaves)
                if crc32(content) != checksum:
                    return
                yield content[:name], content[name : name + digest], content[name + digest :]
    except OSError:
        return


def row_trees_path(store: Datastore, edition: str) -> Path:
    """The file with the trees of an edition."""
    return store.edition_folder(edition).parent / FOLDER / "rows" / edition


def read_row_trees(store: Datastore, edition: str) -> dict[str, RowTree]:
    """Raises EditionError."""
    try:
        return msgspec.msgpack.decode(row_trees_path(store, edition).read_bytes(), type=dict[str, RowTree])
    except (OSError, msgspec.DecodeError) as failure:
        raise EditionError(f"edition {edition}: its rows are not hashed: {failure}") from failure


class RowNotHashed(Exception):
    """A row that is not in the tree as it is. The message is for the client."""


class ProvenRow(msgspec.Struct, frozen=True):
    """The place of a row in its tree."""

    index: int
    salt: bytes
    path: list[bytes]


class TreeReader:
    """Finds rows of one edition in the tree of their dataset."""

    def __init__(self, edition: Edition, feed: Feed, tree: RowTree, secret: bytes) -> None:
        self._edition = edition
        self._feed = feed
        self._tree = tree
        self._secret = secret
        self._above = levels_above(tree.hashes())
        self._groups: dict[int, list[Sequence[bytes]]] = {}
        self._places: dict[tuple[str, int], dict[bytes, int]] = {}

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
        group = index // _GROUP
        if group not in self._groups:
            self._groups[group] = levels_above(await self._leaves_of(group))
        path = inclusion_path(self._groups[group], index % _GROUP) + inclusion_path(self._above, group)
        return ProvenRow(index, salt_of(row, self._secret), path)

    async def _places_of(self, key: str, part: int) -> dict[bytes, int]:
        """The index of each row of a key; of tenders, of those of a day."""
        first, end = 0, FOREVER
        if part:
            days = DayRows(await self._edition.numbers("tender_day", key, keep=True))
            first, end = days.rows_of(part)
        rows = await _of_key(self._feed, self._edition, key, first, end)
        before = await self._first_of(key) + first
        return {row: before + number for number, row in enumerate(rows)}

    async def _first_of(self, key: str) -> int:
        """The index of the first row of a key."""
        names = [name.encode() for name, _ in self._tree.starts]
        group = max(bisect_right(names, key.encode()) - 1, 0)
        name, passed = self._tree.starts[group]
        index = group * _GROUP - passed
        if name == key:
            return index
        index += len(await _of_key(self._feed, self._edition, name))
        async for between, _ in _keys(self._feed, self._edition, name):
            if between.encode() >= key.encode():
                break
            index += len(await _of_key(self._feed, self._edition, between))
        return index

    async def _leaves_of(self, group: int) -> list[bytes]:
        """The leaf hashes of a group."""
        name, passed = self._tree.starts[group]
        rows = await _of_key(self._feed, self._edition, name, passed, passed + _GROUP)
        async for key, _ in _keys(self._feed, self._edition, name):
            if len(rows) >= _GROUP:
                break
            rows += await _of_key(self._feed, self._edition, key, 0, _GROUP - len(rows))
        return _leaves(rows, self._secret)


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
