"""The page that `methodology_ref` names: method, columns, and what holds for every panel."""

from typing import get_args, get_type_hints

from msgspec import Meta

from sankofa.derive.rounding import SIGNIFICANT_DIGITS
from sankofa.derive.signals.contract import SET, Panel

_TERMS = {
    "open": "Open: its file is published under CC-BY-4.0 and needs no key.",
    "licensed": "Licensed: its file needs a key of a paid tier.",
}


def methodology(panel: Panel) -> str:
    """The page of a panel, as Markdown."""
    columns = "".join(f"| {name} | {meaning} |\n" for name, meaning in columns_of(panel))
    return f"""\
# {panel.key}

{panel.summary}

{_TERMS[panel.access]} Computed from {panel.sku}. Part of {SET}.

## Method

{panel.explanation}

## Columns

| column | meaning |
|---|---|
{columns}
## What holds for every panel

{common_rules()}
"""


def common_rules() -> str:
    """The text that is the same for every panel."""
    return f"""\
- Ratios, indices and deviations are computed exactly and then rounded half-even to {SIGNIFICANT_DIGITS}
  significant digits. Counts and sums are not rounded.
- A value that lacks one of its inputs is null. Nothing is estimated; absent is never zero.
- `source_ref` is that of the first of a row's inputs, `license_class` the strictest class of all of them,
  `observed_at` the latest capture among them. A row derived from anything that is held under
  `statutory-filing` or `licensed-redistribution` is in no open file."""


def columns_of(panel: Panel) -> list[tuple[str, str]]:
    """The fields of a panel's rows, and what each means."""
    hints = get_type_hints(panel.row, include_extras=True)
    return [
        (name, next(m.description for m in get_args(hints[name]) if isinstance(m, Meta) and m.description))
        for name in panel.row.__struct_fields__
    ]
