"""What a metric is: a small function whose parameters are its inputs and whose docstring is its methodology.

A parameter is a line item of the year (`revenue`) or of the year before (`prior_revenue`). The function
returns the numerator and the denominator, exactly; dividing and rounding happen once, here.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import NamedTuple

import msgspec

import sankofa.derive.metrics.formulas
from sankofa.derive.rounding import quotient
from sankofa.model.line_items import LINE_ITEMS

SET = "metrics-v1"
PRIOR = "prior_"
EXACT = Context(prec=400)
"""Wide enough for every sum and product of inputs: a figure has at most 121 digits."""

_ZERO = Decimal(0)


class Ratio(msgspec.Struct, frozen=True, gc=False):
    """An exact value, not yet divided."""

    numerator: Decimal
    denominator: Decimal

    def rounded(self) -> Decimal | None:
        """To 10 significant digits, half to even; None where the denominator is not above zero."""
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
        """The value from exact figures by input name; None where it is not computable."""
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
