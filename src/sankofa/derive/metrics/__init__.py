"""metrics-v1: ratios of an issuer's full-year figures, and the days on which each value is valid.

- `metrics.toml`: the metrics; `contract`: computes their formulas and writes the methodology page of each
- `full_years`: the issuer's full years, with the figures of each
- `lines`, `routes`: a line item of one period, by the first route that a filing allows
- `period_views`: the figures of a period on each day they changed, and the identities they must satisfy
- `derive`: the values of one issuer
"""
