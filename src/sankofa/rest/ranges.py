"""Byte ranges (RFC 9110, section 14): which parts of a file are asked for, and never more than the file."""

import re
from typing import Final

from sankofa.model.limits import limit

MOST_RANGES: Final = limit("byte ranges of a download", 16, "ranges", "the whole file is sent")
"""For more ranges than this the whole file is sent, as the RFC allows."""
_CLOSE: Final = 256
"""Ranges closer than this are sent as one: the header of a part is of that size."""
_SPEC: Final = re.compile(r"[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*\Z")

Range = tuple[int, int]
"""First byte, and the one after the last."""


def requested_ranges(header: str, size: int) -> list[Range] | None:
    """The requested ranges, sorted and merged; empty where the file has no byte of them.

    None where the header is to be ignored: it is malformed, in another unit, or asks for too many.
    """
    unit, equals, text = header.partition("=")
    specs = text.split(",")
    if unit.strip().lower() != "bytes" or not equals or len(specs) > MOST_RANGES:
        return None
    ranges: list[Range] = []
    for spec in specs:
        match = _SPEC.match(spec)
        if match is None:
            return None
        first, last = match.groups()
        if first:
            if last and int(last) < int(first):
                return None
            start, end = int(first), min(int(last) + 1 if last else size, size)
        elif last:
            start, end = max(size - int(last), 0), size
        else:
            return None
        if start < end:
            ranges.append((start, end))
    return _merged(ranges)


def _merged(ranges: list[Range]) -> list[Range]:
    """The ranges sorted, with those that overlap or nearly touch merged."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + _CLOSE:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
