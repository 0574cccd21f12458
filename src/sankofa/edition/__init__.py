"""An edition: an immutable snapshot of everything served, built from the ledger and read by servers.

- `format`: the encodings, keys and rules that a builder and a reader share;
- `write`: builds an edition from the ledger; no server imports it;
- `read`: reads an edition; does not import the ledger or the builder.
"""
