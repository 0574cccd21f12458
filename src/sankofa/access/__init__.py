"""Keys, tiers, quotas and cursors: who may send requests, how many, and for which rows."""
