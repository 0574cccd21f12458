"""An edition: an immutable snapshot of everything served, built from the ledger and read by servers.

- `format`: what a builder and a reader must agree on;
- `write`: from the ledger to an edition; no server imports it;
- `read`: an edition as servers read it; knows nothing of the ledger or of how an edition is built.
"""
