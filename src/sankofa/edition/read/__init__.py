"""Reads published editions."""
