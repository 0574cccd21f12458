"""The version of the layout of an edition."""

from typing import Final

LAYOUT: Final = 8
"""A reader refuses an edition of another."""
