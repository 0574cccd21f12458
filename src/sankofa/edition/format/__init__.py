"""Shared by the builder and the reader of an edition: layout, encodings, keys, and when a row is visible."""
