"""Pages of the days of release of a series: numbers and short texts, made into rows when asked for."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from sankofa.model.days import iso_day

RELEASES_ON_A_PAGE: Final = 512


class ReleasePage(msgspec.Struct, frozen=True, array_like=True):
    """Some days of release, newest first."""

    shared: list[str]
    """What the rows of each series under the key have in common, as JSON members."""
    provenance: list[tuple[str, str]]
    """The beginning of a row: before the location in its `source_ref`, and behind it."""
    releases: list[tuple[int, int, int, int, int, str]]
    """Day, values added, values changed, number in `shared` and in `provenance`, location as JSON text."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ReleasePage).decode


def rows_of(page: bytes | memoryview) -> Iterator[bytes]:
    """The rows of a page as they go on the wire."""
    decoded = _decode(page)
    for day, added, changed, shared, provenance, location in decoded.releases:
        before, behind = decoded.provenance[provenance]
        yield (
            f'{before}{location}{behind}{decoded.shared[shared]},"release_date":"{iso_day(day)}",'
            f'"added":{added},"changed":{changed}}}'
        ).encode()


class ListedRelease(NamedTuple):
    """A day of release on its way to a page."""

    day: int
    added: int
    changed: int
    series: int
    """Which of the series under the key it is of."""
    around: tuple[str, str]
    """The beginning of its row: before the location, and behind it."""
    location: str
    """As JSON text, without quotes."""


def pages_of(shared: list[str], releases: Sequence[ListedRelease]) -> Iterator[bytes]:
    """Releases cut into pages, each of which can be read by itself."""
    for start in range(0, len(releases), RELEASES_ON_A_PAGE):
        numbers: dict[tuple[str, str], int] = {}
        rows = [
            (day, added, changed, series, numbers.setdefault(around, len(numbers)), location)
            for day, added, changed, series, around, location in releases[start : start + RELEASES_ON_A_PAGE]
        ]
        yield _encode(ReleasePage(shared, list(numbers), rows))
