"""signals-v1: panels of derived observations, each with a documented method.

- `contract`: what a panel is; `panels/`: one file for each, its row and its method in it
- `calendar`: months and quarters, and when one is closed
- `tendering`, `awarding`: tenders and awards by period, each counted once
- `issuers`: organisations with reported figures, and their full years
- `methodology`: the page that `methodology_ref` names
"""
