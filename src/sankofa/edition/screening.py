"""The read side of screens: who leads a metric on a day, off a sheet that is already in order."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from sankofa.derive.metrics.standing import State
from sankofa.edition.metric_rows import AS_OF, UNDATED
from sankofa.edition.reading import Edition, Selection
from sankofa.edition.sheets import EVERYWHERE, STATES
from sankofa.engines.datastore import Place

_LEAST_SCANNED = 64
_LISTED = 10_000

_RANKS = (b'{"rank":1,', *(b',{"rank":%d,' % rank for rank in range(2, _LISTED + 1)))


class Screen(NamedTuple):
    """The rows of a screen, ranked, and how many issuers have none, by reason."""

    selection: Selection
    omitted: dict[str, int]


async def screen(
    edition: Edition, metric: str, country: str | None, day: date, *, smallest_first: bool, most: int
) -> Screen:
    """The first so many by size on a day, of a country or of all."""
    span = edition.manifest.get("screen_years")
    sheet: bytes | memoryview | None = None
    if span is not None:
        year = min(max(day.year, span[0]), span[1])
        sheet = await edition.raw("screen", f"{metric}|{country or EVERYWHERE}|{year}")
    if sheet is None:
        return Screen(Selection((), 0, truncated=False), omissions([0] * STATES))
    counts, places = _read(memoryview(sheet), day.toordinal(), smallest_first, most)
    rows = await edition.rows_at(places)
    applied = b'"as_of":"%b",' % day.isoformat().encode()
    parts: list[bytes | memoryview] = []
    for number, row in enumerate(rows):
        rank = _RANKS[number] if number < _LISTED else b',{"rank":%d,' % (number + 1)
        parts += (rank, applied, row)
    runs = (b"".join(parts),) if parts else ()
    return Screen(Selection(runs, len(rows), truncated=counts[State.STANDS] > most), omissions(counts))


def omissions(counts: Sequence[int]) -> dict[str, int]:
    """Counts by state as the envelope has them: by reason."""
    return {state.name.lower(): counts[state] for state in State if state is not State.STANDS}


def dated(rows: bytes, day: date) -> bytes:
    """Rows with the day applied."""
    return rows.replace(AS_OF, b'"as_of":"%b"' % day.isoformat().encode())


def _read(sheet: memoryview, day: int, smallest_first: bool, most: int) -> tuple[list[int], list[Place]]:
    """The counts by state on a day, and the places of the rows; of each row the part behind its day."""
    words = sheet.cast("I")
    days = words[0]
    tally = bisect_right(sheet[4 : 4 + 4 * days].cast("i"), day) - 1
    at = 1 + days + STATES * tally
    counts = words[at : at + STATES].tolist()
    at = 1 + days + STATES * days
    size = words[at]
    at += 1
    firsts, untils, blocks, begins, ends, order = (
        words[at + n * size : at + (n + 1) * size] for n in range(6)
    )
    found: list[int] = []
    step = max(2 * most, _LEAST_SCANNED)
    for begin in range(0, size, step):
        stop = min(begin + step, size)
        if smallest_first:
            listed = order[begin:stop].tolist()
            found += [n for n in listed if firsts[n] <= day < untils[n]]
        else:
            stretches = zip(firsts[begin:stop].tolist(), untils[begin:stop].tolist(), strict=True)
            found += [n for n, (first, until) in enumerate(stretches, begin) if first <= day < until]
        if len(found) >= most:
            break
    skipped = len(UNDATED)
    return counts, [(blocks[n], begins[n] + skipped, ends[n]) for n in found[:most]]
