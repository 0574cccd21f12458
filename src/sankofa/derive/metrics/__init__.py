"""metrics-v1: what is computed from an issuer's full-year figures, and on which days each value stands.

- `contract`: what a metric is; `formulas/`: one small function for each
- `year_ends`: on which days an issuer's full years end, as far as was known
- `full_years`: its full years, with the figures each holds today
- `standing`: on which days a value stands, and why it is missing on the others
- `derive`: the three put together, for one issuer
- `methodology`: the page that `methodology_ref` names
"""
