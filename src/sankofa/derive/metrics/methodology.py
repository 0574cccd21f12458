"""The page that `methodology_ref` names: formula, inputs, unit, and when there is no value."""

from sankofa.derive.metrics.contract import PRIOR, SET, Metric
from sankofa.derive.metrics.year_ends import ANNIVERSARY_TOLERANCE
from sankofa.derive.rounding import SIGNIFICANT_DIGITS
from sankofa.model.line_items import candidates

_NO_VALUE = """\
- An input is absent. Absent is never zero.
- The inputs are not all in one currency. Where they are there in several, the currency in which more of the
  year's line items are reported is taken; of equally many, the one in which they were reported first.
- The denominator is zero or negative.
"""
_PRIOR = f"""\
- There is no full year that ended one year earlier, within {ANNIVERSARY_TOLERANCE} days.
"""
_AS_OF = """\
1. Per issuer the latest full year published by that day counts: one of which any full-year fact was
   available.
2. Its value is returned only if every filing it is computed from was available by then with the figures it
   holds today.
3. When that year was revised or completed later, the value is left out. It is not replaced by the revised
   value or an older year.
4. Values are recomputed from current figures. A later restatement can remove a value from a past day; it
   never adds one dated before its filing.
"""


def methodology(metric: Metric) -> str:
    """The page of a metric, as Markdown."""
    names = dict.fromkeys(name for form in metric.forms for name in form.inputs)
    inputs = "".join(
        f"| {name.removeprefix(PRIOR)} | {'year before' if name.startswith(PRIOR) else 'this year'} "
        f"| {', '.join(f'`{c}`' for c in candidates(name.removeprefix(PRIOR)))} |\n"
        for name in names
    )
    no_value = _NO_VALUE + (_PRIOR if any(name.startswith(PRIOR) for name in names) else "")
    formulas = "\n".join(line.strip() for line in metric.explanation.splitlines())
    chosen = "The first of these whose inputs are all reported:\n\n" if len(metric.forms) > 1 else ""
    return f"""\
# {metric.slug}

{metric.summary}

## Formula

{chosen}```text
{formulas}
```

Unit: {metric.unit}. Computed in exact decimal arithmetic from the figures as reported, then rounded half-even
to {SIGNIFICANT_DIGITS} significant digits. Part of {SET}.

## Inputs

Full-year figures of the issuer, the latest vintage of each: rows of `/v1/fundamentals` with `period_type=FY`.
Where several concepts can stand for a line item, the first reported one is taken, in this order.

| line item | period | concepts |
|---|---|---|
{inputs}
## No value

{no_value}
## Under `as_of`

{_AS_OF}"""
