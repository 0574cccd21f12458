"""Fetched and ingested files, byte for byte: content-addressed objects and an append-only journal."""
