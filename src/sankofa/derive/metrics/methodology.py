"""The page that `methodology_ref` names: formula, inputs, routes, unit, and when there is no value."""

from collections.abc import Iterable

from sankofa.derive.metrics.contract import PRIOR, SET, Metric
from sankofa.derive.metrics.year_ends import ANNIVERSARY_TOLERANCE
from sankofa.derive.rounding import SIGNIFICANT_DIGITS
from sankofa.model.line_items import Route, routes

_NO_VALUE = """\
- An input is absent: no route leads to it. Absent is never zero, unless totals of the same filing leave
  nothing for it; those are among the inputs.
- The inputs are not all in one accounting standard and one currency: those of the latest filing by that day
  that reports the assets of the period.
- The denominator is zero or negative.
"""
_PRIOR = f"""\
- There is no full year that ended one year earlier, within {ANNIVERSARY_TOLERANCE} days.
- No route leads to the figures of both years: the two ends of an average or a growth rate come by the same
  one.
"""
_AS_OF = """\
1. Per issuer the latest full year published by that day counts: one of which a full-year fact was available
   by then, and not before the year ended.
2. Its value is returned only if the filings public by that day give what all filings give today: the same
   figures, in the same vintages, by the same routes.
3. When that year was revised or completed later, the value is left out. It is not replaced by the revised
   value or an older year.
4. Values are recomputed from current figures. A later restatement can remove a value from a past day; it
   never adds one dated before its filing.
"""


def _numbered(ways: Iterable[Route]) -> str:
    """The routes to a line item, as a list in order."""
    lines = []
    for number, route in enumerate(ways, 1):
        provisos = f" ({route.provisos})" if route.provisos else ""
        lines.append(f"{number}. `{route.text}`: {route.why}{provisos}\n")
    return "".join(lines)


def methodology(metric: Metric) -> str:
    """The page of a metric, as Markdown."""
    names = dict.fromkeys(name for form in metric.forms for name in form.inputs)
    inputs = "".join(
        f"| {name.removeprefix(PRIOR)} | {'year before' if name.startswith(PRIOR) else 'this year'} |\n"
        for name in names
    )
    items = dict.fromkeys(name.removeprefix(PRIOR) for name in names)
    ways = "\n".join(f"### {item}\n\n{_numbered(routes(item))}" for item in items)
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

| line item | period |
|---|---|
{inputs}
## Routes

A line item is had by the first of its routes that a filing allows; what is added or taken away is all of one
filing, currency and period. The first filing that reports all terms of a route, and its proof where it asks
for one, decides; its guards look at that filing alone. `inputs` of a value name each figure with its concept.
Totals and members, equations, parts and identities are those of the reference of line items.

{ways}
## No value

{no_value}
## Under `as_of`

{_AS_OF}"""
