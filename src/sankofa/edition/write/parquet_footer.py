"""Edits footers of Parquet files, to copy row groups from one file into another.

A footer is a Thrift struct in the compact protocol (parquet-format, `FileMetaData`). Separately encoded row
groups are concatenated; the offsets in their metadata are moved, and everything else is copied.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

MAGIC: Final = b"PAR1"
_TAIL: Final = 8
"""Bytes after the footer: its length, and the magic."""
_BOOLEANS, _BYTE, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, 7, 8, (9, 10), 11, 12
_SCHEMA, _ROW_GROUPS, _CREATED_BY, _ORDERS = 2, 4, 6, 7
_COLUMNS, _FILE_OFFSET = 1, 5
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_PAGE_OFFSETS: Final = (9, 10, 11, 14)
"""Where data, index and dictionary pages and the bloom filter begin."""


class _Field(NamedTuple):
    number: int
    kind: int
    start: int
    end: int


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


def _fields(content: bytes, at: int) -> Iterator[_Field]:
    """The fields of a struct; the last one, of kind 0, is its end."""
    number = 0
    while header := content[at]:
        at += 1
        if header >> 4:
            number += header >> 4
        else:
            number, at = _varint(content, at)
            number >>= 1
        end = at if header & 0xF in _BOOLEANS else _end(content, at, header & 0xF)
        yield _Field(number, header & 0xF, at, end)
        at = end
    yield _Field(0, 0, at, at + 1)


def _list(content: bytes, at: int) -> tuple[int, int, int]:
    """The number of elements of a list, their kind, and where they begin."""
    header = content[at]
    count, at = (header >> 4, at + 1) if header >> 4 < 0xF else _varint(content, at + 1)
    return count, header & 0xF, at


def _elements(content: bytes, at: int) -> Iterator[int]:
    """Where each struct in a list begins."""
    count, kind, at = _list(content, at)
    for _ in range(count):
        yield at
        at = _end(content, at, kind)


def _end(content: bytes, at: int, kind: int) -> int:
    if kind in _BOOLEANS or kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        size, at = _varint(content, at)
        return at + size
    if kind in _LISTS:
        count, kind, at = _list(content, at)
        for _ in range(count):
            at = _end(content, at, kind)
        return at
    if kind == _STRUCT:
        while header := content[at]:  # most of a footer is skipped, so make no tuple for each field
            if header < 0x10:
                at = _varint(content, at + 1)[1] - 1
            at = at + 1 if header & 0xF in _BOOLEANS else _end(content, at + 1, header & 0xF)
        return at + 1
    if kind == _MAP:
        raise ValueError("a map in the footer of a Parquet file")
    while content[at] >= 0x80:
        at += 1
    return at + 1


def _footer_of(file: bytes) -> tuple[bytes, dict[int, _Field]]:
    size = int.from_bytes(file[-_TAIL : -len(MAGIC)], "little")
    footer = file[-_TAIL - size : -_TAIL]
    return footer, {field.number: field for field in _fields(footer, 0)}


def schema_of(file: bytes) -> Schema:
    footer, fields = _footer_of(file)
    created_by, orders = (fields[number] for number in (_CREATED_BY, _ORDERS))
    end = (
        bytes([1 << 4 | _BINARY]),
        footer[created_by.start : created_by.end],
        bytes([1 << 4 | orders.kind]),
        footer[orders.start : orders.end],
        b"\0",
    )
    return Schema(footer[: fields[_SCHEMA].end], b"".join(end))


def row_group_of(file: bytes) -> tuple[bytes, list[bytes], list[int]]:
    """The only row group of a file: its chunks; its metadata, cut before each offset; and these offsets."""
    footer, fields = _footer_of(file)
    (group,) = _elements(footer, fields[_ROW_GROUPS].start)
    places: list[_Field] = []
    for field in _fields(footer, group):
        if field.number == _COLUMNS:
            for column in _elements(footer, field.start):
                for part in _fields(footer, column):
                    if part.number == _CHUNK_OFFSET:
                        places.append(part)
                    elif part.number == _CHUNK_METADATA:
                        inner = _fields(footer, part.start)
                        places += (one for one in inner if one.number in _PAGE_OFFSETS)
        elif field.number == _FILE_OFFSET:
            places.append(field)
    cuts = [group, *(place.end for place in places)]
    ends = [*(place.start for place in places), _end(footer, group, _STRUCT)]
    offsets = [_varint(footer, place.start)[0] >> 1 for place in places]
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
