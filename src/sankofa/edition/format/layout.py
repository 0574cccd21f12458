"""The version of the layout of an edition."""

from typing import Final

LAYOUT: Final = 10
"""A reader refuses an edition of another."""
