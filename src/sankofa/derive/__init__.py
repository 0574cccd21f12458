"""Values computed from the ledger: metrics, signals and quality."""
