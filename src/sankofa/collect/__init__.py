"""Fetches what is new from the publishers' own addresses, politely, and hands it to the ledger."""
