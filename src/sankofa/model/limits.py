"""Bounds on what comes from outside: bytes, counts and waits.

`limit` declares a bound where its constant is defined. docs/reference/limits.md lists all bounds. The tests
fail if no test exceeds a bound (`pytest.mark.limit`).
"""

import sys
from typing import NamedTuple, TypeVar

_Number = TypeVar("_Number", int, float)


class Limit(NamedTuple):
    """A bound, as the documentation lists it."""

    name: str
    value: float
    unit: str
    beyond: str
    """The consequence of exceeding it."""
    module: str


declared: dict[str, Limit] = {}
"""Limits of the imported modules, by name."""


def limit(name: str, value: _Number, unit: str, beyond: str) -> _Number:
    """Declare a bound; returns its value."""
    module = sys._getframe(1).f_globals["__name__"]
    if declared.setdefault(name, bound := Limit(name, value, unit, beyond, module)) != bound:
        raise ValueError(f"two limits are named {name!r}")
    return value
