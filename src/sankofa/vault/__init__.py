"""What was fetched or handed in, kept as it came: content-addressed bytes and an append-only journal."""
