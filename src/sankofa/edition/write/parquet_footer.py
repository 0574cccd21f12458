"""Edits footers of Parquet files, to copy row groups from one file into another.

A footer is a Thrift struct in the compact protocol (parquet-format, `FileMetaData`). Separately encoded row
groups are concatenated; the offsets in their metadata are moved, and everything else is copied.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

MAGIC: Final = b"PAR1"
_TAIL: Final = 8
"""Bytes after the footer: its length, and the magic."""
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (1, 2), 3, 7, 8, 9, 10, 11, 12
_SCHEMA, _ROW_GROUPS, _CREATED_BY, _ORDERS = 2, 4, 6, 7
_Fields = Mapping[int, Any]
"""Fields of a struct by number, each with the fields to find inside it; empty to find the field itself."""
_OFFSETS: Final[_Fields] = {1: {2: {}, 3: {9: {}, 10: {}, 11: {}, 14: {}}}, 5: {}}
"""In a row group the offset of each column chunk, and those of its data, index and dictionary pages and of
its bloom filter; then the offset of the row group."""


class Schema(NamedTuple):
    """Parts of the footer that all files of a table share: up to the number of rows, and at the end."""

    begin: bytes
    end: bytes


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """An unsigned number and its end."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _packed(value: int) -> bytes:
    packed = bytearray()
    while value >= 0x80:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def _signed(value: int) -> bytes:
    return _packed(value << 1 if value >= 0 else -value * 2 - 1)


def _list(content: bytes, at: int) -> tuple[int, int, int]:
    """The number of elements of a list, their kind, and where they begin."""
    header = content[at]
    count, at = (header >> 4, at + 1) if header >> 4 < 0xF else _varint(content, at + 1)
    return count, header & 0xF, at


def _end(content: bytes, at: int, kind: int, sought: _Fields, places: list[tuple[int, int]]) -> int:
    """Where a value ends. Adds the start and end of each of these fields inside it to `places`, in order."""
    if kind == _STRUCT:
        number = 0
        while header := content[at]:
            at += 1
            if header >> 4:
                number += header >> 4
            else:
                number, at = _varint(content, at)
                number >>= 1
            inner, end = sought.get(number), at
            if header & 0xF not in _BOOLEANS:
                end = _end(content, at, header & 0xF, inner or {}, places)
            if inner is not None and not inner:
                places.append((at, end))
            at = end
        return at + 1
    if kind in (_LIST, _SET):
        count, kind, at = _list(content, at)
        for _ in range(count):
            at = _end(content, at, kind, sought, places)
        return at
    if kind == _BINARY:
        size, at = _varint(content, at)
        return at + size
    if kind == _DOUBLE:
        return at + 8
    if kind in _BOOLEANS or kind == _BYTE:
        return at + 1
    if kind == _MAP:
        raise ValueError("a map in the footer of a Parquet file")
    while content[at] >= 0x80:
        at += 1
    return at + 1


def _footer_of(file: bytes, *fields: int) -> tuple[bytes, list[tuple[int, int]]]:
    """The footer of a file, and where these of its fields begin and end."""
    size = int.from_bytes(file[-_TAIL : -len(MAGIC)], "little")
    footer = file[-_TAIL - size : -_TAIL]
    places: list[tuple[int, int]] = []
    _end(footer, 0, _STRUCT, {field: {} for field in fields}, places)
    return footer, places


def schema_of(file: bytes) -> Schema:
    footer, (schema, created_by, orders) = _footer_of(file, _SCHEMA, _CREATED_BY, _ORDERS)
    end = (
        bytes([1 << 4 | _BINARY]),
        footer[slice(*created_by)],
        bytes([1 << 4 | _LIST]),
        footer[slice(*orders)],
        b"\0",
    )
    return Schema(footer[: schema[1]], b"".join(end))


def row_group_of(file: bytes) -> tuple[bytes, list[bytes], list[int]]:
    """The only row group of a file: its chunks; its metadata, cut before each offset; and these offsets."""
    footer, ((start, _),) = _footer_of(file, _ROW_GROUPS)
    group = _list(footer, start)[2]
    places: list[tuple[int, int]] = []
    group_end = _end(footer, group, _STRUCT, _OFFSETS, places)
    cuts = [group, *(end for _, end in places)]
    ends = [*(begin for begin, _ in places), group_end]
    offsets = [_varint(footer, begin)[0] >> 1 for begin, _ in places]
    metadata = [footer[a:b] for a, b in zip(cuts, ends, strict=True)]
    return file[len(MAGIC) : -_TAIL - len(footer)], metadata, offsets


def moved(metadata: Sequence[bytes], offsets: Sequence[int], at: int) -> bytes:
    """The metadata of a row group whose chunks begin at a place in a file."""
    shift = at - len(MAGIC)
    moved_offsets = (_signed(offset and offset + shift) for offset in offsets)
    parts = [part + offset for part, offset in zip(metadata[:-1], moved_offsets, strict=True)]
    return b"".join((*parts, metadata[-1]))


def footer(schema: Schema, groups: Sequence[bytes], rows: int, metadata: Mapping[str, str]) -> bytes:
    """The end of a file with these row groups."""
    pairs = [
        b"\x18%b%b\x18%b%b\0" % (_packed(len(name)), name, _packed(len(value)), value)
        for name, value in ((name.encode(), value.encode()) for name, value in metadata.items())
    ]
    content = b"".join(
        (
            schema.begin,
            b"\x16" + _signed(rows),
            b"\x19" + _structs(groups),
            b"\x19" + _structs(pairs),
            schema.end,
        )
    )
    return content + len(content).to_bytes(4, "little") + MAGIC


def _structs(structs: Sequence[bytes]) -> bytes:
    count = len(structs)
    header = bytes([count << 4 | _STRUCT]) if count < 0xF else bytes([0xF0 | _STRUCT]) + _packed(count)
    return header + b"".join(structs)
