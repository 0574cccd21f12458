"""When a row is seen: the one rule, of which every index of an edition is a faster form.

A row is seen on the days [first, until), by some modes, and has a tag to filter by. A block, a series, the
order of facts, the columns kept for Arrow and the screen index each answer the same question in a shape of
their own; `tests/unit/edition/format/test_visibility.py` holds every one of them against this module.
"""

from typing import Final

ANY_TAG: Final = -1
"""Asks for rows whatever their tag."""

KIND_MODES: Final = {"income": 8, "balance": 16, "cash": 32}
"""The modes that see the rows of one kind of statement; the mode LATEST sees all of them."""


def visible(first: int, until: int, day: int) -> bool:
    """Whether what is seen on the days [first, until) is seen on a day."""
    return first <= day < until


def admitted(row_modes: int, row_tag: int, modes: int, tag: int) -> bool:
    """Whether a row is one of those asked for: seen by one of the modes, and of the tag."""
    return bool(row_modes & modes) and tag in (ANY_TAG, row_tag)
