"""Merkle trees over the rows of an edition, one for each dataset of /v1/changes.

A leaf is SHA-256 of a zero byte, a salt and the row in the form of RFC 8785. The salt is a keyed hash of the
row: it can be made again, and without the key a leaf says nothing about a row that was erased. An edition
stores the hashes of groups of 64 rows. A proof hashes the rows of one group again.
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b, sha256
from typing import Any, Final

import msgspec

from sankofa.edition.format.keys import TENDERS_PER_BLOCK
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.changes import Feed
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.model.days import FOREVER
from sankofa.model.signed_notes import HASH_BYTES, root_of

SALT_BYTES: Final = 16
_GROUP: Final = 64
_TENDERS_AT_ONCE: Final = 4096
_FIRST_KEYS: Final = 8
_KEYS_AT_ONCE: Final = 4096
_LEAVES: Final = "leaves"
_LATER: Final = ("superseded_at", "superseding_record_ref")
"""Fields that change when a later figure comes; the row is the same."""
_NEGATIVE_ZERO: Final = (b"-0,", b"-0}", b"-0]")
_HIGH_LETTER: Final = re.compile(rb"[\xee-\xf4]")
"""The first byte of a letter that UTF-16 sorts elsewhere."""
REF_BYTES: Final = 4
_REF: Final = re.compile(rb'"record_ref":"([0-9a-f]{8})')
"""The bytes of a record_ref that a tree has, in hexadecimal."""
_names: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_rows: Final = msgspec.json.Decoder(
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
    """The first bytes of each row's record_ref, where the rows have one."""
    secret: bytes = b""
    """The key of the salts, for nodes that did not publish the edition."""
    width: int = 256
    """Rows in a group. The default is that of older versions."""

    def hashes(self) -> list[bytes]:
        return [self.groups[at : at + HASH_BYTES] for at in range(0, len(self.groups), HASH_BYTES)]

    @property
    def root(self) -> bytes:
        return root_of(self.hashes())


def canonical_rows(rows: bytes) -> list[bytes]:
    """Rows joined by commas, each in the form of RFC 8785 with its numbers spelt as they are, without what
    later figures change."""
    if b"[" not in rows:
        with suppress(msgspec.DecodeError, ValueError):
            names = _names.decode(rows[: rows.index(b"}") + 1])
            flat = _flat_rows(tuple(sorted(names.keys() - {*_LATER})))(b"[%b]" % rows)
            if len(flat) == rows.count(b"{") and all(map(str.isascii, names)):
                return [_encode(row) for row in flat]
    if _is_unusual(rows):
        return [_exact(row) for row in msgspec.json.decode(b"[%b]" % rows, type=list[dict[str, msgspec.Raw]])]
    canonical = []
    for row in _rows(b"[%b]" % rows):
        for name in _LATER:
            row.pop(name, None)
        canonical.append(_sorted(row))
    return canonical


def _is_unusual(rows: bytes) -> bool:
    """Whether msgspec may write them otherwise: `-0`, and names with letters that UTF-16 sorts elsewhere."""
    return any(zero in rows for zero in _NEGATIVE_ZERO) or (
        not rows.isascii() and _HIGH_LETTER.search(rows) is not None
    )


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


def salts_of(rows: Sequence[bytes], secret: bytes) -> list[bytes]:
    """The salts of rows in canonical form."""
    keyed = blake2b(digest_size=SALT_BYTES, key=secret)
    salts = []
    for row in rows:
        salt = keyed.copy()  # cheaper than a new one
        salt.update(row)
        salts.append(salt.digest())
    return salts


def leaves_of(rows: Sequence[bytes], salts: Sequence[bytes]) -> list[bytes]:
    return [sha256(b"\x00" + salt + row).digest() for row, salt in zip(rows, salts, strict=True)]


def split_rows(rows: bytes) -> list[bytes]:
    """Rows joined by commas, one by one as they are."""
    return list(map(bytes, _split(b"[%b]" % rows)))


async def rows_of_key(
    feed: Feed, edition: Edition, key: str, first: int = 0, end: int = FOREVER
) -> list[bytes]:
    """The rows [first, end) of a key as served, in the order of the tree."""
    joined = await _joined_rows(feed, edition, key, first, end)
    rows = await in_thread_if_large(len(joined), split_rows, joined)
    return rows if feed.kind == "tender" else _own(feed, key, rows)[first:end]


async def _joined_rows(feed: Feed, edition: Edition, key: str, first: int, end: int) -> bytes:
    """The rows of a key; of tenders only [first, end), as they are many."""
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
    """A digest of all rows of a dataset, from those of their keys; empty if a key has none."""
    state = blake2b(digest_size=HASH_BYTES)
    async for key, digest in keys_of(feed, edition):
        if not digest:
            return b""
        state.update(f"{len(key)} {key}".encode() + digest)
    return state.digest()


async def row_tree(edition: Edition, feed: Feed, secret: bytes, kept: RecordFile | None = None) -> RowTree:
    """Hash every row, but those of keys whose leaves are kept."""
    has_refs = feed.identity == ("record_ref",)
    size = HASH_BYTES + REF_BYTES * has_refs
    count = 0
    refs: list[bytes] = []
    groups: list[bytes] = []
    starts: list[tuple[str, int]] = []
    pending: list[bytes] = []
    async for key, digest in keys_of(feed, edition):
        stored = kept.carry(key, digest) if kept is not None and digest else None
        if stored is not None:
            known = stored.part(_LEAVES)
        else:
            new: list[bytes] = []
            own: list[bytes] = []
            async for rows in _pieces(feed, edition, key):
                new += leaves_of(rows, salts_of(rows, secret))
                own += map(_ref, rows) if has_refs else ()
            known = b"".join(new + own)
            if kept is not None:
                kept.put(key, digest, pack_record({_LEAVES: known}))
        end = len(known) // size * HASH_BYTES
        leaves = [known[at : at + HASH_BYTES] for at in range(0, end, HASH_BYTES)]
        refs.append(known[end:])
        starts += [(key, number) for number in range(-count % _GROUP, len(leaves), _GROUP)]
        count += len(leaves)
        pending += leaves
        whole = len(pending) // _GROUP * _GROUP
        groups += [root_of(pending[at : at + _GROUP]) for at in range(0, whole, _GROUP)]
        del pending[:whole]
    if pending:
        groups.append(root_of(pending))
    return RowTree(count, b"".join(groups), starts, b"".join(refs), secret, _GROUP)


def _ref(row: bytes) -> bytes:
    match = _REF.search(row)
    return bytes.fromhex(match[1].decode()) if match else bytes(REF_BYTES)


async def _pieces(feed: Feed, edition: Edition, key: str) -> AsyncIterator[list[bytes]]:
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
