"""The append-only record of what was ingested, and the gates at its door."""
