"""signals-v1: panels of derived observations, each with a documented method.

- `contract`: declares a panel, gives the fields that rows of issuers share, and writes methodology pages
- `panels/`: the panels
- `tenders`: tenders and awards by month and quarter, each counted once
"""
