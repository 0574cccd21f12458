"""metrics-v1: what is computed from an issuer's full-year figures, and on which days each value stands.

- `contract`: what a metric is; `formulas/`: one small function for each
- `full_years`: an issuer's full years, with the figures each holds today
- `standing`: on which days a value stands, and why it is missing on the others
- `derive`: the three put together, for one issuer
- `methodology`: the page that `methodology_ref` names
"""
