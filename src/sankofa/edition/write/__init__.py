"""From the ledger to an edition."""
