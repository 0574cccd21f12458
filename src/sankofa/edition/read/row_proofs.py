"""Merkle trees over the rows of an edition, one for each dataset of /v1/changes, and proofs of rows.

A leaf is SHA-256 of a zero byte, a salt and the row in the form of RFC 8785. The salt is a keyed hash of the
row: it can be recomputed, and without the key a leaf reveals nothing about an erased row. An edition stores
the hashes of groups of 64 rows. A proof hashes the rows of one group again, and has the hashes from the row
up to the root.
"""

import asyncio
import re
from binascii import b2a_base64
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from hashlib import blake2b
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import TENDERS_PER_BLOCK, annual_key
from sankofa.edition.format.row_blocks import RowSlice
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.changes import FEEDS, Feed, RowsByName, identified
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import YieldPoints, in_thread_if_large
from sankofa.engines.block_file import BoundedCache
from sankofa.engines.checked_file import FileStates
from sankofa.engines.edition_reader import EditionReader, OpenParts
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.model.days import FOREVER, parse_day
from sankofa.model.signed_notes import HASH_BYTES, LEAF, inclusion_path, joined_root, levels_above, root_of

SALT_BYTES: Final = 16
_GROUP: Final = 64
_GROUP_BYTES: Final = _GROUP * HASH_BYTES
_TENDERS_AT_ONCE: Final = 4096
_FIRST_KEYS: Final = 8
_KEYS_AT_ONCE: Final = 4096
_LEAVES: Final = "leaves"
_KEPT_FROM: Final = 8 * HASH_BYTES
"""Leaves of fewer rows take as long to find as to hash again."""
_LATER: Final = ("superseded_at", "superseding_record_ref")
"""Fields that change with a later figure; the row counts as the same."""
_NEGATIVE_ZERO: Final = (b"-0,", b"-0}", b"-0]")
_HIGH_LETTER: Final = re.compile(rb"[\xee-\xf4]")
"""The first byte of a letter that UTF-16 sorts elsewhere."""
REF_BYTES: Final = 4
_REF: Final = re.compile(rb'"record_ref":"([0-9a-f]{8})')
"""The bytes of a record_ref that a tree has, in hexadecimal."""
_names: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_read_rows: Final = msgspec.json.Decoder(
    list[dict[str, Any]], float_hook=lambda text: msgspec.Raw(text.encode())
).decode
_split: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_encode: Final = msgspec.json.Encoder().encode


class RowTree(msgspec.Struct, frozen=True):
    """The tree over the rows of a dataset, without its lowest levels."""

    count: int
    groups: bytes
    """The hash of each group of rows."""
    starts: list[tuple[str, int]]
    """The key of the first row of each group, and its number among the rows of the key."""
    refs: bytes = b""
    """The first bytes of each row's record_ref, if the rows have one."""
    secret: bytes = b""
    """The key of the salts, for nodes that did not publish the edition."""
    width: int = 256
    """Rows in a group. The default is for files of older versions."""

    def hashes(self) -> list[bytes]:
        return [self.groups[at : at + HASH_BYTES] for at in range(0, len(self.groups), HASH_BYTES)]

    @property
    def root(self) -> bytes:
        return root_of(self.hashes())


def canonical_rows(rows: bytes) -> list[bytes]:
    """Rows joined by commas, each in the form of RFC 8785 with numbers as written, without the fields that
    later figures change."""
    if b"[" not in rows:
        with suppress(msgspec.DecodeError, ValueError):
            names = _names.decode(rows[: rows.index(b"}") + 1])
            flat = _flat_rows(tuple(sorted(names.keys() - {*_LATER})))(b"[%b]" % rows)
            if len(flat) == rows.count(b"{") and all(map(str.isascii, names)):
                return [_encode(row) for row in flat]
    if _is_unusual(rows):
        return [_exact(row, _LATER) for row in split_rows(rows)]
    canonical = []
    for row in _read_rows(b"[%b]" % rows):
        for name in _LATER:
            row.pop(name, None)
        canonical.append(_sorted(row))
    return canonical


def _is_unusual(rows: bytes) -> bool:
    """Whether msgspec may write rows differently: `-0`, and names with letters that UTF-16 sorts
    elsewhere."""
    return any(zero in rows for zero in _NEGATIVE_ZERO) or (
        not rows.isascii() and _HIGH_LETTER.search(rows) is not None
    )


@cache
def _flat_rows(names: tuple[str, ...]) -> Callable[[bytes], list[Any]]:
    """A decoder for rows that all have these fields, in order, and no nested values."""
    row = msgspec.defstruct("FlatRow", [(name, msgspec.Raw) for name in names], gc=False)
    return msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]


def _exact(value: bytes, left_out: Sequence[str] = ()) -> bytes:
    """A value in the form above, strictly: names in UTF-16 order, and a whole number written `-0`."""
    if value.startswith(b"{"):
        members = _names.decode(value)
        names = sorted(members.keys() - {*left_out}, key=lambda name: name.encode("utf-16-be"))
        return b"{%b}" % b",".join(b"%b:%b" % (_encode(name), _exact(bytes(members[name]))) for name in names)
    if value.startswith(b"["):
        return b"[%b]" % b",".join(map(_exact, split_rows(value[1:-1])))
    return _encode(msgspec.json.decode(value)) if value.startswith(b'"') else value


def salts_of(rows: Sequence[bytes], secret: bytes) -> list[bytes]:
    keyed = blake2b(digest_size=SALT_BYTES, key=secret)
    salts = []
    for row in rows:
        salt = keyed.copy()  # cheaper than a new one
        salt.update(row)
        salts.append(salt.digest())
    return salts


def leaves_of(rows: Sequence[bytes], salts: Sequence[bytes]) -> list[bytes]:
    leaves = []
    for row, salt in zip(rows, salts, strict=True):
        leaf = LEAF.copy()  # cheaper than a new one
        leaf.update(salt + row)
        leaves.append(leaf.digest())
    return leaves


def split_rows(rows: bytes) -> list[bytes]:
    """Splits rows joined by commas, without changing them."""
    return list(map(bytes, _split(b"[%b]" % rows)))


async def rows_of_key(
    feed: Feed, edition: Edition, key: str, first: int = 0, end: int = FOREVER
) -> list[bytes]:
    """The rows [first, end) of a key as served, in the order of the tree."""
    joined = await _joined_rows(feed, edition, key, first, end)
    rows = await in_thread_if_large(len(joined), split_rows, joined)
    return rows if feed.kind == "tender" else _own(feed, key, rows)[first:end]


async def _joined_rows(feed: Feed, edition: Edition, key: str, first: int, end: int) -> bytes:
    """The rows of a key; for tenders only [first, end), because there are many."""
    if feed.kind != "tender":
        return b",".join(await feed.load(edition, key, 0))
    end = min(end, DayRows(await edition.numbers("tender_day", key, keep=True)).count)
    return b",".join(await edition.rows("tender", key, TENDERS_PER_BLOCK, first, end))


def _own(feed: Feed, key: str, rows: list[bytes]) -> list[bytes]:
    """None for the key of a merged organisation, which leads to the rows of another."""
    return [] if feed.by_organisation and rows and f'"service_id":"{key}"'.encode() not in rows[0] else rows


async def keys_of(feed: Feed, edition: Edition, behind: str = "") -> AsyncIterator[tuple[str, bytes]]:
    at_once = _FIRST_KEYS
    while digests := await edition.digests(feed.kind, behind, at_once):
        for key, digest in digests:
            if not (feed.aliases and key.startswith(feed.aliases)):
                yield key, digest
        behind = digests[-1][0]
        at_once = min(2 * at_once, _KEYS_AT_ONCE)


async def state_of(edition: Edition, feed: Feed) -> bytes:
    """A digest of all rows of a dataset, from the digests of its keys; empty if a key has none."""
    state = blake2b(digest_size=HASH_BYTES)
    async for key, digest in keys_of(feed, edition):
        if not digest:
            return b""
        state.update(f"{len(key)} {key}".encode() + digest)
    return state.digest()


async def _leaves(edition: Edition, feed: Feed, secret: bytes, key: str) -> bytes:
    """The hash of each row of a key; then the first bytes of each record_ref, if the rows have one."""
    leaves: list[bytes] = []
    refs: list[bytes] = []
    async for rows in _canonical_lists(feed, edition, key):
        leaves += leaves_of(rows, salts_of(rows, secret))
        refs += map(_ref, rows) if _has_refs(feed) else ()
    return b"".join(leaves + refs)


def _has_refs(feed: Feed) -> bool:
    return feed.identity == ("record_ref",)


async def row_tree(
    edition: Edition, feed: Feed, secret: bytes, stored_leaves: RecordFile | None = None
) -> RowTree:
    """Hash every row, except those of keys whose leaves are kept."""
    size = HASH_BYTES + REF_BYTES * _has_refs(feed)
    count = 0
    refs: list[bytes] = []
    groups: list[bytes] = []
    starts: list[tuple[str, int]] = []
    pending = b""
    async for key, digest in keys_of(feed, edition):
        stored = stored_leaves.carry(key, digest) if stored_leaves is not None and digest else None
        known = await _leaves(edition, feed, secret, key) if stored is None else stored.part(_LEAVES)
        if stored_leaves is not None and stored is None and len(known) >= _KEPT_FROM:
            stored_leaves.put(key, digest, pack_record({_LEAVES: known}))
        own = len(known) // size
        refs.append(known[own * HASH_BYTES :])
        starts += [(key, number) for number in range(-count % _GROUP, own, _GROUP)]
        count += own
        pending += known[: own * HASH_BYTES]
        whole = len(pending) // _GROUP_BYTES * _GROUP_BYTES
        groups += [joined_root(pending[at : at + _GROUP_BYTES]) for at in range(0, whole, _GROUP_BYTES)]
        pending = pending[whole:]
    if pending:
        groups.append(joined_root(pending))
    return RowTree(count, b"".join(groups), starts, b"".join(refs), secret, _GROUP)


@contextmanager
def hashing(folder: Path, seal: str | None, *how: Any) -> Iterator[Callable[[str], tuple[str, bytes]]]:
    """Hashes the rows of datasets in a process of its own; see `hashed`."""
    with closing(Edition(folder.name, EditionReader(folder, OpenParts(FileStates()), seal))) as edition:
        yield partial(hashed, edition, *how)


def hashed(edition: Edition, secret: bytes, leaves: Path, suffix: str, dataset: str) -> tuple[str, bytes]:
    """The encoded tree over the rows of a dataset. The folder `leaves` has a file for each dataset."""
    with RecordFile(leaves / f"{dataset}.{suffix}").writing() as stored_leaves:
        tree = asyncio.run(row_tree(edition, feed_of(dataset), secret, stored_leaves))
    return dataset, msgspec.msgpack.encode(tree)


def _ref(row: bytes) -> bytes:
    match = _REF.search(row)
    return bytes.fromhex(match[1].decode()) if match else bytes(REF_BYTES)


async def _canonical_lists(feed: Feed, edition: Edition, key: str) -> AsyncIterator[list[bytes]]:
    """The canonical rows of a key; tenders of a country in several lists."""
    first, step = 0, _TENDERS_AT_ONCE if feed.kind == "tender" else FOREVER
    while joined := await _joined_rows(feed, edition, key, first, first + step):
        yield _own(feed, key, await in_thread_if_large(len(joined), canonical_rows, joined))
        if feed.kind != "tender":
            break
        first += step


def decode_row_trees(content: bytes) -> dict[str, RowTree]:
    """Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(content, type=dict[str, RowTree])


_POSITIONS: Final = 2 * 64 * _GROUP
"""Rows of 64 groups that a worker caches, twice each: by the row as served and by its salt. A group takes
100 KB."""
_STEPS_PER_YIELD: Final = 256
_STEPS_OF_A_GROUP: Final = 32
"""To find a row is a step; to hash a group of them takes as long as 32."""
_SEPARATORS: Final = ("|", ",", ":")
"""Separator of a key's parts if the key is not a JSON list."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?=T)")


class RowNotHashed(Exception):
    """A row that is not in the tree in this form. The message is for the client."""


class OpenTree(NamedTuple):
    """A tree, its upper levels, and the first keys of its groups."""

    feed: Feed
    tree: RowTree
    above: list[Sequence[bytes]]
    names: list[bytes]


class _Group(NamedTuple):
    """Neighbouring rows of a tree, as served, and their proofs."""

    number: int
    rows: bytes
    """Joined by commas."""
    starts: Sequence[int]
    """Where each row begins, and where a row after the last would."""
    proofs: memoryview
    """Joined by commas."""
    proof_starts: Sequence[int]

    def rows_in(self, served: bytes, at: int, first: int) -> int:
        """How many consecutive rows are the same there. No JSON object is a prefix of another one."""
        begin, remaining = self.starts[first], len(served) - at
        if remaining < len(self.rows) - begin:
            if self.rows.startswith(memoryview(served)[at:], begin):
                return bisect_right(self.starts, begin + remaining) - first
        elif served.startswith(memoryview(self.rows)[begin:], at):
            return len(self.starts) - 1 - first
        count = 0
        for start, end in pairwise(self.starts[first:]):
            if not served.startswith(memoryview(self.rows)[start : end - 1], at):
                break
            count, at = count + 1, at + end - start
        return count

    def proofs_of(self, first: int, count: int) -> memoryview:
        return self.proofs[self.proof_starts[first] : self.proof_starts[first + count] - 1]


_GroupPosition = tuple[_Group, int]
"""The group of a row, and its number there."""


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
    names = [name.encode() for name, _ in tree.starts]
    return OpenTree(feed_of(dataset), tree, levels_above(tree.hashes()), names)


async def row_by_ref(edition: Edition, record_ref: str) -> bytes | None:
    """The figure with this record_ref, as served; None if there is none. Raises RowNotHashed."""
    feed, tree, *_ = await open_tree(edition, "fundamentals")
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
    first, passed = tree.starts[index // tree.width]
    rows_left = passed + index % tree.width - len(await rows_of_key(feed, edition, first))
    if rows_left < 0:
        return first
    async for key, _ in keys_of(feed, edition, first):
        rows_left -= len(await rows_of_key(feed, edition, key))
        if rows_left < 0:
            return key
    raise RowNotHashed(f"the hashes of the rows of edition {edition.id} do not belong to its rows")


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
        key = (text.rpartition if feed.dataset.startswith("macro") else text.partition)(separator)
        row = await _row(edition, feed, key[0], text, separator)
        if row is not None:
            return row
    return None


async def _row(edition: Edition, feed: Feed, key: str, text: str, written: str | list[str]) -> bytes | None:
    """The row of a key in this spelling: a list, or parts joined by a separator."""
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

    def __init__(self, edition: Edition, opened: OpenTree, secret: bytes) -> None:
        self._edition = edition
        self._feed, self._tree, self._above, self._names = opened
        self._secret = secret
        self._positions: BoundedCache[int | bytes, _GroupPosition] = edition.cache("row places", _POSITIONS)
        """By the hash of a row in this process, and by its salt."""
        self._rows: dict[str, list[bytes]] = {}
        self._yield_points = YieldPoints(_STEPS_PER_YIELD)
        self._next = 0
        """The group after that of the last row, where the next row usually is."""

    async def proofs(self, slices: Iterable[RowSlice]) -> list[bytes | memoryview]:
        """The proofs of the rows in these slices as JSON, to be joined. Raises RowNotHashed."""
        proofs: list[bytes | memoryview] = []
        for row_slice in slices:
            served, at = bytes(row_slice), 0
            rows: Mapping[int, bytes] = {}
            while at < len(served):
                row = rows.get(at) or served[at : served.find(b"}", at) + 1]
                known = self._positions.get(hash(row))
                if known is None:
                    await self._yield_points.step()
                    if not rows:  # the brace may be one within the row
                        rows = await in_thread_if_large(len(served), _rows_by_start, served)
                        continue
                    known = await self._find(row)
                group, position = known
                self._next = group.number + 1
                same = group.rows_in(served, at, position)  # usually the next rows are those of the group
                proofs += b",", group.proofs_of(position, same or 1)
                at += group.starts[position + same] - group.starts[position] if same else len(row) + 1
        return proofs[1:]

    async def _find(self, row: bytes) -> _GroupPosition:
        salt = salts_of(canonical_rows(row), self._secret)[0]
        known = self._positions.get(salt)
        if known is None:
            numbers = await self._groups_of(msgspec.json.decode(row, type=_Fields))
            for number in sorted(numbers, key=lambda number: number != self._next):
                await self._yield_points.step(_STEPS_OF_A_GROUP)
                await self._read_group(number)
                if (known := self._positions.get(salt)) is not None:
                    break
            else:
                raise RowNotHashed(
                    "a row is not in the log in this form: the log has every vintage of reported figures, "
                    "and other rows as known today; ask without as_of"
                )
        self._positions.put(hash(row), known)
        return known

    async def _groups_of(self, fields: "_Fields") -> Iterable[int]:
        """The numbers of the groups that may have a row."""
        key, width = fields.key(self._feed.dataset), self._tree.width
        first = max(bisect_left(self._names, key.encode()) - 1, 0)
        end = bisect_right(self._names, key.encode())
        if self._feed.kind == "tender" and first + 1 < end:
            begin = (first + 1) * width - self._tree.starts[first + 1][1]
            days = DayRows(await self._edition.numbers("tender_day", key, keep=True))
            one, other = days.rows_of(parse_day(fields.release_date[:10]).toordinal())
            return range((begin + one) // width, (begin + other - 1) // width + 1)
        if fields.record_ref and self._tree.refs:
            own = _with_ref(self._tree, fields.record_ref, first * width, end * width)
            return (index // width for index in own)
        return range(first, end)

    async def _read_group(self, number: int) -> None:
        (name, passed), width = self._tree.starts[number], self._tree.width
        rows = await self._rows_of(name, passed, passed + width)
        if len(rows) < width:
            async for key, _ in keys_of(self._feed, self._edition, name):
                rows += await self._rows_of(key, 0, width - len(rows))
                if len(rows) >= width:
                    break
        above = b"".join(map(_listed, inclusion_path(self._above, number)))
        size = sum(map(len, rows))
        group, salts = await in_thread_if_large(size, _group, number, rows, self._secret, width, above)
        for position, (row, salt) in enumerate(zip(rows, salts, strict=True)):
            self._positions.put(hash(row), (group, position))
            self._positions.put(salt, (group, position))

    async def _rows_of(self, key: str, first: int, end: int) -> list[bytes]:
        """The rows [first, end) of a key. A key's rows are read once, as a whole; not for tenders."""
        if self._feed.kind == "tender":
            return await rows_of_key(self._feed, self._edition, key, first, end)
        if key not in self._rows:
            self._rows[key] = await rows_of_key(self._feed, self._edition, key)
        return self._rows[key][first:end]


def _group(
    number: int, rows: Sequence[bytes], secret: bytes, width: int, above: bytes
) -> tuple[_Group, list[bytes]]:
    """The group of these rows and the salts. `above` leads from the group to the root."""
    canonical = canonical_rows(b",".join(rows))
    salts = salts_of(canonical, secret)
    paths = [above]
    for level in levels_above(leaves_of(canonical, salts))[-2::-1]:
        hashes = [*map(_listed, level), b""]
        paths = [hashes[min(node ^ 1, len(level))] + paths[node // 2] for node in range(len(level))]
    proofs = [
        b'{"index":%d,"salt":%b"path":[%b]}' % (index, _listed(salt), path[:-1])
        for index, (salt, path) in enumerate(zip(salts, paths, strict=True), number * width)
    ]
    joined = memoryview(b",".join(proofs))
    return _Group(number, b",".join(rows), _starts(rows), joined, _starts(proofs)), salts


def _starts(texts: Sequence[bytes]) -> list[int]:
    """Where each text begins if they are joined by commas, and where one after the last would."""
    return list(accumulate((len(text) + 1 for text in texts), initial=0))


def _rows_by_start(rows: bytes) -> dict[int, bytes]:
    split = split_rows(rows)
    return dict(zip(_starts(split), split, strict=False))


def _listed(content: bytes) -> bytes:
    """The base64 text of a proof, as one of several JSON members."""
    return b'"%b",' % b2a_base64(content, newline=False)


class _Fields(msgspec.Struct):
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
