"""Other people's APIs, each a translation of operations: one file, found by looking into this package."""
