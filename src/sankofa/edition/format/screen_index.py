"""The screen index: the values of a metric in order of size, by country and year.

A screen is a metric, a country (or all) and a day. Each metric, country and calendar year in which anything
changes has one page. It lists the values valid on any day of that year, largest first, ties by service_id:
their order from the smallest, the last day of the year of each, the days on which each is valid, and from
each day on the number of issuers in each state (a value, or a reason for none). Days and counts are there
twice: for `basis=current` and for `basis=as_known`. A year without a page is as the end of the last year
before it.
The byte ranges of the rows, which are those of `/v1/metrics`, are stored apart under the same key, because an
added row moves the other rows of its issuer. The top of a screen is the first values that are valid on the
day: nothing is sorted, grouped or counted.

One byte, the mark, says on which of sixteen days a value is valid: there are 136 stretches of days within
sixteen, and none. The marks of all values for the same days are consecutive, so one translation of bytes
finds the values that are valid on a day, and only those are unpacked.

Layout of a page, in little-endian 32-bit words: for each basis number of days, the days, per day a count for
each state; number of values; the order from the smallest; the last day of the year of each value; then, in
bytes, for each basis and each sixteen days the mark of every value; padded to whole words. Byte ranges:
block, start and end of the row of each value.
"""

import struct

from sankofa.edition.format.visibility import visible
from sankofa.model.rows import State

SCREEN = "screen"
SCREEN_RANGES = "screen-ranges"
"""The kinds of pages, and of the byte ranges of their rows."""
AS_OF = b'"as_of":"0001-01-01","age_days":0'
"""Placeholder for the applied day and the age in a stored row; inside a text its quotes would be escaped."""
UNDATED = b"{" + AS_OF + b","
"""The beginning of a row: the day comes first, so that a screen can leave it out."""
PERIOD_END = b'"period_end":"'
"""Comes before the last day of the year in a stored row; the first one is that of the row itself."""
STATES = len(State)
BYTE_RANGE = struct.Struct("<3I")
"""Block, start and end of the row of a value, after its day."""
DAYS_PER_MARK = 16
"""Days covered by one mark."""
LAST_DAY = 365
"""Days of a year count from 0. This day, real or not, shows the values that are valid after the year."""
_MARKS = [(first, until) for first in range(DAYS_PER_MARK) for until in range(first + 1, DAYS_PER_MARK + 1)]
MARK_OF = {days: mark for mark, days in enumerate(_MARKS, 1)}
VALID_ON = [
    bytes([0, *(visible(first, until, day) for first, until in _MARKS)]).ljust(256, b"\0")
    for day in range(DAYS_PER_MARK)
]
"""For each of the sixteen days, by mark: 1 if the value is valid."""
EVERYWHERE = ""
MARKS_PER_YEAR = LAST_DAY // DAYS_PER_MARK + 1
