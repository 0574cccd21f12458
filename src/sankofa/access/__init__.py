"""Keys, tiers, quotas and cursors: who may ask, how often, and for how much."""
