"""Kinds of parameters: how the text of each kind is read, and what its JSON schema says.

A mistyped parameter must never silently return look-ahead, so everything is strict: ASCII digits,
real calendar days, nothing trimmed, nothing guessed.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Protocol

from sankofa.model.days import parse_day
from sankofa.model.places import country

JsonSchema = dict[str, Any]

_WHOLE = re.compile(r"[1-9][0-9]{0,99}\Z")
_ALPHA_2 = re.compile(r"[A-Za-z]{2}\Z")


@cache
def _anchored(pattern: str) -> re.Pattern[str]:
    """`$` would admit a line feed at the end."""
    return re.compile(pattern.removesuffix("$") + r"\Z")


class Kind(Protocol):
    """A kind of parameter."""

    def read(self, text: Any, today: date) -> Any:
        """The value of a text, or of JSON where only a tool takes it.

        Raises ValueError with a reason fit for the client.
        """

    def schema(self) -> JsonSchema:
        """What it takes, the same on every day."""


@dataclass(frozen=True)
class Text:
    """Text of a pattern (anchored) within a length."""

    pattern: str
    example: str = ""
    longest: int = 64

    def read(self, text: str, today: date) -> str:
        if len(text) > self.longest or not _anchored(self.pattern).match(text):
            raise ValueError(f"expected text matching {self.pattern}, at most {self.longest} characters")
        return text

    def schema(self) -> JsonSchema:
        schema: JsonSchema = {"type": "string", "pattern": self.pattern, "maxLength": self.longest}
        return schema | ({"examples": [self.example]} if self.example else {})


@dataclass(frozen=True)
class Choice:
    """One of a few words, spelled as documented."""

    words: tuple[str, ...]
    example: str = ""

    def read(self, text: str, today: date) -> str:
        if text not in self.words:
            raise ValueError(f"expected one of {', '.join(self.words)}")
        return text

    def schema(self) -> JsonSchema:
        return {"type": "string", "enum": list(self.words), "examples": [self.example or self.words[0]]}


@dataclass(frozen=True)
class Day:
    """A calendar day; not after today where it asks what was known."""

    past: bool = False
    example: str = "2024-06-30"

    def read(self, text: str, today: date) -> date:
        day = parse_day(text)
        if self.past and day > today:
            raise ValueError("a day in the future: nothing is known of it yet")
        return day

    def schema(self) -> JsonSchema:
        return {"type": "string", "format": "date", "examples": [self.example]}


@dataclass(frozen=True)
class Whole:
    """A whole number of at least 1."""

    example: int = 25

    def read(self, text: str, today: date) -> int:
        if not _WHOLE.match(text):
            raise ValueError("expected a whole number of at least 1")
        return int(text)

    def schema(self) -> JsonSchema:
        return {"type": "integer", "minimum": 1, "examples": [self.example]}


@dataclass(frozen=True)
class Country:
    """A country by its alpha-2 code; one that is not covered simply has no rows."""

    def read(self, text: str, today: date) -> str:
        if not _ALPHA_2.match(text):
            raise ValueError("expected an ISO 3166-1 alpha-2 code")
        return text.upper()

    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "pattern": "^[A-Za-z]{2}$",
            "minLength": 2,
            "maxLength": 2,
            "examples": ["ZA"],
        }


@dataclass(frozen=True)
class Place:
    """A country by its alpha-2 or alpha-3 code; one that is not covered simply has no rows."""

    def read(self, text: str, today: date) -> str:
        if not re.match(r"[A-Za-z]{2,3}\Z", text):
            raise ValueError("expected an ISO 3166-1 alpha-2 or alpha-3 code")
        return country(text) or text.upper()

    def schema(self) -> JsonSchema:
        return {
            "type": "string",
            "pattern": "^[A-Za-z]{2,3}$",
            "minLength": 2,
            "maxLength": 3,
            "examples": ["ZA"],
        }


@dataclass(frozen=True)
class DayOrYear:
    """A calendar day, or a year as a number: which of them is taken, the mode decides."""

    example: str

    def read(self, text: str, today: date) -> date | int:
        return int(text) if re.match(r"[12][0-9]{3}\Z", text) else parse_day(text)

    def schema(self) -> JsonSchema:
        year = {"pattern": "^[12][0-9]{3}$"}
        return {"type": "string", "anyOf": [{"format": "date"}, year], "examples": [self.example]}


@dataclass(frozen=True)
class Words:
    """A list of names, for tools."""

    pattern: str
    example: str

    def read(self, text: object, today: date) -> tuple[str, ...]:
        if not isinstance(text, list) or not all(
            isinstance(w, str) and re.match(self.pattern, w) for w in text
        ):
            raise ValueError(f"expected a list of texts matching {self.pattern}")
        return tuple(text)

    def schema(self) -> JsonSchema:
        items = {"type": "string", "pattern": self.pattern}
        return {"type": "array", "items": items, "maxItems": 100, "examples": [[self.example]]}
