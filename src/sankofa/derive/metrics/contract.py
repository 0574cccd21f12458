"""A metric is a row of `metrics.toml`: its unit, what it is, and its formula.

A name in a formula is a line item of the year (`revenue`) or of the year before (`prior_revenue`). A formula
is computed as one exact numerator and denominator; dividing and rounding happen once, here.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from functools import cache
from typing import Any, Final

from sankofa.model.figures import SIGNIFICANT_DIGITS, quotient
from sankofa.model.line_items import LINE_ITEMS, Route, routes
from sankofa.model.text import page_text, toml_table

SET = "metrics-v1"
PRIOR = "prior_"
BOTH = "="
"""Prefix of a line item that a formula uses with its value of the year before: both by one route."""
ANNIVERSARY_TOLERANCE = 10
"""Days by which the year before may end earlier or later than exactly one year ago (52/53-week years)."""
EXACT = Context(prec=400)
"""Wide enough for every sum and product of inputs: a figure has at most 121 digits."""

_ZERO, _ONE = Decimal(0), Decimal(1)


_Fraction = tuple[Decimal, Decimal]
_Term = Callable[[Sequence[Decimal]], _Fraction]
"""Computes a part of a formula, as numerator and denominator, from the values of its inputs."""
_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Decimal, Decimal, Decimal, Decimal], _Fraction]]] = {
    ast.Add: lambda a, b, c, d: (a * d + c * b, b * d),
    ast.Sub: lambda a, b, c, d: (a * d - c * b, b * d),
    ast.Mult: lambda a, b, c, d: (a * c, b * d),
    ast.Div: lambda a, b, c, d: (a * d, b * c),
}


class Form:
    """One way to compute a metric: a formula and the names of its inputs, this year's first."""

    def __init__(self, formula: str) -> None:
        tree = ast.parse(formula, mode="eval").body
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        names.sort(key=lambda name: (name.id.startswith(PRIOR), name.col_offset))
        self.inputs = tuple(dict.fromkeys(name.id for name in names))
        self.needs = frozenset(self.inputs)
        unknown = [name for name in self.inputs if name.removeprefix(PRIOR) not in LINE_ITEMS]
        if unknown:
            raise TypeError(f"{formula}: no line item {', '.join(unknown)}")
        alone = [
            name for name in self.inputs if name.startswith(PRIOR) and name[len(PRIOR) :] not in self.needs
        ]
        if alone:
            raise TypeError(f"{formula}: {', '.join(alone)} without that of the year itself")
        self.keys = tuple(BOTH + name if PRIOR + name in self.needs else name for name in self.inputs)
        """The names under which figures are looked up."""
        self._formula = self._term(tree)

    def value(self, values: Sequence[Decimal]) -> Decimal | None:
        """The value from those of the inputs; None if the denominator is not positive.

        In the context `EXACT` it is exact, until it is rounded to 10 significant digits, half to even.
        """
        numerator, denominator = self._formula(values)
        return quotient(numerator, denominator) if denominator > _ZERO else None

    def _term(self, node: ast.expr) -> _Term:
        if isinstance(node, ast.Name):
            position = self.inputs.index(node.id)
            return lambda values: (values[position], _ONE)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            number = (Decimal(node.value), _ONE)
            return lambda values: number
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right, combine = self._term(node.left), self._term(node.right), _ARITHMETIC[type(node.op)]
            return lambda values: combine(*left(values), *right(values))
        raise TypeError(f"{ast.unparse(node)}: expected names, whole numbers and + - * /")


class Metric:
    """A metric and its forms; the first form with all inputs reported is used."""

    def __init__(self, slug: str, declared: Mapping[str, Any]) -> None:
        self.slug = slug
        self.unit: str = declared["unit"]
        self.summary: str = declared["is"]
        self.explanation = "\n".join(declared["formulas"])
        self.forms = tuple(map(Form, declared["formulas"]))
        self.methodology_ref = f"{SET}/{slug}"


@cache
def metrics() -> tuple[Metric, ...]:
    return tuple(Metric(*declared) for declared in sorted(toml_table(__package__, "metrics").items()))


@cache
def slugs() -> tuple[str, ...]:
    return tuple(metric.slug for metric in metrics())


_PRIOR = f"""\
- No full year ended one year earlier, within {ANNIVERSARY_TOLERANCE} days.
- No single route leads to the figures of both years. Both ends of an average or a growth rate use the same
route.
"""


def _numbered(ways: Iterable[Route]) -> str:
    """The routes to a line item, as a list in order."""
    lines = []
    for number, route in enumerate(ways, 1):
        provisos = f" ({route.provisos})" if route.provisos else ""
        lines.append(f"{number}. `{route.text}`: {route.why}{provisos}\n")
    return "".join(lines)


def methodology(metric: Metric) -> str:
    names = dict.fromkeys(name for form in metric.forms for name in form.inputs)
    inputs = "".join(
        f"| {name.removeprefix(PRIOR)} | {'year before' if name.startswith(PRIOR) else 'this year'} |\n"
        for name in names
    )
    items = dict.fromkeys(name.removeprefix(PRIOR) for name in names)
    ways = "\n".join(f"### {item}\n\n{_numbered(routes(item))}" for item in items)
    return page_text(__package__, "methodology").format(
        slug=metric.slug,
        summary=metric.summary,
        chosen="The first of these whose inputs are all reported:\n\n" if len(metric.forms) > 1 else "",
        formulas=metric.explanation,
        unit=metric.unit,
        digits=SIGNIFICANT_DIGITS,
        set=SET,
        inputs=inputs,
        ways=ways,
        prior=_PRIOR if any(name.startswith(PRIOR) for name in names) else "",
    )
