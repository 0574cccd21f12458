"""Benchmarks, as ratios to peers and to the limit of the server. See README.md."""
