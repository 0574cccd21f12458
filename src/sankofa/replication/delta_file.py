"""The difference between a file and its predecessor: zstd with the old file as prefix (`zstd --patch-from`).

A file is taken in stretches, each against the bytes around the same place of the one before: so memory is
bounded, and what moved is found again, unless by more than the file grew or shrank and a little.

Layout: magic; of each stretch where its prefix begins and ends, its own size, the size of its frame, and the
frame.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from sankofa.engines.compression import zstd

_MAGIC: Final = b"SANKDLT1"
_HEAD: Final = struct.Struct("<QQII")
_STRETCH: Final = 8 << 20
_AROUND: Final = 2 << 20
_AROUND_AT_MOST: Final = 16 << 20
_RANGE_AT_MOST: Final = 64 << 20
_WINDOW_LOG: Final = 27
"""A window of 128 MiB: a stretch and its surroundings."""
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _WINDOW_LOG,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.ldm_min_match: 32,
}


class NotApplicable(Exception):
    """A delta that does not lead from this file to the one it is for."""


def make_delta(base: Path, target: Path) -> bytes:
    """The delta from one file to another. Raises OSError."""
    delta = [_MAGIC]
    with base.open("rb") as old, target.open("rb") as new:
        size = base.stat().st_size
        around = min(_AROUND + abs(target.stat().st_size - size), _AROUND_AT_MOST)
        start = 0
        while own := new.read(_STRETCH):
            first, last = (min(max(0, at), size) for at in (start - around, start + _STRETCH + around))
            frame = zstd.compress(own, options=_OPTIONS, zstd_dict=_prefix(_range(old, first, last)))
            delta += [_HEAD.pack(first, last, len(own), len(frame)), frame]
            start += len(own)
    return b"".join(delta)


def apply_delta(base: Path, delta: bytes) -> Iterator[bytes]:
    """The stretches of the file that a delta leads to: as it says, compared with nothing yet.

    Raises NotApplicable, or OSError.
    """
    if delta[: len(_MAGIC)] != _MAGIC:
        raise NotApplicable("not a delta")
    at = len(_MAGIC)
    with base.open("rb") as old:
        while at < len(delta):
            try:
                first, last, size, packed = _HEAD.unpack_from(delta, at)
                at += _HEAD.size
                if size > _RANGE_AT_MOST or not 0 <= last - first <= _RANGE_AT_MOST:
                    raise NotApplicable("of another file")
                options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
                reader = zstd.ZstdDecompressor(zstd_dict=_prefix(_range(old, first, last)), options=options)
                own = reader.decompress(delta[at : at + packed], max_length=size)
            except (struct.error, zstd.ZstdError, EOFError, OverflowError) as failure:
                raise NotApplicable(str(failure)) from None
            if len(own) != size:
                raise NotApplicable("cut short")
            at += packed
            yield own


def _prefix(content: bytes) -> tuple[zstd.ZstdDict, int] | None:
    """None where it is too short to be one."""
    return zstd.ZstdDict(content, is_raw=True).as_prefix if len(content) >= 8 else None


def _range(file: IO[bytes], first: int, last: int) -> bytes:
    """Read and not mapped: a file that is cut short meanwhile would end the process. Raises NotApplicable."""
    file.seek(first)
    content = file.read(last - first)
    if len(content) != last - first:
        raise NotApplicable("of another file")
    return content
