"""The read side of screens: who leads a metric on a day, off a sheet that is already in order."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import compress, islice
from typing import NamedTuple

from sankofa.derive.metrics.standing import REASONS, State
from sankofa.edition.metric_rows import AS_OF
from sankofa.edition.reading import Edition, Selection
from sankofa.edition.sheets import EVERYWHERE, MONTHS, STATES, VALUE
from sankofa.engines.datastore import Place

_LISTED = 10_000
_SPARE = 8  # of those that stand in a month, some do not on the day

_REASONS = tuple((int(state), reason) for state, reason in REASONS.items())
_RANKS = (b'{"rank":1,', *(b',{"rank":%d,' % rank for rank in range(2, _LISTED + 1)))


class Screen(NamedTuple):
    """The rows of a screen, ranked, and how many issuers have none, by reason."""

    selection: Selection
    omitted: dict[str, int]


async def screen(
    edition: Edition, metric: str, country: str | None, day: date, *, smallest_first: bool, most: int
) -> Screen:
    """The first so many by size on a day, of a country or of all."""
    years = edition.manifest.get("screen_years")
    sheet: bytes | memoryview | None = None
    month = MONTHS
    if years:
        year = years[max(bisect_right(years, day.year) - 1, 0)]
        # What stands after a year stands in its last month, until the next; before the first nothing does.
        month = day.month if day.year == year else MONTHS
        sheet = await edition.raw("screen", f"{metric}|{country or EVERYWHERE}|{year}")
    if sheet is None:
        return Screen(Selection((), 0, truncated=False), omissions([0] * STATES))
    counts, places = _read(memoryview(sheet), day.toordinal(), month, smallest_first, most)
    rows = await edition.rows_at(places)
    runs = (_ranked(rows, day),) if rows else ()
    return Screen(Selection(runs, len(rows), truncated=counts[State.STANDS] > most), omissions(counts))


def _ranked(rows: Sequence[bytes | memoryview], day: date) -> bytes:
    """Rows behind their rank and the day applied."""
    count = len(rows)
    ranks = _RANKS[:count]
    if count > _LISTED:
        ranks += tuple(b',{"rank":%d,' % rank for rank in range(_LISTED + 1, count + 1))
    parts: list[bytes | memoryview] = [b'"as_of":"%b",' % day.isoformat().encode()] * (3 * count)
    parts[0::3] = ranks
    parts[2::3] = rows
    return b"".join(parts)


def omissions(counts: Sequence[int]) -> dict[str, int]:
    """Counts by state as the envelope has them: by reason."""
    return {reason: counts[state] for state, reason in _REASONS}


def dated(rows: bytes, day: date) -> bytes:
    """Rows with the day applied."""
    return rows.replace(AS_OF, b'"as_of":"%b"' % day.isoformat().encode())


def _read(
    sheet: memoryview, day: int, month: int, smallest_first: bool, most: int
) -> tuple[list[int], list[Place]]:
    """The counts by state on a day, and the places of the rows; of each row the part behind its day."""
    words = sheet.cast("I")
    days = words[0]
    tally = bisect_right(sheet[4 : 4 + 4 * days].cast("i"), day) - 1
    at = 1 + days + STATES * tally
    counts = words[at : at + STATES].tolist()
    at = 1 + days + STATES * days
    size = words[at]
    values = 4 * (at + 1)
    order = values + VALUE.size * size
    months = order + 4 * size
    standing = sheet[months + (month - 1) * size : months + month * size]
    listed: Iterator[int]
    if smallest_first:
        listed = (n for n in sheet[order:months].cast("I") if standing[n])
    else:
        listed = compress(range(size), standing)
    unpack, each = VALUE.unpack_from, VALUE.size
    found: list[Place] = []
    while len(found) < most and (some := list(islice(listed, most - len(found) + _SPARE))):
        found += [
            (block, start, end)
            for first, until, block, start, end in [unpack(sheet, values + each * n) for n in some]
            if first <= day < until
        ]
    del found[most:]
    return counts, found
