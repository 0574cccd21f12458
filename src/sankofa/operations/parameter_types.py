"""Kinds of parameters: how the text of each kind is read, and what its JSON schema says.

A mistyped parameter must never silently return look-ahead, so everything is strict: ASCII digits, real
calendar days, nothing trimmed, nothing guessed. A schema declares exactly what its reader enforces (contract:
PAR-2). Length is checked before any pattern.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Protocol

from sankofa.model.countries import country
from sankofa.model.days import parse_day

JsonSchema = dict[str, Any]


def whole_match(pattern: str) -> re.Pattern[str]:
    """Converts a JSON Schema pattern for `match`: in Python, `$` would accept a final line feed."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise TypeError(f"pattern {pattern} is not anchored at both ends")
    return re.compile(pattern.removesuffix("$") + r"\Z")


_WHOLE = whole_match("^[1-9][0-9]{0,99}$")
_PLAIN = whole_match("^[0-9]{1,15}([.][0-9]{1,15})?$")
_YEAR_PATTERN: Final = "^[12][0-9]{3}$"
_YEAR = whole_match(_YEAR_PATTERN)
INSTANT_PATTERN: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
_INSTANT = whole_match(INSTANT_PATTERN)
_LONGEST_INSTANT: Final = 64
IN_THE_FUTURE: Final = "a day in the future: nothing is known yet"


class ParameterType(Protocol):
    def read(self, text: Any, today: date) -> Any:
        """Parses a text, or JSON in a tool call.

        Raises ValueError with a reason fit for the client.
        """

    def schema(self) -> JsonSchema:
        """The JSON schema of accepted values, the same on every day."""


@dataclass(frozen=True)
class Text:
    """Text that matches an anchored pattern, up to a length."""

    pattern: str
    example: str = ""
    longest: int = 64

    @cached_property
    def _match(self) -> Callable[[str], object]:
        return whole_match(self.pattern).match

    def read(self, text: str, today: date) -> str:
        if len(text) > self.longest or not self._match(text):
            such_as = f", such as {self.example}" if self.example else ""
            raise ValueError(
                f"expected text matching {self.pattern}, at most {self.longest} characters{such_as}"
            )
        return text

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {"type": "string", "pattern": self.pattern, "maxLength": self.longest}
        return schema | ({"examples": [self.example]} if self.example else {})


@dataclass(frozen=True)
class Choice:
    """One of a few words, spelled exactly as documented."""

    words: tuple[str, ...]
    example: str = ""

    def read(self, text: str, today: date) -> str:
        if text not in self.words:
            raise ValueError(f"expected one of {', '.join(self.words)}{_nearest(text, self.words)}")
        return text

    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.words), "examples": [self.example or self.words[0]]}


@dataclass(frozen=True)
class Choices:
    """A subset of a few words: separated by commas in a query, a list in a tool call."""

    words: tuple[str, ...]
    examples: tuple[str, ...]

    def read(self, text: object, today: date) -> tuple[str, ...]:
        words = _listed(text, len(self.words))
        if not words or not {*words} <= {*self.words}:
            unknown = next((one for one in words if one not in self.words), "")
            nearest = _nearest(unknown, self.words)
            raise ValueError(f"expected a list out of {', '.join(self.words)}{nearest}")
        return tuple(dict.fromkeys(words))

    def schema(self) -> JsonSchema:
        return _list_of({"type": "string", "enum": list(self.words)}, len(self.words), self.examples)


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
class Instant:
    """An instant as RFC 3339 writes it, with its offset from UTC."""

    def read(self, text: str, today: date) -> datetime:
        if len(text) > _LONGEST_INSTANT or not _INSTANT.match(text):
            raise ValueError("expected an instant such as 2026-07-01T06:00:00Z")
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError("expected an instant that exists, such as 2026-07-01T06:00:00Z") from None

    def schema(self) -> JsonSchema:
        return {"type": "string", "pattern": INSTANT_PATTERN, "maxLength": _LONGEST_INSTANT}


@dataclass(frozen=True)
class Whole:
    """A whole number of at least 1, and at most `most` where that is given."""

    example: int = 25
    most: int | None = None

    def read(self, text: str, today: date) -> int:
        number = int(text) if _WHOLE.match(text) else 0
        if not 1 <= number <= (self.most or number):
            expected = "of at least 1" if self.most is None else f"from 1 to {self.most}"
            raise ValueError(f"expected a whole number {expected}")
        return number

    def schema(self) -> JsonSchema:
        bound = {} if self.most is None else {"maximum": self.most}
        return {"type": "integer", "minimum": 1, **bound, "examples": [self.example]}


@dataclass(frozen=True)
class Number:
    """A number of at least 0, without exponent."""

    example: float = 0.01

    def read(self, text: str, today: date) -> Decimal:
        if not _PLAIN.match(text):
            raise ValueError("expected a number of at least 0 such as 0.01, with at most 15 decimals")
        return Decimal(text)

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": 0, "maximum": 10**15, "examples": [self.example]}


@dataclass(frozen=True)
class Country:
    """A country's alpha-2 code, or with `alpha3` also its alpha-3 code. An unknown country has no rows."""

    alpha3: bool = False

    def read(self, text: str, today: date) -> str:
        if not (len(text) in (2, 2 + self.alpha3) and text.isascii() and text.isalpha()):
            raise ValueError(f"expected an ISO 3166-1 alpha-2 {'or alpha-3 ' if self.alpha3 else ''}code")
        return country(text) or text.upper()

    def schema(self) -> JsonSchema:
        return _letters("^[A-Za-z]{2,3}$" if self.alpha3 else "^[A-Za-z]{2}$", 2, 2 + self.alpha3, "ZA")


@dataclass(frozen=True)
class Currency:
    """An ISO 4217 currency code, in any case. An unknown currency has no rows."""

    example: str

    def read(self, text: str, today: date) -> str:
        if not (len(text) == 3 and text.isascii() and text.isalpha()):
            raise ValueError("expected an ISO 4217 code")
        return text.upper()

    def schema(self) -> JsonSchema:
        return _letters("^[A-Za-z]{3}$", 3, 3, self.example)


def _letters(pattern: str, shortest: int, longest: int, example: str) -> JsonSchema:
    lengths = {"minLength": shortest, "maxLength": longest}
    return {"type": "string", "pattern": pattern, **lengths, "examples": [example]}


@dataclass(frozen=True)
class DayOrYear:
    """A calendar day, or a year as a number; the operation decides which it accepts."""

    example: str

    def read(self, text: str, today: date) -> date | int:
        try:
            return int(text) if _YEAR.match(text) else parse_day(text)
        except ValueError:
            raise ValueError("expected an existing date as YYYY-MM-DD, or a year") from None

    def schema(self) -> JsonSchema:
        year = {"pattern": _YEAR_PATTERN}
        return {"type": "string", "anyOf": [{"format": "date"}, year], "examples": [self.example]}


@dataclass(frozen=True)
class Words:
    """A list of names: separated by commas in a query, a list in a tool call."""

    pattern: str
    example: str
    longest: int
    most: int = 100

    def read(self, text: object, today: date) -> tuple[str, ...]:
        names = _listed(text, self.most)
        match = whole_match(self.pattern).match
        if not names or not all(len(name) <= self.longest and match(name) for name in names):
            raise ValueError(f"expected a list of 1 to {self.most} texts matching {self.pattern}")
        return tuple(names)

    def schema(self) -> JsonSchema:
        items = {"type": "string", "pattern": self.pattern, "maxLength": self.longest}
        return _list_of(items, self.most, (self.example,))


def _list_of(items: JsonSchema, most: int, examples: Sequence[str]) -> JsonSchema:
    bounds = {"minItems": 1, "maxItems": most}
    return {"type": "array", "items": items, **bounds, "examples": [list(examples)]}


def _nearest(text: str, words: Sequence[str]) -> str:
    """The words most like a text, in any case, for the message that refuses it."""
    by_text = {word.lower(): word for word in words}
    near = [by_text[one] for one in get_close_matches(text.lower()[:64], by_text, 3)]
    return f"; nearest: {', '.join(near)}" if near else ""


def _listed(text: object, most: int) -> list[str]:
    """The texts of a list; none if there are too many or one is not a text."""
    names = text.split(",") if isinstance(text, str) else text
    if not isinstance(names, list) or len(names) > most or not all(type(one) is str for one in names):
        return []
    return names
