"""signals-v1: panels of derived observations, each with a documented method.

- `contract`: declares a panel and writes its methodology page; `panels/`: one file for each panel
- `tenders`: tenders and awards by month and quarter, each counted once
- `issuers`: organisations with reported figures, and their full years
"""
