"""The append-only record of what was ingested, and the checks that every row passes on its way in."""
