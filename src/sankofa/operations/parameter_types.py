"""Kinds of parameters: how the text of each kind is read, and what its JSON schema says.

A mistyped parameter must never silently return look-ahead, so everything is strict: ASCII digits, real
calendar days, nothing trimmed, nothing guessed. A schema declares exactly what its reader enforces
(contract: PAR-2).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Protocol

from sankofa.model.countries import country
from sankofa.model.days import parse_day

JsonSchema = dict[str, Any]
Check = Callable[[Any], bool]

_ANNOTATIONS: Final = frozenset({"examples", "description", "default"})
_TYPES: Final[dict[str, type]] = {"string": str, "integer": int, "number": Decimal, "array": list}


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


_WHOLE = whole_match("^[1-9][0-9]{0,99}$")
_PLAIN = whole_match("^[0-9]{1,15}([.][0-9]{1,15})?$")
_YEAR = "^[12][0-9]{3}$"
INSTANT_PATTERN: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
IN_THE_FUTURE: Final = "a day in the future: nothing is known of it yet"


class ParameterType(Protocol):
    """A kind of parameter."""

    def read(self, text: Any, today: date) -> Any:
        """The value of a text, or of JSON where only a tool takes it.

        Raises ValueError with a reason fit for the client.
        """

    def schema(self) -> JsonSchema:
        """The JSON schema of accepted values, the same on every day."""


class _Declared:
    """A kind that is validated by its own schema, so that the two cannot differ."""

    @cached_property
    def _admits(self) -> Check:
        return admits(self.schema())

    def schema(self) -> JsonSchema:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(_Declared):
    """Text of a pattern (anchored) within a length."""

    pattern: str
    example: str = ""
    longest: int = 64

    def read(self, text: str, today: date) -> str:
        if not self._admits(text):
            such_as = f", such as {self.example}" if self.example else ""
            raise ValueError(
                f"expected text matching {self.pattern}, at most {self.longest} characters{such_as}"
            )
        return text

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {"type": "string", "pattern": self.pattern, "maxLength": self.longest}
        return schema | ({"examples": [self.example]} if self.example else {})


@dataclass(frozen=True)
class Choice(_Declared):
    """One of a few words, spelled as documented."""

    words: tuple[str, ...]
    example: str = ""

    def read(self, text: str, today: date) -> str:
        if not self._admits(text):
            near = get_close_matches(text.lower()[:64], self.words, 3)
            meant = f"; nearest: {', '.join(near)}" if near else ""
            raise ValueError(f"expected one of {', '.join(self.words)}{meant}")
        return text

    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.words), "examples": [self.example or self.words[0]]}


@dataclass(frozen=True)
class Choices(_Declared):
    """A list out of a few words: in a query separated by commas, in a tool call a list."""

    words: tuple[str, ...]
    examples: tuple[str, ...]

    def read(self, text: object, today: date) -> tuple[str, ...]:
        words = text.split(",") if isinstance(text, str) else text
        if not self._admits(words) or not isinstance(words, list):
            unknown = [str(one) for one in words if one not in self.words] if isinstance(words, list) else []
            near = get_close_matches(unknown[0].lower()[:64], self.words, 3) if unknown else []
            meant = f"; nearest: {', '.join(near)}" if near else ""
            raise ValueError(f"expected a list out of {', '.join(self.words)}{meant}")
        return tuple(dict.fromkeys(words))

    def schema(self) -> JsonSchema:
        return {
            "type": "array",
            "items": {"type": "string", "enum": list(self.words)},
            "minItems": 1,
            "maxItems": len(self.words),
            "examples": [list(self.examples)],
        }


@dataclass(frozen=True)
class Day:
    """A calendar day; with `past`, one that is not after today."""

    past: bool = False
    example: str = "2024-06-30"

    def read(self, text: str, today: date) -> date:
        day = parse_day(text)
        if self.past and day > today:
            raise ValueError(IN_THE_FUTURE)
        return day

    def schema(self) -> JsonSchema:
        return {"type": "string", "format": "date", "examples": [self.example]}


@dataclass(frozen=True)
class Instant(_Declared):
    """An instant as RFC 3339 writes it, with its offset from UTC."""

    def read(self, text: str, today: date) -> datetime:
        if not self._admits(text):
            raise ValueError("expected an instant such as 2026-07-01T06:00:00Z")
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError("expected an instant that exists, such as 2026-07-01T06:00:00Z") from None

    def schema(self) -> JsonSchema:
        return {"type": "string", "pattern": INSTANT_PATTERN, "maxLength": 64}


@dataclass(frozen=True)
class Whole(_Declared):
    """A whole number of at least 1, and at most `most` where that is given."""

    example: int = 25
    most: int | None = None

    def read(self, text: str, today: date) -> int:
        number = int(text) if _WHOLE.match(text) else 0
        if not self._admits(number):
            expected = "of at least 1" if self.most is None else f"from 1 to {self.most}"
            raise ValueError(f"expected a whole number {expected}")
        return number

    def schema(self) -> JsonSchema:
        bound = {} if self.most is None else {"maximum": self.most}
        return {"type": "integer", "minimum": 1, **bound, "examples": [self.example]}


@dataclass(frozen=True)
class Number(_Declared):
    """A number of at least 0, without exponent."""

    example: float = 0.01

    def read(self, text: str, today: date) -> Decimal:
        if not _PLAIN.match(text):
            raise ValueError("expected a number of at least 0 such as 0.01, with at most 15 decimals")
        return Decimal(text)

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": 0, "maximum": 10**15, "examples": [self.example]}


@dataclass(frozen=True)
class Country(_Declared):
    """A country by its alpha-2 code, or by its alpha-3 code where `alpha3`. An unknown one has no rows."""

    alpha3: bool = False

    def read(self, text: str, today: date) -> str:
        if not self._admits(text):
            raise ValueError(f"expected an ISO 3166-1 alpha-2 {'or alpha-3 ' if self.alpha3 else ''}code")
        return country(text) or text.upper()

    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "pattern": "^[A-Za-z]{2,3}$" if self.alpha3 else "^[A-Za-z]{2}$",
            "minLength": 2,
            "maxLength": 3 if self.alpha3 else 2,
            "examples": ["ZA"],
        }


@dataclass(frozen=True)
class Currency(_Declared):
    """A currency by its ISO 4217 code, in any case. An unknown one has no rows."""

    example: str

    def read(self, text: str, today: date) -> str:
        if not self._admits(text):
            raise ValueError("expected an ISO 4217 code")
        return text.upper()

    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "pattern": "^[A-Za-z]{3}$",
            "minLength": 3,
            "maxLength": 3,
            "examples": [self.example],
        }


@dataclass(frozen=True)
class DayOrYear(_Declared):
    """A calendar day, or a year as a number; the operation decides which of the two it takes."""

    example: str

    def read(self, text: str, today: date) -> date | int:
        if not self._admits(text):
            raise ValueError("expected a date as YYYY-MM-DD that exists, or a year")
        return parse_day(text) if "-" in text else int(text)

    def schema(self) -> JsonSchema:
        year = {"pattern": _YEAR}
        return {"type": "string", "anyOf": [{"format": "date"}, year], "examples": [self.example]}


@dataclass(frozen=True)
class Words(_Declared):
    """A list of names: in a query separated by commas, in a tool call a list."""

    pattern: str
    example: str
    longest: int
    most: int = 100

    def read(self, text: object, today: date) -> tuple[str, ...]:
        names = text.split(",") if isinstance(text, str) else text
        if not self._admits(names) or not isinstance(names, list):
            raise ValueError(f"expected a list of 1 to {self.most} texts matching {self.pattern}")
        return tuple(names)

    def schema(self) -> JsonSchema:
        items = {"type": "string", "pattern": self.pattern, "maxLength": self.longest}
        return {
            "type": "array",
            "items": items,
            "minItems": 1,
            "maxItems": self.most,
            "examples": [[self.example]],
        }
