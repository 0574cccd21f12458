"""The keys under which the rows of a panel are kept: one for every question that its filters allow."""


def panel_key(*values: str) -> str:
    """The key of the rows that have these values of the filters; of all rows where there are no filters."""
    return "|".join(values)


def is_widest(key: str) -> bool:
    """Whether one filter alone names it: each row is under one such key, and again under narrower ones."""
    return "|" not in key
