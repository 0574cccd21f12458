"""A metric is a small function: its parameters are its inputs, its docstring is its methodology.

A parameter is a line item of the year (`revenue`) or of the year before (`prior_revenue`). The function
returns the numerator and the denominator, exactly; dividing and rounding happen once, here.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import NamedTuple

import msgspec

import sankofa.derive.metrics.formulas
from sankofa.derive.rounding import SIGNIFICANT_DIGITS, quotient
from sankofa.model.line_items import LINE_ITEMS, Route, routes

SET = "metrics-v1"
PRIOR = "prior_"
ANNIVERSARY_TOLERANCE = 10
"""Days by which the year before may end earlier or later than one year ago: 52/53-week years."""
EXACT = Context(prec=400)
"""Wide enough for every sum and product of inputs: a figure has at most 121 digits."""

_ZERO = Decimal(0)


class Ratio(msgspec.Struct, frozen=True, gc=False):
    """An exact value, not yet divided."""

    numerator: Decimal
    denominator: Decimal

    def rounded(self) -> Decimal | None:
        """A ratio to 10 significant digits, half to even; None if the denominator is not positive."""
        return quotient(self.numerator, self.denominator) if self.denominator > _ZERO else None


Formula = Callable[..., Ratio]


class Form(NamedTuple):
    """One way to compute a metric: the inputs it needs, by name."""

    inputs: tuple[str, ...]
    needs: frozenset[str]
    formula: Formula


class Metric:
    """A metric: its forms, the first whose inputs are all there being taken."""

    def __init__(self, formula: Formula, unit: str) -> None:
        self.slug = formula.__name__
        self.unit = unit
        self.summary, _, rest = inspect.cleandoc(formula.__doc__ or "").partition("\n")
        self.explanation = rest.strip("\n")
        self.forms: tuple[Form, ...] = (_form(formula),)
        self.methodology_ref = f"{SET}/{self.slug}"

    def otherwise(self, formula: Formula) -> "Metric":
        """Declare the form to take where an input of those before is absent."""
        self.forms += (_form(formula),)
        return self

    def __call__(self, inputs: Mapping[str, Decimal]) -> Decimal | None:
        """The value from exact figures by input name; None if it is not computable."""
        with localcontext(EXACT):
            for form in self.forms:
                if form.needs <= inputs.keys():
                    return form.formula(*(inputs[name] for name in form.inputs)).rounded()
        return None


def _form(formula: Formula) -> Form:
    inputs = tuple(inspect.signature(formula).parameters)
    unknown = [name for name in inputs if name.removeprefix(PRIOR) not in LINE_ITEMS]
    if unknown:
        raise TypeError(f"{formula.__name__}: no line item {', '.join(unknown)}")
    alone = [name for name in inputs if name.startswith(PRIOR) and name.removeprefix(PRIOR) not in inputs]
    if alone:
        raise TypeError(f"{formula.__name__}: {', '.join(alone)} without that of the year itself")
    return Form(inputs, frozenset(inputs), formula)


_METRICS: dict[str, Metric] = {}


def metric(unit: str) -> Callable[[Formula], Metric]:
    """Declare the function below as a metric in this unit, under its own name."""

    def declare(formula: Formula) -> Metric:
        declared = _METRICS[formula.__name__] = Metric(formula, unit)
        return declared

    return declare


@cache
def metrics() -> tuple[Metric, ...]:
    """Every metric by slug: each module of the formulas package declares some."""
    for module in pkgutil.iter_modules(sankofa.derive.metrics.formulas.__path__):
        importlib.import_module(f"sankofa.derive.metrics.formulas.{module.name}")
    return tuple(_METRICS[slug] for slug in sorted(_METRICS))


@cache
def slugs() -> tuple[str, ...]:
    return tuple(metric.slug for metric in metrics())


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

With `basis=as_known` rule 1 holds, and the value is the one that the filings public by that day give. Nothing
filed later leaves it out.
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
