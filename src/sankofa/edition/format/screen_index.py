"""The index that screens are read from: the values of a metric in order of size, by country and year.

A screen is asked for by metric, country (or none) and day. For each metric, country and calendar year in
which anything changes there is one page on the values standing on any day of that year, largest first, ties
by service_id: their order from the smallest, on which days each stands, and how many issuers show what (a
value, or which reason for none) from each day. In a year without a page all stands as at the end of the last
before it. The byte ranges of their rows, which are those of `/v1/metrics`, are kept apart under the same key:
one row more moves the others of its issuer, in whatever order and on whatever days they stand.
The top of a screen is the first so many that stand on the day: nothing is sorted, grouped or counted.

On which days a value stands is told by a byte for each sixteen days of the year, its mark: there are 136
stretches of days within sixteen, and none. The marks of all values for the same days follow one another, so
that those of a day are found by translating a run of bytes, and only the values that stand are unpacked.

Layout of a page, in 32-bit words, little-endian: how many days; the days; per day a count for each state;
how many values; the order from the smallest; then, in bytes, of each sixteen days the mark of every value;
padded to whole words. Byte ranges: of each value block, start and end of the row.
"""

import struct

from sankofa.edition.format.visibility import visible
from sankofa.model.rows import State

SCREEN = "screen"
SCREEN_RANGES = "screen-ranges"
"""The kinds of pages, and of the byte ranges of what is on them."""
AS_OF = b'"as_of":"0001-01-01"'
"""What a row has in the place of the day applied; inside a text its quotes would be escaped."""
UNDATED = b"{" + AS_OF + b","
"""How a row begins: the day comes first, so that a screen can leave it out."""
STATES = len(State)
BYTE_RANGE = struct.Struct("<3I")
"""Of a value on a page: the block, start and end of its row behind the day."""
DAYS_PER_MARK = 16
"""The days that one mark tells of."""
LAST_DAY = 365
"""Days of a year are counted from 0. On this one, there or not, whatever stands on after the year does."""
_MARKS = [(first, until) for first in range(DAYS_PER_MARK) for until in range(first + 1, DAYS_PER_MARK + 1)]
MARK_OF = {days: mark for mark, days in enumerate(_MARKS, 1)}
STANDING = [
    bytes([0, *(visible(first, until, day) for first, until in _MARKS)]).ljust(256, b"\0")
    for day in range(DAYS_PER_MARK)
]
"""For each of the marked days, by mark: a 1 where the value stands."""
EVERYWHERE = ""
MARKS_PER_YEAR = LAST_DAY // DAYS_PER_MARK + 1
