"""Builds an edition from the ledger."""
