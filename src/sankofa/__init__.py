"""Sankofa: point-in-time data for African and emerging markets."""

__version__ = "0.1.0"
