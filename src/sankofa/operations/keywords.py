"""JSON Schema keywords as checks: what the schema of a parameter declares is what its reader enforces.

See contract: PAR-2.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from sankofa.model.days import parse_day

JsonSchema = dict[str, Any]
Check = Callable[[Any], bool]

_ANNOTATIONS: Final = frozenset({"examples", "description", "default"})
_TYPES: Final[dict[str, type]] = {"string": str, "integer": int, "array": list}


def admits(schema: JsonSchema) -> Check:
    """Whether a value satisfies every keyword of a schema.

    Raises TypeError for a keyword that nothing here enforces: it could not be honoured.
    """
    if unknown := schema.keys() - _ANNOTATIONS - _KEYWORDS.keys():
        raise TypeError(f"no reader enforces {', '.join(sorted(unknown))}")
    # Length and number first: no pattern is tried on what is too long, no item looked at of too many.
    checks = [check(schema[keyword]) for keyword, check in _KEYWORDS.items() if keyword in schema]

    def satisfied(value: Any) -> bool:
        for check in checks:  # noqa: SIM110 - a generator would be made for every parameter of every request
            if not check(value):
                return False
        return True

    return satisfied


def whole_match(pattern: str) -> re.Pattern[str]:
    """A pattern of JSON Schema for `match`: in Python `$` would admit a line feed at the end."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise TypeError(f"pattern {pattern} is not anchored at both ends")
    return re.compile(pattern.removesuffix("$") + r"\Z")


def _type(name: str) -> Check:
    expected = _TYPES[name]
    return lambda value: type(value) is expected


def _pattern(pattern: str) -> Check:
    match = whole_match(pattern).match
    return lambda text: match(text) is not None


def _format(name: str) -> Check:
    if name != "date":
        raise TypeError(f"format {name} is not enforced")

    def is_day(text: str) -> bool:
        try:
            parse_day(text)
        except ValueError:
            return False
        return True

    return is_day


def _any_of(schemas: list[JsonSchema]) -> Check:
    checks = [admits(schema) for schema in schemas]
    return lambda value: any(check(value) for check in checks)


def _items(schema: JsonSchema) -> Check:
    check = admits(schema)
    return lambda values: all(map(check, values))


_KEYWORDS: Final[dict[str, Callable[[Any], Check]]] = {
    "type": _type,
    "maxLength": lambda most: lambda text: len(text) <= most,
    "minLength": lambda least: lambda text: len(text) >= least,
    "maxItems": lambda most: lambda values: len(values) <= most,
    "minItems": lambda least: lambda values: len(values) >= least,
    "minimum": lambda least: lambda number: number >= least,
    "maximum": lambda most: lambda number: number <= most,
    "enum": lambda words: frozenset(words).__contains__,
    "pattern": _pattern,
    "format": _format,
    "anyOf": _any_of,
    "items": _items,
    "uniqueItems": lambda unique: lambda values: not unique or len(set(values)) == len(values),
}
"""In the order in which they are checked."""
